//! Stops the target's expiry of documents while it is behind its source: it would remove documents that the source
//! keeps, because their time or the index has changed meanwhile. Deletions of the source's expiry arrive as events.

use super::Copy;
use super::pair::Pair;
use super::record::{self, Record};
use crate::ToolError;
use bunko_bson::{DocumentBuf, ValueRef};

const PARAMETER: &str = "ttlMonitorEnabled";

/// Sets `ttlMonitorEnabled` on the target to false, unless it is false already.
/// # Errors
/// The connection's. A user who may not set parameters is told what to do.
pub(super) fn stop(copy: &Copy<'_>, pair: &mut Pair, record: &mut Record) -> Result<(), ToolError> {
    let get = DocumentBuf::new().with("getParameter", 1_i32).with(PARAMETER, 1_i32);
    let Ok(reply) = pair.target().ask("admin", &get)? else {
        copy.note(format!(
            "the parameter {PARAMETER} of the target cannot be read: TTL indexes may expire documents early"
        ));
        return Ok(());
    };
    if !matches!(reply.as_ref().get(PARAMETER), Some(ValueRef::Boolean(true))) {
        return Ok(());
    }
    // The record is written first. A kill between the two then leads to turning expiry on when it is on, and never
    // leaves it off.
    record.has_stopped_expiry = true;
    record.write(pair.target())?;
    if let Err(refusal) = set(pair, false)? {
        copy.note(format!(
            "the target refuses setParameter {PARAMETER}: {refusal}: TTL indexes may expire documents early"
        ));
    }
    Ok(())
}

/// Sets `ttlMonitorEnabled` on the target to true, if the copy has set it to false.
/// # Errors
/// The connection's; `Usage` if another run has taken the record over, which needs expiry stopped.
pub(super) fn go_on(copy: &Copy<'_>, pair: &mut Pair, record: &mut Record) -> Result<(), ToolError> {
    if !record.has_stopped_expiry {
        return Ok(());
    }
    record::check_run(pair.target(), record.run)?;
    if let Err(refusal) = set(pair, true)? {
        copy.note(format!("the target refuses setParameter {PARAMETER}: {refusal}: set it to true"));
    }
    record.has_stopped_expiry = false;
    record.write(pair.target())
}

fn set(pair: &mut Pair, value: bool) -> Result<Result<(), bunko_client::CommandError>, ToolError> {
    let set = DocumentBuf::new().with("setParameter", 1_i32).with(PARAMETER, value);
    Ok(pair.target().ask("admin", &set)?.map(drop))
}
