//! The index that a kind of operation needs: fields that must be equal first, then the sort, then one range.
//!
//! Source of the order: MongoDB's documentation of indexes, "The ESR (Equality, Sort, Range) Guideline".

use super::evidence::{Fields, Needed};
use super::indexes::Index;
use super::sample::Sample;
use super::{Advice, Kind, Place, quoted};
use crate::InspectionError;
use crate::peer::Peer;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef};

/// Number of documents that an operation must read on average before an index is proposed.
const EXAMINED_MIN: u64 = 100;
/// Factor by which the documents that an operation reads must exceed those that it would read with the index.
const GAIN_MIN: f64 = 10.0;
/// Number of documents sorted in memory from which an index is proposed for the sort.
const SORTED_MIN: u64 = 1_000;
/// Maximum number of fields of an index in MongoDB.
const FIELDS_MAX: usize = 32;

/// The advice for a kind of operation; `None` if an index is there, or would not pay.
pub(super) fn advice(
    peer: &mut Peer<'_>,
    place: Place<'_>,
    needed: &Needed,
    (indexes, sample): (&[Index], &Sample),
) -> Result<Option<Advice>, InspectionError> {
    let each = needed.examined / needed.count.max(1);
    let key = key(&needed.fields);
    if each < EXAMINED_MIN || key.len() > FIELDS_MAX || indexes.iter().any(|index| index.serves(&needed.fields)) {
        return Ok(None);
    }
    let names: Vec<_> = key.iter().map(|(name, _)| name.as_str()).collect();
    if sample.has_parallel_arrays(&names) {
        return Ok(None);
    }
    let by_index = narrowed(needed.filter.as_ref(), &names);
    let by_index = if needed.is_shape { sample.with_values(&by_index) } else { Some(by_index) };
    let Some(by_index) = by_index else { return Ok(None) };
    let Some(share) = sample.share_of(peer, place, &by_index)? else { return Ok(None) };
    // A sample shows no share below one of its documents, so the estimate is no lower than the documents returned.
    let returned = needed.returned as f64 / needed.count as f64;
    let after = (share * sample.total as f64).max(returned).max(1.0);
    let gain = each as f64 / after;
    let is_sort = !needed.fields.sort.is_empty() && needed.sorts > 0 && each >= SORTED_MIN;
    if gain < GAIN_MIN && !is_sort {
        return Ok(None);
    }
    let bytes = sample.entry_bytes(&names) * sample.total;
    let gained = if gain < GAIN_MIN {
        "the documents come in the order of the sort".to_owned()
    } else {
        format!("each reads about {after:.0}, by a sample")
    };
    let sorted = if is_sort { ", and sorts them in memory" } else { "" };
    let shown: Vec<_> = key.iter().map(|(name, direction)| format!("{}: {direction}", quoted(name))).collect();
    let count = indexes.len();
    Ok(Some(Advice {
        kind: Kind::MissingIndex,
        namespace: place.namespace(),
        evidence: format!(
            "{} operations by {} took {} ms; each reads {each} documents for {returned:.1} results{sorted}",
            needed.count,
            names.join(", "),
            needed.millis
        ),
        effect: format!(
            "With the index, {gained}. It takes about {} MiB; each insert writes {} keys instead \
             of {count}.",
            bytes.div_ceil(1 << 20),
            count + 1
        ),
        command: format!("{}.createIndex({{{}}})", place.in_shell(), shown.join(", ")),
        saved_ms: (needed.millis as f64 * (1.0 - 1.0 / gain.max(1.0))) as u64,
    }))
}

/// Makes the key of the index, with directions: equal fields, then the sort, then one range.
fn key(fields: &Fields) -> Vec<(String, i32)> {
    let equal = fields.equal.iter().map(|name| (name.clone(), 1));
    // More than one range does not narrow the scan further.
    let range = fields.range.iter().take(1).map(|name| (name.clone(), 1));
    equal.chain(fields.sort.iter().cloned()).chain(range).collect()
}

/// The conditions of a filter on these fields, which an index on them decides. Documents that fail the other conditions
/// are read as well.
fn narrowed(filter: DocumentRef<'_>, names: &[&str]) -> DocumentBuf {
    let mut narrow = DocumentBuf::new();
    for element in filter {
        match (element.name, element.value) {
            ("$and", ValueRef::Array(parts)) => {
                let parts = parts.iter().filter_map(ValueRef::as_document).map(|part| narrowed(part, names));
                let parts: Vec<_> = parts.filter(|part| !part.as_ref().is_empty()).collect();
                let parts: ArrayBuf = parts.iter().collect();
                // `$and` with an empty list is refused.
                if parts.count() > 0 {
                    narrow.append("$and", &parts);
                }
            }
            (name, value) if names.contains(&name) => {
                narrow.append(name, value);
            }
            _ => {}
        }
    }
    narrow
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::extended_json;

    #[test]
    fn an_index_decides_conditions_on_its_fields_only() {
        let of = |filter: &str| {
            let filter = extended_json::parse_document(filter).expect("JSON");
            extended_json::to_relaxed((&narrowed(filter.as_ref(), &["a", "b"])).into())
        };
        assert_eq!(of(r#"{"a": 1, "c": 2, "b": {"$gt": 3}, "$or": [{"a": 4}]}"#), r#"{"a":1,"b":{"$gt":3}}"#);
        assert_eq!(of(r#"{"$and": [{"a": 1, "c": 2}, {"c": 3}]}"#), r#"{"$and":[{"a":1}]}"#);
        assert_eq!(of(r#"{"$and": [{"c": 3}]}"#), "{}");
    }

    #[test]
    fn keys_are_equal_fields_then_the_sort_then_a_range() {
        let text = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let fields = Fields { equal: text(&["a", "b"]), sort: vec![("s".into(), -1)], range: text(&["r", "t"]) };
        let shown: Vec<_> = key(&fields).into_iter().map(|(name, direction)| format!("{name}{direction}")).collect();
        assert_eq!(shown, ["a1", "b1", "s-1", "r1"]);
    }
}
