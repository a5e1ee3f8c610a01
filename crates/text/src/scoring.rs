//! The score of each term in a document.

use crate::TextFields;
use crate::terms::Rules;
use bunko_bson::DocumentRef;
use bunko_errors::Result;
use std::collections::BTreeMap;

/// Factor for a text that consists of the term and nothing else.
const WHOLE_TEXT: f64 = 1.1;

/// Steps of work that each term counts for: its word is folded, looked up and stemmed.
const STEPS_PER_TERM: usize = 16;

/// One term in one text.
#[derive(Default)]
struct Occurrences {
    count: f64,
    /// Sum over all occurrences: the first counts 1, and each further one half of the one before.
    frequency: f64,
    next: Option<f64>,
}

impl TextFields {
    /// The terms of a document with their scores: the sum, over its texts, of the field's weight times the term's
    /// frequency times its share of the text.
    /// `ask` is called with the steps of work before they are done. Its error ends the work.
    /// # Errors
    /// 17261 if the document's language is not a string, 17262 if it is unknown; the error of `ask`.
    pub fn scores(
        &self,
        document: DocumentRef<'_>,
        ask: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<BTreeMap<String, f64>> {
        let rules = Rules::of_index(self.version);
        let mut scores: BTreeMap<String, f64> = BTreeMap::new();
        self.each_text(document, &mut |of| {
            let mut terms: BTreeMap<String, Occurrences> = BTreeMap::new();
            let mut length = 0.0;
            for term in rules.terms(of.text, of.language) {
                ask(STEPS_PER_TERM)?;
                let occurrences = terms.entry(term).or_default();
                let worth = occurrences.next.unwrap_or(1.0);
                occurrences.next = Some(worth / 2.0);
                occurrences.frequency += worth;
                occurrences.count += 1.0;
                length += 1.0;
            }
            for (term, Occurrences { count, frequency, .. }) in terms {
                let part = 0.5 * count / length + 0.5;
                let whole = if of.text.eq_ignore_ascii_case(&term) { WHOLE_TEXT } else { 1.0 };
                *scores.entry(term).or_default() += of.weight * frequency * part * whole;
            }
            Ok(())
        })?;
        Ok(scores)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_testkit::shell;

    fn scores(document: &str) -> Vec<(String, f64)> {
        let spec = "{weights: {a: 1, b: 10}, default_language: 'en', language_override: 'l', textIndexVersion: 3}";
        let spec = shell::parse_document(spec).expect("a specification");
        let fields = TextFields::of(spec.as_ref()).expect("fields");
        let document = shell::parse_document(document).expect("a document");
        fields.scores(document.as_ref(), &mut |_| Ok(())).expect("scores").into_iter().collect()
    }

    #[test]
    fn long_texts_are_given_up_soon() {
        let spec = "{weights: {a: 1}, default_language: 'en', language_override: 'l', textIndexVersion: 3}";
        let fields = TextFields::of(shell::parse_document(spec).expect("a specification").as_ref()).expect("fields");
        let document = bunko_bson::DocumentBuf::new().with("a", "cake ".repeat(100_000).as_str());
        let mut left = 1000_usize;
        let scores = fields.scores(document.as_ref(), &mut |steps| {
            left = left.checked_sub(steps).ok_or_else(|| bunko_errors::Failure::bad_value("that is enough"))?;
            Ok(())
        });
        assert!(scores.is_err());
    }

    #[test]
    fn scores_are_those_of_the_manual() {
        // The examples of the manual's page about `$text`.
        assert_eq!(scores("{a: 'coffee and cream'}"), [("coffe".to_owned(), 0.75), ("cream".to_owned(), 0.75)]);
        assert_eq!(scores("{a: 'coffee'}"), [("coffe".to_owned(), 1.0)]);
        assert_eq!(scores("{a: 'cake'}"), [("cake".to_owned(), 1.1)]);
        assert_eq!(scores("{a: 'apple apple apple'}"), [("appl".to_owned(), 1.75)]);
        assert_eq!(scores("{a: 'big cakes', b: 'cake'}"), [("big".to_owned(), 0.75), ("cake".to_owned(), 11.75)]);
    }
}
