//! Transactions of a few updates and inserts. A transaction that meets a conflict begins anew, as with drivers; its
//! latency covers all its attempts.

use super::increment::matched_one;
use super::sessions::{SESSION_BYTES, Session, SessionPool};
use super::template::Template;
use super::{Answer, Assignment, Effect, Insertions, Operation, Requests};
use bunko_bson::{ArrayBuf, BinarySubtype, DocumentBuf, ValueRef};
use bunko_client::frame::{FrameWriter, ReplyMode};
use bunko_client::{CommandError, Reply};
use bunko_dataset::{Dataset, Distribution, Id, KeyStream};
use serde::{Deserialize, Serialize};
use slab::Slab;
use std::sync::Arc;

/// Maximum number of statements of each kind in one transaction.
const STATEMENTS_MAX: u64 = 1000;
/// MongoDB's codes of transient errors, after which a transaction begins anew.
const WRITE_CONFLICT: i32 = 112;
const NO_SUCH_TRANSACTION: i32 = 251;
const LOCK_TIMEOUT: i32 = 24;

/// Settings of the operation `transaction`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Transaction {
    /// Number of documents that each transaction changes, one after the other.
    #[serde(default = "two")]
    pub updates: u64,
    /// Number of documents that each transaction inserts, one after the other.
    #[serde(default = "one")]
    pub inserts: u64,
    /// The field to which an update adds 1; it holds a number.
    pub field: String,
    /// Distribution of the documents that are changed: the more uneven, the more conflicts.
    #[serde(default)]
    pub keys: Distribution,
}

fn two() -> u64 {
    2
}

fn one() -> u64 {
    1
}

impl Operation for Transaction {
    fn effects(&self) -> Vec<Effect> {
        vec![Effect::Inserts, Effect::Changes(vec![self.field.clone()])]
    }

    fn has_sessions(&self) -> bool {
        true
    }

    fn check(&self, dataset: &Dataset) -> Result<(), String> {
        let statements = self.updates + self.inserts;
        if !(1..=STATEMENTS_MAX).contains(&statements) {
            return Err(format!("updates, inserts: {statements} statements are not in 1..{STATEMENTS_MAX}"));
        }
        super::check_field(dataset, "field", &self.field)
    }

    fn start(&self, assignment: &Assignment<'_>) -> Result<Box<dyn Requests>, String> {
        Ok(Box::new(TransactionRequests {
            dataset: Arc::clone(assignment.dataset),
            insertions: Arc::clone(assignment.insertions),
            updates: self.updates,
            inserts: self.inserts,
            commands: Commands::new(assignment, &self.field),
            keys: KeyStream::new(self.keys, assignment.seed, assignment.stream),
            sessions: SessionPool::default(),
            open: Slab::new(),
        }))
    }
}

/// A transaction in progress.
struct Open {
    session: Session,
    /// Places in the dataset of the documents that it changes.
    changed: Vec<u64>,
    /// Numbers in this generator's share of the documents that it inserts.
    inserted: Vec<u64>,
}

struct TransactionRequests {
    dataset: Arc<Dataset>,
    insertions: Arc<Insertions>,
    updates: u64,
    inserts: u64,
    commands: Commands,
    keys: KeyStream,
    sessions: SessionPool,
    open: Slab<Open>,
}

/// A tag or step holds the transaction's key in the slab and the statement's number. The commit follows the last
/// statement.
const STATEMENT_BITS: u32 = 16;

fn tag(place: usize, statement: u64) -> u64 {
    (place as u64) << STATEMENT_BITS | statement
}

fn parts(tag: u64) -> (usize, u64) {
    ((tag >> STATEMENT_BITS) as usize, tag & ((1 << STATEMENT_BITS) - 1))
}

impl TransactionRequests {
    /// Appends a statement, or the commit.
    fn send(&mut self, place: usize, statement: u64, request_id: i32, out: &mut Vec<u8>) -> u64 {
        let open = &self.open[place];
        let begins = usize::from(statement == 0);
        if statement < self.updates {
            let command = &mut self.commands.update[begins];
            command.set_id(0, &self.dataset.id(open.changed[statement as usize]));
            let command = within(command, &open.session);
            FrameWriter::new(out, request_id, ReplyMode::Expected, command.command())
                .finish()
                .expect("a short command");
        } else if statement < self.updates + self.inserts {
            let index = self.insertions.index(open.inserted[(statement - self.updates) as usize]);
            let command = within(&mut self.commands.insert[begins], &open.session);
            let mut frame = FrameWriter::new(out, request_id, ReplyMode::Expected, command.command());
            frame.sequence("documents", |out| self.dataset.write(index, out));
            frame.finish().expect("a document's bytes are limited");
        } else {
            let command = within(&mut self.commands.commit, &open.session);
            FrameWriter::new(out, request_id, ReplyMode::Expected, command.command())
                .finish()
                .expect("a short command");
        }
        tag(place, statement)
    }

    /// Begins the transaction with the next number of its session.
    fn begin(&mut self, place: usize) {
        self.open[place].session.number += 1;
    }
}

impl Requests for TransactionRequests {
    fn next(&mut self, request_id: i32, out: &mut Vec<u8>) -> Option<u64> {
        let inserted = (0..self.inserts).map(|_| Some(self.insertions.take(1)?.start)).collect::<Option<Vec<_>>>()?;
        let readable = self.insertions.readable_count();
        let changed = (0..self.updates).map(|_| self.insertions.readable(self.keys.next(readable))).collect();
        let session = self.sessions.take();
        let place = self.open.insert(Open { session, changed, inserted });
        self.begin(place);
        Some(self.send(place, 0, request_id, out))
    }

    fn on_reply(&mut self, request: u64, reply: Reply<'_>) -> Result<Answer, String> {
        let (place, statement) = parts(request);
        if statement < self.updates + self.inserts {
            matched_one(reply).inspect_err(|_| drop(self.open.remove(place)))?;
            return Ok(Answer::More { documents: 0, step: tag(place, statement + 1) });
        }
        let open = self.open.remove(place);
        for number in open.inserted {
            self.insertions.acknowledge(number..number + 1);
        }
        self.sessions.give_back(open.session);
        Ok(Answer::Done { documents: self.updates + self.inserts })
    }

    fn follow(&mut self, step: u64, request_id: i32, out: &mut Vec<u8>) -> u64 {
        let (place, statement) = parts(step);
        self.send(place, statement, request_id, out)
    }

    fn again(&mut self, request: u64, error: &CommandError) -> Option<u64> {
        let (place, _) = parts(request);
        let passes = matches!(error.code, WRITE_CONFLICT | NO_SUCH_TRANSACTION | LOCK_TIMEOUT);
        passes.then(|| {
            self.begin(place);
            tag(place, 0)
        })
    }

    fn on_failure(&mut self, request: u64) {
        // The failed request's session may be in any state and is not used again.
        self.open.remove(parts(request).0);
    }
}

/// The commands, encoded once. Updates and inserts have one that continues a transaction, and one that begins it.
struct Commands {
    update: [Template; 2],
    insert: [Template; 2],
    commit: Template,
}

/// Encoded bytes between a session's id and the transaction's number that follows it.
const BETWEEN: &[u8] = b"\0\x12txnNumber\0";
/// Bytes from the first of a session's id to the last of the number.
const PLACE_BYTES: usize = SESSION_BYTES + BETWEEN.len() + size_of::<i64>();
/// Placeholder of the session's id. `Template` finds it by its bytes, so they must occur nowhere else in the command.
const PLACEHOLDER: [u8; SESSION_BYTES] = [0x7f; SESSION_BYTES];

impl Commands {
    fn new(assignment: &Assignment<'_>, field: &str) -> Self {
        let placeholder = Id::placeholder(assignment.dataset.id(0).kind());
        let increment = DocumentBuf::new().with("$inc", &DocumentBuf::new().with(field, 1_i32));
        let statement =
            DocumentBuf::new().with("q", &DocumentBuf::new().with("_id", placeholder.as_value())).with("u", &increment);
        let updates: ArrayBuf = [&statement].into_iter().collect();
        let update = DocumentBuf::new().with("update", assignment.collection).with("updates", &updates);
        let insert = DocumentBuf::new().with("insert", assignment.collection);
        let commit = DocumentBuf::new()
            .with("commitTransaction", 1)
            .with("writeConcern", &assignment.write_concern.to_document());
        let place = [PLACEHOLDER.as_slice(), BETWEEN, &0_i64.to_le_bytes()].concat();
        let later_and_first = |command: DocumentBuf| {
            [command.clone(), command.with("startTransaction", true)]
                .map(|command| inside(command, assignment.database))
        };
        Self {
            update: later_and_first(update).map(|command| Template::new(command, &placeholder).with_value(&place)),
            insert: later_and_first(insert).map(|command| Template::without_ids(command).with_value(&place)),
            commit: Template::without_ids(inside(commit, "admin")).with_value(&place),
        }
    }
}

/// Makes the command part of a transaction, with a placeholder for its session.
fn inside(command: DocumentBuf, database: &str) -> DocumentBuf {
    let session = ValueRef::Binary { subtype: BinarySubtype::UUID, bytes: &PLACEHOLDER };
    command
        .with("$db", database)
        .with("autocommit", false)
        .with("lsid", &DocumentBuf::new().with("id", session))
        .with("txnNumber", 0_i64)
}

/// Writes the session and its number into a command.
fn within<'t>(command: &'t mut Template, session: &Session) -> &'t Template {
    let place = command.value(PLACE_BYTES);
    place[..SESSION_BYTES].copy_from_slice(&session.id);
    place[PLACE_BYTES - size_of::<i64>()..].copy_from_slice(&session.number.to_le_bytes());
    command
}
