//! Many faults of members, one after the other, under clients that write for the majority: nothing that was acknowledged may be
//! lost, and the members must agree afterwards.
//!
//! `BUNKO_MEMBER_FAULTS` sets the number of faults, `BUNKO_SEED` the seed. Faults come in rounds. After each round the members
//! rest, and all promises are checked:
//!
//! - transactions on lists form no cycle that snapshot isolation forbids (crate `adya`);
//! - the sum of all accounts is what it was, also while faults go on;
//! - each insert that was acknowledged is there, and each counter was raised as often as acknowledged, not more;
//! - all members have the same documents (`dbHash`), and logs that differ only in the stamp `synced`.

mod client;
mod logs;

use super::{Set, whole};
use adya::{History, Opts, Valid, Workload, check};
use bunko_bson::{DocumentBuf, ValueRef, number};
use bunko_client::Connection;
use bunko_testkit::patience::{PATIENCE, wait_for, wait_until};
use bunko_testkit::process::Server;
use bunko_testkit::random::Random;
use bunko_testkit::shell;
use client::{Caller, Client, Place, batch, list_of, money, whole_of};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const BROKEN: &str = "a promise is broken";
const CLIENTS: usize = 4;
const ACCOUNTS: u64 = 5;
/// The sum of all accounts.
const TOTAL: i64 = 100 * ACCOUNTS as i64;
/// Faults without a variable: as many kinds are met in some runs.
const FAULTS: usize = 8;
const FAULTS_OF_ROUND: usize = 25;
/// Acknowledged operations after a fault before the next one.
const BETWEEN_FAULTS: usize = 10;
const OPTIONS: &str = "directConnection=true&connectTimeoutMS=1000&serverSelectionTimeoutMS=1000&socketTimeoutMS=5000";

/// The machines and processes of a set, as faults see them.
pub(super) trait Ground {
    /// The URI of a member, which ends in `?` or `&`.
    fn uri(&self, member: usize) -> String;

    /// `host:port` under which the set knows a member.
    fn host(&self, member: usize) -> String;

    /// The data directory of a member.
    fn directory(&self, member: usize) -> PathBuf;

    fn servers(&mut self) -> &mut [Server];

    /// Starts a member that is down.
    fn start(&mut self, member: usize);

    /// Begins a cut, or ends it; false on one machine, where nothing can be cut.
    fn cut(&self, _cut: Cut, _state: CutState) -> bool {
        false
    }
}

/// Packets that vanish.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cut {
    /// All from and to a member.
    Around(usize),
    /// From the first member to the second.
    Between(usize, usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CutState {
    Begins,
    Ends,
}

impl Ground for Set {
    fn uri(&self, member: usize) -> String {
        format!("mongodb://127.0.0.1:{}/?", self.ports[member])
    }

    fn host(&self, member: usize) -> String {
        format!("127.0.0.1:{}", self.ports[member])
    }

    fn directory(&self, member: usize) -> PathBuf {
        self.directories[member].path().to_owned()
    }

    fn servers(&mut self) -> &mut [Server] {
        &mut self.servers
    }

    fn start(&mut self, member: usize) {
        self.servers[member] = self.server(member);
    }
}

/// A run of faults on a set.
struct Run<'a> {
    ground: &'a mut dyn Ground,
    random: Random,
    place: Arc<Place>,
}

/// A number in the environment.
fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

/// Lets so many faults happen to a set that is up, and checks its promises.
pub(super) fn survive(ground: &mut dyn Ground) {
    let (faults, seed) = (setting("BUNKO_MEMBER_FAULTS", FAULTS), setting("BUNKO_SEED", 1) as u64);
    let began = Instant::now();
    let mut random = Random(seed);
    for (round, first) in (0..faults).step_by(FAULTS_OF_ROUND).enumerate() {
        let uris = (0..ground.servers().len()).map(|member| format!("{}{OPTIONS}", ground.uri(member))).collect();
        let place = Arc::new(Place::new(round, uris));
        let mut run = Run { ground: &mut *ground, random: Random(random.number()), place };
        run.round(first..(first + FAULTS_OF_ROUND).min(faults));
    }
    println!("{faults} faults with BUNKO_SEED={seed} in {} s", began.elapsed().as_secs());
}

impl Run<'_> {
    fn round(&mut self, faults: std::ops::Range<usize>) {
        let mut caller = Caller::new(&self.place.uris);
        prepare(&mut caller, self.place.round);
        let seed = self.random.number();
        let spawn = |number: usize| {
            let client = Client::new(number, seed ^ number as u64, Arc::clone(&self.place));
            std::thread::spawn(move || client.work())
        };
        let clients: Vec<_> = (0..CLIENTS).map(spawn).collect();
        self.wait_for_progress();
        for fault in faults.clone() {
            let what = self.fault();
            println!("fault {fault}: {what}");
            // Some faults meet a set that has not recovered from the last one.
            if !self.random.one_in(4) {
                self.wait_for_progress();
            }
        }
        self.wait_for_progress();
        self.place.is_over.store(true, Ordering::Relaxed);
        for client in clients {
            client.join().expect("no client fails");
        }
        self.check(&mut caller);
        println!("faults {faults:?}: {} operations acknowledged", self.place.acknowledged.load(Ordering::Relaxed));
    }

    /// Waits until clients' operations are acknowledged.
    fn wait_for_progress(&mut self) {
        let enough = self.place.acknowledged.load(Ordering::Relaxed) + BETWEEN_FAULTS;
        wait_for(|| match self.place.acknowledged.load(Ordering::Relaxed) {
            count if count >= enough => Ok(()),
            count => Err(self.tails(&format!("{count} operations are acknowledged, not {enough}"))),
        });
    }

    fn tails(&mut self, what: &str) -> String {
        let tails: Vec<_> = self.ground.servers().iter().map(Server::output_tail).collect();
        format!("{what}; the members' output:\n{}", tails.join("\n----\n"))
    }

    fn members(&self) -> usize {
        self.place.uris.len()
    }

    /// The primary, or any member.
    fn primary(&mut self) -> usize {
        let any = self.random.below(self.members() as u64) as usize;
        let is_primary = |member: &usize| {
            let hello = self.ask(*member, "{hello: 1}").unwrap_or_default();
            matches!(hello.as_ref().get("isWritablePrimary"), Some(ValueRef::Boolean(true)))
        };
        (0..self.members()).find(is_primary).unwrap_or(any)
    }

    /// The reply of a member to a command of `admin`; `None` if there is none.
    fn ask(&self, member: usize, command: &str) -> Option<DocumentBuf> {
        let uri = self.place.uris[member].parse().expect("a URI");
        let command = shell::parse_document(command).expect("a command");
        Connection::dial(&uri).ok()?.run_command("admin", command.as_ref()).ok()
    }

    fn pause(&mut self, ms: std::ops::Range<u64>) {
        let pause = ms.start + self.random.below(ms.end - ms.start);
        std::thread::sleep(Duration::from_millis(pause));
    }

    /// Lets one fault happen and ends it. Returns what it was.
    fn fault(&mut self) -> String {
        let (primary, count) = (self.primary(), self.members());
        let any = self.random.below(count as u64) as usize;
        let other = (any + 1 + self.random.below(count as u64 - 1) as usize) % count;
        match self.random.below(12) {
            0 => self.kill(&[primary]),
            1 => self.kill(&[any]),
            2 => self.kill(&[any, other]),
            3 => self.kill(&(0..count).collect::<Vec<_>>()),
            4 => self.hold(primary, 1500..4000),
            5 => self.hold(any, 50..2500),
            6 => {
                self.ground.servers()[primary].terminate();
                self.ground.start(primary);
                format!("stop of {primary}")
            }
            7 => {
                self.ask(primary, "{replSetStepDown: 2, secondaryCatchUpPeriodSecs: 1, force: true}");
                format!("step-down of {primary}")
            }
            8 => self.reconfigure(primary),
            9 => self.cut(Cut::Around(primary)),
            10 => self.cut(Cut::Around(any)),
            _ => self.cut(Cut::Between(any, other)),
        }
    }

    fn kill(&mut self, members: &[usize]) -> String {
        for member in members {
            self.ground.servers()[*member].kill();
        }
        self.pause(0..2500);
        for member in members {
            self.ground.start(*member);
        }
        format!("kill of {members:?}")
    }

    fn signal(&mut self, member: usize, signal: Signal) {
        let process = Pid::from_raw(self.ground.servers()[member].pid() as i32).expect("a process");
        kill_process(process, signal).expect("it may be signalled");
    }

    fn hold(&mut self, member: usize, ms: std::ops::Range<u64>) -> String {
        self.signal(member, Signal::STOP);
        self.pause(ms);
        self.signal(member, Signal::CONT);
        format!("halt of {member}")
    }

    /// Cuts the network. On one machine, a member stands still instead.
    fn cut(&mut self, cut: Cut) -> String {
        if !self.ground.cut(cut, CutState::Begins) {
            let (Cut::Around(member) | Cut::Between(_, member)) = cut;
            return self.hold(member, 50..4000);
        }
        self.pause(200..5000);
        self.ground.cut(cut, CutState::Ends);
        format!("cut {cut:?}")
    }

    /// Changes a priority. The change may be refused, for example because the last one is not committed.
    fn reconfigure(&mut self, primary: usize) -> String {
        let reply = self.ask(primary, "{replSetGetConfig: 1}").unwrap_or_default();
        let config = reply.as_ref().get("config").and_then(ValueRef::as_document);
        let version = config.and_then(|config| config.get("version")).and_then(number::as_i64_exact).unwrap_or(0);
        let count = self.members();
        let preferred = self.random.below(count as u64) as usize;
        let member = |id: usize| {
            let priority = if id == preferred { 2 } else { 1 };
            format!("{{_id: {id}, host: '{}', priority: {priority}}}", self.ground.host(id))
        };
        let members: Vec<_> = (0..count).map(member).collect();
        let config = format!("{{_id: 'rs', version: {}, members: [{}]}}", version + 1, members.join(", "));
        let changed = self.ask(primary, &format!("{{replSetReconfig: {config}}}")).is_some();
        format!("reconfiguration at {primary}, {}", if changed { "done" } else { "refused" })
    }

    /// Checks all promises, once no client writes any more.
    fn check(&mut self, caller: &mut Caller) {
        let members = self.members();
        insist_on_insert(caller, ("rows", "{_id: 'last'}"), &members.to_string(), self.place.round * 10 + 9);
        let primary = self.primary();
        let end = logs::end_of(&self.ground.directory(primary));
        self.check_documents(caller);
        self.check_history(caller);
        for database in ["test", "admin"] {
            let hash = |member: usize| {
                let command = "{dbHash: 1, $readPreference: {mode: 'secondaryPreferred'}}";
                let uri = self.place.uris[member].parse().expect("a URI");
                let command = shell::parse_document(command).expect("a command");
                let reply = Connection::dial(&uri).ok()?.run_command(database, command.as_ref()).ok()?;
                reply.as_ref().get("md5").and_then(ValueRef::as_str).map(str::to_owned)
            };
            wait_until(&format!("all members have the same documents in {database}"), || {
                let hashes: BTreeSet<_> = (0..members).map(hash).collect();
                hashes.len() == 1 && !hashes.contains(&None)
            });
        }
        (0..members).for_each(|member| self.signal(member, Signal::STOP));
        let directories: Vec<_> = (0..members).map(|member| self.ground.directory(member)).collect();
        let bytes = logs::assert_equal(&directories, end);
        (0..members).for_each(|member| self.signal(member, Signal::CONT));
        println!("logs are equal over {bytes} bytes");
    }

    fn check_documents(&self, caller: &mut Caller) {
        let mut find = |collection: &str| {
            caller.insist("test", &format!("{{find: '{collection}', batchSize: 1000000, singleBatch: true}}"))
        };
        let rows = find("rows");
        let found: BTreeSet<_> = batch(&rows).filter_map(|row| row.get("_id").and_then(number::as_i64_exact)).collect();
        let inserted: BTreeSet<_> = self.place.inserted.lock().expect("not poisoned").iter().copied().collect();
        assert!(found.is_superset(&inserted), "{BROKEN}: lost: {:?}", inserted.difference(&found));
        assert!(inserted.is_superset(&found), "{BROKEN}: not acknowledged: {:?}", found.difference(&inserted));
        assert_eq!(money(&find("accounts")), TOTAL, "{BROKEN}");
        for counter in batch(&find("counters")) {
            let raised = self.place.raised[whole_of(counter, "_id") as usize].load(Ordering::Relaxed);
            assert_eq!(whole_of(counter, "n"), raised as i64, "{BROKEN}: {counter:?}");
        }
    }

    /// Judges the transactions on lists, with a last read of all lists.
    fn check_history(&self, caller: &mut Caller) {
        let lists =
            caller.insist("test", "{find: 'lists', filter: {_id: {$gte: 0}}, batchSize: 1000000, singleBatch: true}");
        let show = |list| format!("[\"r\",{},{:?}]", whole_of(list, "_id"), list_of(list));
        let read = batch(&lists).map(show).collect::<Vec<_>>().join(",");
        let unread = batch(&lists).map(|list| format!("[\"r\",{},null]", whole_of(list, "_id")));
        let unread = unread.collect::<Vec<_>>().join(",");
        let last = usize::MAX >> 32;
        self.place.note("invoke", last, &unread);
        self.place.note("ok", last, &read);
        let text = self.place.history.lock().expect("not poisoned");
        let history = History::from_json(&text).expect("a history");
        let models = vec!["strong-snapshot-isolation".to_owned()];
        let report = check(&history, Workload::ListAppend, &Opts { models, timeout: PATIENCE, ..Opts::default() });
        let first = report.anomalies.values().flatten().next();
        assert!(report.valid == Valid::True, "{BROKEN}: {:?}: {first:?}", report.anomaly_types);
        let count = |kind: &str| text.lines().filter(|line| line.contains(&format!("\"type\":\"{kind}\""))).count();
        println!(
            "transactions on lists: {} committed, {} aborted, {} unknown",
            count("ok"),
            count("fail"),
            count("info")
        );
    }
}

/// Makes the collections of a round anew. Each insert is retryable, because the set may have another primary meanwhile.
fn prepare(caller: &mut Caller, round: usize) {
    caller.insist("test", "{dropDatabase: 1, writeConcern: {w: 'majority'}}");
    let documents =
        |count: usize, n: i64| (0..count).map(|id| format!("{{_id: {id}, n: {n}}}")).collect::<Vec<_>>().join(", ");
    let collections = [
        ("accounts", documents(ACCOUNTS as usize, TOTAL / ACCOUNTS as i64)),
        ("counters", documents(CLIENTS, 0)),
        ("lists", "{_id: -1}".to_owned()),
        ("rows", "{_id: 'first'}".to_owned()),
    ];
    for (position, (name, documents)) in collections.iter().enumerate() {
        insist_on_insert(caller, (name, documents), "'majority'", round * 10 + position);
    }
}

/// Inserts documents once, for so many members.
fn insist_on_insert(caller: &mut Caller, (collection, documents): (&str, &str), w: &str, number: usize) {
    let session = "lsid: {id: UUID('00000000-0000-4000-8000-ffffffffffff')}";
    let insert = format!("insert: '{collection}', documents: [{documents}], writeConcern: {{w: {w}}}");
    caller.insist("test", &format!("{{{insert}, {session}, txnNumber: NumberLong({number})}}"));
}

#[test]
fn nothing_acknowledged_is_lost_through_many_faults() {
    let mut set = Set::start(3, &[]);
    assert_eq!(whole(&set.initiate(&super::THREE), "ok"), 1);
    set.primary(&[0]);
    (1..3).for_each(|member| set.wait_for_state(member, "SECONDARY"));
    survive(&mut set);
}
