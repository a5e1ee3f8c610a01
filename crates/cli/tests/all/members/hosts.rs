//! Members on several machines: each has a network namespace, in which it knows the others by name. Needs root, so it runs only
//! from `tests/members_hosts/run`.

use super::logins::{KEY, code, key_file};
use super::many_faults::{Cut, CutState, Ground, survive};
use super::whole;
use crate::disk_image::sh;
use crate::peer::binary;
use crate::tls::authority::{Authority, Validity};
use bunko_bson::{ArrayRef, DocumentBuf, ValueRef};
use bunko_client::{ClientError, Connection, percent_encoded};
use bunko_testkit::patience::{wait_for, wait_until};
use bunko_testkit::process::{Server, temporary_dbpath};
use bunko_testkit::shell;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The machines, with a bridge between them to which this process is connected too.
struct Network {
    machines: usize,
    /// Part of all names, so that tests of several processes do not meet.
    mark: String,
}

const PORT: u16 = 27017;
const SUBNET: &str = "10.213.77";

fn host(machine: usize) -> String {
    format!("m{machine}.bunko.test")
}

fn address(machine: usize) -> String {
    format!("{SUBNET}.{}", machine + 1)
}

impl Network {
    fn new(machines: usize) -> Self {
        // Tests of one process run beside each other. The names of links have 15 bytes at most.
        static NETWORKS: AtomicUsize = AtomicUsize::new(0);
        let number = NETWORKS.fetch_add(1, Ordering::Relaxed);
        let network = Self { machines, mark: format!("bk{}x{number}", std::process::id() % 100_000) };
        let bridge = network.bridge();
        sh("ip", &["link", "add", &bridge, "type", "bridge"]);
        sh("ip", &["address", "add", &format!("{SUBNET}.254/24"), "dev", &bridge]);
        sh("ip", &["link", "set", &bridge, "up"]);
        let hosts: Vec<_> = (0..machines).map(|machine| format!("{} {}", address(machine), host(machine))).collect();
        let hosts = hosts.join("\n") + "\n";
        for machine in 0..machines {
            let (space, cable) = (network.space(machine), network.cable(machine));
            sh("ip", &["netns", "add", &space]);
            sh("ip", &["link", "add", &cable, "type", "veth", "peer", "name", "eth0", "netns", &space]);
            sh("ip", &["link", "set", &cable, "master", &bridge, "up"]);
            let own = format!("{}/24", address(machine));
            sh("ip", &["-n", &space, "address", "add", &own, "dev", "eth0"]);
            sh("ip", &["-n", &space, "link", "set", "eth0", "up"]);
            sh("ip", &["-n", &space, "link", "set", "lo", "up"]);
            // `ip netns exec` puts the files of this directory in the place of those of /etc.
            let etc = network.etc(machine);
            fs::create_dir_all(&etc).expect("made");
            fs::write(etc.join("hosts"), format!("127.0.0.1 localhost\n{hosts}")).expect("written");
        }
        network
    }

    fn bridge(&self) -> String {
        format!("{}b", self.mark)
    }

    fn space(&self, machine: usize) -> String {
        format!("{}n{machine}", self.mark)
    }

    fn cable(&self, machine: usize) -> String {
        format!("{}v{machine}", self.mark)
    }

    fn etc(&self, machine: usize) -> PathBuf {
        PathBuf::from("/etc/netns").join(self.space(machine))
    }

    /// Cuts a machine off, or connects it again: `state` is `down` or `up`.
    fn set_cable(&self, machine: usize, state: &str) {
        sh("ip", &["link", "set", &self.cable(machine), state]);
    }

    /// Lets packets from a machine to another one vanish, or not: `change` is `add` or `del`.
    fn set_hole(&self, change: &str, from: usize, to: usize) {
        sh("ip", &["-n", &self.space(from), "route", change, "blackhole", &format!("{}/32", address(to))]);
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for machine in 0..self.machines {
            let _ = Command::new("ip").args(["netns", "del", &self.space(machine)]).status();
            let _ = fs::remove_dir_all(self.etc(machine));
        }
        let _ = Command::new("ip").args(["link", "del", &self.bridge()]).status();
    }
}

/// A set with one member on each machine.
struct Set {
    servers: Vec<Server>,
    directories: Vec<TempDir>,
    /// Arguments of each member.
    arguments: Vec<Vec<String>>,
    /// Options of a client's URI, each with its `&`.
    options: String,
    /// After the servers, which it must outlive.
    network: Network,
}

impl Set {
    fn start(machines: usize, arguments: &dyn Fn(usize) -> Vec<String>, options: &str) -> Self {
        let network = Network::new(machines);
        let directories: Vec<_> = (0..machines).map(|_| temporary_dbpath()).collect();
        for directory in &directories {
            fs::create_dir(directory.path().join("data")).expect("made");
        }
        let arguments = (0..machines).map(arguments).collect();
        let mut set = Self { servers: Vec::new(), directories, arguments, options: options.to_owned(), network };
        set.servers = (0..machines).map(|machine| set.server(machine)).collect();
        set
    }

    fn server(&self, machine: usize) -> Server {
        let directory = self.directories[machine].path();
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.network.space(machine)]).arg(binary());
        command.args(["serve", "--replSet", "rs", "--cache-size-gb", "0.25", "--port", &PORT.to_string(), "--dbpath"]);
        command.arg(directory.join("data")).arg("--unix-socket-prefix").arg(directory);
        command.args(["--bind-ip", &format!("localhost,{}", host(machine))]).args(&self.arguments[machine]);
        Server::spawn(command).expect("it starts")
    }

    /// A connection over the network, logged in as `root`.
    fn connect(&self, machine: usize) -> Result<Connection, ClientError> {
        let uri = format!(
            "mongodb://root:pw@{}:{PORT}/?authSource=admin&directConnection=true&connectTimeoutMS=1000{}",
            address(machine),
            self.options
        );
        Connection::dial(&uri.parse().expect("a URI"))
    }

    /// A connection from the machine itself, which no cut concerns.
    fn connect_locally(&self, machine: usize) -> Connection {
        let socket = self.directories[machine].path().join(format!("mongodb-{PORT}.sock"));
        let uri =
            format!("mongodb://{}/?directConnection=true", percent_encoded(socket.as_os_str().as_encoded_bytes()));
        let uri = uri.parse().expect("a URI");
        // A server that joins the set starts again.
        wait_for(|| Connection::dial(&uri).map_err(|error| error.to_string()))
    }

    fn hello(&self, machine: usize) -> DocumentBuf {
        let hello = DocumentBuf::new().with("hello", 1);
        wait_for(|| {
            let answer = self.connect_locally(machine).run_command("admin", hello.as_ref());
            answer.map_err(|error| error.to_string())
        })
    }

    /// Waits until one of `machines` has the primary, and returns it.
    fn primary(&self, machines: &[usize]) -> usize {
        wait_for(|| {
            let is_primary = |machine: &&usize| {
                matches!(self.hello(**machine).as_ref().get("isWritablePrimary"), Some(ValueRef::Boolean(true)))
            };
            machines.iter().find(is_primary).copied().ok_or_else(|| self.tails("no member is primary"))
        })
    }

    fn wait_for_secondary(&self, machine: usize) {
        wait_for(|| match self.hello(machine).as_ref().get("secondary") {
            Some(ValueRef::Boolean(true)) => Ok(()),
            _ => Err(self.tails(&format!("member {machine} is not a secondary"))),
        });
    }

    fn tails(&self, what: &str) -> String {
        let tails: Vec<_> = self.servers.iter().map(Server::output_tail).collect();
        format!("{what}; the members' output:\n{}", tails.join("\n----\n"))
    }

    /// Initiates the set by names, and creates the user `root`.
    fn initiate(&self) {
        let members: Vec<_> =
            (0..self.servers.len()).map(|id| format!("{{_id: {id}, host: '{}:{PORT}'}}", host(id))).collect();
        let initiate = format!("{{replSetInitiate: {{_id: 'rs', members: [{}]}}}}", members.join(", "));
        assert_eq!(code(&mut self.connect_locally(0), "admin", &initiate), 0);
        self.primary(&[0]);
        (1..self.servers.len()).for_each(|machine| self.wait_for_secondary(machine));
        let user = "{createUser: 'root', pwd: 'pw', roles: ['root'], writeConcern: {w: 'majority'}}";
        assert_eq!(code(&mut self.connect_locally(0), "admin", user), 0);
    }

    fn insert(&self, machine: usize, id: i32, concern: &str) {
        let insert = format!("{{insert: 'rows', documents: [{{_id: {id}}}], writeConcern: {concern}}}");
        assert_eq!(code(&mut self.connect(machine).expect("logged in"), "test", &insert), 0);
    }

    /// Number of rows that a member shows.
    fn rows(&self, machine: usize) -> i64 {
        let count = "{count: 'rows', $readPreference: {mode: 'secondaryPreferred'}}";
        let count = shell::parse_document(count).expect("a command");
        let reply = self.connect(machine).and_then(|mut connection| connection.run_command("test", count.as_ref()));
        reply.map_or(-1, |reply| whole(&reply, "n"))
    }

    /// How often the topology has changed for the clients of a member.
    fn topology(&self, machine: usize) -> i64 {
        let hello = self.hello(machine);
        let version = hello.as_ref().get("topologyVersion").and_then(ValueRef::as_document).expect("a version");
        version.get("counter").and_then(bunko_bson::number::as_i64_exact).expect("a counter")
    }

    fn term(&self, machine: usize) -> i64 {
        let status = DocumentBuf::new().with("replSetGetStatus", 1);
        let status = self.connect(machine).and_then(|mut connection| connection.run_command("admin", status.as_ref()));
        whole(&status.expect("a status"), "term")
    }
}

#[test]
#[ignore = "needs root and network namespaces; tests/members_hosts/run runs it"]
fn members_on_several_machines_fail_over_when_one_is_cut_off() {
    let keys = tempfile::tempdir().expect("a temporary directory");
    let key = key_file(keys.path(), "key", KEY);
    let set = Set::start(3, &|_| vec!["--keyFile".to_owned(), key.clone()], "");
    set.initiate();
    set.insert(0, 1, "{w: 3}");
    let hello = set.hello(2);
    let names = |name: &str| hello.as_ref().get(name).and_then(ValueRef::as_str).expect("a host").to_owned();
    assert_eq!((names("me"), names("primary")), (format!("{}:{PORT}", host(2)), format!("{}:{PORT}", host(0))));
    let hosts = hello.as_ref().get("hosts").and_then(ValueRef::as_array).into_iter().flat_map(ArrayRef::iter);
    let hosts: Vec<_> = hosts.filter_map(ValueRef::as_str).map(str::to_owned).collect();
    assert_eq!(hosts, [0, 1, 2].map(|machine| format!("{}:{PORT}", host(machine))));
    set.network.set_cable(0, "down");
    let next = set.primary(&[1, 2]);
    wait_until("the primary that was cut off steps down", || {
        matches!(set.hello(0).as_ref().get("isWritablePrimary"), Some(ValueRef::Boolean(false)))
    });
    set.insert(next, 2, "{w: 'majority'}");
    set.network.set_cable(0, "up");
    set.wait_for_secondary(0);
    set.insert(next, 3, "{w: 3}");
    wait_until("the member that was cut off has all rows", || set.rows(0) == 3);
}

impl Ground for Set {
    fn uri(&self, member: usize) -> String {
        format!("mongodb://root:pw@{}:{PORT}/?authSource=admin&", address(member))
    }

    fn host(&self, member: usize) -> String {
        format!("{}:{PORT}", host(member))
    }

    fn directory(&self, member: usize) -> PathBuf {
        self.directories[member].path().join("data")
    }

    fn servers(&mut self) -> &mut [Server] {
        &mut self.servers
    }

    fn start(&mut self, member: usize) {
        self.servers[member] = self.server(member);
    }

    fn cut(&self, cut: Cut, state: CutState) -> bool {
        let begins = state == CutState::Begins;
        match cut {
            Cut::Around(member) => self.network.set_cable(member, if begins { "down" } else { "up" }),
            Cut::Between(from, to) => self.network.set_hole(if begins { "add" } else { "del" }, from, to),
        }
        true
    }
}

#[test]
#[ignore = "needs root and network namespaces; tests/members_hosts/run runs it"]
fn nothing_acknowledged_is_lost_through_many_faults_and_cuts() {
    let keys = tempfile::tempdir().expect("a temporary directory");
    let key = key_file(keys.path(), "key", KEY);
    let mut set = Set::start(3, &|_| vec!["--keyFile".to_owned(), key.clone()], "");
    set.initiate();
    survive(&mut set);
}

/// How long a cut in one direction lasts.
const CUT: Duration = Duration::from_secs(8);

#[test]
#[ignore = "needs root and network namespaces; tests/members_hosts/run runs it"]
fn a_cut_in_one_direction_neither_elects_nor_confuses_clients() {
    let keys = tempfile::tempdir().expect("a temporary directory");
    let key = key_file(keys.path(), "key", KEY);
    let set = Set::start(3, &|_| vec!["--keyFile".to_owned(), key.clone()], "");
    set.initiate();
    set.insert(0, 1, "{w: 3}");
    let (term, before) = (set.term(0), set.topology(2));
    set.network.set_hole("add", 2, 0);
    let until = Instant::now() + CUT;
    let mut id = 1;
    while Instant::now() < until {
        id += 1;
        set.insert(0, id, "{w: 'majority'}");
        std::thread::sleep(Duration::from_millis(100));
    }
    let changes = set.topology(2) - before;
    set.network.set_hole("del", 2, 0);
    assert_eq!(set.primary(&[0, 1, 2]), 0);
    assert_eq!(set.term(0), term, "an election");
    assert!(changes <= 4, "the topology has changed {changes} times");
    wait_until("the member that could not answer has all rows", || set.rows(2) == i64::from(id));
}

#[test]
#[ignore = "needs root and network namespaces; tests/members_hosts/run runs it"]
fn members_on_several_machines_speak_tls_and_log_in_by_certificates() {
    let authority = Authority::new();
    let ann = authority.options(Some(&authority.write_client("ann", Validity::Now)));
    let certificates: Vec<_> =
        (0..3).map(|machine| authority.write_member(&host(machine), "data", &[&host(machine), "localhost"])).collect();
    let text = |path: PathBuf| path.to_str().expect("UTF-8").to_owned();
    let arguments = |machine: usize| {
        let files = [text(certificates[machine].clone()), text(authority.file("ca.pem"))];
        let [own, ca] = files;
        let mode = ["--tlsMode", "preferTLS", "--clusterAuthMode", "x509"].map(str::to_owned);
        mode.into_iter().chain(["--tlsCertificateKeyFile".to_owned(), own, "--tlsCAFile".to_owned(), ca]).collect()
    };
    let set = Set::start(3, &arguments, &format!("&{ann}&tlsAllowInvalidHostnames=true"));
    set.initiate();
    set.insert(0, 1, "{w: 3}");
    let status = DocumentBuf::new().with("serverStatus", 1);
    let status = set.connect(1).and_then(|mut connection| connection.run_command("admin", status.as_ref()));
    let status = shell::print(ValueRef::Document(status.expect("a status").as_ref()));
    assert!(!status.contains(r#""1.3": NumberLong(0)"#), "members speak TLS: {status}");
    set.network.set_cable(0, "down");
    let next = set.primary(&[1, 2]);
    set.insert(next, 2, "{w: 'majority'}");
}
