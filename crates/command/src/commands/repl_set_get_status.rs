//! `replSetGetStatus`: the state of the set, as its only member sees it.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use crate::service::Service;
use bunko_access::Action;
use bunko_bson::{ArrayBuf, DocumentBuf, Timestamp, ValueRef, Writer};
use bunko_errors::{ErrorCode, Failure};
use bunko_replica_set::ReplicaSet;
use bunko_request::facts::{ANY_FIELDS, CommandFacts, Databases};
use bunko_session::Halt;

/// A member's state, as a number and as a word. Source: MongoDB manual, "Replica Set Member States".
type State = (i32, &'static str);
const PRIMARY: State = (1, "PRIMARY");
const SECONDARY: State = (2, "SECONDARY");

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
    let time = set.cluster_time.operation_time();
    let members: ArrayBuf = [&member(service, set, time)].into_iter().collect();
    reply
        .append("set", set.name())
        .append("date", ValueRef::DateTime(service.world.now_ms()))
        .append("myState", state(set).0)
        .append("term", set.term())
        .append("syncSourceHost", "")
        .append("syncSourceId", -1)
        .append("heartbeatIntervalMillis", 2000_i64)
        .append("majorityVoteCount", 1)
        .append("writeMajorityCount", 1)
        .append("votingMembersCount", 1)
        .append("writableVotingMembersCount", 1)
        .begin_document("optimes");
    let date = |time: Timestamp| ValueRef::DateTime(i64::from(time.seconds) * 1000);
    let (committed_time, committed) = set.committed()?;
    reply.append("lastCommittedOpTime", &committed).append("readConcernMajorityOpTime", &committed);
    for name in ["appliedOpTime", "durableOpTime", "writtenOpTime"] {
        reply.append(name, &set.applied(time));
    }
    reply.append("lastCommittedWallTime", date(committed_time));
    for name in ["lastAppliedWallTime", "lastDurableWallTime", "lastWrittenWallTime"] {
        reply.append(name, date(time));
    }
    reply.end().append("members", &members);
    Ok(())
}

fn state(set: &ReplicaSet) -> State {
    if set.is_primary() { PRIMARY } else { SECONDARY }
}

fn member(service: &Service, set: &ReplicaSet, time: Timestamp) -> DocumentBuf {
    let date = ValueRef::DateTime(i64::from(time.seconds) * 1000);
    let member = set.member();
    let elected = Timestamp { seconds: set.leadership.elected_s(), increment: 1 };
    let document = DocumentBuf::new()
        .with("_id", 0)
        .with("name", &*member.host)
        .with("health", 1.0)
        .with("state", state(set).0)
        .with("stateStr", state(set).1)
        .with("uptime", service.uptime().as_secs() as i32)
        .with("optime", &set.applied(time))
        .with("optimeDate", date)
        .with("optimeWritten", &set.applied(time))
        .with("optimeWrittenDate", date)
        .with("lastAppliedWallTime", date)
        .with("lastDurableWallTime", date)
        .with("lastWrittenWallTime", date)
        .with("syncSourceHost", "")
        .with("syncSourceId", -1)
        .with("infoMessage", "");
    let document = if set.is_primary() {
        document
            .with("electionTime", elected)
            .with("electionDate", ValueRef::DateTime(i64::from(elected.seconds) * 1000))
    } else {
        document
    };
    document
        .with("configVersion", member.version() as i32)
        .with("configTerm", member.term() as i32)
        .with("self", true)
        .with("lastHeartbeatMessage", "")
}
