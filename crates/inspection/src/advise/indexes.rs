//! The indexes of a collection, and which of them could go.

use super::evidence::Fields;
use super::sample::Sample;
use super::{Advice, Kind, Place, quoted};
use crate::InspectionError;
use crate::peer::Peer;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef, number};
use bunko_client::CommandError;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;
/// Number of distinct values in a sample up to which each value of a field finds too many documents.
const DISTINCT_FEW: usize = 3;

/// An index, as the server lists it.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    name: String,
    /// Fields and directions; other kinds of index have texts in place of directions.
    key: Vec<(String, Option<i64>)>,
    is_unique: bool,
    /// Whether it is a TTL index.
    expires: bool,
    /// Whether it has another collation than its collection, or leaves documents out.
    is_special: bool,
    is_hidden: bool,
    /// Number of operations that used it, and since when they are counted, in milliseconds since 1970.
    uses: Option<(u64, u64)>,
}

/// The indexes of a collection.
pub(super) fn of_collection(
    peer: &mut Peer<'_>,
    place: Place<'_>,
) -> Result<Result<Vec<Index>, CommandError>, InspectionError> {
    let list = DocumentBuf::new().with("listIndexes", place.collection);
    let listed = match peer.list(place.database, &list)? {
        Ok(listed) => listed,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let usual = listed.iter().map(DocumentBuf::as_ref).find(|index| is_of_ids(*index)).and_then(collation);
    Ok(Ok(listed.iter().filter_map(|index| Index::read(index.as_ref(), usual)).collect()))
}

/// Whether it is the index on `_id`, which has the collection's collation. A clustered index may have any name.
fn is_of_ids(index: DocumentRef<'_>) -> bool {
    index.get("clustered").is_some() || index.get("name").and_then(ValueRef::as_str) == Some("_id_")
}

fn collation(index: DocumentRef<'_>) -> Option<DocumentRef<'_>> {
    index.get("collation").and_then(ValueRef::as_document)
}

/// Adds the counters of uses. Without them, no index is reported as unused.
pub(super) fn count_uses(
    peer: &mut Peer<'_>,
    place: Place<'_>,
    indexes: &mut [Index],
) -> Result<Result<(), CommandError>, InspectionError> {
    let stages: ArrayBuf = [&DocumentBuf::new().with("$indexStats", &DocumentBuf::new())].into_iter().collect();
    let command = DocumentBuf::new()
        .with("aggregate", place.collection)
        .with("pipeline", &stages)
        .with("cursor", &DocumentBuf::new());
    let counters = match peer.list(place.database, &command)? {
        Ok(counters) => counters,
        Err(refusal) => return Ok(Err(refusal)),
    };
    for counter in &counters {
        note_uses(indexes, counter.as_ref());
    }
    Ok(Ok(()))
}

fn note_uses(indexes: &mut [Index], counter: DocumentRef<'_>) -> Option<()> {
    let name = counter.get("name")?.as_str()?;
    let accesses = counter.get("accesses")?.as_document()?;
    let ops = accesses.get("ops").and_then(number::truncate_to_i64)?;
    let ValueRef::DateTime(since) = accesses.get("since")? else { return None };
    let index = indexes.iter_mut().find(|index| index.name == name)?;
    // A router shows the counters of each shard.
    let (known, began) = index.uses.unwrap_or_default();
    index.uses = Some((known + ops as u64, began.max(since as u64)));
    Some(())
}

impl Index {
    /// Reads an entry of the list; `usual` is the collection's collation.
    fn read(index: DocumentRef<'_>, usual: Option<DocumentRef<'_>>) -> Option<Self> {
        let key = index.get("key")?.as_document()?;
        let is_set = |name: &str| matches!(index.get(name), Some(ValueRef::Boolean(true)));
        let leaves_out = is_set("sparse") || index.get("partialFilterExpression").is_some();
        Some(Self {
            name: index.get("name")?.as_str()?.to_owned(),
            key: key.iter().map(|field| (field.name.to_owned(), number::truncate_to_i64(field.value))).collect(),
            is_unique: is_set("unique"),
            expires: index.get("expireAfterSeconds").is_some(),
            is_special: leaves_out || collation(index) != usual,
            is_hidden: is_set("hidden"),
            uses: None,
        })
    }

    fn is_plain(&self) -> bool {
        !self.is_special && self.key.iter().all(|(name, direction)| direction.is_some() && !name.contains("$**"))
    }

    /// Whether the index begins with the fields that an operation needs: the equal ones in any order, then its sort.
    pub fn serves(&self, fields: &Fields) -> bool {
        let (equal, rest) = self.key.split_at(fields.equal.len().min(self.key.len()));
        let has_equal = fields.equal.iter().all(|name| equal.iter().any(|(field, _)| field == name));
        let sorts = |turned: i64| {
            let mut rest = rest.iter();
            fields.sort.iter().all(|(name, direction)| {
                rest.next().is_some_and(|(field, of)| field == name && *of == Some(i64::from(*direction) * turned))
            })
        };
        let after = rest.get(fields.sort.len());
        let has_range = fields.range.is_empty() || after.is_some_and(|(field, _)| fields.range.contains(field));
        self.is_plain() && !self.is_hidden && has_equal && (sorts(1) || sorts(-1)) && has_range
    }
}

fn drop_command(place: Place<'_>, index: &Index) -> String {
    format!("{}.dropIndex({})", place.in_shell(), quoted(&index.name))
}

fn hide_command(place: Place<'_>, index: &Index) -> String {
    format!("{}.hideIndex({})", place.in_shell(), quoted(&index.name))
}

/// Advice on indexes that were not used since their counters began.
pub(super) fn unused(place: Place<'_>, indexes: &[Index], days: u64, now_ms: u64) -> Vec<Advice> {
    let is_unused = |index: &&Index| {
        let counted = index.uses.is_some_and(|(ops, since)| ops == 0 && now_ms.saturating_sub(since) >= days * DAY_MS);
        // Unique, special and TTL indexes, and the one on `_id`, do work that the counter does not show.
        counted && !index.is_unique && index.name != "_id_" && !index.is_special && !index.expires
    };
    let advice = |index: &Index| {
        let days = index.uses.map_or(0, |(_, since)| now_ms.saturating_sub(since) / DAY_MS);
        Advice {
            kind: Kind::UnusedIndex,
            namespace: place.namespace(),
            evidence: format!("no operation on this server has used the index {} in {days} days", index.name),
            effect: "Each write of an indexed field writes a key less. Ask the other members of the set first; hidden, the index \
                     can come back at once."
                .into(),
            // A hidden index has served no query since it was hidden, so it can go.
            command: if index.is_hidden { drop_command(place, index) } else { hide_command(place, index) },
            saved_ms: 0,
        }
    };
    indexes.iter().filter(is_unused).map(advice).collect()
}

/// Advice on indexes whose key is a prefix of another index's key.
pub(super) fn redundant(place: Place<'_>, indexes: &[Index]) -> Vec<Advice> {
    let mut found = Vec::new();
    for (position, index) in indexes.iter().enumerate() {
        if index.is_unique || index.expires || index.name == "_id_" || !index.is_plain() {
            continue;
        }
        let stands_for = |(other_position, other): (usize, &Index)| {
            let is_longer = other.key.len() > index.key.len();
            // If two indexes have the same key, the later one is redundant.
            let is_same = other.key.len() == index.key.len() && other_position < position;
            (is_longer || is_same) && other.is_plain() && !other.is_hidden && other.key.starts_with(&index.key)
        };
        let Some((_, other)) = indexes.iter().enumerate().find(|(other, index)| stands_for((*other, index))) else {
            continue;
        };
        found.push(Advice {
            kind: Kind::RedundantIndex,
            namespace: place.namespace(),
            evidence: format!("the index {} begins with all fields of {}", other.name, index.name),
            effect: "Each write of these fields writes a key less; queries use the other index.".into(),
            command: drop_command(place, index),
            saved_ms: 0,
        });
    }
    found
}

/// Advice on indexes on one field that has few distinct values.
pub(super) fn unselective(place: Place<'_>, indexes: &[Index], sample: &Sample) -> Vec<Advice> {
    if !sample.is_large() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for index in indexes.iter().filter(|index| index.is_plain() && !index.is_unique && !index.expires) {
        let [(field, _)] = index.key.as_slice() else { continue };
        // The elements of an array are keys of their own, which the sample does not count.
        if sample.has_array(field) {
            continue;
        }
        let distinct = sample.distinct(field);
        if distinct <= DISTINCT_FEW && field != "_id" {
            found.push(Advice {
                kind: Kind::UnselectiveIndex,
                namespace: place.namespace(),
                evidence: format!("{field} has {distinct} value(s) in a sample, so {} finds a large part of the collection", index.name),
                effect: "A scan is as fast for a frequent value. For a rare one, make the index partial; or put another field behind \
                         it."
                    .into(),
                command: String::new(),
                saved_ms: 0,
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place<'static> = Place { database: "d", collection: "c" };

    fn index(name: &str, key: &[(&str, i64)]) -> Index {
        let key = key.iter().map(|(field, direction)| ((*field).to_owned(), Some(*direction))).collect();
        Index { name: name.into(), key, ..Index::default() }
    }

    #[test]
    fn an_index_serves_equal_fields_in_any_order_and_sorts_both_ways() {
        let known = index("i", &[("b", 1), ("a", 1), ("s", 1), ("r", -1)]);
        let text = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let fields = |equal: &[&str], sort: &[(&str, i32)], range: &[&str]| Fields {
            equal: text(equal),
            sort: sort.iter().map(|(name, direction)| ((*name).to_owned(), *direction)).collect(),
            range: text(range),
        };
        assert!(known.serves(&fields(&["a", "b"], &[("s", -1), ("r", 1)], &[])));
        assert!(known.serves(&fields(&["b"], &[], &["a"])));
        assert!(!known.serves(&fields(&["a"], &[], &[])));
        assert!(!known.serves(&fields(&["a", "b"], &[("r", 1)], &[])));
        assert!(Index { expires: true, ..known.clone() }.serves(&fields(&["b"], &[], &[])));
        assert!(!Index { is_hidden: true, ..known }.serves(&fields(&["b"], &[], &[])));
    }

    #[test]
    fn indexes_that_others_stand_for_are_named_once() {
        let indexes = [
            index("_id_", &[("_id", 1)]),
            index("a", &[("a", 1)]),
            index("ab", &[("a", 1), ("b", 1)]),
            index("ab_too", &[("a", 1), ("b", 1)]),
            Index { is_unique: true, ..index("u", &[("a", 1)]) },
            index("a_down", &[("a", -1)]),
        ];
        let expiring = Index { expires: true, ..index("e", &[("a", 1)]) };
        assert_eq!(redundant(PLACE, &[expiring, index("ab", &[("a", 1), ("b", 1)])]).len(), 0);
        let named: Vec<_> = redundant(PLACE, &indexes).into_iter().map(|advice| advice.command).collect();
        let drop = |name: &str| format!("db.getSiblingDB(\"d\").getCollection(\"c\").dropIndex({name:?})");
        assert_eq!(named, [drop("a"), drop("ab_too")]);
    }

    #[test]
    fn only_an_index_whose_counter_ran_for_long_is_unused() {
        let used = |ops, since| Index { uses: Some((ops, since)), ..index("i", &[("a", 1)]) };
        let count = |index: Index| unused(PLACE, &[index], 7, 8 * DAY_MS).len();
        assert_eq!((count(used(0, 0)), count(used(1, 0)), count(used(0, 2 * DAY_MS))), (1, 0, 0));
        assert_eq!(count(Index { is_unique: true, ..used(0, 0) }), 0);
        assert_eq!(count(index("i", &[("a", 1)])), 0);
        let hidden = Index { is_hidden: true, ..used(0, 0) };
        let advised = unused(PLACE, &[hidden], 7, 8 * DAY_MS);
        assert!(advised[0].command.ends_with(".dropIndex(\"i\")"), "{}", advised[0].command);
    }
}
