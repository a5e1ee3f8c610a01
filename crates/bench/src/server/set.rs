//! The members of a replica set, each asked over a connection of its own.

use super::description::{at, integer};
use bunko_bson::{DocumentBuf, DocumentRef, Timestamp, ValueRef};
use bunko_client::{ClientError, Connection, Host, Uri};
use bunko_host::ProcessReading;
use std::time::Duration;

/// The number of the state `PRIMARY`.
/// Source: MongoDB manual 8.2, "Replica Set Member States".
const PRIMARY: i64 = 1;
/// Longest wait for an answer of a member, unless the connection string says otherwise: a member that hangs must not
/// hold up the step.
const SILENCE_MAX: Duration = Duration::from_mins(1);

/// The members of the replica set of a server.
pub(crate) struct SetProbe {
    pub members: Vec<SetMember>,
}

/// One member.
pub(crate) struct SetMember {
    /// `host:port`, as the set's configuration names it.
    pub host: String,
    /// Its state when the lab found it: `PRIMARY`, `SECONDARY`, ...
    pub state: String,
    pub kind: MemberKind,
    /// `None` if it cannot be reached, does not let the lab's user log in, or has broken its connection.
    connection: Option<Connection>,
    /// Its process, if that is on this machine.
    pid: Option<u32>,
}

/// The data of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemberKind {
    /// All data, and it takes the writes.
    Primary,
    /// All data, from the primary.
    Follower,
    /// A vote at most.
    Dataless,
}

impl SetProbe {
    /// Finds the members of a server's set and connects to each. `None` if the server is in no set, has it to itself,
    /// or does not tell its members.
    pub fn open(uri: &Uri, control: &mut Connection) -> Option<Self> {
        control.hello().get("setName")?;
        let status = control.run_command("admin", status_command().as_ref()).ok()?;
        let listed = status.as_ref().get("members").and_then(ValueRef::as_array)?;
        let members = listed.iter().filter_map(ValueRef::as_document);
        let members: Vec<_> = members.filter_map(|member| SetMember::of(uri, member)).collect();
        (members.len() > 1).then_some(Self { members })
    }

    /// The members that have data of their own from the primary.
    pub fn followers(&mut self) -> impl Iterator<Item = &mut SetMember> {
        self.members.iter_mut().filter(|member| member.kind == MemberKind::Follower)
    }

    /// The primary's newest write; `None` if it does not answer, or is not the primary any more.
    pub fn primary_position(&mut self) -> Option<Timestamp> {
        let primary = self.members.iter_mut().find(|member| member.kind == MemberKind::Primary)?;
        let status = primary.status()?;
        (integer(status.as_ref().get("myState")) == Some(PRIMARY)).then(|| applied(status.as_ref())).flatten()
    }

    /// Present readings of the members' processes.
    pub fn processes(&self) -> Vec<Option<ProcessReading>> {
        self.members.iter().map(|member| member.pid.and_then(ProcessReading::of)).collect()
    }

    /// States of the members, in the order of the configuration.
    pub fn states(&self) -> String {
        self.members.iter().map(|member| member.state.as_str()).collect::<Vec<_>>().join(", ")
    }
}

impl SetMember {
    /// The member that `replSetGetStatus` lists.
    fn of(uri: &Uri, listed: DocumentRef<'_>) -> Option<Self> {
        let text = |name: &str| listed.get(name).and_then(ValueRef::as_str).map(str::to_owned);
        let (host, state) = (text("name")?, text("stateStr")?);
        let kind = match state.as_str() {
            "PRIMARY" => MemberKind::Primary,
            "ARBITER" => MemberKind::Dataless,
            _ => MemberKind::Follower,
        };
        let hosts = format!("mongodb://{host}/").parse::<Uri>().ok()?.hosts;
        let socket_timeout = uri.socket_timeout.or(Some(SILENCE_MAX));
        let mut own = Uri { hosts, direct_connection: true, socket_timeout, ..uri.clone() };
        if kind == MemberKind::Dataless {
            // An arbiter has no users.
            own.credential = None;
        }
        let mut connection = Connection::dial(&own).ok();
        let pid = match own.hosts.first() {
            Some(Host::Tcp { name, port }) => {
                bunko_host::local_server(name, *port, connection.as_mut().and_then(stated_pid))
            }
            _ => None,
        };
        Some(Self { host, state, kind, connection, pid })
    }

    /// Asks the member for the newest write that it has applied; `None` if the member does not tell.
    pub fn position(&mut self) -> Option<Timestamp> {
        applied(self.status()?.as_ref())
    }

    fn status(&mut self) -> Option<DocumentBuf> {
        let status = self.connection.as_mut()?.run_command("admin", status_command().as_ref());
        if matches!(status, Err(ClientError::Disconnected { .. })) {
            self.connection = None;
        }
        status.ok()
    }

    /// Its connection, if it has one.
    pub fn connection(&mut self) -> Option<&mut Connection> {
        self.connection.as_mut()
    }
}

fn applied(status: DocumentRef<'_>) -> Option<Timestamp> {
    match at(status, &["optimes", "appliedOpTime", "ts"])? {
        ValueRef::Timestamp(time) => Some(time),
        _ => None,
    }
}

fn status_command() -> DocumentBuf {
    DocumentBuf::new().with("replSetGetStatus", 1_i32)
}

/// The process that the server says it is. An arbiter with authorization does not tell.
fn stated_pid(connection: &mut Connection) -> Option<u32> {
    let status = connection.run_command("admin", DocumentBuf::new().with("serverStatus", 1_i32).as_ref()).ok()?;
    integer(status.as_ref().get("pid")).and_then(|pid| u32::try_from(pid).ok())
}
