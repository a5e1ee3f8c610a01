//! A client of the set under faults: it appends to lists and reads them, moves money, inserts and counts, and goes on at the
//! next primary. All its writes ask for the majority.

use super::{ACCOUNTS, BROKEN, CLIENTS, TOTAL};
use bunko_bson::{ArrayRef, DocumentBuf, DocumentRef, ValueRef, number};
use bunko_client::{ClientError, Connection};
use bunko_testkit::random::Random;
use bunko_testkit::shell;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Pause before a request is sent again.
const RETRY_PAUSE: Duration = Duration::from_millis(20);
/// Pause between two operations, so that the history stays short enough to be judged.
const PACE: Duration = Duration::from_millis(10);
/// Longest time for one operation: faults are over long before.
const OPERATION_TIME_MAX: Duration = Duration::from_mins(3);
/// Lists that are in use at a time. After so many appended values, others take their place, so that lists stay short.
const LISTS: u64 = 6;
const VALUES_OF_LISTS: i64 = 60;
/// A member that is not primary, or not any more, answers so.
const NOT_PRIMARY_CODES: [i32; 6] = [91, 189, 10107, 11600, 11602, 13435];

/// State that the clients of one round share.
pub(super) struct Place {
    pub(super) round: usize,
    /// The URI of each member.
    pub(super) uris: Vec<String>,
    pub(super) is_over: AtomicBool,
    /// Operations that were acknowledged.
    pub(super) acknowledged: AtomicUsize,
    pub(super) last_value: AtomicI64,
    /// A line for each beginning and each end of a transaction on lists, in the order in which they happened.
    pub(super) history: Mutex<String>,
    /// The ids of documents whose inserts were acknowledged.
    pub(super) inserted: Mutex<Vec<i64>>,
    /// How often each client's counter was raised.
    pub(super) raised: [AtomicU64; CLIENTS],
}

impl Place {
    pub(super) fn new(round: usize, uris: Vec<String>) -> Self {
        Self {
            round,
            uris,
            is_over: AtomicBool::new(false),
            acknowledged: AtomicUsize::new(0),
            last_value: AtomicI64::new(0),
            history: Mutex::default(),
            inserted: Mutex::default(),
            raised: Default::default(),
        }
    }

    pub(super) fn note(&self, kind: &str, process: usize, operations: &str) {
        let mut history = self.history.lock().expect("not poisoned");
        let _ = writeln!(history, "{{\"type\":\"{kind}\",\"process\":{process},\"value\":[{operations}]}}");
    }
}

/// The outcome of one request.
pub(super) enum Sent {
    Reply(DocumentBuf),
    Refused(i32),
    /// It may have been carried out.
    Lost,
    /// No member is primary.
    Unsent,
}

/// A connection to the primary, whichever member that is.
pub(super) struct Caller {
    uris: Vec<String>,
    connection: Option<Connection>,
}

impl Caller {
    pub(super) fn new(uris: &[String]) -> Self {
        Self { uris: uris.to_vec(), connection: None }
    }

    pub(super) fn send(&mut self, database: &str, text: &str) -> Sent {
        if self.connection.is_none() {
            self.connection = self.uris.iter().find_map(|uri| to_primary(uri));
        }
        let Some(connection) = &mut self.connection else { return Sent::Unsent };
        let command = shell::parse_document(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        match connection.run_command(database, command.as_ref()) {
            Ok(reply) => Sent::Reply(reply),
            Err(ClientError::Command(error)) => {
                if NOT_PRIMARY_CODES.contains(&error.code) {
                    self.connection = None;
                }
                Sent::Refused(error.code)
            }
            Err(_) => {
                self.connection = None;
                Sent::Lost
            }
        }
    }

    /// Sends a command until it is carried out with its write concern. The command may be carried out more than once, unless
    /// it is a retryable write.
    pub(super) fn insist(&mut self, database: &str, text: &str) -> DocumentBuf {
        let until = Instant::now() + OPERATION_TIME_MAX;
        loop {
            let seen = match self.send(database, text) {
                Sent::Reply(reply) if reply.as_ref().get("writeConcernError").is_none() => {
                    assert!(reply.as_ref().get("writeErrors").is_none(), "{BROKEN}: {text}: {reply:?}");
                    return reply;
                }
                Sent::Refused(code) if !NOT_PRIMARY_CODES.contains(&code) => panic!("{text}: refused with {code}"),
                Sent::Reply(reply) => format!("{reply:?}"),
                Sent::Refused(code) => format!("code {code}"),
                Sent::Lost => "no reply".to_owned(),
                Sent::Unsent => "no primary".to_owned(),
            };
            assert!(Instant::now() < until, "{text}: {seen} for {OPERATION_TIME_MAX:?}");
            std::thread::sleep(RETRY_PAUSE);
        }
    }
}

/// Connects to a member, if it answers and is primary.
fn to_primary(uri: &str) -> Option<Connection> {
    let connection = Connection::dial(&uri.parse().expect("a URI")).ok()?;
    // The handshake speaks to older servers too.
    let is_primary = matches!(connection.hello().get("ismaster"), Some(ValueRef::Boolean(true)));
    is_primary.then_some(connection)
}

/// How a transaction ended.
enum End {
    /// With the replies to its statements.
    Committed(Vec<DocumentBuf>),
    Aborted,
    Unknown,
}

enum Step {
    Append(u64, i64),
    Read(u64),
}

pub(super) struct Client {
    number: usize,
    /// The process in the history: another one after each transaction whose end is unknown.
    process: usize,
    transaction: i64,
    next_id: i64,
    random: Random,
    caller: Caller,
    place: Arc<Place>,
}

impl Client {
    pub(super) fn new(number: usize, seed: u64, place: Arc<Place>) -> Self {
        let caller = Caller::new(&place.uris);
        Self { number, process: number, transaction: 0, next_id: 0, random: Random(seed), caller, place }
    }

    pub(super) fn work(mut self) {
        while !self.place.is_over.load(Ordering::Relaxed) {
            match self.random.below(10) {
                0..5 => self.use_lists(),
                5..7 => self.transfer(),
                7 => self.count_money(),
                8 => self.insert(),
                _ => self.raise(),
            }
            std::thread::sleep(PACE);
        }
    }

    fn note_acknowledged(&self) {
        self.place.acknowledged.fetch_add(1, Ordering::Relaxed);
    }

    /// The fields of a command that name the session and the next, or present, transaction.
    fn session(&self) -> String {
        let (round, number, transaction) = (self.place.round, self.number, self.transaction);
        format!(
            "lsid: {{id: UUID('00000000-0000-4000-{:04x}-{number:012x}')}}, txnNumber: NumberLong({transaction})",
            0x8000 + round
        )
    }

    /// Runs statements in a transaction.
    fn transact(&mut self, statements: &[String]) -> End {
        self.transaction += 1;
        let session = format!("{}, autocommit: false", self.session());
        let mut replies = Vec::new();
        for (position, statement) in statements.iter().enumerate() {
            let begins = ", startTransaction: true, readConcern: {level: 'snapshot'}";
            let begins = if position == 0 { begins } else { "" };
            match self.caller.send("test", &format!("{{{statement}, {session}{begins}}}")) {
                Sent::Reply(reply) if reply.as_ref().get("writeErrors").is_none() => replies.push(reply),
                _ => {
                    self.caller.send("admin", &format!("{{abortTransaction: 1, {session}}}"));
                    return End::Aborted;
                }
            }
        }
        let commit = format!("{{commitTransaction: 1, writeConcern: {{w: 'majority'}}, {session}}}");
        let until = Instant::now() + OPERATION_TIME_MAX;
        let mut may_be_committed = false;
        loop {
            match self.caller.send("admin", &commit) {
                Sent::Reply(reply) if reply.as_ref().get("writeConcernError").is_none() => {
                    return End::Committed(replies);
                }
                Sent::Reply(_) | Sent::Lost => may_be_committed = true,
                Sent::Unsent => {}
                Sent::Refused(code) if NOT_PRIMARY_CODES.contains(&code) => may_be_committed = true,
                Sent::Refused(_) => return if may_be_committed { End::Unknown } else { End::Aborted },
            }
            assert!(Instant::now() < until, "a commit has no end for {OPERATION_TIME_MAX:?}");
            std::thread::sleep(RETRY_PAUSE);
        }
    }

    fn steps(&mut self) -> Vec<Step> {
        let generation = (self.place.last_value.load(Ordering::Relaxed) / VALUES_OF_LISTS) as u64;
        let first = generation * LISTS;
        if self.random.one_in(6) {
            return (first..first + LISTS).map(Step::Read).collect();
        }
        let count = 1 + self.random.below(4);
        let mut step = || {
            let key = first + self.random.below(LISTS);
            if self.random.one_in(2) {
                return Step::Read(key);
            }
            Step::Append(key, self.place.last_value.fetch_add(1, Ordering::Relaxed) + 1)
        };
        (0..count).map(|_| step()).collect()
    }

    fn use_lists(&mut self) {
        let steps = self.steps();
        let statement = |step: &Step| match step {
            Step::Append(key, value) => {
                format!("update: 'lists', updates: [{{q: {{_id: {key}}}, u: {{$push: {{l: {value}}}}}, upsert: true}}]")
            }
            Step::Read(key) => format!("find: 'lists', filter: {{_id: {key}}}"),
        };
        let statements: Vec<_> = steps.iter().map(statement).collect();
        self.place.note("invoke", self.process, &shown(&steps, &[]));
        match self.transact(&statements) {
            End::Committed(replies) => {
                self.place.note("ok", self.process, &shown(&steps, &replies));
                self.note_acknowledged();
            }
            End::Aborted => self.place.note("fail", self.process, &shown(&steps, &[])),
            End::Unknown => {
                self.place.note("info", self.process, &shown(&steps, &[]));
                self.process += CLIENTS;
            }
        }
    }

    fn transfer(&mut self) {
        let (from, amount) = (self.random.below(ACCOUNTS), 1 + self.random.below(5));
        let to = (from + 1 + self.random.below(ACCOUNTS - 1)) % ACCOUNTS;
        let change = |account: u64, sign: &str| {
            format!("update: 'accounts', updates: [{{q: {{_id: {account}}}, u: {{$inc: {{n: {sign}{amount}}}}}}}]")
        };
        if matches!(self.transact(&[change(from, "-"), change(to, "")]), End::Committed(_)) {
            self.note_acknowledged();
        }
    }

    fn count_money(&mut self) {
        if let End::Committed(replies) = self.transact(&["find: 'accounts'".to_owned()]) {
            assert_eq!(money(&replies[0]), TOTAL, "{BROKEN}: {:?}", replies[0]);
            self.note_acknowledged();
        }
    }

    fn insert(&mut self) {
        self.next_id += 1;
        self.transaction += 1;
        let id = self.next_id * CLIENTS as i64 + self.number as i64;
        let insert = "ordered: true, writeConcern: {w: 'majority'}";
        let insert =
            format!("{{insert: 'rows', documents: [{{_id: NumberLong({id})}}], {insert}, {}}}", self.session());
        self.caller.insist("test", &insert);
        self.place.inserted.lock().expect("not poisoned").push(id);
        self.note_acknowledged();
    }

    /// Raises the client's counter by one, exactly once.
    fn raise(&mut self) {
        self.transaction += 1;
        let change = format!("{{q: {{_id: {}}}, u: {{$inc: {{n: 1}}}}}}", self.number);
        let update = format!("updates: [{change}], writeConcern: {{w: 'majority'}}, {}", self.session());
        self.caller.insist("test", &format!("{{update: 'counters', {update}}}"));
        self.place.raised[self.number].fetch_add(1, Ordering::Relaxed);
        self.note_acknowledged();
    }
}

/// Steps as the history has them, with the lists that were read.
fn shown(steps: &[Step], replies: &[DocumentBuf]) -> String {
    let show = |(position, step): (usize, &Step)| match step {
        Step::Append(key, value) => format!("[\"append\",{key},{value}]"),
        Step::Read(key) => match replies.get(position) {
            None => format!("[\"r\",{key},null]"),
            Some(reply) => format!("[\"r\",{key},{:?}]", batch(reply).next().map(list_of).unwrap_or_default()),
        },
    };
    steps.iter().enumerate().map(show).collect::<Vec<_>>().join(",")
}

/// The documents in the first batch of a reply.
pub(super) fn batch(reply: &DocumentBuf) -> impl Iterator<Item = DocumentRef<'_>> {
    let cursor = reply.as_ref().get("cursor").and_then(ValueRef::as_document).expect("a cursor");
    let batch = cursor.get("firstBatch").and_then(ValueRef::as_array).expect("a batch");
    batch.iter().filter_map(ValueRef::as_document)
}

pub(super) fn list_of(document: DocumentRef<'_>) -> Vec<i64> {
    let list = document.get("l").and_then(ValueRef::as_array).unwrap_or(ArrayRef::EMPTY);
    list.iter().map(|value| number::as_i64_exact(value).expect("a number")).collect()
}

pub(super) fn whole_of(document: DocumentRef<'_>, name: &str) -> i64 {
    document.get(name).and_then(number::as_i64_exact).expect("a whole number")
}

/// The sum of all accounts.
pub(super) fn money(reply: &DocumentBuf) -> i64 {
    batch(reply).map(|account| whole_of(account, "n")).sum()
}
