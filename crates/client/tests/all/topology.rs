//! Finding the server: fake members of replica sets, each on a port of its own.

use crate::fake;
use bunko_bson::{ArrayBuf, DocumentBuf};
use bunko_client::{ClientError, Connection, Uri};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The role that a fake member claims.
#[derive(Clone, Copy)]
enum Kind {
    Primary,
    Secondary,
    Standalone,
    Router,
}

fn hello(kind: Kind, set: &str, members: &[String]) -> DocumentBuf {
    let hello = fake::ok().with("maxWireVersion", 25_i32);
    let hosts: ArrayBuf = members.iter().map(String::as_str).collect();
    match kind {
        Kind::Standalone => hello.with("ismaster", true),
        Kind::Router => hello.with("ismaster", true).with("msg", "isdbgrid"),
        Kind::Primary => hello.with("setName", set).with("ismaster", true).with("hosts", &hosts),
        Kind::Secondary => {
            let hello = hello.with("setName", set).with("ismaster", false).with("secondary", true);
            hello.with("hosts", &hosts)
        }
    }
}

fn serve(listener: TcpListener, hello: DocumentBuf) {
    fake::serve(listener, move || {
        let hello = hello.clone();
        move |name: &str, _: &DocumentBuf| if name == "isMaster" { hello.clone() } else { fake::ok() }
    });
}

/// Starts a set whose members know each other; returns their addresses.
fn set(name: &str, kinds: &[Kind]) -> Vec<String> {
    let (listeners, addresses): (Vec<_>, Vec<_>) = kinds.iter().map(|_| fake::listener()).unzip();
    for (listener, kind) in listeners.into_iter().zip(kinds) {
        serve(listener, hello(*kind, name, &addresses));
    }
    addresses
}

/// An address that refuses connections.
fn nobody() -> String {
    fake::listener().1
}

fn connect(hosts: &str, options: &str) -> Result<Connection, ClientError> {
    let uri: Uri = format!("mongodb://{hosts}/?connectTimeoutMS=400&{options}").parse().expect("valid");
    let started_at = Instant::now();
    let connection = Connection::connect(&uri);
    // Without the option, a client waits for 30 s.
    assert!(started_at.elapsed() < Duration::from_secs(3), "{:?}", started_at.elapsed());
    connection
}

fn address(hosts: &str, options: &str) -> String {
    match connect(hosts, options) {
        Ok(connection) => connection.address().to_owned(),
        Err(error) => panic!("{hosts}: {error}"),
    }
}

fn failure(hosts: &str, options: &str) -> String {
    let message = connect(hosts, options).err().unwrap_or_else(|| panic!("{hosts} was reached")).to_string();
    assert!(!message.contains('\n'), "{message}");
    message
}

#[test]
fn any_seed_leads_to_the_primary() {
    let members = set("rs0", &[Kind::Secondary, Kind::Primary, Kind::Secondary]);
    for seed in &members {
        assert_eq!(address(seed, ""), members[1]);
        assert_eq!(address(seed, "replicaSet=rs0"), members[1]);
    }
    assert_eq!(address(&format!("{},{}", nobody(), members[2]), ""), members[1]);
}

#[test]
fn the_read_preference_chooses_the_member() {
    let members = set("rs0", &[Kind::Primary, Kind::Secondary]);
    let said = |options| {
        let connection = connect(&members[0], options).expect("reached");
        let preference = connection.read_preference();
        (connection.address().to_owned(), preference.map(|document| fake::text(&document, "mode").to_owned()))
    };
    assert_eq!(said(""), (members[0].clone(), None));
    assert_eq!(said("readPreference=secondary"), (members[1].clone(), Some("secondary".into())));
    assert_eq!(said("readPreference=secondaryPreferred").0, members[1]);
    assert_eq!(said("readPreference=primaryPreferred").0, members[0]);
    let (nearest, mode) = said("readPreference=nearest");
    assert!(members.contains(&nearest) && mode.as_deref() == Some("nearest"));
}

#[test]
fn the_second_best_will_do_where_it_may() {
    let secondary = set("rs0", &[Kind::Secondary]);
    assert_eq!(address(&secondary[0], "readPreference=primaryPreferred"), secondary[0]);
    let primary = set("rs0", &[Kind::Primary]);
    assert_eq!(address(&primary[0], "readPreference=secondaryPreferred"), primary[0]);
}

#[test]
fn a_set_without_the_wanted_role_is_waited_for_and_described() {
    let members = set("rs0", &[Kind::Secondary]);
    let message = failure(&members[0], "serverSelectionTimeoutMS=700");
    let address = &members[0];
    assert_eq!(message, format!("no primary found at {address} within 0.7 s: {address}: is a secondary"));
    let members = set("rs0", &[Kind::Primary]);
    let message = failure(&members[0], "readPreference=secondary");
    assert!(message.starts_with("no secondary found at") && message.ends_with("is the primary"), "{message}");
}

#[test]
fn an_election_is_waited_for() {
    let (listener, address) = fake::listener();
    let asked = Arc::new(AtomicUsize::new(0));
    let members = [address.clone()];
    fake::serve(listener, move || {
        let kind = if asked.fetch_add(1, Ordering::Relaxed) == 0 { Kind::Secondary } else { Kind::Primary };
        let hello = hello(kind, "rs0", &members);
        move |_: &str, _: &DocumentBuf| hello.clone()
    });
    assert!(connect(&address, "serverSelectionTimeoutMS=2000").is_ok());
}

#[test]
fn a_direct_connection_takes_any_role() {
    let members = set("rs0", &[Kind::Secondary, Kind::Primary]);
    let connection = connect(&members[0], "directConnection=true").expect("reached");
    assert_eq!(connection.address(), members[0]);
    let preference = connection.read_preference().expect("a secondary needs one");
    assert_eq!(fake::text(&preference, "mode"), "primaryPreferred");
    assert_eq!(connection.open_another().map(|another| another.address().to_owned()).ok(), Some(members[0].clone()));
}

#[test]
fn another_set_is_refused_with_both_names() {
    let members = set("rs1", &[Kind::Primary]);
    let expected = format!("{} belongs to the replica set 'rs1', not to 'rs0'", members[0]);
    assert_eq!(failure(&members[0], "replicaSet=rs0"), expected);
    assert_eq!(failure(&members[0], "replicaSet=rs0&directConnection=true"), expected);
    assert_eq!(failure(&format!("{},{}", nobody(), members[0]), "replicaSet=rs0"), expected);
    // A member of another set among the seeds does not hide the right one.
    let right = set("rs0", &[Kind::Primary]);
    assert_eq!(address(&format!("{},{}", members[0], right[0]), "replicaSet=rs0"), right[0]);
    let alone = set("", &[Kind::Standalone]);
    let expected = format!("{} does not belong to a replica set, and 'rs0' was asked for", alone[0]);
    assert_eq!(failure(&alone[0], "replicaSet=rs0"), expected);
}

#[test]
fn several_hosts_may_be_routers_but_not_standalone_servers() {
    let routers = [set("", &[Kind::Router]), set("", &[Kind::Router])].concat();
    assert!(routers.contains(&address(&routers.join(","), "")));
    let alone = [set("", &[Kind::Standalone]), set("", &[Kind::Standalone])].concat();
    let message = failure(&alone.join(","), "");
    assert!(message.starts_with("no primary found at") && message.contains("is a standalone server"), "{message}");
    assert_eq!(address(&alone[0], "readPreference=secondary"), alone[0]);
}

#[test]
fn an_absent_server_gives_one_line_in_time() {
    let (first, second) = (nobody(), nobody());
    let message = failure(&first, "");
    let refused = "Connection refused (os error 111)";
    assert_eq!(message, format!("no MongoDB server reached at {first} within 0.4 s: {refused}"));
    let message = failure(&format!("{first},{second}"), "serverSelectionTimeoutMS=200");
    assert!(message.starts_with(&format!("no MongoDB server reached at {first},{second} within 0.2 s: ")), "{message}");
    assert!(message.contains(&format!("{second}: {refused}")), "{message}");
    // A listener that accepts connections and sends nothing.
    let (_listener, mute) = fake::listener();
    let message = failure(&mute, "");
    // Which of two limits expires first depends on timing.
    let expected =
        [format!("{mute} did not answer in time"), format!("no MongoDB server reached at {mute} within 0.4 s: ")];
    assert!(expected.iter().any(|expected| message.starts_with(expected)), "{message}");
    // The search fails at once for a name that no resolver knows.
    assert!(failure("host.invalid", "").contains("host.invalid:27017"));
}

#[test]
fn a_server_that_is_still_starting_is_waited_for() {
    let (listener, address) = fake::listener();
    drop(listener);
    let (late, uri) = (address.clone(), address.clone());
    std::thread::spawn(move || {
        // The client has found no server by then, or it finds one at once.
        std::thread::sleep(Duration::from_millis(150));
        serve(TcpListener::bind(late).expect("still free"), hello(Kind::Standalone, "", &[]));
    });
    let uri: Uri = format!("mongodb://{uri}/?connectTimeoutMS=60000").parse().expect("valid");
    assert!(Connection::connect(&uri).is_ok());
}

#[test]
fn a_unix_socket_is_a_host() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("mongodb-27017.sock");
    let listener = std::os::unix::net::UnixListener::bind(&path).expect("bound");
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        fake::converse(&mut stream, |_: &str, _: &DocumentBuf| hello(Kind::Standalone, "", &[]))
    });
    let encoded = path.to_str().expect("ASCII").replace('/', "%2F");
    let mut connection = connect(&encoded, "").expect("reached");
    assert_eq!(connection.address(), path.to_str().expect("ASCII"));
    assert!(connection.run_command("admin", DocumentBuf::new().with("ping", 1_i32).as_ref()).is_ok());
}

#[test]
fn a_silent_server_is_given_up_after_the_socket_timeout() {
    let (listener, address) = fake::listener();
    fake::serve(listener, || {
        |name: &str, _: &DocumentBuf| {
            if name != "isMaster" {
                // Longer than the client waits, whatever else the machine does.
                std::thread::sleep(Duration::from_secs(2));
            }
            fake::ok()
        }
    });
    let mut connection = connect(&address, "socketTimeoutMS=100").expect("reached");
    let error = connection.run_command("admin", DocumentBuf::new().with("ping", 1_i32).as_ref()).expect_err("silent");
    assert_eq!(error.to_string(), format!("{address} did not answer in time"));
}
