//! Compares distinct values, and the documents that stand for groups, with those of collection scans.

use crate::plans_agree::reader::Reader;
use crate::plans_agree::values::braced;
use bunko_bson::key_string::Direction;
use bunko_bson::{Value, ValueRef};
use bunko_catalog::Index;
use bunko_errors::{ErrorCode, Result};
use bunko_expression::{FieldPath, SortPattern};
use bunko_operation::OperationContext;
use bunko_query::{Distinct, DistinctOf, FindQuery};
use bunko_testkit::shell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Distinct values equal those of a collection scan; of equal values any may be returned.
pub fn check_distinct(reader: &Reader, filter: &str) -> Result<()> {
    let told = |path: &str, hint: &str| -> Result<Vec<Vec<u8>>> {
        let values = reader.distinct(path, &format!("{{filter: {filter}{hint}}}"))?;
        Ok(values.as_ref().iter().map(|value| key_of(reader, value)).collect())
    };
    for path in ["a", "a.b", "a.c", "a.b.c", "d", "s", "t", "a.0"] {
        let scanned = told(path, ", hint: {$natural: 1}")?;
        assert_eq!(told(path, "")?, scanned, "distinct {path} of {filter}");
        for index in reader.whole_indexes() {
            let hinted = told(path, &format!(", hint: '{}'", index.name))?;
            assert_eq!(hinted, scanned, "distinct {path} of {filter} with {}", index.name);
        }
    }
    Ok(())
}

/// A plan yields a document of every group, and none of other groups; a group's documents share one value at a path.
pub fn check_groups(reader: &Reader, filter: &str) -> Result<()> {
    for path in ["a", "a.b", "d", "s", "t"] {
        let field = FieldPath::parse(path).expect("a path");
        let groups = |of: Option<DistinctOf>, hint: &str| -> Result<BTreeSet<Vec<u8>>> {
            let mut query = reader.query(&format!("{{filter: {filter}{hint}}}"));
            query.distinct = of.map(|of| Distinct { path: path.into(), of, order: None, count: 1 });
            let mut execution = reader.open(query)?;
            let mut groups = BTreeSet::new();
            while let Some(document) = execution.next()? {
                let value = field.follow(ValueRef::Document(document));
                let value = value.or_null();
                groups
                    .insert(key_of(reader, if matches!(value, ValueRef::Undefined) { ValueRef::Null } else { value }));
            }
            Ok(groups)
        };
        let scanned = groups(None, ", hint: {$natural: 1}")?;
        for of in [DistinctOf::Groups, DistinctOf::FirstOfGroups] {
            assert_eq!(groups(Some(of), "")?, scanned, "groups by {path} of {filter}");
            for index in reader.whole_indexes() {
                let hinted = groups(Some(of), &format!(", hint: '{}'", index.name))?;
                assert_eq!(hinted, scanned, "groups by {path} of {filter} with {}", index.name);
            }
        }
    }
    Ok(())
}

/// The sort key of the first or last document of each group, by the group's value. The plan yields at least that
/// document of each group, and a group's documents in order if it yields several.
fn ends_of_groups(reader: &Reader, find: &str, path: &str, of: DistinctOf, is_planned: bool) -> Result<Ends> {
    let field = FieldPath::parse(path).expect("a path");
    let mut query = reader.query(find);
    query.distinct = is_planned.then(|| Distinct { path: path.into(), of, order: None, count: 1 });
    let mut execution = reader.open(query)?;
    let query = Arc::clone(execution.plan().query());
    let sort = query.sort.as_ref().expect("a sort");
    let mut ends = Ends::new();
    while let Some(document) = execution.next()? {
        let value = field.follow(ValueRef::Document(document));
        let value = value.or_null();
        let group = key_of(reader, if matches!(value, ValueRef::Undefined) { ValueRef::Null } else { value });
        let mut key = Vec::new();
        sort.append_key(&mut key, document, &OperationContext::unlimited(), &reader.strings)?;
        if of == DistinctOf::LastOfGroups {
            ends.insert(group, key);
        } else {
            ends.entry(group).or_insert(key);
        }
    }
    Ok(ends)
}

type Ends = BTreeMap<Vec<u8>, Vec<u8>>;

/// The first and last documents of groups are those of a sorted scan, whatever the direction of the index, and whether
/// it gives the order or not.
pub fn check_ends_of_groups(reader: &Reader, filter: &str) -> Result<()> {
    for index in reader.whole_indexes().iter().filter(|index| index.kind.name().is_empty()) {
        let last = index.fields.len() - 1;
        // In the index's order, against it, and with only the last field against it.
        for reversed in [0..0, 0..last + 1, last..last + 1] {
            let sign = |position: usize, direction| {
                if (direction == Direction::Ascending) == reversed.contains(&position) { -1 } else { 1 }
            };
            let fields = index.fields.iter().enumerate();
            let sort = braced(fields.map(|(at, field)| format!("'{}': {}", field.path, sign(at, field.direction))));
            for path in index.fields.iter().map(|field| &field.path) {
                for of in [DistinctOf::FirstOfGroups, DistinctOf::LastOfGroups] {
                    let ends = |hint: &str, is_planned| {
                        let find = format!("{{filter: {filter}, sort: {sort}, hint: {hint}}}");
                        ends_of_groups(reader, &find, path, of, is_planned)
                    };
                    let scanned = match ends("{$natural: 1}", false) {
                        // Parallel arrays cannot be sorted.
                        Err(failure) if failure.code() != ErrorCode::SNAPSHOT_UNAVAILABLE => continue,
                        scanned => scanned?,
                    };
                    let planned = ends(&format!("'{}'", index.name), true)?;
                    assert_eq!(planned, scanned, "{of:?} by {path} of {filter} in the order {sort}");
                }
            }
        }
    }
    Ok(())
}

/// A group, as the documents that were found tell it.
#[derive(Debug, PartialEq)]
struct Told {
    /// The group's value in the collection's first document.
    group: (u64, String),
    /// The least sort key.
    key: Vec<u8>,
    /// The first value in the order that is not null.
    value: Option<(Vec<u8>, u64, String)>,
}

/// The groups of a query's documents by the value at a path, and the first ones in an order.
fn told_groups(reader: &Reader, query: FindQuery, path: &str, order: &SortPattern) -> Result<BTreeMap<Vec<u8>, Told>> {
    let within = order.parts().next().expect("a path").0;
    let group_at = FieldPath::parse(path).expect("a path");
    let mut groups: BTreeMap<Vec<u8>, Told> = BTreeMap::new();
    let mut execution = reader.open(query)?;
    while let Some((record, document)) = execution.next_record()? {
        let at = |path: &FieldPath| match path.follow(ValueRef::Document(document)).or_null() {
            ValueRef::Undefined => "null".to_owned(),
            value => shell::print(value),
        };
        let group = key_of(
            reader,
            match group_at.follow(ValueRef::Document(document)).or_null() {
                ValueRef::Undefined => ValueRef::Null,
                value => value,
            },
        );
        let mut key = Vec::new();
        order.append_key(&mut key, document, &OperationContext::unlimited(), &reader.strings)?;
        let (form, shown) = ((record.0, at(&group_at)), at(within));
        let value = (shown != "null").then(|| (key.clone(), record.0, shown));
        let told = groups.entry(group).or_insert_with(|| Told { group: form.clone(), key: key.clone(), value: None });
        told.group = told.group.clone().min(form);
        told.key = told.key.clone().min(key);
        told.value = match (told.value.take(), value) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }
    Ok(groups)
}

/// The first document of each group in an order of its own is that of a scan, and the first value that is not null. The
/// group's value, and that value, have the type that they have in the collection's first document.
pub fn check_firsts_in_groups(reader: &Reader, filter: &str) -> Result<()> {
    let has_two = |index: &&Arc<Index>| index.kind.name().is_empty() && index.fields.len() > 1;
    for index in reader.whole_indexes().iter().filter(has_two) {
        let (path, within) = (&index.fields[0].path, &index.fields[1].path);
        for (of, sign) in
            [DistinctOf::FirstOfGroups, DistinctOf::FirstWithValue].into_iter().flat_map(|of| [(of, 1), (of, -1)])
        {
            let order = reader.query(&format!("{{sort: {{'{within}': {sign}}}}}")).sort.expect("a sort");
            let told = |hint: &str, is_planned: bool| {
                let mut query = reader.query(&format!("{{filter: {filter}, hint: {hint}}}"));
                let asked = || Distinct { path: path.as_str().into(), of, order: Some(order.clone()), count: 1 };
                query.distinct = is_planned.then(asked);
                let groups = told_groups(reader, query, path, &order)?;
                let shown = groups.into_iter().map(|(group, told)| match of {
                    DistinctOf::FirstWithValue => {
                        (group, told.group.1, told.value.map(|(_, _, shown)| shown), Vec::new())
                    }
                    _ => (group, told.group.1, None, told.key),
                });
                Ok(shown.collect::<Vec<_>>())
            };
            let planned = told(&format!("'{}'", index.name), true)?;
            assert_eq!(planned, told("{$natural: 1}", false)?, "{of:?} by {path} of {filter} in the order {order:?}");
        }
    }
    Ok(())
}

/// The least sort keys of each group, as many as are asked for; only of documents with a value in the order if
/// `is_valued`.
fn several_of_groups(
    reader: &Reader,
    query: FindQuery,
    (path, order): (&str, &SortPattern),
    (count, is_valued): (usize, bool),
) -> Result<BTreeMap<Vec<u8>, Vec<Vec<u8>>>> {
    let (group_at, within) = (FieldPath::parse(path).expect("a path"), order.parts().next().expect("a path").0);
    let mut groups: BTreeMap<Vec<u8>, Vec<Vec<u8>>> = BTreeMap::new();
    let mut execution = reader.open(query)?;
    while let Some(document) = execution.next()? {
        let at = |path: &FieldPath| match path.follow(ValueRef::Document(document)).or_null() {
            ValueRef::Undefined => Value::Null,
            value => value.to_value(),
        };
        let mut key = Vec::new();
        order.append_key(&mut key, document, &OperationContext::unlimited(), &reader.strings)?;
        let keys = groups.entry(key_of(reader, at(&group_at).as_ref())).or_default();
        if !is_valued || !matches!(at(within), Value::Null) {
            keys.push(key);
        }
    }
    for keys in groups.values_mut() {
        keys.sort_unstable();
        keys.truncate(count);
    }
    Ok(groups)
}

/// The first few documents of each group in an order of its own, and the first few values, are those of a scan.
pub fn check_several_in_groups(reader: &Reader, filter: &str) -> Result<()> {
    let has_two = |index: &&Arc<Index>| index.kind.name().is_empty() && index.fields.len() > 1;
    for index in reader.whole_indexes().iter().filter(has_two) {
        let (path, within) = (&index.fields[0].path, &index.fields[1].path);
        for (of, sign, count) in [
            (DistinctOf::FirstOfGroups, 1, 2),
            (DistinctOf::FirstOfGroups, -1, 3),
            (DistinctOf::FirstWithValue, 1, 2),
            (DistinctOf::FirstWithValue, -1, 3),
        ] {
            let order = reader.query(&format!("{{sort: {{'{within}': {sign}}}}}")).sort.expect("a sort");
            let several = |hint: &str, is_planned: bool| {
                let mut query = reader.query(&format!("{{filter: {filter}, hint: {hint}}}"));
                let asked = || Distinct { path: path.as_str().into(), of, order: Some(order.clone()), count };
                query.distinct = is_planned.then(asked);
                several_of_groups(reader, query, (path, &order), (count, of == DistinctOf::FirstWithValue))
            };
            let planned = several(&format!("'{}'", index.name), true)?;
            let scanned = several("{$natural: 1}", false)?;
            assert_eq!(planned, scanned, "{count} {of:?} by {path} of {filter} in the order {order:?}");
        }
    }
    Ok(())
}

/// The extreme value of all documents is that of a scan. Null counts only if there is no other value.
pub fn check_extremes(reader: &Reader, filter: &str) -> Result<()> {
    for path in ["a", "a.b", "d", "s", "t"] {
        let field = FieldPath::parse(path).expect("a path");
        for of in [DistinctOf::Least, DistinctOf::Greatest] {
            let extreme = |is_planned: bool, hint: &str| -> Result<Option<Vec<u8>>> {
                let mut query = reader.query(&format!("{{filter: {filter}{hint}}}"));
                query.distinct = is_planned.then(|| Distinct { path: path.into(), of, order: None, count: 1 });
                let mut execution = reader.open(query)?;
                let (mut keys, mut is_any) = (BTreeSet::new(), false);
                while let Some(document) = execution.next()? {
                    is_any = true;
                    match field.follow(ValueRef::Document(document)).or_null() {
                        ValueRef::Null | ValueRef::Undefined => {}
                        value => drop(keys.insert(key_of(reader, value))),
                    }
                }
                let found = if of == DistinctOf::Least { keys.pop_first() } else { keys.pop_last() };
                Ok(is_any.then(|| found.unwrap_or_default()))
            };
            let scanned = extreme(false, ", hint: {$natural: 1}")?;
            assert_eq!(extreme(true, "")?, scanned, "{of:?} {path} of {filter}");
            for index in reader.whole_indexes() {
                let hinted = extreme(true, &format!(", hint: '{}'", index.name))?;
                assert_eq!(hinted, scanned, "{of:?} {path} of {filter} with {}", index.name);
            }
        }
    }
    Ok(())
}

fn key_of(reader: &Reader, value: ValueRef<'_>) -> Vec<u8> {
    let mut key = Vec::new();
    reader.strings.append_key(&mut key, value, Direction::Ascending);
    key
}
