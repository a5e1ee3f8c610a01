//! Sets of several members, each a process of its own: they elect a primary, follow it, fail over, and lose nothing that a
//! majority had.

mod backups;
mod changes;
mod copies;
mod delayed;
mod faults;
mod hosts;
mod lab;
mod logins;
mod many_faults;
mod modes;
mod sync;

use crate::peer::{Peer, binary, first_batch};
use bunko_bson::{ArrayRef, DocumentBuf, ValueRef, number};
use bunko_client::Connection;
use bunko_testkit::patience::{wait_for, wait_until};
use bunko_testkit::process::{Server, fixed_port, temporary_dbpath};
use std::net::SocketAddr;
use tempfile::TempDir;

/// A set on this machine.
struct Set {
    servers: Vec<Server>,
    directories: Vec<TempDir>,
    ports: Vec<u16>,
    arguments: Vec<String>,
    /// Arguments of each member alone.
    own_arguments: Vec<Vec<String>>,
    /// User and password before the host of a URI, with an `@`, and the URI's options.
    login: (String, String),
}

impl Set {
    /// Starts that many servers, without a set of several.
    fn start(members: usize, arguments: &[&str]) -> Self {
        let own = (0..members).map(|_| Vec::new()).collect();
        Self::start_each(own, arguments)
    }

    /// Starts a server with each of these lists of arguments, and with the ones for all.
    fn start_each(own_arguments: Vec<Vec<String>>, arguments: &[&str]) -> Self {
        let members = own_arguments.len();
        let mut set = Self {
            servers: Vec::new(),
            own_arguments,
            login: Default::default(),
            directories: (0..members).map(|_| temporary_dbpath()).collect(),
            ports: (0..members).map(|_| fixed_port()).collect(),
            arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
        };
        set.servers = (0..members).map(|member| set.server(member)).collect();
        set
    }

    fn server(&self, member: usize) -> Server {
        let (directory, port) = (self.directories[member].path(), self.ports[member].to_string());
        let mut arguments = vec!["--dbpath", directory.to_str().expect("UTF-8"), "--port", &port, "--replSet", "rs"];
        arguments.extend(["--cache-size-gb", "0.25", "--no-unix-socket"]);
        arguments.extend(self.arguments.iter().chain(&self.own_arguments[member]).map(String::as_str));
        Server::run(&binary(), &arguments).expect("it starts")
    }

    /// Initiates the set on its first member; `rest` of each member's configuration may say more than its host.
    fn initiate(&self, rest: &[&str]) -> DocumentBuf {
        let members = self.ports.iter().zip(rest).enumerate();
        let members: Vec<_> =
            members.map(|(id, (port, rest))| format!("{{_id: {id}, host: '127.0.0.1:{port}'{rest}}}")).collect();
        let configuration = format!("{{_id: 'rs', members: [{}]}}", members.join(", "));
        self.peer(0).run("admin", &format!("{{replSetInitiate: {configuration}}}"))
    }

    fn address(&self, member: usize) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.ports[member]))
    }

    fn peer(&self, member: usize) -> Peer {
        Peer::connect(self.address(member))
    }

    /// The reply of a member, which may be down or about to start again.
    fn ask(&self, member: usize, command: &str) -> Option<DocumentBuf> {
        let (user, options) = &self.login;
        let uri = format!("mongodb://{user}127.0.0.1:{}/?directConnection=true{options}", self.ports[member]);
        let mut connection = Connection::dial(&uri.parse().expect("a URI")).ok()?;
        connection.run_command("admin", DocumentBuf::new().with(command, 1).as_ref()).ok()
    }

    /// Waits until one of `members` is the primary, and returns it.
    fn primary(&self, members: &[usize]) -> usize {
        wait_for(|| {
            let is_primary = |member: &&usize| {
                self.ask(**member, "hello").is_some_and(|hello| {
                    matches!(hello.as_ref().get("isWritablePrimary"), Some(ValueRef::Boolean(true)))
                })
            };
            members.iter().find(is_primary).copied().ok_or_else(|| self.tails("no member is primary"))
        })
    }

    /// Waits until a member is in that state, and until its primary has heard so: a heartbeat later.
    fn wait_for_state(&self, member: usize, state: &str) {
        wait_for(|| {
            let found = self.state(member);
            if found != state {
                return Err(self.tails(&format!("member {member} is {found}, not {state}")));
            }
            match self.state_at_primary(member) {
                Some(heard) if heard != state => {
                    Err(self.tails(&format!("the primary shows member {member} as {heard}, not {state}")))
                }
                _ => Ok(()),
            }
        });
    }

    /// A member's state as the primary shows it; `None` if no primary lists the member.
    fn state_at_primary(&self, member: usize) -> Option<String> {
        let port = format!(":{}", self.ports[member]);
        let others = (0..self.servers.len()).filter(|other| *other != member);
        let statuses = others.filter_map(|other| self.ask(other, "replSetGetStatus"));
        // A server that is not in the set yet is the primary of a set of its own.
        statuses.filter(|status| whole(status, "myState") == 1).find_map(|status| {
            let mut listed = status.as_ref().get("members")?.as_array()?.iter().filter_map(ValueRef::as_document);
            let entry = listed
                .find(|entry| entry.get("name").and_then(ValueRef::as_str).is_some_and(|name| name.ends_with(&port)))?;
            entry.get("stateStr").and_then(ValueRef::as_str).map(str::to_owned)
        })
    }

    fn state(&self, member: usize) -> String {
        let Some(status) = self.ask(member, "replSetGetStatus") else { return "unreachable".to_owned() };
        let members = status.as_ref().get("members").and_then(ValueRef::as_array);
        let own = members.into_iter().flat_map(ArrayRef::iter).filter_map(ValueRef::as_document);
        let mut own = own.filter(|member| member.get("self").is_some());
        let state = own.next().and_then(|own| own.get("stateStr")).and_then(ValueRef::as_str);
        state.unwrap_or("without a state").to_owned()
    }

    fn tails(&self, what: &str) -> String {
        let tails: Vec<_> = self.servers.iter().map(Server::output_tail).collect();
        format!("{what}; the members' output:\n{}", tails.join("\n----\n"))
    }

    /// Waits until all of these members have the same documents as the first.
    fn assert_equal(&self, members: &[usize], databases: &[&str]) {
        for database in databases {
            wait_for(|| {
                let hashes: Vec<_> = members.iter().map(|member| self.hash(*member, database)).collect();
                let is_equal = hashes.iter().all(|hash| *hash == hashes[0]);
                if is_equal { Ok(()) } else { Err(self.tails(&format!("{database} differs: {hashes:?}"))) }
            });
        }
    }

    fn hash(&self, member: usize, database: &str) -> String {
        let secondary = "$readPreference: {mode: 'secondaryPreferred'}";
        let reply = self.peer(member).run(database, &format!("{{dbHash: 1, {secondary}}}"));
        let md5 = reply.as_ref().get("md5").and_then(ValueRef::as_str);
        md5.map_or_else(|| format!("{reply:?}"), str::to_owned)
    }
}

fn whole(reply: &DocumentBuf, name: &str) -> i64 {
    reply.as_ref().get(name).and_then(number::as_i64_exact).unwrap_or_default()
}

fn assert_ok(reply: &DocumentBuf) {
    assert_eq!(whole(reply, "ok"), 1, "{reply:?}");
    assert!(reply.as_ref().get("writeErrors").is_none(), "{reply:?}");
    assert!(reply.as_ref().get("writeConcernError").is_none(), "{reply:?}");
}

fn insert(peer: &mut Peer, id: i64, concern: &str) -> DocumentBuf {
    peer.run("test", &format!("{{insert: 'rows', documents: [{{_id: NumberLong({id})}}], writeConcern: {concern}}}"))
}

fn code_of_concern(reply: &DocumentBuf) -> i64 {
    let error = reply.as_ref().get("writeConcernError").and_then(ValueRef::as_document);
    error.and_then(|error| error.get("code")).and_then(number::as_i64_exact).unwrap_or_default()
}

const MAJORITY: &str = "{w: 'majority'}";
const THREE: [&str; 3] = ["", "", ""];
const WITH_ARBITER: [&str; 3] = ["", "", ", arbiterOnly: true"];

#[test]
fn a_killed_primary_is_replaced_and_majority_writes_stay() {
    let mut set = Set::start(3, &[]);
    assert_ok(&set.initiate(&THREE));
    // The others are sets of their own until they join; then only the first member has the data.
    let primary = set.primary(&[0]);
    (1..3).for_each(|member| set.wait_for_state(member, "SECONDARY"));
    let mut peer = set.peer(primary);
    assert_ok(&peer.run("test", "{createIndexes: 'rows', indexes: [{key: {a: 1}, name: 'a'}]}"));
    for id in 0..50 {
        assert_ok(&insert(&mut peer, id, MAJORITY));
    }
    let mut secondary = set.peer(1);
    assert_eq!(whole(&insert(&mut secondary, 1000, MAJORITY), "code"), 10107);
    assert_eq!(whole(&secondary.run("test", "{find: 'rows'}"), "code"), 13435);
    // It applies what is committed a moment later than the primary acknowledges it.
    wait_until("the secondary has the last row", || {
        let read = secondary.run("test", "{find: 'rows', filter: {_id: 49}, $readPreference: {mode: 'secondary'}}");
        first_batch(&read) == ["{_id: NumberLong(49)}"]
    });
    set.servers[0].kill();
    let next = set.primary(&[1, 2]);
    let mut peer = set.peer(next);
    let count = peer.run("test", "{count: 'rows'}");
    assert_eq!(whole(&count, "n"), 50, "{count:?}");
    for id in 50..100 {
        assert_ok(&insert(&mut peer, id, MAJORITY));
    }
    set.servers[0] = set.server(0);
    set.wait_for_state(0, "SECONDARY");
    assert_ok(&insert(&mut peer, 100, "{w: 3}"));
    set.assert_equal(&[next, 0, 3 - next], &["test", "admin"]);
}

#[test]
fn a_set_with_an_arbiter_acknowledges_what_its_data_members_have() {
    let mut set = Set::start(3, &[]);
    assert_ok(&set.initiate(&WITH_ARBITER));
    set.primary(&[0]);
    set.wait_for_state(1, "SECONDARY");
    set.wait_for_state(2, "ARBITER");
    let mut peer = set.peer(0);
    assert_ok(&insert(&mut peer, 1, MAJORITY));
    assert_ok(&insert(&mut peer, 2, "{w: 2, j: true}"));
    assert_eq!(code_of_concern(&insert(&mut peer, 3, "{w: 3}")), 100);
    let message = "{from: 9, term: 9, configuration: {term: 1, version: 1}, body: {kind: 'heard', round: 0}}";
    let stranger = peer.run("admin", &format!("{{replSetMember: 1, set: 'rs', from: 9, to: 0, message: {message}}}"));
    assert_eq!(whole(&stranger, "code"), 74, "{stranger:?}");
    let mut arbiter = set.peer(2);
    let refused = arbiter.run("test", "{find: 'rows', $readPreference: {mode: 'nearest'}}");
    assert_eq!(whole(&refused, "code"), 13436, "{refused:?}");
    set.servers[1].kill();
    let late = insert(&mut peer, 4, "{w: 2, wtimeout: 50}");
    assert_eq!((whole(&late, "n"), code_of_concern(&late)), (1, 64), "{late:?}");
    let info = late.as_ref().get("writeConcernError").and_then(ValueRef::as_document);
    let info = info.and_then(|error| error.get("errInfo")).and_then(ValueRef::as_document).expect("facts");
    assert!(matches!(info.get("wtimeout"), Some(ValueRef::Boolean(true))), "{late:?}");
    // The implied default of such a set waits for no other member.
    assert_ok(&peer.run("test", "{insert: 'rows', documents: [{_id: 5}]}"));
    set.servers[1] = set.server(1);
    set.wait_for_state(1, "SECONDARY");
    assert_ok(&insert(&mut peer, 6, MAJORITY));
    set.assert_equal(&[0, 1], &["test"]);
    set.servers[0].kill();
    assert_eq!(set.primary(&[1]), 1);
    assert_eq!(whole(&set.peer(1).run("test", "{count: 'rows'}"), "n"), 6);
}

#[test]
fn a_write_that_waits_for_other_members_ends_with_its_time_and_when_it_is_killed() {
    let mut set = Set::start(3, &[]);
    assert_ok(&set.initiate(&WITH_ARBITER));
    set.primary(&[0]);
    set.wait_for_state(1, "SECONDARY");
    set.wait_for_state(2, "ARBITER");
    let mut peer = set.peer(0);
    assert_ok(&insert(&mut peer, 1, "{w: 2}"));
    set.servers[1].kill();
    let late = peer.run("test", "{insert: 'rows', documents: [{_id: 2}], writeConcern: {w: 2}, maxTimeMS: 500}");
    assert_eq!((whole(&late, "n"), code_of_concern(&late)), (1, 50), "{late:?}");
    let address = set.address(0);
    let waiting = std::thread::spawn(move || insert(&mut Peer::connect(address), 3, "{w: 2}"));
    let opid = wait_for(|| inserting(&mut peer).ok_or_else(|| "no insert waits".to_owned()));
    peer.run("admin", &format!("{{killOp: 1, op: {opid}}}"));
    let killed = waiting.join().expect("no panic");
    assert_eq!((whole(&killed, "n"), code_of_concern(&killed)), (1, 11601), "{killed:?}");
    // No secondary has the last writes, so a step-down waits for one until its time is over, and the primary goes on.
    let command = "{replSetStepDown: 600, secondaryCatchUpPeriodSecs: 300, maxTimeMS: 500}";
    let late = peer.run("admin", command);
    assert_eq!(whole(&late, "code"), 50, "{late:?}");
    // The default write concern may name members, and a time.
    let implied = peer.run("admin", "{getDefaultRWConcern: 1}");
    let implied = implied.as_ref().get("defaultWriteConcern").and_then(ValueRef::as_document).expect("a default");
    assert_eq!(implied.get("w").and_then(number::as_i64_exact), Some(1));
    let default = "{setDefaultRWConcern: 1, defaultWriteConcern: {w: 2, wtimeout: 50}, writeConcern: {w: 1}}";
    assert_ok(&peer.run("admin", default));
    let late = peer.run("test", "{insert: 'rows', documents: [{_id: 4}]}");
    assert_eq!((whole(&late, "n"), code_of_concern(&late)), (1, 64), "{late:?}");
    assert_eq!(whole(&peer.run("test", "{count: 'rows'}"), "n"), 4);
}

/// The id of an insert that `currentOp` lists.
fn inserting(peer: &mut Peer) -> Option<i32> {
    let reply = peer.run("admin", "{currentOp: 1}");
    let operations = reply.as_ref().get("inprog").and_then(ValueRef::as_array)?;
    let mut operations = operations.iter().filter_map(ValueRef::as_document);
    let insert = operations.find(|found| found.get("op").and_then(ValueRef::as_str) == Some("insert"))?;
    insert.get("opid").and_then(number::as_i64_exact).and_then(|opid| i32::try_from(opid).ok())
}

#[test]
fn a_primary_hands_over_when_it_steps_down_or_stops() {
    let mut set = Set::start(3, &[]);
    assert_ok(&set.initiate(&THREE));
    let first = set.primary(&[0]);
    (1..3).for_each(|member| set.wait_for_state(member, "SECONDARY"));
    let mut peer = set.peer(first);
    assert_ok(&insert(&mut peer, 1, MAJORITY));
    assert_ok(&peer.run("admin", "{replSetStepDown: 600}"));
    let second = set.primary(&[1, 2]);
    assert_ok(&insert(&mut set.peer(second), 2, MAJORITY));
    set.wait_for_state(0, "SECONDARY");
    let frozen = set.peer(0).run("admin", "{replSetFreeze: 0}");
    assert_ok(&frozen);
    set.servers[second].stop();
    let others: Vec<_> = (0..3).filter(|member| *member != second).collect();
    let third = set.primary(&others);
    assert_ok(&insert(&mut set.peer(third), 3, MAJORITY));
    set.servers[second] = set.server(second);
    set.wait_for_state(second, "SECONDARY");
    set.assert_equal(&[0, 1, 2], &["test"]);
}

#[test]
fn a_former_primary_takes_back_what_no_other_member_had() {
    let mut set = Set::start(3, &[]);
    assert_ok(&set.initiate(&THREE));
    set.primary(&[0]);
    (1..3).for_each(|member| set.wait_for_state(member, "SECONDARY"));
    let mut peer = set.peer(0);
    assert_ok(&insert(&mut peer, 1, "{w: 3}"));
    set.servers[1].kill();
    set.servers[2].kill();
    // Written by the primary alone, before it knows that it has no majority any more.
    let alone = insert(&mut peer, 2, "{w: 1}");
    set.servers[0].kill();
    // On a busy machine it may have known already.
    assert!([0, 10107].contains(&whole(&alone, "code")), "{alone:?}");
    for member in [1, 2] {
        set.servers[member] = set.server(member);
    }
    let next = set.primary(&[1, 2]);
    assert_ok(&insert(&mut set.peer(next), 3, MAJORITY));
    set.servers[0] = set.server(0);
    set.wait_for_state(0, "SECONDARY");
    assert_ok(&insert(&mut set.peer(next), 4, "{w: 3}"));
    set.assert_equal(&[next, 0, 3 - next], &["test"]);
    assert_eq!(whole(&set.peer(next).run("test", "{count: 'rows'}"), "n"), 3);
}

#[test]
fn servers_that_cannot_join_are_named() {
    let set = Set::start(2, &[]);
    assert_ok(&set.peer(1).run("test", "{insert: 'own', documents: [{_id: 1}]}"));
    let refused = set.initiate(&["", ""]);
    assert_eq!(whole(&refused, "code"), 74, "{refused:?}");
    let message = refused.as_ref().get("errmsg").and_then(ValueRef::as_str).expect("a message");
    assert!(message.contains(&format!("127.0.0.1:{}", set.ports[1])) && message.contains("test"), "{message}");
    // Nothing has changed.
    assert_ok(&set.peer(0).run("test", "{insert: 'own', documents: [{_id: 1}]}"));
    wait_until("the other server serves", || whole(&set.peer(1).run("test", "{count: 'own'}"), "n") == 1);
}

/// The cells of the last row that `bunko stat` shows of the member at that port.
fn row_of(shown: &str, port: u16) -> Option<Vec<&str>> {
    let host = format!("127.0.0.1:{port}");
    let mut rows = shown.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.rfind(|row| row.first() == Some(&host.as_str()) && row[1] != "-")
}

#[test]
fn status_and_stat_show_the_members_of_a_set() {
    let set = Set::start(3, &[]);
    set.initiate(&["", "", ", arbiterOnly: true"]);
    set.wait_for_state(1, "SECONDARY");
    let primary = set.primary(&[0, 1]);
    set.wait_for_state(1 - primary, "SECONDARY");
    set.wait_for_state(2, "ARBITER");
    let mut peer = set.peer(primary);
    assert_ok(&insert(&mut peer, 1, "{w: 2}"));
    // The primary hears of each member's state and writes a moment after the member shows it.
    wait_for(|| {
        let status = peer.run("admin", "{serverStatus: 1}");
        let listed = status.as_ref().get("bunko").and_then(|bunko| bunko.as_document()?.get("members"));
        let of = |member: usize, field: &str| {
            let fields = listed?.as_document()?.get(&format!("127.0.0.1:{}", set.ports[member]))?.as_document()?;
            fields.get(field).and_then(number::as_i64_exact)
        };
        let states = [primary, 1 - primary, 2].map(|member| (of(member, "state"), of(member, "health")));
        let are_shown = states == [(Some(1), Some(1)), (Some(2), Some(1)), (Some(7), Some(1))];
        let lags = [primary, 1 - primary, 2].map(|member| of(member, "lagSeconds"));
        if are_shown && matches!(lags, [Some(0), Some(_), None]) { Ok(()) } else { Err(format!("{status:?}")) }
    });
    let seed = format!("localhost:{}", set.ports[0]);
    // Members have a first row one interval after they were found, or later on a busy machine.
    let shown = wait_for(|| {
        let mut stat = std::process::Command::new(binary());
        let output = stat.args(["stat", "--discover", "--host", &seed, "-n", "4", "-o", "host,set,repl,lag"]).output();
        let shown = String::from_utf8(output.expect("it runs").stdout).expect("UTF-8");
        let are_shown = (0..3).all(|member| row_of(&shown, set.ports[member]).is_some());
        if are_shown { Ok(shown) } else { Err(shown) }
    });
    let (secondary, shown_of) = (1 - primary, |member: usize| row_of(&shown, set.ports[member]).expect(&shown));
    assert_eq!(shown_of(primary)[1..], ["rs", "PRI", "0s"], "{shown}");
    assert_eq!(shown_of(secondary)[1..3], ["rs", "SEC"], "{shown}");
    assert!(shown_of(secondary)[3].ends_with('s'), "{shown}");
    assert_eq!(shown_of(2)[1..], ["rs", "ARB", "-"], "{shown}");
    assert!(!shown.contains("localhost"), "{shown}");
}
