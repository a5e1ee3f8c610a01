//! Nesting depth of documents, and its limit for stored documents.

use bunko_bson::{DocumentRef, MAX_DEPTH_STORED, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};

/// Levels of documents and arrays in a value: 0 for a scalar, 1 for a document of scalars.
fn levels(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Document(document) => levels_of_document(document),
        ValueRef::Array(array) => levels_of_document(array.as_document()),
        _ => 0,
    }
}

fn levels_of_document(document: DocumentRef<'_>) -> usize {
    1 + document.iter().map(|element| levels(element.value)).max().unwrap_or(0)
}

/// Checks the depth of a value inside `outer_levels` documents and arrays.
/// # Errors
/// `Overflow` beyond [`MAX_DEPTH_STORED`] levels.
pub(crate) fn check(value: ValueRef<'_>, outer_levels: usize) -> Result<()> {
    if outer_levels + levels(value) > MAX_DEPTH_STORED {
        let message = format!("Document exceeds maximum nesting object depth: {MAX_DEPTH_STORED}");
        return Err(Failure::new(ErrorCode::OVERFLOW, message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::DocumentBuf;

    #[test]
    fn the_deepest_allowed_document_passes_and_one_more_level_does_not() {
        let mut document = DocumentBuf::new();
        for _ in 1..MAX_DEPTH_STORED {
            document = DocumentBuf::new().with("a", &document);
        }
        assert!(check((&document).into(), 0).is_ok());
        assert_eq!(check((&document).into(), 1).expect_err("too deep").code(), ErrorCode::OVERFLOW);
    }
}
