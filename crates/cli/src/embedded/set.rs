//! A replica set on this machine for the lab: a process, a directory and a port for each member, and one key file.

use super::{ChildProcess, ChildServer, Started};
use bunko_bench::scenario::{MemberSetting, TransportSetting};
use bunko_bench::{Data, Running};
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, ValueRef, hexadecimal};
use bunko_client::{ClientError, Connection, Uri};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// Name of the set.
const SET: &str = "lab";
/// Name of the key file, which lies in the first member's data directory, beside its data.
const KEY_FILE: &str = "lab-key";
/// The user as which the lab works.
const USER: &str = "lab";
/// Longest time until the set has a primary, and until all members have joined it.
const START_TIME: Duration = Duration::from_mins(2);
/// For how long members may be silent before another one is elected: MongoDB's default.
const ELECTION_TIMEOUT_MS: i32 = 10_000;
/// The version of the set's last configuration, above those that its members make while it begins.
const NEXT_VERSION: i32 = 100;
/// How often the lab looks at a set that begins.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

impl ChildServer {
    /// Starts an empty set of these members, and waits until the first one is its primary and all others follow it.
    pub(super) fn start_set(&mut self, members: &[MemberSetting]) -> Result<Running, String> {
        for _ in members {
            self.servers.push(ChildProcess::new(self.directory.clone(), self.choice.clone()));
        }
        let secret = secret();
        let key = self.servers[0].data_directory(Data::Empty)?.join(KEY_FILE);
        write_key(&key, &secret).map_err(|error| format!("{}: {error}", key.display()))?;
        let ports = free_ports(members.len()).map_err(|error| format!("no free port: {error}"))?;
        let mut started = Vec::new();
        for (server, port) in self.servers.iter_mut().zip(&ports) {
            let flags = [format!("--port={port}"), format!("--replSet={SET}"), format!("--keyFile={}", key.display())];
            let flags: Vec<_> = flags.into_iter().chain(["--no-unix-socket".to_owned()]).map(Into::into).collect();
            // The first member's directory exists, and has the key.
            started.push(server.start(Data::AsLeft, TransportSetting::Tcp, &flags)?);
        }
        let hosts: Vec<String> = ports.iter().map(|port| format!("{}:{port}", Ipv4Addr::LOCALHOST)).collect();
        let uri = begin(&hosts, members, &secret)?;
        let Started { pid, data_directory, .. } = started.swap_remove(0);
        Ok(Running { uri, pid, data_directory, settings: self.settings() })
    }
}

/// A password, which is a key of a key file too.
fn secret() -> String {
    hexadecimal::small(&rand::random::<[u8; 24]>())
}

/// Writes a file that only its owner may read.
fn write_key(path: &Path, secret: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o400).open(path)?;
    file.write_all(secret.as_bytes())
}

/// Ports that are free now. All are open at the same time, so that no two are equal.
fn free_ports(count: usize) -> std::io::Result<Vec<u16>> {
    let open = |_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let listeners = (0..count).map(open).collect::<Result<Vec<_>, _>>()?;
    listeners.iter().map(|listener| Ok(listener.local_addr()?.port())).collect()
}

/// Initiates the set on its first member, makes the lab's user, and waits for all members. Returns the set's connection
/// string.
fn begin(hosts: &[String], members: &[MemberSetting], secret: &str) -> Result<String, String> {
    let until = Instant::now() + START_TIME;
    let failed = |error: ClientError| format!("server.members: the set cannot be initiated: {error}");
    let first = &hosts[0];
    let mut connection = dial(&format!("mongodb://{first}/?directConnection=true")).map_err(failed)?;
    let initiate = DocumentBuf::new().with("replSetInitiate", &configuration(hosts, members));
    connection.run_command("admin", initiate.as_ref()).map_err(failed)?;
    wait(until, "the first member is not the primary", || {
        let hello = connection.run_command("admin", DocumentBuf::new().with("hello", 1_i32).as_ref())?;
        Ok(matches!(hello.as_ref().get("isWritablePrimary"), Some(ValueRef::Boolean(true))))
    })?;
    let roles: ArrayBuf = ["root"].into_iter().collect();
    let user = DocumentBuf::new().with("createUser", USER).with("pwd", secret).with("roles", &roles);
    connection.run_command("admin", user.as_ref()).map_err(failed)?;
    let login = format!("{USER}:{secret}@");
    let mut connection =
        dial(&format!("mongodb://{login}{first}/?directConnection=true&authSource=admin")).map_err(failed)?;
    let status = DocumentBuf::new().with("replSetGetStatus", 1_i32);
    wait(until, "not all members follow the first one", || {
        let status = connection.run_command("admin", status.as_ref())?;
        let listed = status.as_ref().get("members").and_then(ValueRef::as_array);
        let states = listed.into_iter().flat_map(ArrayRef::iter).filter_map(|member| {
            let state = member.as_document()?.get("stateStr")?.as_str()?;
            Some(matches!(state, "PRIMARY" | "SECONDARY" | "ARBITER"))
        });
        Ok(states.filter(|is_ready| *is_ready).count() == hosts.len())
    })?;
    // The machine is busy while it is measured: members may be silent for longer than the usual second, as on MongoDB.
    let patient = configuration(hosts, members)
        .with("version", NEXT_VERSION)
        .with("settings", &DocumentBuf::new().with("electionTimeoutMillis", ELECTION_TIMEOUT_MS));
    let reconfigure = DocumentBuf::new().with("replSetReconfig", &patient);
    wait(until, "its members do not take a longer election timeout", || {
        connection.run_command("admin", reconfigure.as_ref()).map(|_| true)
    })?;
    // An arbiter takes no logins of users.
    let with_data = hosts.iter().zip(members).filter(|(_, member)| **member == MemberSetting::Data);
    let with_data: Vec<_> = with_data.map(|(host, _)| host.as_str()).collect();
    Ok(format!("mongodb://{login}{}/?replicaSet={SET}&authSource=admin", with_data.join(",")))
}

fn dial(uri: &str) -> Result<Connection, ClientError> {
    Connection::dial(&uri.parse::<Uri>().expect("the lab's own connection string is valid"))
}

fn configuration(hosts: &[String], members: &[MemberSetting]) -> DocumentBuf {
    let member = |(id, (host, member)): (usize, (&String, &MemberSetting))| {
        let is_arbiter = *member == MemberSetting::Arbiter;
        let document = DocumentBuf::new().with("_id", id as i32).with("host", host.as_str());
        // The first one stays the primary if another member's turn comes first.
        let priority = if is_arbiter {
            0.0
        } else if id == 0 {
            2.0
        } else {
            1.0
        };
        document.with("arbiterOnly", is_arbiter).with("priority", priority)
    };
    let members: Vec<_> = hosts.iter().zip(members).enumerate().map(member).collect();
    let members: ArrayBuf = members.iter().collect();
    DocumentBuf::new().with("_id", SET).with("members", &members)
}

/// Waits until `is_so` returns true. `lacks` says in the error what was missing.
fn wait(until: Instant, lacks: &str, mut is_so: impl FnMut() -> Result<bool, ClientError>) -> Result<(), String> {
    loop {
        let seen = is_so();
        if matches!(seen, Ok(true)) {
            return Ok(());
        }
        if Instant::now() >= until {
            let why = seen.err().map(|error| format!(": {error}")).unwrap_or_default();
            let seconds = START_TIME.as_secs();
            return Err(format!("server.members: {lacks} after {seconds} s{why}"));
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
}
