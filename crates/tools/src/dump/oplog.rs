//! The operations that happened while the dump was made.

use super::plan::{Kind, Order, Plan, Planned, with_read_preference};
use super::ranges::Range;
use crate::cursor::collect;
use crate::progress::Progress;
use crate::{Link, ToolError};
use bunko_bson::{ArrayBuf, DocumentBuf, Timestamp, ValueRef};
use bunko_client::ClientError;

const DATABASE: &str = "local";
const COLLECTION: &str = "oplog.rs";

/// The newest entry's time, or that of the oldest transaction that is still open: its operations so far stand before
/// the newest entry, and take effect only after it.
/// # Errors
/// `Failed` if the server has no oplog.
pub(super) fn start(link: &mut dyn Link, progress: &Progress) -> Result<Timestamp, ToolError> {
    let newest = end_of(link, progress, -1)?.ok_or_else(|| {
        ToolError::Failed(format!("--oplog: {DATABASE}.{COLLECTION} is empty or missing: the server keeps no oplog"))
    })?;
    Ok(oldest_open_transaction(link, progress).map_or(newest, |oldest| oldest.min(newest)))
}

fn end_of(link: &mut dyn Link, progress: &Progress, direction: i32) -> Result<Option<Timestamp>, ToolError> {
    let find = DocumentBuf::new()
        .with("find", COLLECTION)
        .with("sort", &DocumentBuf::new().with("$natural", direction))
        .with("projection", &DocumentBuf::new().with("ts", 1_i32))
        .with("limit", 1_i32);
    let find = with_read_preference(find, link);
    let found = collect(link, progress, DATABASE, &find).map_err(failed)?;
    match found.first().map(|entry| entry.as_ref().get("ts")) {
        None => Ok(None),
        Some(Some(ValueRef::Timestamp(timestamp))) => Ok(Some(timestamp)),
        Some(_) => Err(ToolError::Failed(format!("an entry of {DATABASE}.{COLLECTION} has no ts"))),
    }
}

fn oldest_open_transaction(link: &mut dyn Link, progress: &Progress) -> Option<Timestamp> {
    let open: ArrayBuf = ["inProgress", "prepared"].into_iter().collect();
    let find = DocumentBuf::new()
        .with("find", "transactions")
        .with("filter", &DocumentBuf::new().with("state", &DocumentBuf::new().with("$in", &open)))
        .with("sort", &DocumentBuf::new().with("startOpTime", 1_i32))
        .with("limit", 1_i32);
    let find = with_read_preference(find, link);
    // Servers without this list have no such transactions.
    let found = collect(link, progress, "config", &find).ok()?;
    let begun = found.first()?.as_ref().get("startOpTime")?.as_document()?;
    if let Some(ValueRef::Timestamp(timestamp)) = begun.get("ts") { Some(timestamp) } else { None }
}

/// The oplog's place in the dump. Its entries are chosen only at the end.
pub(super) fn planned() -> Planned {
    Planned {
        database: String::new(),
        collection: "oplog".into(),
        metadata_name: "oplog".into(),
        source_database: DATABASE.into(),
        source_collection: COLLECTION.into(),
        filter: None,
        kind: Kind::Oplog,
        metadata: String::new(),
        documents: 0,
        size_bytes: 0,
        order: Order::Found,
        ranges: vec![Range::whole()],
    }
}

/// Chooses the entries from the dump's start up to now, all of which the oplog must still hold.
/// # Errors
/// `Failed` if it does not, or the server's error.
pub(super) fn fix_entries(plan: &mut Plan, link: &mut dyn Link, progress: &Progress) -> Result<(), ToolError> {
    let Some(start) = plan.oplog_start() else { return Ok(()) };
    check_reach(link, progress, start)?;
    let newest = end_of(link, progress, -1)?.unwrap_or(start);
    let span = DocumentBuf::new().with("$gte", start).with("$lte", newest);
    for planned in plan.collections.iter_mut().filter(|planned| planned.kind == Kind::Oplog) {
        planned.filter = Some(DocumentBuf::new().with("ts", &span));
    }
    Ok(())
}

/// Checks that the oplog reaches back to the dump's start. The dump checks before it reads the entries, and again
/// after, because the server deletes old entries meanwhile.
/// # Errors
/// `Failed` if the oplog does not reach back that far.
pub(super) fn check_reach(link: &mut dyn Link, progress: &Progress, start: Timestamp) -> Result<(), ToolError> {
    match end_of(link, progress, 1)? {
        Some(oldest) if oldest <= start => Ok(()),
        _ => Err(ToolError::Failed(format!(
            "--oplog: the oplog no longer holds the entry of the dump's start (ts {}:{}): it is too small for a dump that takes so long",
            start.seconds, start.increment
        ))),
    }
}

fn failed(cause: ClientError) -> ToolError {
    ToolError::server(format!("{DATABASE}.{COLLECTION}"), cause)
}
