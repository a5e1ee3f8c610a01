//! Compares the answers of plans with those of collection scans.

use crate::plans_agree::groups::{
    check_distinct, check_ends_of_groups, check_extremes, check_firsts_in_groups, check_groups, check_several_in_groups,
};
use crate::plans_agree::reader::Reader;
use crate::plans_agree::scenes::Find;
use crate::plans_agree::values::braced;
use crate::temporary::{document, find_query};
use bunko_bson::{DocumentBuf, StringOrder, ValueRef};
use bunko_catalog::{Index, index_keys};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationContext;
use bunko_query::{Execution, FindQuery};
use bunko_testkit::shell;
use std::sync::Arc;

/// The records that a find yields, each with its sort key.
fn answer(reader: &Reader, find: &str) -> Result<Vec<(u64, Vec<u8>)>> {
    let said = |failure: Failure| failure.with_prefix(&format!("{find}: "));
    rows(reader, reader.open(reader.query(find)).map_err(said)?).map_err(said)
}

/// The records that a run yields, each with its sort key.
fn rows(reader: &Reader, mut execution: Execution) -> Result<Vec<(u64, Vec<u8>)>> {
    let query = Arc::clone(execution.plan().query());
    let mut rows = Vec::new();
    while let Some((record, document)) = execution.next_record()? {
        let mut key = Vec::new();
        if let Some(sort) = &query.sort {
            sort.append_key(&mut key, document, &OperationContext::unlimited(), &reader.strings)?;
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

/// The records that a find yields with their documents, in the order of records.
fn found(reader: &Reader, find: &str) -> Result<Vec<(u64, DocumentBuf)>> {
    let said = |failure: Failure| failure.with_prefix(&format!("{find}: "));
    let mut execution = reader.open(reader.query(find)).map_err(said)?;
    let mut rows = Vec::new();
    while let Some((record, document)) = execution.next_record().map_err(said)? {
        rows.push((record.0, document.to_owned()));
    }
    rows.sort_unstable_by_key(|(record, _)| *record);
    Ok(rows)
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
    let tells = |index: &Arc<Index>| index.strings.is_bytes() && !index.multikey().types().has_long_keys();
    for index in reader.whole_indexes().into_iter().filter(tells) {
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

/// Some fields of an index, and the projection to them.
struct Fields<'i> {
    paths: Vec<&'i str>,
    projection: String,
    shape: FindQuery,
}

/// All fields of an index, its last one, and its first one beside a field that it does not have. Paths may overlap, and
/// `_id` may be among them: such a projection is left out.
fn fields_of(index: &Index) -> Vec<Fields<'_>> {
    let paths: Vec<&str> = index.fields.iter().map(|field| field.path.as_str()).collect();
    let outside = ["s", "t", "d"].into_iter().find(|path| !paths.contains(path));
    let half: Vec<&str> = paths[..1].iter().copied().chain(outside).collect();
    let parts =
        if paths.len() > 1 { vec![&paths[..], &paths[paths.len() - 1..], &half] } else { vec![&paths[..], &half] };
    let mut found = Vec::new();
    for some in parts {
        let projection = braced(some.iter().map(|path| format!("'{path}': 1")).chain(["_id: 0".to_owned()]));
        if let Ok(shape) = find_query(document(&format!("{{projection: {projection}}}")).as_ref()) {
            found.push(Fields { paths: some.to_vec(), projection, shape });
        }
    }
    found
}

impl Fields<'_> {
    /// These fields of a document, by name.
    fn of(&self, document: &DocumentBuf) -> String {
        let mut buffer = Vec::new();
        by_name(&self.shape.projected(document.as_ref(), &mut buffer).expect("a simple projection").to_owned())
    }
}

/// The values that keys give back are those of the documents that a scan found.
fn check_given_back(reader: &Reader, find: &Find, scanned: &[(u64, DocumentBuf)]) -> Result<()> {
    let (filter, parts) = (&find.filter, if find.is_thorough { 2 } else { 1 });
    for index in reader.whole_indexes().iter().filter(|index| index.kind.name().is_empty()) {
        for fields in fields_of(index).into_iter().take(parts) {
            let list = fields.paths.iter().map(|path| format!("'{path}'")).collect::<Vec<_>>().join(", ");
            let rows = found(reader, &format!("{{filter: {filter}, hint: '{}', needed: [{list}]}}", index.name))?;
            assert_eq!(rows.len(), scanned.len(), "{filter} with {} for {list}", index.name);
            for ((record, told), (wanted, stored)) in rows.iter().zip(scanned) {
                assert_eq!(
                    (record, fields.of(told)),
                    (wanted, fields.of(stored)),
                    "{filter} with {} for {list}",
                    index.name
                );
            }
        }
    }
    Ok(())
}

/// As `check_covered`, for a filter alone.
pub fn check_shown(reader: &Reader, filter: &str) -> Result<()> {
    let scanned = found(reader, &format!("{{filter: {filter}, hint: {{$natural: 1}}}}"))?;
    check_covered(reader, filter, &scanned)
}

/// Covered fields equal those of the documents in what a find shows, and in the order that it asks for.
fn check_covered(reader: &Reader, filter: &str, scanned: &[(u64, DocumentBuf)]) -> Result<()> {
    for index in reader.whole_indexes().iter().filter(|index| index.kind.name().is_empty()) {
        let paths: Vec<&str> = index.fields.iter().map(|field| field.path.as_str()).collect();
        for fields in fields_of(index) {
            let (list, projection) = (fields.paths.join(", "), &fields.projection);
            let find =
                format!("{{filter: {filter}, projection: {projection}, projectionOnly: true, hint: '{}'", index.name);
            let mut shown: Vec<_> = told(reader, &format!("{find}}}"))?.iter().map(by_name).collect();
            let mut wanted: Vec<_> = scanned.iter().map(|(_, stored)| fields.of(stored)).collect();
            shown.sort_unstable();
            wanted.sort_unstable();
            assert_eq!(shown, wanted, "{filter} with {} shown for {list}", index.name);
            let names_positions = paths.iter().any(|path| path.contains(".0") || path.contains(".1"));
            if !index.multikey().is_empty() || names_positions {
                // A projection takes values out of arrays, which then have another place in the order.
                continue;
            }
            // The first field comes first in the sort, and is not shown in the second projection.
            let direction = |position| if position == 0 { -1 } else { 1 };
            let sort = braced(paths.iter().enumerate().map(|(at, path)| format!("'{path}': {}", direction(at))));
            let pattern = reader.query(&format!("{{sort: {sort}}}")).sort.expect("a sort");
            let key_of = |document: &DocumentBuf| {
                let mut key = Vec::new();
                pattern.append_key(&mut key, document.as_ref(), &OperationContext::unlimited(), &reader.strings)?;
                Ok(key)
            };
            let keyed = scanned.iter().map(|(_, stored)| Ok((key_of(stored)?, fields.of(stored))));
            // Parallel arrays cannot be sorted.
            let Ok(mut keyed) = keyed.collect::<Result<Vec<_>>>() else { continue };
            keyed.sort_by(|(one, _), (other, _)| one.cmp(other));
            let key_shown = |text: &String| key_of(&document(text));
            let wanted = keyed.iter().map(|(_, text)| key_shown(text)).collect::<Result<Vec<_>>>()?;
            let shown = told(reader, &format!("{find}, sort: {sort}}}"))?;
            let shown = shown.iter().map(key_of).collect::<Result<Vec<_>>>()?;
            assert_eq!(shown, wanted, "{filter} with {} sorted by {sort} for {list}", index.name);
        }
    }
    Ok(())
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
            found.sort_unstable();
            assert_eq!(found, wanted, "{filter}{needed} by two indexes");
        }
    }
    Ok(())
}

/// Each candidate finds the records of a scan, with and without documents.
fn check_rivals(reader: &Reader, filter: &str, wanted: &[u64]) -> Result<()> {
    for needed in ["", ", needed: []"] {
        for mut execution in reader.open_rivals(reader.query(&format!("{{filter: {filter}{needed}}}")))? {
            let mut found = Vec::new();
            while let Some((record, _)) = execution.next_record()? {
                found.push(record.0);
            }
            found.sort_unstable();
            assert_eq!(found, wanted, "{filter}{needed} by one of several ways");
        }
    }
    Ok(())
}

/// Each two indexes together, for values that some documents have; most lack most fields, which then equal null.
pub fn check_pairs(reader: &Reader) -> Result<()> {
    let indexes = reader.whole_indexes();
    for (position, one) in indexes.iter().enumerate() {
        for other in &indexes[..position] {
            for condition in ["3", "null", "{$gte: 2}"] {
                let asked =
                    |index: &Index| braced(index.fields.iter().map(|field| format!("'{}': {condition}", field.path)));
                let filter = format!("{{$and: [{}, {}]}}", asked(one), asked(other));
                let wanted = records(&answer(reader, &format!("{{filter: {filter}, hint: {{$natural: 1}}}}"))?);
                check_intersections(reader, &filter, &wanted)?;
            }
        }
    }
    Ok(())
}

/// All checks of one filter; `sort` is the find's own.
/// # Errors
/// Failures that make the state unreadable: see [`Reader::is_lost`].
pub fn check(reader: &Reader, find: &Find, sort: Option<&str>) -> Result<()> {
    let filter = &find.filter;
    let scanned = check_found(reader, find, sort)?;
    let wanted: Vec<u64> = scanned.iter().map(|(record, _)| *record).collect();
    if !find.is_thorough {
        return Ok(());
    }
    for index in reader.whole_indexes() {
        assert_eq!(in_two_windows(reader, filter, &index)?, wanted, "{filter} in two windows of {}", index.name);
    }
    check_told(reader, filter, &wanted)?;
    check_covered(reader, filter, &scanned)?;
    check_distinct(reader, filter)?;
    check_groups(reader, filter)?;
    check_ends_of_groups(reader, filter)?;
    check_extremes(reader, filter)?;
    check_firsts_in_groups(reader, filter)?;
    check_several_in_groups(reader, filter)?;
    check_within(reader, filter)?;
    check_near(reader, filter)
}

/// The documents found by each plan are those of the collection scan, and come in the order of `sort`. Returns the
/// scan's.
/// # Errors
/// As [`check`].
pub fn check_found(reader: &Reader, find: &Find, sort: Option<&str>) -> Result<Vec<(u64, DocumentBuf)>> {
    let Find { filter, .. } = find;
    let scanned = found(reader, &format!("{{filter: {filter}, hint: {{$natural: 1}}}}"))?;
    let wanted: Vec<u64> = scanned.iter().map(|(record, _)| *record).collect();
    // By a trial, by a second trial that confirms it, and by the cached plan.
    for run in 0..3 {
        let found = answer(reader, &format!("{{filter: {filter}}}"))?;
        assert_eq!(records(&found), wanted, "{filter}, run {run}");
    }
    assert_eq!(reader.count(&format!("{{filter: {filter}}}"))?, wanted.len() as u64, "counted {filter}");
    let numbered = answer(reader, &format!("{{filter: {filter}, needed: []}}"))?;
    assert_eq!(records(&numbered), wanted, "{filter} where nothing is read");
    check_intersections(reader, filter, &wanted)?;
    check_rivals(reader, filter, &wanted)?;
    for index in reader.whole_indexes() {
        let hinted = answer(reader, &format!("{{filter: {filter}, hint: '{}'}}", index.name))?;
        assert_eq!(records(&hinted), wanted, "{filter} with {}", index.name);
        let numbered = answer(reader, &format!("{{filter: {filter}, hint: '{}', needed: []}}", index.name))?;
        assert_eq!(records(&numbered), wanted, "{filter} by {} where nothing is read", index.name);
    }
    check_given_back(reader, find, &scanned)?;
    check_hinted_wildcards(reader, filter)?;
    sort.map_or(Ok(()), |sort| check_sorted(reader, find, sort, &wanted))?;
    Ok(scanned)
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
    for rival in reader.open_rivals(reader.query(&format!("{{filter: {filter}, sort: {sort}, {window}}}")))? {
        assert_eq!(keys(&rows(reader, rival)?), keys(&sorted), "{filter} by {sort}, {window} by one of several ways");
    }
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
