//! The language of `$search`: terms, phrases, and negated terms and phrases.
//!
//! Source: MongoDB manual, "$text".

use crate::terms::Rules;
use crate::{Language, TextFields};
use bunko_bson::DocumentRef;
use bunko_errors::Result;
use bunko_operation::OperationContext;
use std::collections::BTreeSet;

/// A parsed text search.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// Terms in the form in which indexes hold them. A document must have one of them.
    pub terms: BTreeSet<String>,
    /// Terms that documents must not have.
    pub negated_terms: BTreeSet<String>,
    /// Phrases as they were written. A document must have all of them.
    pub phrases: Vec<String>,
    /// Phrases that documents must not have.
    pub negated_phrases: Vec<String>,
    /// The language of the search.
    pub language: Language,
    /// The rules by which words of the search are compared with words of documents.
    pub rules: Rules,
    /// [`Self::terms`] by the search's own rules; `None` if these are the index's rules.
    exact_terms: Option<BTreeSet<String>>,
}

/// Whether a word or phrase must be in the document, or must not.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sense {
    Wanted,
    Negated,
}

/// Position of a word in the search.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WordContext {
    Alone,
    InPhrase,
}

/// The words and phrases of a search, before terms are made of them.
#[derive(Default)]
struct Read {
    wanted: String,
    negated: String,
    phrases: Vec<String>,
    negated_phrases: Vec<String>,
}

impl Search {
    /// Reads a search.
    pub fn parse(text: &str, language: Language, rules: Rules) -> Self {
        let read = Read::of(text);
        let of_index = Rules::of_index(rules.version);
        let terms = |text: &str, rules: Rules| rules.terms(text, language).collect();
        Self {
            terms: terms(&read.wanted, of_index),
            negated_terms: terms(&read.negated, rules),
            phrases: read.phrases,
            negated_phrases: read.negated_phrases,
            exact_terms: (rules != of_index).then(|| terms(&read.wanted, rules)),
            language,
            rules,
        }
    }

    /// Whether every document with one of the terms matches, so that the index alone decides.
    pub fn is_decided_by_terms(&self) -> bool {
        self.exact_terms.is_none()
            && self.negated_terms.is_empty()
            && self.phrases.is_empty()
            && self.negated_phrases.is_empty()
    }

    /// Whether a document matches the search.
    /// # Errors
    /// As [`OperationContext::work`]; 17261 and 17262 for the language of the document.
    pub fn matches(
        &self,
        fields: &TextFields,
        document: DocumentRef<'_>,
        operation: Option<&OperationContext>,
    ) -> Result<bool> {
        self.check(fields, document, self.exact_terms.as_ref().unwrap_or(&self.terms), operation)
    }

    /// As [`Self::matches`], for a document that is known to have one of the terms of the index.
    /// # Errors
    /// As [`Self::matches`].
    pub fn matches_beyond_terms(
        &self,
        fields: &TextFields,
        document: DocumentRef<'_>,
        operation: Option<&OperationContext>,
    ) -> Result<bool> {
        match &self.exact_terms {
            Some(terms) => self.check(fields, document, terms, operation),
            None if self.is_decided_by_terms() => Ok(true),
            None => self.check(fields, document, &self.terms, operation),
        }
    }

    fn check(
        &self,
        fields: &TextFields,
        document: DocumentRef<'_>,
        wanted: &BTreeSet<String>,
        operation: Option<&OperationContext>,
    ) -> Result<bool> {
        let (mut has_term, mut has_negated) = (false, false);
        let mut found = vec![false; self.phrases.len()];
        let has_phrases = !self.phrases.is_empty() || !self.negated_phrases.is_empty();
        fields.each_text(document, &mut |of| {
            if let Some(operation) = operation {
                operation.work(1 + of.text.len() / 8)?;
            }
            if has_negated || (has_term && self.negated_terms.is_empty() && !has_phrases) {
                return Ok(());
            }
            for term in self.rules.terms(of.text, of.language) {
                has_term |= wanted.contains(&term);
                has_negated |= self.negated_terms.contains(&term);
            }
            if has_phrases {
                let text = self.rules.plain_text(of.text, of.language);
                let has = |phrase: &String| text.contains(&self.rules.plain_text(phrase, of.language));
                for (found, phrase) in found.iter_mut().zip(&self.phrases) {
                    *found = *found || has(phrase);
                }
                has_negated |= self.negated_phrases.iter().any(has);
            }
            Ok(())
        })?;
        Ok(has_term && !has_negated && found.into_iter().all(|found| found))
    }
}

impl Read {
    /// Splits a search into words and phrases. A minus at the beginning of a word negates up to the next space. Quotes
    /// enclose phrases, whose words are terms too unless the phrase is negated.
    fn of(text: &str) -> Self {
        let mut read = Self::default();
        let mut sense = Sense::Wanted;
        let mut phrase: Option<usize> = None;
        let mut word: Option<usize> = None;
        let mut is_behind_space = true;
        // The space after the text ends its last word.
        for (place, letter) in text.char_indices().chain(std::iter::once((text.len(), ' '))) {
            let is_of_word = !letter.is_whitespace() && !matches!(letter, '-' | '"');
            if is_of_word && word.is_some() {
                continue;
            }
            if let Some(start) = word.take() {
                let of = if phrase.is_some() { WordContext::InPhrase } else { WordContext::Alone };
                read.add_word(&text[start..place], sense, of);
                is_behind_space = false;
            }
            match letter {
                _ if is_of_word => {
                    if is_behind_space && phrase.is_none() {
                        sense = Sense::Wanted;
                    }
                    word = Some(place);
                }
                '-' if is_behind_space && phrase.is_none() => sense = Sense::Negated,
                '"' => match phrase.take() {
                    Some(start) => read.add_phrase(&text[start..place], sense),
                    None => {
                        if is_behind_space {
                            sense = Sense::Wanted;
                        }
                        phrase = Some(place + 1);
                    }
                },
                _ => {}
            }
            is_behind_space = letter.is_whitespace();
        }
        read
    }

    fn add_word(&mut self, word: &str, sense: Sense, place: WordContext) {
        let words = match (sense, place) {
            (Sense::Wanted, _) => &mut self.wanted,
            (Sense::Negated, WordContext::Alone) => &mut self.negated,
            // Only the whole phrase must be absent; its words may occur.
            (Sense::Negated, WordContext::InPhrase) => return,
        };
        words.push_str(word);
        words.push(' ');
    }

    fn add_phrase(&mut self, phrase: &str, sense: Sense) {
        let phrases = match sense {
            Sense::Wanted => &mut self.phrases,
            Sense::Negated => &mut self.negated_phrases,
        };
        phrases.push(phrase.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CaseRule, DiacriticRule, TextVersion};
    use bunko_testkit::shell;

    fn read(text: &str) -> String {
        let Read { wanted, negated, phrases, negated_phrases } = Read::of(text);
        format!("{} | {} | {} | {}", wanted.trim(), negated.trim(), phrases.join(", "), negated_phrases.join(", "))
    }

    #[test]
    fn words_and_phrases_are_wanted_or_negated() {
        assert_eq!(read("coffee shop"), "coffee shop |  |  | ");
        assert_eq!(read("coffee -shop cake"), "coffee cake | shop |  | ");
        assert_eq!(read("-foo-bar baz"), "baz | foo bar |  | ");
        assert_eq!(read("pre-market a - b"), "pre market a b |  |  | ");
        assert_eq!(read("\"coffee shop\" tea"), "coffee shop tea |  | coffee shop | ");
        assert_eq!(read("tea -\"coffee shop\"-\"x y\" z"), "tea z |  |  | coffee shop, x y");
        assert_eq!(read("\"un-closed tea"), "un closed tea |  |  | ");
        assert_eq!(read("- \"a b\""), "a b |  | a b | ");
        assert_eq!(read(""), " |  |  | ");
    }

    fn found(search: &str, rules: Rules, text: &str) -> bool {
        let spec = "{weights: {a: 1}, default_language: 'en', language_override: 'language', textIndexVersion: 3}";
        let spec = shell::parse_document(spec).expect("a specification");
        let fields = TextFields::of(spec.as_ref()).expect("fields");
        let document = bunko_bson::DocumentBuf::new().with("a", text);
        let search = Search::parse(search, Language::English, rules);
        search.matches(&fields, document.as_ref(), None).expect("matches")
    }

    #[test]
    fn documents_have_a_term_all_phrases_and_nothing_negated() {
        let usual = Rules::of_index(TextVersion::Unicode);
        assert!(found("cake coffee", usual, "Cakes and tea"));
        assert!(!found("coffee", usual, "cakes and tea"));
        assert!(!found("cake -tea", usual, "Cakes and tea"));
        assert!(found("\"and TEA\"", usual, "Cakes and tea"));
        assert!(!found("\"tea and\" cake", usual, "Cakes and tea"));
        assert!(!found("cake -\"and tea\"", usual, "Cakes and tea"));
        assert!(!found("-cake", usual, "tea"));
        assert!(found("cafe", usual, "Café"));
        let exact_case = Rules { case: CaseRule::Kept, ..usual };
        assert!(found("Cake", exact_case, "Cake and tea") && !found("Cake", exact_case, "cake and tea"));
        assert!(!found("cake -Tea", exact_case, "cake Tea") && found("cake -Tea", exact_case, "cake tea"));
        let exact_marks = Rules { diacritics: DiacriticRule::Kept, ..usual };
        assert!(found("café", exact_marks, "Café") && !found("cafe", exact_marks, "Café"));
    }
}
