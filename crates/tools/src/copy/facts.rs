//! Facts about the servers, and refusals of servers between which nothing can be copied.

use super::listing::Listed;
use super::pair::{End, Pair};
use super::{Copy, Mode};
use crate::ToolError;
use crate::restore::EmptyTimestamps;
use bunko_bson::{DocumentBuf, ObjectId, Timestamp, ValueRef, number};
use bunko_client::{ClientError, is_router};

/// MongoDB's `SnapshotTooOld`, and `SnapshotUnavailable`.
const SNAPSHOT_GONE: [i32; 2] = [239, 246];

/// Wire version of MongoDB 8.0, which has `bypassEmptyTsReplacement`.
const KEEPS_TIMESTAMPS: i64 = 25;

/// Facts about the source.
pub(super) struct Facts {
    /// The set's name, or the address of a server without a set.
    pub(super) source_name: String,
    /// The source's cluster time before anything is read; `None` without a set.
    pub(super) now: Option<Timestamp>,
    /// Whether the target can keep zero timestamps.
    pub(super) empty_timestamps: EmptyTimestamps,
}

struct Peer {
    set: Option<String>,
    hosts: Vec<String>,
    process: Option<ObjectId>,
    is_router: bool,
    wire_version: i64,
}

impl Facts {
    /// # Errors
    /// `Usage` for a source or a target that cannot be copied from or to.
    pub(super) fn check(copy: &Copy<'_>, pair: &mut Pair) -> Result<Self, ToolError> {
        let source = peer(pair.source())?;
        let target = peer(pair.target())?;
        for (flag, peer) in [("--from", &source), ("--to", &target)] {
            if peer.is_router {
                return Err(ToolError::Usage(format!("{flag}: a sharded cluster (mongos) is not supported yet")));
            }
        }
        let is_one_process = source.process.is_some() && source.process == target.process;
        let is_one_set = source.set.is_some()
            && source.set == target.set
            && source.hosts.iter().any(|host| target.hosts.contains(host));
        if is_one_process || is_one_set {
            return Err(ToolError::Usage(format!(
                "--from and --to name the same server: {} and {}",
                copy.source.name(),
                copy.target.name()
            )));
        }
        if source.set.is_none() && copy.options.mode != Mode::Once {
            return Err(ToolError::Usage(format!(
                "--from: {} is not a member of a replica set and has no change streams to follow: restart it with --replSet \
                 and run rs.initiate(), or stop its writes and copy without --follow and --finish",
                copy.source.name()
            )));
        }
        let now = if source.set.is_some() { Some(now(pair.source())?) } else { None };
        let keeps = target.wire_version >= KEEPS_TIMESTAMPS;
        let empty_timestamps = if keeps { EmptyTimestamps::Kept } else { EmptyTimestamps::OfServer };
        let source_name = source.set.unwrap_or_else(|| copy.source.name().to_owned());
        Ok(Self { source_name, now, empty_timestamps })
    }
}

fn peer(end: &mut End) -> Result<Peer, ToolError> {
    let hello = end.run("admin", &DocumentBuf::new().with("hello", 1_i32))?;
    let hello = hello.as_ref();
    let text = |name| hello.get(name).and_then(ValueRef::as_str).map(str::to_owned);
    let hosts = hello.get("hosts").and_then(ValueRef::as_array);
    let version = hello.get("topologyVersion").and_then(ValueRef::as_document);
    Ok(Peer {
        set: text("setName"),
        hosts: hosts.iter().flat_map(|hosts| hosts.iter()).filter_map(ValueRef::as_str).map(str::to_owned).collect(),
        process: version.and_then(|version| match version.get("processId") {
            Some(ValueRef::ObjectId(id)) => Some(id),
            _ => None,
        }),
        wire_version: hello.get("maxWireVersion").and_then(number::as_i64_exact).unwrap_or(0),
        is_router: is_router(hello),
    })
}

/// The cluster time of the newest change that a member of a set knows.
/// # Errors
/// The server's, the connection's, and `Failed` if the server tells no time.
pub(super) fn now(end: &mut End) -> Result<Timestamp, ToolError> {
    let reply = end.run("admin", &DocumentBuf::new().with("ping", 1_i32))?;
    match reply.as_ref().get("operationTime") {
        Some(ValueRef::Timestamp(at)) => Ok(at),
        _ => Err(ToolError::Failed("the server tells no 'operationTime'".into())),
    }
}

/// Begins a snapshot read and returns its time; the source keeps that snapshot for a while, so that other reads can use
/// it.
/// # Errors
/// The server's, or the connection's.
pub(super) fn keep_snapshot(source: &mut End, shown: &Listed) -> Result<Option<Timestamp>, ToolError> {
    let find = DocumentBuf::new()
        .with("find", &shown.name)
        .with("projection", &DocumentBuf::new().with("_id", 1_i32))
        .with("limit", 1_i32)
        .with("readConcern", &DocumentBuf::new().with("level", "snapshot"));
    let reply = source.run(&shown.database, &find)?;
    let cursor = reply.as_ref().get("cursor").and_then(ValueRef::as_document);
    match cursor.and_then(|cursor| cursor.get("atClusterTime")) {
        Some(ValueRef::Timestamp(at)) => Ok(Some(at)),
        _ => Err(ToolError::Failed("the server tells no 'atClusterTime' of a read with readConcern snapshot".into())),
    }
}

/// Whether an error says that the source no longer keeps the snapshot.
pub(super) fn is_snapshot_gone(error: &ClientError) -> bool {
    matches!(error, ClientError::Command(refusal) if SNAPSHOT_GONE.contains(&refusal.code))
}
