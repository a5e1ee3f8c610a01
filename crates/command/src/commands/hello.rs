//! `hello` and its older names: the handshake, and the heartbeat of monitors.

use super::sasl_start::{AUTHENTICATE, COMMAND as SASL_START};
use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use crate::service::Service;
use bunko_authority::{FirstMessage, answer_first_message, offer_mechanisms};
use bunko_bson::{
    ArrayBuf, DocumentBuf, DocumentRef, MAX_USER_DOCUMENT_BYTES, Timestamp, ValueRef, Writer, extended_json, number,
};
use bunko_errors::{ErrorCode, Failure};
use bunko_replica_set::{Listed, MemberState, ReplicaSet};
use bunko_request::client_metadata;
use bunko_request::facts::{ANY_FIELDS, CommandFacts, Compression, Queueing, Secrets, Stability, TransactionUse};
use bunko_request::fields::Fields;
use bunko_session::Halt;
use bunko_session::awaiting::FollowUp;
use bunko_session::awaiting::{Await, Heartbeat};
use bunko_wire::{MAX_FRAME_BYTES, negotiate};
use std::sync::Arc;
use std::time::Duration;

/// The wire version of MongoDB 8.2. From version 25 on, drivers send `bulkWrite`.
const MAX_WIRE_VERSION: i32 = 27;
/// Maximum number of writes in one command.
pub(crate) const WRITE_BATCH_MAX: usize = 100_000;
/// Longest time that a heartbeat waits.
const AWAIT_MAX: Duration = Duration::from_mins(1);
/// Shortest time between the replies of a streaming heartbeat.
const REPEAT_MIN: Duration = Duration::from_millis(10);

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "hello",
        fields: ANY_FIELDS,
        transaction: TransactionUse::NotFirst,
        stable_api: Stability::WHOLE,
        queueing: Queueing::AtOnce,
        compression: Compression::Never,
        secrets: Secrets::Fields(&["speculativeAuthenticate"]),
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::BeforeLogin,
    run,
    ..Command::PLAIN
};
pub(super) const IS_MASTER: Command = Command {
    facts: CommandFacts {
        name: "isMaster",
        aliases: &["ismaster"],
        fields: ANY_FIELDS,
        transaction: TransactionUse::NotFirst,
        queueing: Queueing::AtOnce,
        compression: Compression::Never,
        secrets: Secrets::Fields(&["speculativeAuthenticate"]),
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::BeforeLogin,
    run,
    ..Command::PLAIN
};

struct HelloRequest<'a> {
    /// The description of the client.
    client: Option<DocumentRef<'a>>,
    /// Whether the client prefers `hello` to `isMaster`.
    offers_hello: bool,
    /// The topology that the client knows, and the time that it waits for a change.
    topology_version: Option<DocumentRef<'a>>,
    max_await_ms: Option<u64>,
    /// Names of the compressors that the client has.
    compressors: Option<Vec<&'a str>>,
    /// The first command of a login.
    first_of_login: Option<DocumentRef<'a>>,
}

impl<'a> HelloRequest<'a> {
    fn parse(fields: &Fields<'a>) -> Result<Self, Failure> {
        let client = fields.document("client")?;
        parse_ignored(fields)?;
        let compressors = fields.array("compression")?;
        Ok(Self {
            client,
            offers_hello: fields.boolean("helloOk", false)?,
            topology_version: fields.document("topologyVersion")?,
            max_await_ms: fields.size("maxAwaitTimeMS")?,
            compressors: compressors.map(|names| fields.texts("compression", names)).transpose()?,
            first_of_login: fields.document("speculativeAuthenticate")?,
        })
    }
}

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let request = HelloRequest::parse(invocation)?;
    if let Some(client) = request.client.filter(|_| invocation.heartbeat == Heartbeat::New) {
        if invocation.connection.metadata.is_some() {
            return Err(Failure::new(
                ErrorCode::CLIENT_METADATA_CANNOT_BE_MUTATED,
                "The client metadata document may only be sent in the first hello",
            )
            .into());
        }
        client_metadata::check(client)?;
        invocation.connection.metadata = Some(client.to_owned());
        let connection = &*invocation.connection;
        let (client, doc) = (format!("conn{}", connection.id), extended_json::to_relaxed(ValueRef::Document(client)));
        tracing::info!(target: "NETWORK", id = 51800, ctx = client, remote = %connection.peer, client, doc, "client metadata");
    }
    wait_for_change(invocation, &request)?;
    // Loaded before the role: a reply with the new counter and the old role would hide the change from the client.
    let counter = topology(invocation.service);
    let is_primary = invocation.service.replica_set.as_ref().is_none_or(|set| set.is_primary());
    let is_hello = invocation.command.name == "hello";
    if request.offers_hello {
        reply.append("helloOk", true);
    }
    reply.append(if is_hello { "isWritablePrimary" } else { "ismaster" }, is_primary);
    invocation.connection.topology_told = counter;
    reply.append("topologyVersion", &topology_version(invocation.service, counter));
    if let Some(set) = &invocation.service.replica_set {
        write_set(set, is_primary, invocation.connection.server_name.as_deref(), reply)?;
    }
    reply
        .append("maxBsonObjectSize", MAX_USER_DOCUMENT_BYTES as i32)
        .append("maxMessageSizeBytes", MAX_FRAME_BYTES as i32)
        .append("maxWriteBatchSize", WRITE_BATCH_MAX as i32)
        .append("localTime", ValueRef::DateTime(invocation.service.world.now_ms()))
        .append("logicalSessionTimeoutMinutes", 30)
        .append("connectionId", invocation.connection.id)
        .append("minWireVersion", 0)
        .append("maxWireVersion", MAX_WIRE_VERSION)
        .append("readOnly", false);
    if let Some(descriptor) = invocation.service.parameters.automation_service_descriptor() {
        reply.append("automationServiceDescriptor", &descriptor);
    }
    if let Some(wanted) = request.compressors {
        agree_on_compression(invocation, wanted, reply);
    }
    offer_login(invocation, request.first_of_login, reply)?;
    Ok(())
}

/// Checks the types of fields that Bunko otherwise ignores, as MongoDB does.
fn parse_ignored(fields: &Fields<'_>) -> Result<(), Failure> {
    for name in ["forShell", "hangUpOnStepDown"] {
        fields.boolean(name, false)?;
    }
    fields.strict_boolean("loadBalanced", false)?;
    fields.string("hostInfo")?;
    fields.document("internalClient").map(drop)
}

/// Appends the fields of a replica set to the reply of its member, which is the primary or not. The client has reached
/// it under `server_name`.
fn write_set(
    set: &ReplicaSet,
    is_primary: bool,
    server_name: Option<&str>,
    reply: &mut Writer<'_>,
) -> Result<(), Failure> {
    let operation_time = set.cluster_time.operation_time();
    let date = |time: Timestamp| ValueRef::DateTime(i64::from(time.seconds) * 1000);
    let (committed_time, committed) = set.committed()?;
    let last_write = DocumentBuf::new()
        .with("opTime", &set.applied(operation_time))
        .with("lastWriteDate", date(operation_time))
        .with("majorityOpTime", &committed)
        .with("majorityWriteDate", date(committed_time));
    let member = set.member();
    let state = set.state();
    if state == MemberState::Removed {
        // This member belongs to no set that a client could use; MongoDB's replies have these fields then.
        reply
            .append("secondary", false)
            .append("info", "Does not have a valid replica set config")
            .append("isreplicaset", true);
        return Ok(());
    }
    let horizon = member.horizon(server_name);
    write_members(set, horizon, reply);
    reply
        .append("setName", set.name())
        .append("setVersion", member.version() as i32)
        .append("secondary", state == MemberState::Secondary && !is_primary);
    let primary = if is_primary { Some(member.host.clone()) } else { set.primary() };
    let seen = |host: String| {
        let listed = member.listed.iter().find(|listed| listed.host == host);
        listed.map_or(host.clone(), |listed| listed.host_in(horizon).to_owned())
    };
    if let Some(primary) = primary {
        reply.append("primary", seen(primary).as_str());
    }
    if let Some(own) = member.own() {
        for (name, is_it) in
            [("arbiterOnly", own.arbiter), ("passive", !own.arbiter && own.priority == 0.0), ("hidden", own.hidden)]
        {
            if is_it {
                reply.append(name, true);
            }
        }
        if own.delay_secs > 0 {
            reply.append("secondaryDelaySecs", own.delay_secs as i64);
        }
        if !own.tags.is_empty() {
            reply.append("tags", &own.tags());
        }
    }
    reply.append("me", &*seen(member.host.clone()));
    if is_primary {
        reply.append("electionId", set.election_id());
    }
    reply.append("lastWrite", &last_write);
    Ok(())
}

/// Appends the members that clients may use, as a horizon names them.
pub(super) fn write_members(set: &ReplicaSet, horizon: Option<&str>, reply: &mut Writer<'_>) {
    let member = set.member();
    let listed = |is_it: fn(&Listed) -> bool| -> ArrayBuf {
        member
            .listed
            .iter()
            .filter(|listed| !listed.hidden && is_it(listed))
            .map(|listed| listed.host_in(horizon))
            .collect()
    };
    reply.append("hosts", &listed(|listed| !listed.arbiter && listed.priority > 0.0));
    for (name, hosts) in [
        ("passives", listed(|listed| !listed.arbiter && listed.priority == 0.0)),
        ("arbiters", listed(|listed| listed.arbiter)),
    ] {
        if hosts.as_ref().iter().next().is_some() {
            reply.append(name, &hosts);
        }
    }
}

/// Number of changes of the topology since the server began. That of a standalone server never changes.
pub(crate) fn topology(service: &Service) -> i64 {
    service.replica_set.as_ref().map_or(0, |set| set.leadership.topology())
}

/// The version of the topology. Its counter begins anew with each process.
pub(crate) fn topology_version(service: &Service, counter: i64) -> DocumentBuf {
    let process = bunko_bson::ObjectId::from_parts(0, service.world.process, 0);
    DocumentBuf::new().with("processId", process).with("counter", counter)
}

fn agree_on_compression(invocation: &mut Invocation<'_>, wanted: Vec<&str>, reply: &mut Writer<'_>) {
    let agreed = negotiate(wanted, &invocation.service.facts.compressors);
    if !agreed.is_empty() {
        reply.begin_array("compression");
        for (index, compressor) in agreed.iter().enumerate() {
            reply.push(index, compressor.name());
        }
        reply.end();
    }
    invocation.connection.compressors = agreed;
}

/// Appends the mechanisms of the user that the client asks about, and the answer to the first message of its login.
fn offer_login(
    invocation: &mut Invocation<'_>,
    first: Option<DocumentRef<'_>>,
    reply: &mut Writer<'_>,
) -> Result<(), Failure> {
    let authority = &invocation.service.authority;
    offer_mechanisms(authority, invocation, invocation.request.database, reply)?;
    let Some(body) = first else { return Ok(()) };
    let first = match body.first().map_or("", |first| first.name) {
        name if name == AUTHENTICATE.name => FirstMessage::Authenticate(body),
        name if name == SASL_START.name => FirstMessage::SaslStart(Fields::new(SASL_START.name, body)),
        _ => FirstMessage::Other,
    };
    invocation.connection.change_login(|client| answer_first_message(authority, client, &first, reply))
}

/// Makes a monitor that knows the topology wait for a change, or until its `maxAwaitTimeMS` is over. The command then
/// runs again, so that the reply has the state after the wait. Failpoints are evaluated before it.
/// # Errors
/// [`Halt::Awaits`] before the wait; `Location31368`; interruptions of the command.
fn wait_for_change(invocation: &mut Invocation<'_>, request: &HelloRequest<'_>) -> Result<(), Halt> {
    let (known, wait) = match (request.topology_version, request.max_await_ms) {
        (None, None) => return Ok(()),
        (Some(_), None) => {
            return Err(Failure::new(
                ErrorCode(31368),
                "A request with a 'topologyVersion' must include 'maxAwaitTimeMS'",
            )
            .into());
        }
        (None, Some(_)) => {
            return Err(Failure::new(
                ErrorCode(31368),
                "A request with 'maxAwaitTimeMS' must include a 'topologyVersion'",
            )
            .into());
        }
        (Some(known), Some(milliseconds)) => (known, Duration::from_millis(milliseconds).min(AWAIT_MAX)),
    };
    // Noted before the topology is looked at, so that no change is missed.
    let changed = match &invocation.service.replica_set {
        Some(set) => Arc::clone(set.leadership.changed()),
        // Only the stop of a standalone server ends the wait early.
        None => Arc::clone(invocation.stop_bell()),
    };
    let changes = changed.rings();
    let counter = topology(invocation.service);
    let wait = match invocation.heartbeat {
        Heartbeat::New => {
            let own = topology_version(invocation.service, counter);
            let known_counter = known.get("counter").and_then(number::as_i64_exact);
            // A client that knows another process, or an older topology, gets the topology at once. In later replies of
            // the stream it knows this one.
            let process = |version: DocumentRef<'_>| match version.get("processId") {
                Some(ValueRef::ObjectId(id)) => Some(id),
                _ => None,
            };
            let is_of_process = process(known) == process(own.as_ref());
            if is_of_process && let Some(known) = known_counter.filter(|known| *known > counter) {
                let message = format!(
                    "Received a topology version with counter: {known} which is greater than the server topology version \
                     counter: {counter}"
                );
                return Err(Failure::new(ErrorCode(31382), message).into());
            }
            if is_of_process && known_counter == Some(counter) { wait } else { Duration::ZERO }
        }
        Heartbeat::Follows if invocation.connection.topology_told != counter => Duration::ZERO,
        Heartbeat::Follows => wait.max(REPEAT_MIN),
        Heartbeat::Waited => {
            // The client may have closed the connection, or the server may be about to stop.
            invocation.operation().check()?;
            Duration::ZERO
        }
    };
    if wait.is_zero() {
        invocation.follow_up = Some(FollowUp::Heartbeat);
        return Ok(());
    }
    invocation.connection.heartbeat = Heartbeat::Waited;
    let stop = invocation.stop_bell();
    let (news, stop) = (changed.after(changes), stop.after(stop.rings()));
    Err(Halt::Awaits(Box::new(Await { news, stop, until: invocation.now() + wait, turn: None })))
}
