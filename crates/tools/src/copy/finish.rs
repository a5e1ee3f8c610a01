//! Ends a copy that follows: applies the last changes, and compares.

use super::equality;
use super::facts;
use super::follow::{Follower, Until};
use super::listing::{self, Kind};
use super::pair::Pair;
use super::record::Phase;
use super::{Copy, Notice, SourceWrites, definitions, expiry, series};
use crate::ToolError;
use bunko_bson::DocumentBuf;
use std::time::Duration;

/// Command of the shell that lets clients write to the source again.
const ALLOW_WRITES: &str = "db.adminCommand({setUserWriteBlockMode: 1, global: false})";
/// Attempts to let clients write to the source again.
const ATTEMPTS_MAX: u32 = 5;
/// Time between two of these attempts.
const PAUSE: Duration = Duration::from_secs(1);

/// Catches up, has the source refuse writes if that is asked for, applies the rest, and compares.
/// # Errors
/// The servers', the connections'; `Failed` if both differ; `Interrupted`: the source takes writes again then. `Usage` if
/// another run has taken the copy over.
pub(super) fn finish(follower: &mut Follower<'_>, pair: &mut Pair) -> Result<(), ToolError> {
    // The target catches up while clients still use the source, so that writes are blocked only for the rest.
    follower.follow(Until::Near)?;
    let copy = follower.copy;
    // New links, because the old ones may have been idle for long.
    *pair = Pair::connect(copy)?;
    follower.follow_all_definitions()?;
    copy_without_events(follower, pair)?;
    follower.follow(Until::Near)?;
    let clock = copy.progress.clock();
    let begun = clock.now();
    if copy.options.source_writes == SourceWrites::Block {
        block_writes(copy, pair)?;
    }
    let ended = drain(follower, pair)
        .and_then(|()| {
            (copy.report)(&Notice::Drained { pause: clock.since(begun) });
            equality::check(copy, pair, None)
        })
        .and_then(|()| conclude(follower, pair));
    // If another run has taken this copy over, that run decides whether clients may write to the source.
    let is_taken_over = matches!(ended, Err(ToolError::Usage(_)));
    if ended.is_err() && !is_taken_over && copy.options.source_writes == SourceWrites::Block {
        allow_writes(copy);
    }
    ended
}

/// Lets the target's expiry go on, and records the end.
fn conclude(follower: &mut Follower<'_>, pair: &mut Pair) -> Result<(), ToolError> {
    expiry::go_on(follower.copy, pair, &mut follower.record)?;
    follower.record.phase = Phase::Finished;
    follower.record.write(pair.target())
}

/// Applies all events up to the source's present time, and copies what has no events: series, functions, users, roles.
fn drain(follower: &mut Follower<'_>, pair: &mut Pair) -> Result<(), ToolError> {
    let last = facts::now(pair.source())?;
    follower.follow(Until::Time(last))?;
    follower.follow_all_definitions()?;
    copy_without_events(follower, pair)?;
    follower.copy.copy_users()
}

/// Copies time series and functions (`system.js`) that differ, because change streams have no events of them, and drops
/// series that the source no longer has.
fn copy_without_events(follower: &Follower<'_>, pair: &mut Pair) -> Result<(), ToolError> {
    let copy = follower.copy;
    let there = listing::all(pair.source(), &copy.scope)?;
    for listed in there.iter().filter(|listed| listed.is_series() || listed.name == "system.js") {
        if equality::differences(copy, pair, listed, None)?.texts.is_empty() {
            continue;
        }
        if listed.is_series() {
            series::copy(copy, pair, listed, None)?;
        } else {
            definitions::copy_anew(copy, pair, listed)?;
        }
    }
    for old in listing::all(pair.target(), &copy.scope)? {
        let is_there = there.iter().any(|listed| listed.namespace() == old.namespace());
        if old.kind == Kind::Series && !is_there {
            pair.drop_on_target(&old.database, &old.name)?;
        }
    }
    Ok(())
}

/// Has the source refuse clients' writes.
fn block_writes(copy: &Copy<'_>, pair: &mut Pair) -> Result<(), ToolError> {
    let blocked = pair.source().ask("admin", &write_block(true));
    if blocked.is_err() {
        // The reply was lost, but the source may have run the command: writes must not stay blocked.
        allow_writes(copy);
    }
    if let Err(refusal) = blocked? {
        return Err(ToolError::Failed(format!(
            "--block-source-writes: the source refuses setUserWriteBlockMode: {refusal}"
        )));
    }
    copy.note(format!("the source refuses writes from now on: {ALLOW_WRITES} ends that"));
    Ok(())
}

/// Lets clients write to the source again. A new connection is used, because the one that was in use may be broken.
fn allow_writes(copy: &Copy<'_>) {
    for attempt in 1..=ATTEMPTS_MAX {
        let allowed = copy.source.connect().and_then(|mut link| link.run("admin", &write_block(false)));
        match allowed {
            Ok(_) => {
                copy.note("the source takes writes again".to_owned());
                return;
            }
            Err(error) if attempt == ATTEMPTS_MAX => {
                copy.note(format!("the source may still refuse writes ({error}): {ALLOW_WRITES} ends that"));
            }
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

fn write_block(is_blocked: bool) -> DocumentBuf {
    DocumentBuf::new().with("setUserWriteBlockMode", 1_i32).with("global", is_blocked)
}
