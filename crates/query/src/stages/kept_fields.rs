//! The fields that a stage copies when it has to copy documents.

use crate::find_query::FindQuery;
use bunko_bson::{DocumentRef, Writer};
use bunko_expression::SortPattern;

/// Names of the top-level fields that contain all paths the reader needs.
pub(super) struct KeptFields<'q>(Vec<&'q [u8]>);

impl<'q> KeptFields<'q> {
    /// The fields needed after the plan's sort, or of a plan without sort; `None` if whole documents are needed.
    pub(super) fn behind_sort(query: &'q FindQuery) -> Option<Self> {
        let paths = query.needed_alone()?.iter();
        Some(Self::of_names(paths.map(|path| path.split('.').next().unwrap_or_default().as_bytes()).collect()))
    }

    /// The fields needed of a scan's documents: those after the sort, and those that the sort reads.
    pub(super) fn below_sort(query: &'q FindQuery) -> Option<Self> {
        let Self(mut names) = Self::behind_sort(query)?;
        for (path, _) in query.sort.iter().flat_map(SortPattern::parts) {
            names.extend(path.components().first().map(|name| name.as_bytes()));
        }
        Some(Self::of_names(names))
    }

    fn of_names(mut names: Vec<&'q [u8]>) -> Self {
        names.sort_unstable();
        names.dedup();
        Self(names)
    }

    /// Appends a document with only these fields to a buffer.
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
    fn only_needed_fields_are_kept_and_whole_at_the_top() {
        let scope = QueryScope::new(0, OperationContext::unlimited());
        let mut query = FindQuery::new(DocumentRef::EMPTY, Arc::new(scope)).expect("a query");
        assert!(KeptFields::behind_sort(&query).is_none());
        query.needed = Some(["a.b".into(), "a.c".into(), "x".into()].into());
        let kept = KeptFields::behind_sort(&query).expect("some fields");
        let inner = DocumentBuf::new().with("b", 1).with("other", 2);
        let document = DocumentBuf::new().with("_id", 1).with("x", 2).with("a", &inner).with("x", 3);
        let mut buffer = Vec::new();
        kept.append(document.as_ref(), &mut buffer);
        let expected = DocumentBuf::new().with("x", 2).with("a", &inner).with("x", 3);
        assert_eq!(DocumentRef::trusted(&buffer), expected.as_ref());
    }

    #[test]
    fn a_sort_finds_its_own_fields_below_it() {
        let scope = QueryScope::new(0, OperationContext::unlimited());
        let mut query = FindQuery::new(DocumentRef::EMPTY, Arc::new(scope)).expect("a query");
        query.needed = Some(["a.b".into()].into());
        query.set_sort(DocumentBuf::new().with("s.t", 1).with("a.x", -1).as_ref()).expect("a sort");
        let document = DocumentBuf::new().with("a", 1).with("s", 2).with("z", 3);
        let names = |kept: KeptFields<'_>| {
            let mut buffer = Vec::new();
            kept.append(document.as_ref(), &mut buffer);
            DocumentRef::trusted(&buffer).iter().map(|field| field.name.to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names(KeptFields::behind_sort(&query).expect("some fields")), ["a"]);
        assert_eq!(names(KeptFields::below_sort(&query).expect("some fields")), ["a", "s"]);
    }
}
