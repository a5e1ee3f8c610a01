//! A sample of a collection's documents.

use super::{Advice, Kind, Place};
use crate::InspectionError;
use crate::peer::Peer;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef, number};
use bunko_client::CommandError;
use std::collections::HashSet;

/// Documents in a sample.
const SAMPLED: i32 = 1_000;
/// Longest time that the server takes for a sample or an estimate, in milliseconds.
const TIME_MAX_MS: i32 = 10_000;
/// Size in bytes from which a document is reported: a sixteenth of the maximum.
const LARGE_BYTES: usize = 1 << 20;
/// Number of elements from which an array is reported.
const LONG_ARRAY: usize = 1_000;

/// Documents drawn at random.
pub(super) struct Sample {
    /// Documents in the collection.
    pub total: u64,
    documents: Vec<DocumentBuf>,
}

impl Sample {
    /// Draws documents. The inner error is the server's refusal.
    pub fn take(peer: &mut Peer<'_>, place: Place<'_>) -> Result<Result<Self, CommandError>, InspectionError> {
        let count = DocumentBuf::new().with("count", place.collection).with("maxTimeMS", TIME_MAX_MS);
        let total = match peer.ask(place.database, &count)? {
            Ok(reply) => reply.as_ref().get("n").and_then(number::truncate_to_i64).unwrap_or(0),
            Err(refusal) => return Ok(Err(refusal)),
        };
        let command = drawing(place, &[]);
        let sampled = peer.beginning(place.database, &command)?;
        Ok(sampled.map(|sampled| Self { total: total as u64, documents: sampled.documents }))
    }

    /// Whether the sample is large enough to judge the collection by.
    pub fn is_large(&self) -> bool {
        self.documents.len() >= 100
    }

    /// The share of documents, from 0 to 1, that a filter finds in a sample that the server draws; `None` if the
    /// collection is small or the server refuses.
    pub fn share_of(
        &self,
        peer: &mut Peer<'_>,
        place: Place<'_>,
        filter: &DocumentBuf,
    ) -> Result<Option<f64>, InspectionError> {
        if !self.is_large() {
            return Ok(None);
        }
        let matched = DocumentBuf::new().with("$match", filter);
        let command = drawing(place, &[&matched, &DocumentBuf::new().with("$count", "n")]);
        let counted = peer.list(place.database, &command)?.ok();
        let found = |counted: &DocumentBuf| counted.as_ref().get("n").and_then(number::as_f64);
        let sampled = f64::from(SAMPLED).min(self.total as f64);
        Ok(counted.map(|counted| counted.first().and_then(found).unwrap_or(0.0) / sampled))
    }

    /// A filter with values of one document of the sample in place of their types; `None` if no document has all fields.
    pub fn with_values(&self, shape: &DocumentBuf) -> Option<DocumentBuf> {
        self.documents.iter().find_map(|document| with_values_of(document.as_ref(), shape.as_ref()))
    }

    /// Number of distinct values of a field.
    pub fn distinct(&self, field: &str) -> usize {
        let values = self.documents.iter().map(|document| {
            let value = at(document.as_ref(), field).unwrap_or(ValueRef::Null);
            DocumentBuf::new().with("", value).into_bytes()
        });
        values.collect::<HashSet<_>>().len()
    }

    /// Whether a document has an array at the field or on the way to it.
    pub fn has_array(&self, field: &str) -> bool {
        self.documents.iter().any(|document| array_on(document.as_ref(), field).is_some())
    }

    /// Whether a document has two arrays on the ways to these fields, which no index can have together.
    pub fn has_parallel_arrays(&self, fields: &[&str]) -> bool {
        self.documents.iter().any(|document| {
            let arrays = fields.iter().filter_map(|field| array_on(document.as_ref(), field));
            arrays.collect::<HashSet<_>>().len() > 1
        })
    }

    /// Estimates the bytes of an index entry with these fields, by the sample's average.
    pub fn entry_bytes(&self, fields: &[&str]) -> u64 {
        let bytes = |document: &DocumentBuf| {
            let values = fields.iter().map(|field| at(document.as_ref(), field).map_or(1, ValueRef::content_bytes));
            values.sum::<usize>() as u64
        };
        let total: u64 = self.documents.iter().map(bytes).sum();
        total / (self.documents.len() as u64).max(1) + 8
    }

    /// Advice on documents of the sample of `LARGE_BYTES` or more, and on long arrays.
    pub fn large_documents(&self, place: Place<'_>) -> Vec<Advice> {
        let largest = self.documents.iter().map(DocumentBuf::len_bytes).max().unwrap_or(0);
        let mut found = Vec::new();
        if largest >= LARGE_BYTES {
            let evidence = format!("a document of the sample has {} KiB; the limit is 16 MiB", largest >> 10);
            found.push(advice_to_split(place, evidence));
        }
        let mut longest: Option<(String, usize)> = None;
        for document in &self.documents {
            for element in document.as_ref() {
                let Some(array) = element.value.as_array() else { continue };
                let count = array.count();
                if count >= LONG_ARRAY && longest.as_ref().is_none_or(|(_, known)| count > *known) {
                    longest = Some((element.name.to_owned(), count));
                }
            }
        }
        if let Some((field, count)) = longest {
            found.push(advice_to_split(
                place,
                format!("the array '{field}' has {count} elements in a document of the sample"),
            ));
        }
        found
    }
}

fn with_values_of(document: DocumentRef<'_>, shape: DocumentRef<'_>) -> Option<DocumentBuf> {
    let mut filter = DocumentBuf::new();
    for element in shape {
        match (element.name, element.value) {
            ("$and", ValueRef::Array(parts)) => {
                let parts = parts.iter().filter_map(ValueRef::as_document).map(|part| with_values_of(document, part));
                let parts = parts.collect::<Option<Vec<_>>>()?;
                filter.append("$and", &parts.iter().collect::<ArrayBuf>());
            }
            (path, ValueRef::Document(conditions)) => {
                let value = at(document, path)?;
                let mut filled = DocumentBuf::new();
                for condition in conditions {
                    match condition.name {
                        "$in" => filled.append("$in", &std::iter::once(value).collect::<ArrayBuf>()),
                        "$eq" | "$gt" | "$gte" | "$lt" | "$lte" => filled.append(condition.name, value),
                        // Other conditions do not narrow a scan of an index.
                        _ => continue,
                    };
                }
                if !filled.as_ref().is_empty() {
                    filter.append(path, &filled);
                }
            }
            _ => {}
        }
    }
    Some(filter)
}

/// The command that draws documents, and runs these stages on them.
fn drawing(place: Place<'_>, stages: &[&DocumentBuf]) -> DocumentBuf {
    let size = DocumentBuf::new().with("size", SAMPLED);
    let sample = DocumentBuf::new().with("$sample", &size);
    let stages: ArrayBuf = std::iter::once(&sample).chain(stages.iter().copied()).collect();
    DocumentBuf::new()
        .with("aggregate", place.collection)
        .with("pipeline", &stages)
        .with("cursor", &DocumentBuf::new())
        .with("maxTimeMS", TIME_MAX_MS)
}

fn advice_to_split(place: Place<'_>, evidence: String) -> Advice {
    Advice {
        kind: Kind::LargeDocuments,
        namespace: place.namespace(),
        evidence,
        effect: "Each change writes the whole document. Keep the elements as documents of a collection of their own."
            .into(),
        command: String::new(),
        saved_ms: 0,
    }
}

/// The part of a path that leads to the first array on it; `None` if there is no array.
fn array_on<'p>(document: DocumentRef<'_>, path: &'p str) -> Option<&'p str> {
    let ends = path.match_indices('.').map(|(end, _)| end).chain([path.len()]);
    ends.map(|end| &path[..end]).find(|part| matches!(at(document, part), Some(ValueRef::Array(_))))
}

/// The value at a path of embedded documents; arrays are not entered.
pub(super) fn at<'d>(document: DocumentRef<'d>, path: &str) -> Option<ValueRef<'d>> {
    match path.split_once('.') {
        None => document.get(path),
        Some((first, rest)) => at(document.get(first)?.as_document()?, rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::extended_json::parse_document;

    #[test]
    fn arrays_on_the_way_to_a_field_are_found() {
        let document = parse_document(r#"{"a": [1], "b": {"c": [{"d": 1}], "e": 2}, "f": 3}"#).expect("JSON");
        let sample = Sample { total: 1, documents: vec![document] };
        for (field, expected) in
            [("a", true), ("b.c", true), ("b.c.d", true), ("b.e", false), ("f", false), ("g", false)]
        {
            assert_eq!(sample.has_array(field), expected, "{field}");
        }
        assert!(sample.has_parallel_arrays(&["a", "f", "b.c"]));
        assert!(!sample.has_parallel_arrays(&["b.c", "b.c.d", "f"]));
    }

    #[test]
    fn shapes_get_values_of_a_document_that_has_all_fields() {
        let documents = [r#"{"a": 1}"#, r#"{"a": 2, "b": {"c": "x"}}"#].map(|json| parse_document(json).expect("JSON"));
        let sample = Sample { total: 2, documents: documents.to_vec() };
        let filled = |shape: &str| {
            let filled = sample.with_values(&parse_document(shape).expect("JSON"))?;
            Some(bunko_bson::extended_json::to_relaxed((&filled).into()))
        };
        let shape = r#"{"$and": [{"a": {"$in": "?array<?number>"}}, {"b.c": {"$gte": "?string"}}]}"#;
        assert_eq!(filled(shape).as_deref(), Some(r#"{"$and":[{"a":{"$in":[2]}},{"b.c":{"$gte":"x"}}]}"#));
        assert_eq!(filled(r#"{"d": {"$eq": "?number"}}"#), None);
        assert_eq!(filled(r#"{"a": {"$regex": "?string"}}"#).as_deref(), Some("{}"));
    }
}
