//! Explain's fields for an index and its bounds.

use super::Facts;
use crate::planner::{Edge, IndexBounds, IntervalRef, Intervals, KeyWindow};
use crate::run::StageStatistics;
use bunko_bson::key_string;
use bunko_bson::{ArrayBuf, DocumentBuf};
use bunko_catalog::{Answers, Index};
use bunko_store::Direction;

/// Adds the fields of a stage that scans an index.
pub(crate) fn describe_index(bounds: &IndexBounds, direction: Direction, facts: &mut Facts<'_>) {
    describe_properties(bounds, facts);
    facts.append("direction", direction_name(direction));
    if let Some(window) = &bounds.window {
        facts.append("indexBounds", &printed_window(window));
        return;
    }
    let mut printed = DocumentBuf::new();
    let mut left = facts.room_left();
    for (field, intervals) in bounds.pattern.iter().zip(&bounds.fields) {
        let is_reversed = (field.direction == key_string::Direction::Descending) != (direction == Direction::Backward);
        let Some(intervals) = printed_intervals(intervals, is_reversed, &mut left) else {
            facts.append("warning", "index bounds omitted due to BSON size limit for explain");
            return;
        };
        printed.append(&field.path, &intervals);
    }
    facts.append_counted("indexBounds", &printed);
}

/// Adds the fields of a stage that scans spans of keys, which are not bounds of the index's fields.
pub(crate) fn describe_spans(index: &Index, direction: Direction, facts: &mut DocumentBuf) {
    let is_multikey = index.kind.text().is_some() || !index.multikey().is_empty();
    append_properties(index, &index.key_pattern().to_owned(), is_multikey, None, facts);
    facts.append("direction", direction_name(direction));
}

/// Adds the statistics of a run that scans an index and may find a record by several keys.
pub(crate) fn describe_index_run(statistics: &StageStatistics, facts: &mut DocumentBuf) {
    facts
        .append("keysExamined", statistics.keys_examined as i32)
        .append("seeks", statistics.seeks as i32)
        .append("dupsTested", statistics.duplicates_tested as i32)
        .append("dupsDropped", statistics.duplicates_dropped as i32);
}

fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Forward => "forward",
        Direction::Backward => "backward",
    }
}

/// Adds the fields for the index itself.
fn describe_properties(bounds: &IndexBounds, facts: &mut DocumentBuf) {
    let index = &bounds.index;
    let mut multikey_paths = DocumentBuf::new();
    for (position, field) in bounds.pattern.iter().enumerate() {
        let mut paths = ArrayBuf::new();
        let ends = field.path.match_indices('.').map(|(end, _)| end).chain([field.path.len()]);
        for (_, end) in ends.enumerate().filter(|(component, _)| bounds.multikey.has_array_at(position, *component)) {
            paths.push(&field.path[..end]);
        }
        multikey_paths.append(&field.path, &paths);
    }
    append_properties(index, &key_pattern(bounds), !bounds.multikey.is_empty(), Some(&multikey_paths), facts);
}

fn append_properties(
    index: &Index,
    key_pattern: &DocumentBuf,
    is_multikey: bool,
    multikey_paths: Option<&DocumentBuf>,
    facts: &mut DocumentBuf,
) {
    facts.append("keyPattern", key_pattern).append("indexName", &index.name).append("isMultiKey", is_multikey);
    if let Some(paths) = multikey_paths {
        facts.append("multiKeyPaths", paths);
    }
    facts
        .append("isUnique", index.is_unique)
        .append("isSparse", index.is_sparse)
        .append("isPartial", index.partial_filter.is_some())
        .append("indexVersion", 2_i32);
}

/// The key pattern of the index; for an index that answers by path, with the searched path.
fn key_pattern(bounds: &IndexBounds) -> DocumentBuf {
    let index = &bounds.index;
    if !matches!(index.kind.answers(), Answers::ByPath { .. }) {
        return index.key_pattern().to_owned();
    }
    bounds.pattern.iter().fold(DocumentBuf::new(), |pattern, field| {
        pattern.with(&field.path, if field.direction == key_string::Direction::Ascending { 1_i32 } else { -1 })
    })
}

/// The intervals as texts, whose bytes are subtracted from `left`; `None` if they need more.
fn printed_intervals(intervals: &Intervals, is_reversed: bool, left: &mut usize) -> Option<ArrayBuf> {
    let mut printed = ArrayBuf::new();
    let mut push = |interval: IntervalRef<'_>| {
        let text = interval.to_string();
        *left = left.checked_sub(text.len())?;
        printed.push(text.as_str());
        Some(())
    };
    if is_reversed {
        intervals.iter().rev().map(IntervalRef::reversed).try_for_each(&mut push)?;
    } else {
        intervals.iter().try_for_each(&mut push)?;
    }
    Some(printed)
}

/// The window's keys. A window has no intervals per field: it is one range of whole keys.
fn printed_window(window: &KeyWindow) -> DocumentBuf {
    let mut printed = DocumentBuf::new();
    if !window.min.as_ref().is_empty() {
        printed.append("startKey", &window.min).append("startKeyInclusive", true);
    }
    if !window.max.as_ref().is_empty() {
        printed.append("endKey", &window.max).append("endKeyInclusive", false);
    }
    printed
}

/// Adds the fields of a stage that counts the keys of one range.
pub(crate) fn describe_count(bounds: &IndexBounds, facts: &mut DocumentBuf) {
    describe_properties(bounds, facts);
    describe_count_bounds(bounds, facts);
}

/// Adds the bounds of a scan that only counts: one range, as keys.
fn describe_count_bounds(bounds: &IndexBounds, facts: &mut DocumentBuf) {
    let (mut start, mut end) = (DocumentBuf::new(), DocumentBuf::new());
    let (mut start_inclusive, mut end_inclusive) = (true, true);
    for (field, intervals) in bounds.pattern.iter().zip(&bounds.fields) {
        let Some(interval) = intervals.get(0) else { continue };
        let interval = match field.direction {
            key_string::Direction::Ascending => interval,
            key_string::Direction::Descending => interval.reversed(),
        };
        start.append(&field.path, interval.start);
        end.append(&field.path, interval.end);
        start_inclusive &= interval.start_edge == Edge::Inclusive;
        end_inclusive &= interval.end_edge == Edge::Inclusive;
    }
    let printed = DocumentBuf::new()
        .with("startKey", &start)
        .with("startKeyInclusive", start_inclusive)
        .with("endKey", &end)
        .with("endKeyInclusive", end_inclusive);
    facts.append("indexBounds", &printed);
}
