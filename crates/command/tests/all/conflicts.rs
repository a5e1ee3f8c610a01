//! Conflicting transactions: the later one waits for a moment, and occupies neither a thread nor a document meanwhile.

use crate::server::{NOW_MS, Server};
use bunko_bson::{DocumentBuf, number};
use bunko_command::{Answer, Await, Halt};
use bunko_engines::{ENGINES, EngineOptions};
use bunko_operation::MemoryLimits;
use bunko_store::{Clock, LogOptions, StoreOptions};
use bunko_testkit::shell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::Duration;

/// A replica set of one member, with one session for each connection.
struct Clients(Server);

impl Clients {
    fn start() -> Self {
        let log = LogOptions { history_bytes_max: Some(128 << 20), ..LogOptions::default() };
        let store = StoreOptions { log, clock: Clock::standing(NOW_MS), ..StoreOptions::at_rest() };
        let server = Server::start_over(store, &ENGINES[0], &EngineOptions::default(), MemoryLimits::none());
        let mut clients = Self(server.into_member());
        let documents = (1..=3).map(|id| format!("{{_id: {id}, n: 0}}")).collect::<Vec<_>>().join(", ");
        let insert = shell::parse_document(&format!("{{insert: 't', documents: [{documents}]}}")).expect("valid");
        clients.0.run(9, "test", insert.as_ref());
        clients
    }

    /// Runs a command of that connection's transaction.
    fn attempt(&mut self, connection: i32, command: &str, more: &str) -> Result<(Answer, DocumentBuf), Halt> {
        let session = format!("lsid: {{id: UUID('00112233-4455-4677-8899-aabbccddee{connection:02}')}}");
        let text = format!("{{{command}, {session}, txnNumber: NumberLong(1), autocommit: false{more}}}");
        let body = shell::parse_document(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let database = if command.contains("Transaction") { "admin" } else { "test" };
        self.0.attempt(connection, database, body.as_ref())
    }

    fn begins(&mut self, connection: i32, command: &str) -> Result<(Answer, DocumentBuf), Halt> {
        self.attempt(connection, command, ", startTransaction: true")
    }

    fn value(&mut self, id: i32) -> i64 {
        let find = shell::parse_document(&format!("{{find: 't', filter: {{_id: {id}}}}}")).expect("valid");
        let reply = self.0.run(9, "test", find.as_ref());
        let text = shell::print((&reply).into());
        let (_, rest) = text.split_once("n: ").expect("a number");
        rest.split(['}', ',', ' ']).next().expect("digits").parse().expect("a number")
    }
}

fn update(id: i32) -> String {
    format!("update: 't', updates: [{{q: {{_id: {id}}}, u: {{$inc: {{n: 1}}}}}}]")
}

fn code((_, reply): &(Answer, DocumentBuf)) -> i64 {
    reply.as_ref().get("code").and_then(number::as_i64_exact).unwrap_or(0)
}

fn is_over(wait: &mut Await) -> bool {
    Pin::new(&mut wait.news).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

fn waits(attempt: Result<(Answer, DocumentBuf), Halt>) -> Await {
    match attempt {
        Err(Halt::Awaits(wait)) => *wait,
        other => panic!("it does not wait: {other:?}"),
    }
}

#[test]
fn the_first_statement_begins_anew_once_the_other_transaction_has_ended() {
    let mut clients = Clients::start();
    let modify = "findAndModify: 't', query: {_id: 1}, update: {$inc: {n: 1}}";
    for (round, (statement, end)) in
        [(update(1), "commitTransaction: 1"), (modify.to_owned(), "abortTransaction: 1")].into_iter().enumerate()
    {
        let (one, other) = (10 + round as i32, 20 + round as i32);
        assert_eq!(code(&clients.begins(one, &update(1)).expect("nobody is in the way")), 0);
        let mut wait = waits(clients.begins(other, &statement));
        assert!(!is_over(&mut wait));
        assert_eq!(code(&clients.attempt(one, end, "").expect("ends")), 0);
        assert!(is_over(&mut wait), "whoever waits is told of the end");
        assert_eq!(code(&clients.begins(other, &statement).expect("nobody is in the way")), 0);
        assert_eq!(code(&clients.attempt(other, "commitTransaction: 1", "").expect("commits")), 0);
    }
    assert_eq!(clients.value(1), 3);
}

#[test]
fn the_first_statement_waits_for_a_moment_and_no_longer() {
    let mut clients = Clients::start();
    assert_eq!(code(&clients.begins(1, &update(1)).expect("nobody is in the way")), 0);
    let clock = clients.0.service.world.clock.clone();
    let begun = clock.now();
    let mut until = waits(clients.begins(2, &update(1))).until;
    // When it runs again it continues to wait, until the end of its first wait.
    let reply = loop {
        clock.advance(until - clock.now());
        match clients.begins(2, &update(1)) {
            Ok(reply) => break reply,
            waiting => until = waits(waiting).until,
        }
    };
    assert_eq!(code(&reply), 112);
    assert_eq!(clock.since(begun), Duration::from_millis(100));
    assert_eq!(code(&clients.attempt(2, &update(2), "").expect("a reply")), 251, "it is over");
    assert_eq!(code(&clients.attempt(1, "commitTransaction: 1", "").expect("commits")), 0);
}

#[test]
fn one_after_the_other_is_called() {
    let mut clients = Clients::start();
    assert_eq!(code(&clients.begins(1, &update(1)).expect("nobody is in the way")), 0);
    let mut waiting = [2, 3, 4].map(|connection| waits(clients.begins(connection, &update(1))));
    let called = |waiting: &mut [Await; 3]| waiting.each_mut().map(is_over);
    assert_eq!(code(&clients.attempt(1, "commitTransaction: 1", "").expect("commits")), 0);
    assert_eq!(called(&mut waiting), [true, false, false], "the others would come in vain");
    assert_eq!(code(&clients.begins(2, &update(1)).expect("it is its turn")), 0);
    assert_eq!(called(&mut waiting), [true, false, false]);
    // A transaction that fails after its first statement also gets a turn, and no other is called before it returns.
    assert_eq!(code(&clients.begins(5, &update(2)).expect("nobody is in the way")), 0);
    assert_eq!(code(&clients.attempt(5, &update(1), "").expect("a reply")), 112);
    let mut failed = clients.0.connection(5).take_hold().expect("a wait");
    assert_eq!(code(&clients.attempt(2, "abortTransaction: 1", "").expect("aborts")), 0);
    assert_eq!(called(&mut waiting), [true, true, false]);
    // Transaction 3 is called, but its statement no longer conflicts.
    assert_eq!(code(&clients.begins(3, &update(3)).expect("nobody is in the way")), 0);
    assert_eq!(called(&mut waiting), [true, true, true]);
    assert_eq!(code(&clients.begins(4, &update(1)).expect("it is its turn")), 0);
    assert!(!is_over(&mut failed));
    assert_eq!(code(&clients.attempt(4, "commitTransaction: 1", "").expect("commits")), 0);
    assert!(is_over(&mut failed));
}

#[test]
fn a_later_statement_fails_and_its_reply_is_held_back_until_the_other_has_ended() {
    let mut clients = Clients::start();
    assert_eq!(code(&clients.begins(1, &update(1)).expect("nobody is in the way")), 0);
    assert_eq!(code(&clients.begins(2, &update(2)).expect("nobody is in the way")), 0);
    let refused = clients.attempt(2, &update(1), "").expect("a reply");
    assert_eq!((code(&refused), refused.0.is_held), (112, true));
    let mut wait = clients.0.connection(2).take_hold().expect("a wait");
    assert!(!is_over(&mut wait));
    // The documents that it had changed are free already.
    let third = clients.begins(3, &update(2)).expect("nobody is in the way");
    assert_eq!((code(&third), third.0.is_held), (0, false));
    assert_eq!(code(&clients.attempt(1, "commitTransaction: 1", "").expect("commits")), 0);
    assert!(is_over(&mut wait));
    assert_eq!(code(&clients.attempt(3, "abortTransaction: 1", "").expect("aborts")), 0);
    assert_eq!((clients.value(1), clients.value(2)), (1, 0));
}
