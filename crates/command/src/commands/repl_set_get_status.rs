//! `replSetGetStatus`: the state of the set, as this member sees it.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use crate::service::Service;
use bunko_access::Action;
use bunko_bson::{ArrayBuf, DocumentBuf, Timestamp, ValueRef, Writer};
use bunko_errors::{ErrorCode, Failure};
use bunko_members::{Peer, SyncProgress};
use bunko_replica_set::{Listed, MemberState, ReplicaSet};
use bunko_request::facts::{ANY_FIELDS, CommandFacts, Databases};
use bunko_session::Halt;
use std::time::{Duration, Instant};

/// A member that has not answered for this time is down.
const DOWN_AFTER: Duration = Duration::from_secs(10);

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "replSetGetStatus",
        // MongoDB ignores unknown fields.
        fields: ANY_FIELDS,
        databases: Databases::Admin,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCluster(Action::ReplSetGetStatus),
    run,
    ..Command::PLAIN
};

/// The error of commands about replica sets on a server without one.
pub(super) fn no_set() -> Failure {
    Failure::new(ErrorCode::NO_REPLICATION_ENABLED, "not running with --replSet")
}

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    Ok(write(invocation.service, reply)?)
}

/// Appends the command's reply.
/// # Errors
/// `NoReplicationEnabled` on a standalone server.
pub(super) fn write(service: &Service, reply: &mut Writer<'_>) -> Result<(), Failure> {
    let set = service.replica_set.as_ref().ok_or_else(no_set)?;
    if set.state() == MemberState::Removed {
        let details = DocumentBuf::new()
            .with("state", MemberState::Removed.number())
            .with("stateStr", MemberState::Removed.name())
            .with("uptime", service.uptime().as_secs() as i32);
        let message = "Our replica set config is invalid or we are not a member of it";
        let failure = Failure::new(ErrorCode::INVALID_REPLICA_SET_CONFIG, message);
        return Err(failure.with_details(details.as_ref()));
    }
    let time = set.cluster_time.operation_time();
    let member = set.member();
    let voters = member.listed.iter().filter(|listed| listed.votes).count();
    let writable = member.listed.iter().filter(|listed| listed.votes && !listed.arbiter).count();
    let majority = voters / 2 + 1;
    let (source, source_id) = sync_source(set);
    reply
        .append("set", set.name())
        .append("date", ValueRef::DateTime(service.world.now_ms()))
        .append("myState", set.state().number())
        .append("term", set.term())
        .append("syncSourceHost", source.as_str())
        .append("syncSourceId", source_id)
        .append("heartbeatIntervalMillis", interval_ms(set))
        .append("majorityVoteCount", majority as i32)
        .append("writeMajorityCount", majority.min(writable) as i32)
        .append("votingMembersCount", voters as i32)
        .append("writableVotingMembersCount", writable as i32)
        .begin_document("optimes");
    let (committed_time, committed) = set.committed()?;
    reply.append("lastCommittedOpTime", &committed).append("readConcernMajorityOpTime", &committed);
    for name in ["appliedOpTime", "durableOpTime", "writtenOpTime"] {
        reply.append(name, &set.applied(time));
    }
    reply.append("lastCommittedWallTime", date(committed_time));
    for name in ["lastAppliedWallTime", "lastDurableWallTime", "lastWrittenWallTime"] {
        reply.append(name, date(time));
    }
    let members: ArrayBuf = members(service, set).iter().collect();
    reply.end();
    if let Some(progress) = service.members().and_then(|members| members.sync_progress()) {
        reply.append("initialSyncStatus", &initial_sync(service, &progress, service.world.clock.now()));
    }
    reply.append("members", &members);
    Ok(())
}

/// The members in the order of the configuration.
fn members(service: &Service, set: &ReplicaSet) -> Vec<DocumentBuf> {
    let (member, time) = (set.member(), set.cluster_time.operation_time());
    let peers = service.members().map_or_else(Vec::new, |members| members.peers());
    let now = service.world.clock.now();
    let one = |(position, listed): (usize, &Listed)| match peers.iter().find(|peer| peer.id.0 == listed.id) {
        Some(peer) if position != member.position => other(service, listed, peer, now),
        _ => own(service, set, listed, time),
    };
    member.listed.iter().enumerate().map(one).collect()
}

/// Appends for each member, by its host: its state, whether it is up, and its lag in seconds behind the newest write
/// that this member knows of. Arbiters have no lag, nor have members whose newest write is unknown.
pub(super) fn write_lags(service: &Service, set: &ReplicaSet, out: &mut Writer<'_>) {
    let members = members(service, set);
    let written_ms = |member: &DocumentBuf| match member.as_ref().get("optimeDate") {
        Some(ValueRef::DateTime(ms)) if ms > 0 => Some(ms),
        _ => None,
    };
    let newest_ms = members.iter().filter_map(written_ms).max();
    for member in &members {
        let fields = member.as_ref();
        let Some(host) = fields.get("name").and_then(ValueRef::as_str) else { continue };
        out.begin_document(host);
        for (name, field) in [("state", "state"), ("health", "health")] {
            if let Some(value) = fields.get(field) {
                out.append(name, value);
            }
        }
        if let (Some(newest_ms), Some(ms)) = (newest_ms, written_ms(member)) {
            out.append("lagSeconds", (newest_ms - ms) / 1000);
        }
        out.end();
    }
}

/// The initial sync that is going on.
fn initial_sync(service: &Service, progress: &SyncProgress, now: Instant) -> DocumentBuf {
    let elapsed_ms = now.saturating_duration_since(progress.began).as_millis() as i64;
    let (bytes, arrived) = (progress.bytes as i64, progress.arrived_bytes as i64);
    let mut status = DocumentBuf::new()
        .with("method", "fileCopyBased")
        .with("failedInitialSyncAttempts", progress.failed_attempts)
        .with("initialSyncStart", ValueRef::DateTime(service.world.now_ms() - elapsed_ms))
        .with("totalInitialSyncElapsedMillis", elapsed_ms)
        .with("initialSyncSyncSource", progress.source.as_str())
        .with("approxTotalDataSize", bytes)
        .with("approxTotalBytesCopied", arrived);
    if arrived > 0 {
        let left_ms = i128::from(bytes - arrived) * i128::from(elapsed_ms) / i128::from(arrived);
        status.append("remainingInitialSyncEstimatedMillis", i64::try_from(left_ms).unwrap_or(i64::MAX));
    }
    if let Some(failure) = &progress.failure {
        status.append("lastFailure", failure.as_str());
    }
    status
}

fn date(time: Timestamp) -> ValueRef<'static> {
    ValueRef::DateTime(i64::from(time.seconds) * 1000)
}

fn interval_ms(set: &ReplicaSet) -> i64 {
    let member = set.member();
    let settings = member.configuration.as_ref().get("settings").and_then(ValueRef::as_document);
    let interval = settings.and_then(|settings| settings.get("heartbeatIntervalMillis"));
    interval.and_then(bunko_bson::number::as_i64_exact).unwrap_or(2000)
}

/// Host and id of the member from which this one takes the log; an empty host and -1 if there is none.
fn sync_source(set: &ReplicaSet) -> (String, i32) {
    let member = set.member();
    let primary = set.primary().filter(|_| set.state() == MemberState::Secondary && set.has_several());
    let found = primary.and_then(|primary| member.listed.iter().find(|listed| listed.host == primary));
    found.map_or_else(|| (String::new(), -1), |source| (source.host.clone(), source.id as i32))
}

fn of_state(listed: &Listed, state: MemberState, health: f64) -> DocumentBuf {
    DocumentBuf::new()
        .with("_id", listed.id as i32)
        .with("name", listed.host.as_str())
        .with("health", health)
        .with("state", state.number())
        .with("stateStr", state.name())
}

/// This member's entry in `members`.
fn own(service: &Service, set: &ReplicaSet, listed: &Listed, time: Timestamp) -> DocumentBuf {
    let member = set.member();
    let state = set.state();
    let elected = Timestamp { seconds: set.leadership.elected_s(), increment: 1 };
    let (source, source_id) = sync_source(set);
    let mut document = of_state(listed, state, 1.0).with("uptime", service.uptime().as_secs() as i32);
    if state != MemberState::Arbiter {
        document = document
            .with("optime", &set.applied(time))
            .with("optimeDate", date(time))
            .with("optimeWritten", &set.applied(time))
            .with("optimeWrittenDate", date(time))
            .with("lastAppliedWallTime", date(time))
            .with("lastDurableWallTime", date(time))
            .with("lastWrittenWallTime", date(time));
    }
    document = document.with("syncSourceHost", source.as_str()).with("syncSourceId", source_id).with("infoMessage", "");
    if state == MemberState::Primary {
        document = document.with("electionTime", elected).with("electionDate", date(elected));
    }
    document
        .with("configVersion", member.version() as i32)
        .with("configTerm", member.term() as i32)
        .with("self", true)
        .with("lastHeartbeatMessage", "")
}

/// Another member, as its last answer shows it.
fn other(service: &Service, listed: &Listed, peer: &Peer, now: Instant) -> DocumentBuf {
    let is_late = |at: Instant| now.saturating_duration_since(at) > DOWN_AFTER;
    let is_up = peer.failure.is_none() && peer.answered.is_some_and(|at| !is_late(at));
    let state = match (is_up, peer.number("state").and_then(MemberState::of)) {
        (true, Some(state)) => state,
        (true, None) => MemberState::Unknown,
        (false, _) if peer.answered.is_none() && peer.failure.is_none() => MemberState::Unknown,
        (false, _) => MemberState::Down,
    };
    let uptime = peer.up_since.filter(|_| is_up).map_or(0, |since| now.saturating_duration_since(since).as_secs());
    let ago = |at: Option<Instant>| {
        let now_ms = service.world.now_ms();
        ValueRef::DateTime(at.map_or(0, |at| now_ms - now.saturating_duration_since(at).as_millis() as i64))
    };
    let mut document = of_state(listed, state, if is_up { 1.0 } else { 0.0 }).with("uptime", uptime as i32);
    if let (false, Some(optime), Some(at)) = (listed.arbiter, peer.field("optime"), peer.field("optimeDate")) {
        for name in ["optime", "optimeDurable", "optimeWritten"] {
            document = document.with(name, optime);
        }
        for name in ["optimeDate", "optimeDurableDate", "optimeWrittenDate"] {
            document = document.with(name, at);
        }
        for name in ["lastAppliedWallTime", "lastDurableWallTime", "lastWrittenWallTime"] {
            document = document.with(name, at);
        }
    }
    let source = peer.field("primary").filter(|_| state == MemberState::Secondary);
    document = document
        .with("lastHeartbeat", ago(peer.answered))
        .with("lastHeartbeatRecv", ago(peer.sent))
        .with("pingMs", peer.ping.as_millis() as i64)
        .with("lastHeartbeatMessage", peer.failure.as_deref().unwrap_or_default())
        .with("syncSourceHost", source.unwrap_or(ValueRef::String("")))
        .with("syncSourceId", -1)
        .with("infoMessage", "");
    if let (MemberState::Primary, Some(elected)) = (state, peer.number("elected")) {
        let elected = Timestamp { seconds: elected as u32, increment: 1 };
        document = document.with("electionTime", elected).with("electionDate", date(elected));
    }
    document
        .with("configVersion", peer.number("configVersion").unwrap_or(-1) as i32)
        .with("configTerm", peer.number("configTerm").unwrap_or(-1) as i32)
}
