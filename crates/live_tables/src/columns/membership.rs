//! A server's place in its set.

use crate::reading::Reading;
use bunko_bson::{ArrayRef, DocumentRef, ValueRef, number};

/// Numbers of members' states. Source: MongoDB manual, "Replica Set Member States".
const PRIMARY: f64 = 1.0;
const ARBITER: f64 = 7.0;
const DOWN: f64 = 8.0;

/// The member's state, as mongostat abbreviates it.
pub(super) fn state(reading: &Reading) -> Option<String> {
    let name = if reading.text("process") == Some("mongos") {
        "RTR"
    } else if reading.holds("repl.isWritablePrimary") || reading.holds("repl.ismaster") {
        "PRI"
    } else if reading.holds("repl.secondary") {
        "SEC"
    } else if reading.holds("repl.arbiterOnly") || own_state(reading) == Some(ARBITER) {
        "ARB"
    } else if own_state(reading) == Some(DOWN) {
        "DOWN"
    } else {
        reading.value("repl")?;
        "REC"
    };
    Some(name.to_owned())
}

fn own_state(reading: &Reading) -> Option<f64> {
    reading.set.as_ref()?.as_ref().get("myState").and_then(number::as_f64)
}

/// Time between the last operation of the primary and the last one that this member has applied. While no primary is
/// known, the newest member stands for it. An arbiter has no operations.
pub(super) fn lag(reading: &Reading) -> Option<String> {
    let set = reading.set.as_ref()?.as_ref();
    let members = || {
        let members = set.get("members").and_then(ValueRef::as_array);
        members.into_iter().flat_map(ArrayRef::iter).filter_map(ValueRef::as_document)
    };
    let own = members().find(|member| member.get("self").is_some()).and_then(applied_ms)?;
    let is_primary = |member: &DocumentRef<'_>| member.get("state").and_then(number::as_f64) == Some(PRIMARY);
    let newest = members().filter(is_primary).filter_map(applied_ms).max();
    let newest = newest.or_else(|| members().filter_map(applied_ms).max())?;
    Some(format!("{}s", (newest - own).max(0) / 1000))
}

/// The date of the member's last operation, in milliseconds; `None` for a member that has none.
fn applied_ms(member: DocumentRef<'_>) -> Option<i64> {
    match member.get("optimeDate")? {
        ValueRef::DateTime(ms) if ms > 0 => Some(ms),
        _ => None,
    }
}
