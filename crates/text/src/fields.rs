//! The texts of a document that an index covers, with the language and the weight of each.

use crate::{Language, TextVersion};
use bunko_bson::{DocumentRef, ValueRef, number};
use bunko_errors::{ErrorCode, Failure, Result};
use std::collections::BTreeMap;

/// Name in `weights` that stands for all fields.
const ALL_FIELDS: &str = "$**";
/// Weight of a field that has no weight of its own.
const USUAL_WEIGHT: f64 = 1.0;

/// The fields of a text index.
#[derive(Clone, Debug, PartialEq)]
pub struct TextFields {
    weights: BTreeMap<String, f64>,
    /// Weight of `$**`; `None` if only named fields are indexed. Fields that are not named weigh [`USUAL_WEIGHT`],
    /// whatever this number is.
    others: Option<f64>,
    /// The language of documents that name none.
    pub language: Language,
    /// The field in which documents name their language.
    language_field: String,
    /// The rules by which terms are made of the texts.
    pub version: TextVersion,
    /// The number of `version` in specifications.
    number: i64,
}

/// One text of a document.
pub(crate) struct TextOf<'d> {
    pub text: &'d str,
    pub language: Language,
    pub weight: f64,
}

impl TextFields {
    /// Reads the fields from an index's specification, in the form in which `listIndexes` shows it; `None` if it is
    /// malformed.
    pub fn of(spec: DocumentRef<'_>) -> Option<Self> {
        let mut weights = BTreeMap::new();
        for weight in spec.get("weights")?.as_document()? {
            weights.insert(weight.name.to_owned(), number::as_f64(weight.value)?);
        }
        let number = number::as_i64_exact(spec.get("textIndexVersion")?)?;
        Some(Self {
            others: weights.remove(ALL_FIELDS),
            weights,
            language: Language::of_index(spec.get("default_language")?.as_str()?, number)?,
            number,
            language_field: spec.get("language_override")?.as_str()?.to_owned(),
            version: TextVersion::numbered(number)?,
        })
    }

    /// Visits the texts of a document until the visitor fails.
    /// # Errors
    /// 17261 if a document's language is not a string, 17262 if it is unknown; the visitor's error.
    pub(crate) fn each_text<'d>(
        &self,
        document: DocumentRef<'d>,
        visit: &mut dyn FnMut(TextOf<'d>) -> Result<()>,
    ) -> Result<()> {
        self.visit_document(document, "", self.language, visit)
    }

    fn visit_document<'d>(
        &self,
        document: DocumentRef<'d>,
        prefix: &str,
        language: Language,
        visit: &mut dyn FnMut(TextOf<'d>) -> Result<()>,
    ) -> Result<()> {
        let language = self.language_of(document)?.unwrap_or(language);
        for field in document {
            let path = if prefix.is_empty() { field.name.to_owned() } else { format!("{prefix}.{}", field.name) };
            if self.leads_through(&path) {
                self.visit_value(field.value, &path, language, visit)?;
            }
        }
        Ok(())
    }

    fn visit_value<'d>(
        &self,
        value: ValueRef<'d>,
        path: &str,
        language: Language,
        visit: &mut dyn FnMut(TextOf<'d>) -> Result<()>,
    ) -> Result<()> {
        match value {
            ValueRef::String(text) => match self.weight(path) {
                Some(weight) => visit(TextOf { text, language, weight }),
                None => Ok(()),
            },
            ValueRef::Document(document) => self.visit_document(document, path, language, visit),
            ValueRef::Array(array) => {
                array.iter().try_for_each(|element| self.visit_value(element, path, language, visit))
            }
            _ => Ok(()),
        }
    }

    /// Finds a language by its name in indexes of this version, as [`Language::of_index`].
    pub fn language_named(&self, name: &str) -> Option<Language> {
        Language::of_index(name, self.number)
    }

    /// The version's number, as in specifications.
    pub fn number(&self) -> i64 {
        self.number
    }

    fn language_of(&self, document: DocumentRef<'_>) -> Result<Option<Language>> {
        match document.get(&self.language_field) {
            None => Ok(None),
            Some(ValueRef::String(name)) => match self.language_named(name) {
                Some(language) => Ok(Some(language)),
                None => Err(Failure::new(ErrorCode(17262), format!("language override unsupported: {name}"))),
            },
            Some(_) => {
                let message = "found language override field in document with non-string type";
                Err(Failure::new(ErrorCode(17261), message))
            }
        }
    }

    fn weight(&self, path: &str) -> Option<f64> {
        self.weights.get(path).copied().or(self.others.map(|_| USUAL_WEIGHT))
    }

    /// Whether texts at the path or below it are indexed.
    fn leads_through(&self, path: &str) -> bool {
        let is_below =
            |own: &String| own.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        self.others.is_some() || self.weights.keys().any(is_below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_testkit::shell;

    fn texts(weights: &str, document: &str) -> Result<Vec<String>> {
        let spec = format!(
            "{{weights: {weights}, default_language: 'english', language_override: 'language', textIndexVersion: 3}}"
        );
        let spec = shell::parse_document(&spec).expect("a specification");
        let fields = TextFields::of(spec.as_ref()).expect("fields");
        let document = shell::parse_document(document).expect("a document");
        let mut found = Vec::new();
        fields.each_text(document.as_ref(), &mut |TextOf { text, language, weight }| {
            found.push(format!("{text} {} {weight}", language.name()));
            Ok(())
        })?;
        Ok(found)
    }

    #[test]
    fn texts_are_found_through_documents_and_arrays() {
        let document = "{a: 'x', b: [{c: 'y', d: 'no'}, {c: ['z', 7]}], a2: 'no', 'language': 'de'}";
        assert_eq!(texts("{a: 2, 'b.c': 1}", document).expect("texts"), ["x german 2", "y german 1", "z german 1"]);
        let nested = "{a: 'x', b: {language: 'fr', c: 'y'}}";
        assert_eq!(texts("{'$**': 1, a: 3}", nested).expect("texts"), ["x english 3", "fr french 1", "y french 1"]);
    }

    #[test]
    fn languages_of_documents_are_checked() {
        assert_eq!(texts("{a: 1}", "{a: 'x', language: 'klingon'}").expect_err("unknown").code(), ErrorCode(17262));
        assert_eq!(texts("{a: 1}", "{a: 'x', language: 7}").expect_err("no string").code(), ErrorCode(17261));
    }
}
