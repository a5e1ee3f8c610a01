//! The part of documents that is kept where a stage has to copy them.

use crate::find_query::FindQuery;
use bunko_bson::{DocumentRef, Writer};

/// The fields at the top of documents in which all lies that whoever reads the documents needs.
pub(super) struct KeptFields<'q>(Vec<&'q [u8]>);

impl<'q> KeptFields<'q> {
    /// Nothing where documents are needed whole.
    pub(super) fn of_query(query: &'q FindQuery) -> Option<Self> {
        let paths = query.needed_alone()?.iter();
        let mut names: Vec<_> = paths.map(|path| path.split('.').next().unwrap_or_default().as_bytes()).collect();
        names.dedup();
        Some(Self(names))
    }

    /// Appends a document with nothing but these to a buffer.
    pub(super) fn append(&self, document: DocumentRef<'_>, buffer: &mut Vec<u8>) {
        let mut writer = Writer::new(buffer);
        for element in document.iter().encoded().filter(|element| self.0.contains(&element.name_bytes())) {
            writer.append_encoded(&element);
        }
        writer.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::QueryScope;
    use bunko_bson::DocumentBuf;
    use bunko_operation::OperationContext;
    use std::sync::Arc;

    #[test]
    fn only_what_is_needed_is_kept_and_whole_at_the_top() {
        let scope = QueryScope::new(0, OperationContext::unlimited());
        let mut query = FindQuery::new(DocumentRef::EMPTY, Arc::new(scope)).expect("a query");
        assert!(KeptFields::of_query(&query).is_none());
        query.needed = Some(["a.b".into(), "a.c".into(), "x".into()].into());
        let kept = KeptFields::of_query(&query).expect("some fields");
        let inner = DocumentBuf::new().with("b", 1).with("other", 2);
        let document = DocumentBuf::new().with("_id", 1).with("x", 2).with("a", &inner).with("x", 3);
        let mut buffer = Vec::new();
        kept.append(document.as_ref(), &mut buffer);
        let expected = DocumentBuf::new().with("x", 2).with("a", &inner).with("x", 3);
        assert_eq!(DocumentRef::trusted(&buffer), expected.as_ref());
    }
}
