//! The rule for documents that are an `_id`.

use crate::{DocumentRef, ValueRef};

/// The first name in a document that keeps it from being an `_id`: a name that begins with `$`. References are exempt:
/// documents that begin with `$ref`, a string, and `$id`, and may go on with `$db`, a string.
/// Source: MongoDB manual, "Field Names", and "Database References".
pub fn name_not_allowed(id: DocumentRef<'_>) -> Option<&str> {
    let mut fields = id.iter().peekable();
    if fields.next_if(|field| field.name == "$ref" && matches!(field.value, ValueRef::String(_))).is_some() {
        if fields.next_if(|field| field.name == "$id").is_none() {
            return Some("$ref");
        }
        fields.next_if(|field| field.name == "$db" && matches!(field.value, ValueRef::String(_)));
    }
    fields.map(|field| field.name).find(|name| name.starts_with('$'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DocumentBuf;

    #[test]
    fn only_references_have_names_with_a_dollar() {
        let reference = DocumentBuf::new().with("$ref", "c").with("$id", 1);
        let named = |document: &DocumentBuf| name_not_allowed(document.as_ref()).map(str::to_owned);
        assert_eq!(named(&reference), None);
        assert_eq!(named(&reference.clone().with("$db", "d").with("x", 1)), None);
        assert_eq!(named(&DocumentBuf::new().with("x", 1)), None);
        for (refused, name) in [
            (DocumentBuf::new().with("$id", 1).with("$ref", "c"), "$id"),
            (DocumentBuf::new().with("$ref", 1).with("$id", 1), "$ref"),
            (DocumentBuf::new().with("$ref", "c"), "$ref"),
            (DocumentBuf::new().with("$ref", "c").with("x", 1).with("$id", 1), "$ref"),
            (DocumentBuf::new().with("x", 1).with("$ref", "c").with("$id", 1), "$ref"),
            (reference.clone().with("$db", 1), "$db"),
            (reference.with("$other", 1), "$other"),
        ] {
            assert_eq!(named(&refused).as_deref(), Some(name), "{refused:?}");
        }
    }
}
