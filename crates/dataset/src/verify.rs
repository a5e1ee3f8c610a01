//! Compares a stored document with the generated one.

use crate::dataset::Dataset;
use bunko_bson::{DocumentRef, ValueRef, extended_json, order};

/// Maximum number of characters of a value in messages.
const SHOWN_CHARACTERS_MAX: usize = 60;
/// Characters shown before the first that differs.
const SHOWN_BEFORE: usize = 10;

impl Dataset {
    /// Compares a stored document with the `index`-th inserted one, field by field and type by type. Top-level fields
    /// that `except` names may have any value, be missing or be new.
    /// # Errors
    /// A sentence that says which document and field differs, and how.
    pub fn verify(&self, index: u64, found: DocumentRef<'_>, except: &[&str]) -> Result<(), String> {
        let mut expected = Vec::with_capacity(self.document_bytes());
        self.write(index, &mut expected);
        compare("", DocumentRef::trusted(&expected), found, except)
            .map_err(|difference| format!("document {index} with _id {}: {difference}", self.id(index)))
    }
}

fn compare(path: &str, expected: DocumentRef<'_>, found: DocumentRef<'_>, except: &[&str]) -> Result<(), String> {
    let is_compared = |name: &str| !except.contains(&name);
    for element in expected.iter().filter(|element| is_compared(element.name)) {
        let path = format!("{path}{}", element.name);
        match found.get(element.name) {
            Some(value) => compare_values(&path, element.value, value)?,
            None => return Err(format!("field '{path}' is missing")),
        }
    }
    let names = |document: DocumentRef<'_>| document.iter().map(|element| element.name.to_owned()).collect::<Vec<_>>();
    let (expected, found) = (names(expected), names(found));
    if let Some(name) = found.iter().find(|name| is_compared(name) && !expected.contains(name)) {
        return Err(format!("field '{path}{name}' should not be there"));
    }
    let compared = |names: Vec<String>| names.into_iter().filter(|name| is_compared(name)).collect::<Vec<_>>();
    let (expected, found) = (compared(expected), compared(found));
    if expected != found {
        return Err(format!("the fields are {}, expected {}", found.join(", "), expected.join(", ")));
    }
    Ok(())
}

fn compare_values(path: &str, expected: ValueRef<'_>, found: ValueRef<'_>) -> Result<(), String> {
    if expected.kind() != found.kind() {
        let (expected_type, found_type) = (expected.kind().alias(), found.kind().alias());
        let (expected, found) = (shown(expected), shown(found));
        return Err(format!("field '{path}' is {found} ({found_type}), expected {expected} ({expected_type})"));
    }
    match (expected, found) {
        (ValueRef::Document(expected), ValueRef::Document(found)) => compare(&format!("{path}."), expected, found, &[]),
        (ValueRef::Array(expected), ValueRef::Array(found)) => {
            compare(&format!("{path}."), expected.as_document(), found.as_document(), &[])
        }
        (ValueRef::String(expected), ValueRef::String(found)) => compare_texts(path, expected, found),
        _ if order::equal(expected, found) => Ok(()),
        _ => Err(format!("field '{path}' is {}, expected {}", shown(found), shown(expected))),
    }
}

fn compare_texts(path: &str, expected: &str, found: &str) -> Result<(), String> {
    if expected == found {
        return Ok(());
    }
    let length = match (expected.len(), found.len()) {
        (expected, found) if expected == found => String::new(),
        (expected, found) => format!(" has length {found}, expected {expected}, and"),
    };
    let same = expected.chars().zip(found.chars()).take_while(|(a, b)| a == b).count();
    let part = |text: &str| excerpt(text, same.saturating_sub(SHOWN_BEFORE));
    let (expected, found) = (part(expected), part(found));
    Err(format!("field '{path}'{length} differs from character {same} on: {found}, expected {expected}"))
}

/// Extended JSON, shortened.
fn shown(value: ValueRef<'_>) -> String {
    let text = extended_json::to_relaxed(value);
    match text.char_indices().nth(SHOWN_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// Part of a text in quotes, beginning at a character.
fn excerpt(text: &str, start: usize) -> String {
    let part: String = text.chars().skip(start).take(SHOWN_CHARACTERS_MAX).collect();
    let before = if start > 0 { "..." } else { "" };
    let behind = if text.chars().count() > start + SHOWN_CHARACTERS_MAX { "..." } else { "" };
    format!("{before}{part:?}{behind}")
}

#[cfg(test)]
mod tests {
    use crate::Dataset;
    use crate::dataset::tests::options;
    use crate::{DatasetOptions, KeyOrder, SHAPES};
    use bunko_bson::DocumentRef;

    #[test]
    fn every_document_is_its_own_and_no_other() {
        for shape in SHAPES {
            let options = DatasetOptions { key_order: KeyOrder::Shuffled, ..options(shape.name) };
            let dataset = Dataset::new(&options).expect("a dataset");
            let mut encoded = Vec::new();
            dataset.write(7, &mut encoded);
            let document = DocumentRef::parse(&encoded).expect("well formed");
            assert_eq!(dataset.verify(7, document, &[]), Ok(()));
            let error = dataset.verify(8, document, &[]).expect_err("another document");
            assert!(error.contains("field '_id' "), "{error}");
            assert!(dataset.verify(8, document, &["_id"]).is_err());
        }
    }
}
