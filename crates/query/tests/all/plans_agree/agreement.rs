//! Compares the answers of plans with those of collection scans.

use crate::plans_agree::reader::Reader;
use crate::plans_agree::scenes::{Find, braced};
use crate::temporary::{document, find_query};
use bunko_bson::key_string::Direction;
use bunko_bson::{DocumentBuf, StringOrder, ValueRef};
use bunko_catalog::{Index, index_keys};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::FieldPath;
use bunko_operation::OperationContext;
use bunko_query::{Distinct, DistinctOf};
use bunko_testkit::shell;
use std::collections::{BTreeMap, BTreeSet};

/// The records that a find yields, each with its sort key.
fn answer(reader: &Reader, find: &str) -> Result<Vec<(u64, Vec<u8>)>> {
    let said = |failure: Failure| failure.with_prefix(&format!("{find}: "));
    let mut execution = reader.open(reader.query(find)).map_err(said)?;
    let query = std::sync::Arc::clone(execution.plan().query());
    let mut rows = Vec::new();
    while let Some((record, document)) = execution.next_record().map_err(said)? {
        let mut key = Vec::new();
        if let Some(sort) = &query.sort {
            sort.append_key(&mut key, document, &OperationContext::unlimited(), StringOrder::BYTES)?;
        }
        rows.push((record.0, key));
    }
    Ok(rows)
}

fn records(rows: &[(u64, Vec<u8>)]) -> Vec<u64> {
    let mut records: Vec<u64> = rows.iter().map(|(record, _)| *record).collect();
    records.sort_unstable();
    records
}

fn keys(rows: &[(u64, Vec<u8>)]) -> Vec<&[u8]> {
    rows.iter().map(|(_, key)| key.as_slice()).collect()
}

/// The records before a key and from it on; a record with keys on both sides counts once.
fn in_two_windows(reader: &Reader, filter: &str, index: &Index) -> Result<Vec<u64>> {
    let key = braced(index.fields.iter().map(|field| format!("'{}': 3", field.path)));
    let window = |side| answer(reader, &format!("{{filter: {filter}, hint: '{}', {side}: {key}}}", index.name));
    let mut found = records(&[window("min")?, window("max")?].concat());
    found.dedup();
    Ok(found)
}

fn text(document: &DocumentBuf) -> String {
    shell::print(ValueRef::Document(document.as_ref()))
}

/// A document with its top-level fields sorted by name, since an index gives them in its own order.
fn by_name(document: &DocumentBuf) -> String {
    let mut fields: Vec<_> = document.as_ref().iter().collect();
    fields.sort_unstable_by_key(|field| field.name);
    text(&fields.iter().fold(DocumentBuf::new(), |all, field| all.with(field.name, field.value)))
}

/// The documents that a find returns.
fn told(reader: &Reader, find: &str) -> Result<Vec<DocumentBuf>> {
    let mut execution = reader.open(reader.query(find))?;
    let mut told = Vec::new();
    while let Some(document) = execution.next()? {
        told.push(document.to_owned());
    }
    Ok(told)
}

/// With `returnKey` an index returns keys that the documents have, as many as it finds documents; with `showRecordId`
/// each document has its record's id, whatever the plan.
fn check_told(reader: &Reader, filter: &str, wanted: &[u64]) -> Result<()> {
    let mut numbers: Vec<u64> = told(reader, &format!("{{filter: {filter}, showRecordId: true}}"))?
        .iter()
        .map(|document| match document.as_ref().get("$recordId") {
            Some(ValueRef::Int64(record)) => record as u64,
            other => panic!("{filter}: {other:?}"),
        })
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, wanted, "{filter} with record ids");
    for index in reader.whole_indexes() {
        let find = format!("{{filter: {filter}, hint: '{}', sort: {{_id: 1}}, returnKey: true}}", index.name);
        let keys = told(reader, &find)?;
        let documents = told(reader, &format!("{{filter: {filter}, hint: '{}', sort: {{_id: 1}}}}", index.name))?;
        assert_eq!(keys.len(), documents.len(), "{find}");
        for (key, document) in keys.iter().zip(&documents) {
            let mut told = Vec::new();
            for (field, value) in index.fields.iter().zip(key.as_ref().iter()) {
                assert_eq!(value.name, field.path, "{find}");
                StringOrder::BYTES.append_key(&mut told, value.value, field.direction);
            }
            let own = index_keys(&index, document.as_ref()).expect("was indexed").keys;
            assert!(own.contains(&told), "{find}: {} of {}", text(key), text(document));
        }
    }
    Ok(())
}

/// The sort keys of the documents that a find returns, as far as these have the sort's fields.
fn order_shown(reader: &Reader, find: &str) -> Result<Vec<Vec<u8>>> {
    let sort = reader.query(find).sort.expect("a sort");
    let key_of = |document: &DocumentBuf| {
        let mut key = Vec::new();
        sort.append_key(&mut key, document.as_ref(), &OperationContext::unlimited(), StringOrder::BYTES)?;
        Ok(key)
    };
    told(reader, find)?.iter().map(key_of).collect()
}

/// Covered fields equal those of the documents, whichever stage gives them.
fn check_covered(reader: &Reader, filter: &str) -> Result<()> {
    for index in reader.whole_indexes().iter().filter(|index| index.kind.name().is_empty()) {
        let paths: Vec<&str> = index.fields.iter().map(|field| field.path.as_str()).collect();
        for some in [&paths[..], &paths[paths.len() - 1..]] {
            let projection = braced(some.iter().map(|path| format!("'{path}': 1")).chain(["_id: 0".to_owned()]));
            // Paths may overlap, and `_id` may be among them.
            let Ok(shape) = find_query(document(&format!("{{projection: {projection}}}")).as_ref()) else { continue };
            let list = some.iter().map(|path| format!("'{path}'")).collect::<Vec<_>>().join(", ");
            let shaped = |rest: &str| -> Result<Vec<(u64, String)>> {
                let mut execution = reader.open(reader.query(&format!("{{filter: {filter}, {rest}}}")))?;
                let mut found = Vec::new();
                while let Some((record, document)) = execution.next_record()? {
                    let mut buffer = Vec::new();
                    let projected = shape.projected(document, &mut buffer).expect("a simple projection");
                    found.push((record.0, by_name(&projected.to_owned())));
                }
                found.sort_unstable();
                Ok(found)
            };
            let scanned = shaped("hint: {$natural: 1}")?;
            let covered = shaped(&format!("hint: '{}', needed: [{list}]", index.name))?;
            assert_eq!(covered, scanned, "{filter} with {} for {list}", index.name);
            let shown = |hint: &str| -> Result<Vec<String>> {
                let find =
                    format!("{{filter: {filter}, projection: {projection}, projectionOnly: true, hint: {hint}}}");
                let mut shown: Vec<_> = told(reader, &find)?.iter().map(by_name).collect();
                shown.sort_unstable();
                Ok(shown)
            };
            let by_index = shown(&format!("'{}'", index.name))?;
            assert_eq!(by_index, shown("{$natural: 1}")?, "{filter} with {} shown for {list}", index.name);
            // The first field comes first in the sort, and is not shown in the second projection.
            let direction = |position| if position == 0 { -1 } else { 1 };
            let sort = braced(paths.iter().enumerate().map(|(at, path)| format!("'{path}': {}", direction(at))));
            let find = format!("{{filter: {filter}, sort: {sort}, projection: {projection}, projectionOnly: true");
            let scanned = match order_shown(reader, &format!("{find}, hint: {{$natural: 1}}}}")) {
                // Parallel arrays cannot be sorted.
                Err(failure) if failure.code() != ErrorCode::SNAPSHOT_UNAVAILABLE => continue,
                scanned => scanned?,
            };
            let by_index = order_shown(reader, &format!("{find}, hint: '{}'}}", index.name))?;
            assert_eq!(by_index, scanned, "{filter} with {} sorted by {sort} for {list}", index.name);
        }
    }
    Ok(())
}

/// Distinct values equal those of a collection scan; of equal values any may be returned.
pub fn check_distinct(reader: &Reader, filter: &str) -> Result<()> {
    let told = |path: &str, hint: &str| -> Result<Vec<Vec<u8>>> {
        let values = reader.distinct(path, &format!("{{filter: {filter}{hint}}}"))?;
        Ok(values.as_ref().iter().map(key_of).collect())
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
            query.distinct = of.map(|of| Distinct { path: path.into(), of });
            let mut execution = reader.open(query)?;
            let mut groups = BTreeSet::new();
            while let Some(document) = execution.next()? {
                let value = field.follow(ValueRef::Document(document));
                let value = value.or_null();
                groups.insert(key_of(if matches!(value, ValueRef::Undefined) { ValueRef::Null } else { value }));
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

/// The sort key of the first or last document of each group, by the group's value. The plan yields at least that document
/// of each group, and a group's documents in order if it yields several.
fn ends_of_groups(reader: &Reader, find: &str, path: &str, of: DistinctOf, is_planned: bool) -> Result<Ends> {
    let field = FieldPath::parse(path).expect("a path");
    let mut query = reader.query(find);
    query.distinct = is_planned.then(|| Distinct { path: path.into(), of });
    let mut execution = reader.open(query)?;
    let query = std::sync::Arc::clone(execution.plan().query());
    let sort = query.sort.as_ref().expect("a sort");
    let mut ends = Ends::new();
    while let Some(document) = execution.next()? {
        let value = field.follow(ValueRef::Document(document));
        let value = value.or_null();
        let group = key_of(if matches!(value, ValueRef::Undefined) { ValueRef::Null } else { value });
        let mut key = Vec::new();
        sort.append_key(&mut key, document, &OperationContext::unlimited(), StringOrder::BYTES)?;
        if of == DistinctOf::LastOfGroups {
            ends.insert(group, key);
        } else {
            ends.entry(group).or_insert(key);
        }
    }
    Ok(ends)
}

type Ends = BTreeMap<Vec<u8>, Vec<u8>>;

/// The first and last documents of groups are those of a sorted scan, whatever the direction of the index.
pub fn check_ends_of_groups(reader: &Reader, filter: &str) -> Result<()> {
    for index in reader.whole_indexes().iter().filter(|index| index.kind.name().is_empty()) {
        for is_reversed in [false, true] {
            let sign = |direction| if (direction == Direction::Ascending) == is_reversed { -1 } else { 1 };
            let sort = braced(index.fields.iter().map(|field| format!("'{}': {}", field.path, sign(field.direction))));
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

fn key_of(value: ValueRef<'_>) -> Vec<u8> {
    let mut key = Vec::new();
    StringOrder::BYTES.append_key(&mut key, value, Direction::Ascending);
    key
}

/// A search by distance with an index finds the documents that a scan finds within that distance.
fn check_near(reader: &Reader, filter: &str) -> Result<()> {
    let searches = [
        ("{$near: [2, 2], $maxDistance: 2.3}", "{$geoWithin: {$center: [[2, 2], 2.3]}}"),
        (
            "{$nearSphere: {$geometry: {type: 'Point', coordinates: [2, 2]}, $maxDistance: 255124}}",
            "{$geoWithin: {$centerSphere: [[2, 2], 0.04]}}",
        ),
    ];
    for (near, within) in searches {
        let found = match answer(reader, &format!("{{filter: {{$and: [{{g: {near}}}, {filter}]}}}}")) {
            Err(failure) if failure.code() == ErrorCode::NO_QUERY_EXECUTION_PLANS => continue,
            found => records(&found?),
        };
        let scan = format!("{{filter: {{$and: [{{g: {within}}}, {filter}]}}, hint: {{$natural: 1}}}}");
        assert_eq!(found, records(&answer(reader, &scan)?), "{filter} near {near}");
    }
    Ok(())
}

/// Documents within a region equal those of a scan, whichever index serves.
fn check_within(reader: &Reader, filter: &str) -> Result<()> {
    for place in [
        "g: {$geoWithin: {$box: [[0, 0], [3, 3]]}}",
        "g: {$geoWithin: {$centerSphere: [[2, 2], 0.05]}}",
        "h: {$geoWithin: {$centerSphere: [[2, 2], 0.05]}}",
    ] {
        let filter = format!("{{$and: [{{{place}}}, {filter}]}}");
        let found = records(&answer(reader, &format!("{{filter: {filter}}}"))?);
        let scanned = records(&answer(reader, &format!("{{filter: {filter}, hint: {{$natural: 1}}}}"))?);
        assert_eq!(found, scanned, "{filter}");
    }
    Ok(())
}

/// A hinted wildcard index finds the documents that a scan finds, or is refused.
fn check_hinted_wildcards(reader: &Reader, filter: &str) -> Result<()> {
    let scanned = records(&answer(reader, &format!("{{filter: {filter}, hint: {{$natural: 1}}}}"))?);
    for index in reader.wildcard_indexes() {
        match answer(reader, &format!("{{filter: {filter}, hint: '{}'}}", index.name)) {
            Err(failure) if failure.code() == ErrorCode::NO_QUERY_EXECUTION_PLANS => {}
            found => assert_eq!(records(&found?), scanned, "{filter} with {}", index.name),
        }
    }
    Ok(())
}

/// The records that two indexes have in common are those of a scan, with and without documents.
fn check_intersections(reader: &Reader, filter: &str, wanted: &[u64]) -> Result<()> {
    for needed in ["", ", needed: []"] {
        for mut execution in reader.open_intersections(reader.query(&format!("{{filter: {filter}{needed}}}")))? {
            let mut found = Vec::new();
            while let Some((record, _)) = execution.next_record()? {
                found.push(record.0);
            }
            assert_eq!(found, wanted, "{filter}{needed} by two indexes, in the order of records");
        }
    }
    Ok(())
}

/// Each two indexes together, for values that some documents have.
pub fn check_pairs(reader: &Reader) -> Result<()> {
    let indexes = reader.whole_indexes();
    for (position, one) in indexes.iter().enumerate() {
        for (other, condition) in indexes[..position].iter().flat_map(|other| [(other, "3"), (other, "{$gte: 2}")]) {
            let asked =
                |index: &Index| braced(index.fields.iter().map(|field| format!("'{}': {condition}", field.path)));
            let filter = format!("{{$and: [{}, {}]}}", asked(one), asked(other));
            let wanted = records(&answer(reader, &format!("{{filter: {filter}, hint: {{$natural: 1}}}}"))?);
            check_intersections(reader, &filter, &wanted)?;
        }
    }
    Ok(())
}

/// All checks of one filter; `sort` is the find's own.
/// # Errors
/// Failures that make the state unreadable: see [`Reader::is_lost`].
pub fn check(reader: &Reader, find: &Find, sort: Option<&str>) -> Result<()> {
    let Find { filter, .. } = find;
    let wanted = records(&answer(reader, &format!("{{filter: {filter}, hint: {{$natural: 1}}}}"))?);
    // By a trial, by a second trial that confirms it, and by the cached plan.
    for run in 0..3 {
        let found = answer(reader, &format!("{{filter: {filter}}}"))?;
        assert_eq!(records(&found), wanted, "{filter}, run {run}");
    }
    assert_eq!(reader.count(&format!("{{filter: {filter}}}"))?, wanted.len() as u64, "counted {filter}");
    let numbered = answer(reader, &format!("{{filter: {filter}, needed: []}}"))?;
    assert_eq!(records(&numbered), wanted, "{filter} where nothing is read");
    check_intersections(reader, filter, &wanted)?;
    for index in reader.whole_indexes() {
        let hinted = answer(reader, &format!("{{filter: {filter}, hint: '{}'}}", index.name))?;
        assert_eq!(records(&hinted), wanted, "{filter} with {}", index.name);
        let numbered = answer(reader, &format!("{{filter: {filter}, hint: '{}', needed: []}}", index.name))?;
        assert_eq!(records(&numbered), wanted, "{filter} by {} where nothing is read", index.name);
        assert_eq!(in_two_windows(reader, filter, &index)?, wanted, "{filter} in two windows of {}", index.name);
    }
    check_told(reader, filter, &wanted)?;
    check_covered(reader, filter)?;
    check_distinct(reader, filter)?;
    check_groups(reader, filter)?;
    check_ends_of_groups(reader, filter)?;
    check_within(reader, filter)?;
    check_hinted_wildcards(reader, filter)?;
    check_near(reader, filter)?;
    sort.map_or(Ok(()), |sort| check_sorted(reader, find, sort, &wanted))
}

/// Documents come in the requested order, whichever stage gives it.
fn check_sorted(reader: &Reader, find: &Find, sort: &str, wanted: &[u64]) -> Result<()> {
    let Find { filter, skip, limit, .. } = find;
    let window = format!("skip: {skip}, limit: {}", limit.unwrap_or(0));
    let scan = format!("{{filter: {filter}, sort: {sort}, {window}, hint: {{$natural: 1}}}}");
    let sorted = match answer(reader, &scan) {
        // Parallel arrays cannot be sorted.
        Err(failure) if failure.code() != ErrorCode::SNAPSHOT_UNAVAILABLE => return Ok(()),
        sorted => sorted?,
    };
    let hints = reader.whole_indexes().into_iter().map(|index| format!(", hint: '{}'", index.name));
    for hint in hints.chain([String::new()]) {
        let by_plan = answer(reader, &format!("{{filter: {filter}, sort: {sort}, {window}{hint}}}"))?;
        assert_eq!(keys(&by_plan), keys(&sorted), "{filter} by {sort}, {window}{hint}");
        if limit.is_none() && *skip == 0 {
            assert_eq!(records(&by_plan), wanted, "{filter} by {sort}{hint}");
        }
    }
    Ok(())
}
