//! Members that log in to each other, by a key or by certificates, and users on sets.

use super::{MAJORITY, Set, THREE, WITH_ARBITER, assert_ok, whole};
use crate::tls::authority::{Authority, Validity};
use bunko_bson::{DocumentBuf, ValueRef};
use bunko_client::{ClientError, Connection};
use bunko_testkit::patience::{wait_for, wait_until};
use bunko_testkit::shell;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

pub const KEY: &str = "c2VjcmV0IG9mIHRoZSBzZXQ=";
const OTHER_KEY: &str = "YW5vdGhlciBzZWNyZXQh";
const AS_ROOT: &str = "root:pw@";
/// The names of a certificate for this machine.
const LOCAL: [&str; 2] = ["localhost", "127.0.0.1"];

/// Writes a key file, which only its owner may read.
pub fn key_file(directory: &Path, name: &str, text: &str) -> String {
    let path = directory.join(name);
    fs::write(&path, text).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).expect("the mode is set");
    path.to_str().expect("UTF-8").to_owned()
}

/// A connection to a member; `user` is a user and a password with an `@`, and `options` begin with `&`.
fn connect(set: &Set, member: usize, user: &str, options: &str) -> Result<Connection, ClientError> {
    let uri = format!("mongodb://{user}127.0.0.1:{}/?directConnection=true{options}", set.ports[member]);
    Connection::dial(&uri.parse().expect("a URI"))
}

/// The code of a command's error; 0 for none.
pub fn code(connection: &mut Connection, database: &str, command: &str) -> i32 {
    let command = shell::parse_document(command).expect(command);
    match connection.run_command(database, command.as_ref()) {
        Ok(_) => 0,
        Err(ClientError::Command(error)) => error.code,
        Err(error) => panic!("{error}"),
    }
}

fn message(reply: &DocumentBuf) -> &str {
    reply.as_ref().get("errmsg").and_then(ValueRef::as_str).unwrap_or_default()
}

#[test]
fn members_log_in_by_a_key_and_users_are_those_of_the_primary() {
    let keys = tempfile::tempdir().expect("a temporary directory");
    let mut set = Set::start(3, &["--keyFile", &key_file(keys.path(), "key", KEY)]);
    // The localhost exception lets a client initiate the set, and create the first user on its primary.
    assert_ok(&set.initiate(&WITH_ARBITER));
    set.primary(&[0]);
    set.wait_for_state(1, "SECONDARY");
    set.wait_for_state(2, "ARBITER");
    let user = "{createUser: 'root', pwd: 'pw', roles: ['root'], writeConcern: {w: 2}}";
    assert_eq!(whole(&set.peer(1).run("admin", user), "code"), 10107);
    assert_ok(&set.peer(0).run("admin", user));
    assert_eq!(whole(&set.peer(0).run("admin", "{createUser: 'b', pwd: 'pw', roles: []}"), "code"), 13);
    set.login = (AS_ROOT.to_owned(), "&authSource=admin".to_owned());
    let mut root = connect(&set, 0, AS_ROOT, "").expect("logged in");
    assert_eq!(code(&mut root, "admin", "{createUser: 'ann', pwd: 'pw', roles: [{role: 'readWrite', db: 'test'}]}"), 0);
    assert_eq!(code(&mut root, "test", "{insert: 'rows', documents: [{_id: 1}], writeConcern: {w: 2}}"), 0);
    // The users of the primary log in on the secondary, whose rights follow.
    let ann = || connect(&set, 1, "ann:pw@", "&authSource=admin");
    let mut on_secondary = wait_for(|| ann().map_err(|error| error.to_string()));
    let find = "{find: 'rows', $readPreference: {mode: 'secondary'}}";
    wait_until("the secondary has the row", || code(&mut on_secondary, "test", find) == 0);
    assert_eq!(code(&mut on_secondary, "admin", "{replSetGetStatus: 1}"), 13);
    assert_eq!(code(&mut on_secondary, "other", find), 13);
    assert_eq!(code(&mut root, "admin", "{grantRolesToUser: 'ann', roles: [{role: 'read', db: 'other'}]}"), 0);
    wait_until("the secondary knows the new role", || code(&mut on_secondary, "other", find) == 0);
    assert_eq!(code(&mut root, "admin", "{dropUser: 'ann'}"), 0);
    wait_until("the secondary knows that the user is gone", || code(&mut on_secondary, "test", find) == 13);
    assert!(matches!(ann(), Err(ClientError::Authentication { .. })));
    members_alone_send_messages(&set, &mut root);
    set.servers[0].kill();
    set.servers[0] = set.server(0);
    let primary = set.primary(&[0, 1]);
    let mut root = connect(&set, primary, AS_ROOT, "").expect("logged in");
    assert_eq!(code(&mut root, "test", "{insert: 'rows', documents: [{_id: 2}], writeConcern: {w: 'majority'}}"), 0);
}

fn members_alone_send_messages(set: &Set, root: &mut Connection) {
    let message = "{replSetMember: 1, set: 'rs', from: 1, to: 0}";
    assert_eq!(whole(&set.peer(0).run("admin", message), "code"), 13, "without a login");
    assert_eq!(code(root, "admin", message), 13, "as root");
    let as_member = |key: &str| connect(set, 0, &format!("__system:{}@", key.replace('=', "%3D")), "&authSource=local");
    assert!(matches!(as_member(OTHER_KEY), Err(ClientError::Authentication { .. })));
    let mut member = as_member(KEY).expect("logged in");
    assert_eq!(code(&mut member, "admin", message), 0);
    let command = DocumentBuf::new().with("connectionStatus", 1);
    let status = member.run_command("admin", command.as_ref()).expect("a status");
    let status = shell::print(ValueRef::Document(status.as_ref()));
    assert!(status.contains(r#"authenticatedUsers: [{user: "__system", db: "local"}]"#), "{status}");
    // The arbiter has no users, and members log in to it all the same.
    assert!(connect(set, 2, AS_ROOT, "").is_ok_and(|mut arbiter| code(&mut arbiter, "admin", message) == 13));
}

#[test]
fn members_whose_keys_are_being_changed_know_each_other_by_any_key() {
    let keys = tempfile::tempdir().expect("a temporary directory");
    let file = |name: &str, text: String| vec!["--keyFile".to_owned(), key_file(keys.path(), name, &text)];
    let own = vec![
        file("old", KEY.to_owned()),
        file("both", format!("- {KEY}\n- {OTHER_KEY}\n")),
        file("changed", format!("- {OTHER_KEY}\n- {KEY}\n")),
    ];
    let set = Set::start_each(own, &[]);
    assert_ok(&set.initiate(&THREE));
    set.primary(&[0]);
    (1..3).for_each(|member| set.wait_for_state(member, "SECONDARY"));
    let user = "{createUser: 'root', pwd: 'pw', roles: ['root'], writeConcern: {w: 3}}";
    assert_ok(&set.peer(0).run("admin", user));
}

#[test]
fn a_server_with_another_key_cannot_join() {
    let keys = tempfile::tempdir().expect("a temporary directory");
    let file = |name: &str, key: &str| vec!["--keyFile".to_owned(), key_file(keys.path(), name, key)];
    let set = Set::start_each(vec![file("key", KEY), file("other", OTHER_KEY)], &[]);
    let refused = set.initiate(&["", ""]);
    assert_eq!(whole(&refused, "code"), 74, "{refused:?}");
    let said = message(&refused);
    assert!(said.contains(&format!("127.0.0.1:{}", set.ports[1])) && said.contains("__system"), "{said}");
    set.servers[1].logged("the password is wrong");
}

#[test]
fn hosts_of_a_new_set_are_this_server_once_and_others_once() {
    let set = Set::start(2, &["--bind-ip", "127.0.0.1,127.0.0.2"]);
    let [own, other] = set.ports[..] else { panic!("two ports") };
    let initiate = |hosts: &[String]| {
        let members = hosts.iter().enumerate().map(|(id, host)| format!("{{_id: {id}, host: '{host}'}}"));
        let members: Vec<_> = members.collect();
        set.peer(0).run("admin", &format!("{{replSetInitiate: {{_id: 'rs', members: [{}]}}}}", members.join(", ")))
    };
    let local = |port: u16| format!("127.0.0.1:{port}");
    let named = |port: u16| format!("localhost:{port}");
    for (hosts, words) in [
        (vec![local(other), named(other)], "No host described in new configuration"),
        (vec![local(own), named(own), local(other)], "More than one host described in new configuration"),
        (vec![local(own), local(other), named(other)], "are one server"),
        (vec!["192.0.2.1:1".to_owned(), "192.0.2.2:1".to_owned()], "No host described"),
    ] {
        let refused = initiate(&hosts);
        assert_eq!((whole(&refused, "code"), message(&refused).contains(words)), (93, true), "{hosts:?}: {refused:?}");
    }
    // Nothing has changed, and names are as good as addresses.
    assert_ok(&initiate(&[named(own), named(other)]));
    set.primary(&[0]);
    set.wait_for_state(1, "SECONDARY");
    let hello = set.ask(1, "hello").expect("an answer");
    let shown = shell::print(ValueRef::Document(hello.as_ref()));
    assert!(shown.contains(&format!(r#"hosts: ["localhost:{own}", "localhost:{other}"]"#)), "{shown}");
    assert!(shown.contains(&format!(r#"primary: "localhost:{own}", me: "localhost:{other}""#)), "{shown}");
}

#[test]
fn members_on_other_machines_need_a_key_or_certificates() {
    let Some(address) = own_address() else {
        eprintln!("SKIPPED: this machine has no address but its loopback's");
        return;
    };
    let set = Set::start(1, &["--bind-ip-all", "--insecure"]);
    let port = set.ports[0];
    let hosts = format!("[{{_id: 0, host: '{address}:{port}'}}, {{_id: 1, host: '192.0.2.1:1'}}]");
    let refused = set.peer(0).run("admin", &format!("{{replSetInitiate: {{_id: 'rs', members: {hosts}}}}}"));
    assert_eq!(whole(&refused, "code"), 93, "{refused:?}");
    assert!(message(&refused).contains("--keyFile"), "{refused:?}");
    let mut stranger = crate::peer::Peer::connect(std::net::SocketAddr::new(address, port));
    let refused = stranger.run("admin", "{replSetMember: 1, set: 'rs', from: 1, to: 0}");
    assert_eq!((whole(&refused, "code"), message(&refused).contains("--keyFile")), (13, true), "{refused:?}");
}

/// An address of this machine that is not its loopback's. Nothing is sent to the one that is named here.
fn own_address() -> Option<std::net::IpAddr> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    socket.local_addr().ok().map(|address| address.ip()).filter(|ip| !ip.is_loopback())
}

/// The arguments of a member that shows this certificate.
fn with_certificate(authority: &Authority, certificate: &Path) -> Vec<String> {
    let path = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    vec![
        "--tlsCertificateKeyFile".to_owned(),
        path(certificate),
        "--tlsCAFile".to_owned(),
        path(&authority.file("ca.pem")),
    ]
}

#[test]
fn members_log_in_by_certificates_of_one_organization_and_unit() {
    let authority = Authority::new();
    let certificate = |name: &str, unit| with_certificate(&authority, &authority.write_member(name, unit, &LOCAL));
    let own = vec![certificate("a", "data"), certificate("b", "data"), certificate("c", "data")];
    let mut set = Set::start_each(own, &["--tlsMode", "requireTLS", "--clusterAuthMode", "x509"]);
    let ann = authority.options(Some(&authority.write_client("ann", Validity::Now)));
    set.login = (String::new(), format!("&{ann}"));
    let run = |set: &Set, command: &str| {
        let mut client = connect(set, 0, "", &format!("&{ann}")).expect("connected");
        code(&mut client, "admin", command)
    };
    let members: Vec<_> = (0..3).map(|id| format!("{{_id: {id}, host: 'localhost:{}'}}", set.ports[id])).collect();
    assert_eq!(run(&set, &format!("{{replSetInitiate: {{_id: 'rs', members: [{}]}}}}", members.join(", "))), 0);
    set.primary(&[0]);
    (1..3).for_each(|member| set.wait_for_state(member, "SECONDARY"));
    assert_eq!(run(&set, "{createUser: 'root', pwd: 'pw', roles: ['root'], writeConcern: {w: 3}}"), 0);
    // A member's certificate is a login, a client's of another unit is none, and no user has a member's name.
    let member = authority.options(Some(&authority.file("b.pem")));
    let by_certificate = |options: &str| connect(&set, 0, "", &format!("&{options}&authMechanism=MONGODB-X509"));
    let mut member = by_certificate(&member).expect("logged in");
    assert_eq!(code(&mut member, "admin", "{replSetMember: 1, set: 'rs', from: 1, to: 0}"), 0);
    assert!(matches!(by_certificate(&ann), Err(ClientError::Authentication { .. })));
    let mut root = connect(&set, 0, AS_ROOT, &format!("&authSource=admin&{ann}")).expect("logged in");
    assert_eq!(code(&mut root, "admin", "{replSetMember: 1, set: 'rs', from: 1, to: 0}"), 13);
    let create = "{createUser: 'CN=d,OU=data,O=Bunko', roles: []}";
    let subject = "{createUser: 'CN=d,OU=tests,O=Bunko', roles: []}";
    let codes = [create, subject].map(|command| code(&mut root, "$external", command));
    assert_eq!(codes, [2, 0]);
    set.servers[0].kill();
    set.login = (AS_ROOT.to_owned(), format!("&authSource=admin&{ann}"));
    let next = set.primary(&[1, 2]);
    let mut root = connect(&set, next, AS_ROOT, &format!("&authSource=admin&{ann}")).expect("logged in");
    assert_eq!(
        code(&mut root, "test", &format!("{{insert: 'rows', documents: [{{_id: 1}}], writeConcern: {MAJORITY}}}")),
        0
    );
}

#[test]
fn a_certificate_of_another_unit_makes_no_member() {
    let authority = Authority::new();
    let certificate = |name: &str, unit| with_certificate(&authority, &authority.write_member(name, unit, &LOCAL));
    let own = vec![certificate("a", "data"), certificate("b", "guests")];
    let set = Set::start_each(own, &["--tlsMode", "requireTLS", "--clusterAuthMode", "x509"]);
    let ann = authority.options(Some(&authority.write_client("ann", Validity::Now)));
    let members: Vec<_> = (0..2).map(|id| format!("{{_id: {id}, host: 'localhost:{}'}}", set.ports[id])).collect();
    let mut client = connect(&set, 0, "", &format!("&{ann}")).expect("connected");
    let initiate = format!("{{replSetInitiate: {{_id: 'rs', members: [{}]}}}}", members.join(", "));
    assert_eq!(code(&mut client, "admin", &initiate), 74);
    set.servers[1].logged("there is no such user for that mechanism");
}

#[test]
fn a_certificate_for_another_host_is_taken_only_where_the_settings_say_so() {
    let authority = Authority::new();
    let certificate =
        |name: &str| with_certificate(&authority, &authority.write_member(name, "data", &["elsewhere.example.com"]));
    let own = vec![certificate("a"), certificate("b")];
    let tls = ["--tlsMode", "requireTLS", "--clusterAuthMode", "x509"];
    let ann = authority.options(Some(&authority.write_client("ann", Validity::Now)));
    let ann = format!("&{ann}&tlsAllowInvalidHostnames=true");
    let initiate = |set: &Set| {
        let members: Vec<_> = (0..2).map(|id| format!("{{_id: {id}, host: 'localhost:{}'}}", set.ports[id])).collect();
        let mut client = connect(set, 0, "", &ann).expect("connected");
        code(&mut client, "admin", &format!("{{replSetInitiate: {{_id: 'rs', members: [{}]}}}}", members.join(", ")))
    };
    assert_eq!(initiate(&Set::start_each(own.clone(), &tls)), 74);
    let more: Vec<_> = tls.into_iter().chain(["--tlsAllowInvalidHostnames"]).collect();
    let mut set = Set::start_each(own, &more);
    set.login = (String::new(), ann.clone());
    assert_eq!(initiate(&set), 0);
    set.primary(&[0]);
    set.wait_for_state(1, "SECONDARY");
}

#[test]
fn clients_of_a_member_that_hears_the_primary_and_cannot_answer_see_no_changes() {
    let authority = Authority::new();
    let certificate = |name: &str, hosts| with_certificate(&authority, &authority.write_member(name, "data", hosts));
    // The last member cannot connect to the first one, whose certificate is for another host. The second one does not mind.
    let mut own =
        vec![certificate("a", &["elsewhere.example.com"]), certificate("b", &LOCAL), certificate("c", &LOCAL)];
    own[1].push("--tlsAllowInvalidHostnames".to_owned());
    let mut set = Set::start_each(own, &["--tlsMode", "requireTLS", "--clusterAuthMode", "x509"]);
    let ann = authority.options(Some(&authority.write_client("ann", Validity::Now)));
    let ann = format!("&{ann}&tlsAllowInvalidHostnames=true");
    set.login = (String::new(), ann.clone());
    let members: Vec<_> = (0..3).map(|id| format!("{{_id: {id}, host: 'localhost:{}'}}", set.ports[id])).collect();
    let initiate = format!("{{replSetInitiate: {{_id: 'rs', members: [{}]}}}}", members.join(", "));
    assert_eq!(code(&mut connect(&set, 0, "", &ann).expect("connected"), "admin", &initiate), 0);
    set.primary(&[0]);
    set.wait_for_state(1, "SECONDARY");
    let told = || {
        let hello = set.ask(2, "hello")?;
        let primary = hello.as_ref().get("primary")?.as_str()?.to_owned();
        let version = hello.as_ref().get("topologyVersion")?.as_document()?;
        Some((primary, version.get("counter").and_then(bunko_bson::number::as_i64_exact)?))
    };
    let primary = format!("localhost:{}", set.ports[0]);
    let before = wait_for(|| match told() {
        Some((host, counter)) if host == primary => Ok(counter),
        other => Err(format!("the last member names no primary: {other:?}")),
    });
    // Any moments will do: the member tries to connect ten times in a second.
    std::thread::sleep(std::time::Duration::from_secs(3));
    let (host, after) = wait_for(|| told().ok_or_else(|| "no primary is told".to_owned()));
    assert!(host == primary && after <= before + 2, "the topology has changed {} times", after - before);
    assert_eq!(set.primary(&[0]), 0);
}

/// Clients reach the members under two names, and each sees the members under the name that it used.
#[test]
fn hello_names_the_members_as_the_horizon_of_the_client_does() {
    let authority = Authority::new();
    let certificate = |name: &str| with_certificate(&authority, &authority.write_member(name, "data", &LOCAL));
    let own = vec![certificate("a"), certificate("b"), certificate("c")];
    let mut set = Set::start_each(own, &["--tlsMode", "requireTLS", "--clusterAuthMode", "x509"]);
    let ann = authority.options(Some(&authority.write_client("ann", Validity::Now)));
    set.login = (String::new(), format!("&{ann}"));
    let members: Vec<_> = (0..3)
        .map(|id| {
            let port = set.ports[id];
            format!("{{_id: {id}, host: '127.0.0.1:{port}', horizons: {{outside: 'localhost:{port}'}}}}")
        })
        .collect();
    let mut client = connect(&set, 0, "", &format!("&{ann}")).expect("connected");
    let initiate = format!("{{replSetInitiate: {{_id: 'rs', members: [{}]}}}}", members.join(", "));
    assert_eq!(code(&mut client, "admin", &initiate), 0);
    set.primary(&[0]);
    (1..3).for_each(|member| set.wait_for_state(member, "SECONDARY"));
    for name in ["localhost", "127.0.0.1"] {
        let uri = format!("mongodb://{name}:{}/?directConnection=true&{ann}", set.ports[1]);
        let mut client = Connection::dial(&uri.parse().expect("a URI")).expect("connected");
        let hello = client.run_command("admin", DocumentBuf::new().with("hello", 1).as_ref()).expect("an answer");
        let seen = |field: &str| hello.as_ref().get(field).and_then(ValueRef::as_str).unwrap_or_default().to_owned();
        let hosts = hello.as_ref().get("hosts").and_then(ValueRef::as_array).expect("hosts");
        let hosts: Vec<_> = hosts.iter().filter_map(ValueRef::as_str).map(str::to_owned).collect();
        let expected: Vec<_> = set.ports.iter().map(|port| format!("{name}:{port}")).collect();
        assert_eq!(hosts, expected);
        assert_eq!((seen("primary"), seen("me")), (expected[0].clone(), expected[1].clone()));
    }
}
