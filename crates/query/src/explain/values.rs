//! Values that several stages show.

use bunko_bson::DocumentBuf;
use bunko_bson::key_string::Direction;
use bunko_expression::SortPattern;
use bunko_expression::sort_pattern::metadata_name;
use bunko_scratch::Spilled;

/// A sort pattern as a document.
pub(crate) fn sort_document(sort: &SortPattern) -> DocumentBuf {
    let mut document = DocumentBuf::new();
    for (path, direction) in sort.parts() {
        if let Some(name) = metadata_name(path) {
            document.append("$computed0", &DocumentBuf::new().with("$meta", name));
            continue;
        }
        document.append(&path.dotted(), if direction == Direction::Ascending { 1_i32 } else { -1_i32 });
    }
    document
}

/// Appends a count as an int, or as a long if it does not fit.
pub(crate) fn append_count(facts: &mut DocumentBuf, name: &str, count: u64) {
    match i32::try_from(count) {
        Ok(count) => facts.append(name, count),
        Err(_) => facts.append(name, count as i64),
    };
}

/// Adds the data that a stage spilled to disk.
/// Source: MongoDB 8.2, "Explain Results", `$sort` and `$group`; names as of SERVER-99642.
pub fn append_spilled(facts: &mut DocumentBuf, spilled: Spilled) {
    facts.append("usedDisk", spilled.spills > 0);
    append_count(facts, "spills", spilled.spills);
    append_count(facts, "spilledRecords", spilled.records);
    append_count(facts, "spilledBytes", spilled.bytes);
    append_count(facts, "spilledDataStorageSize", spilled.stored_bytes);
}
