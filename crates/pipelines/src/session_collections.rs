//! `config.system.sessions` and `config.transactions`: the server's knowledge of sessions, for `find`, `aggregate`,
//! `count` and `distinct`. Nothing is stored for them: their documents are generated from the session table while they
//! are read, and all commands that would change them are refused.
//!
//! If a real collection has such a name, because an earlier version let clients create it, it stays an ordinary
//! collection.
//! Source: MongoDB manual 8.2, "The `config` Database"; fields as a replica set of MongoDB's shows them.

use crate::surroundings::Surroundings;
use bunko_aggregate::{DocumentStream, Pipeline};
use bunko_bson::{DocumentBuf, ValueRef};
use bunko_catalog::{Catalog, Namespace, Reading};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::Dependencies;
use bunko_oplog::{Entries, shown_term};
use bunko_session::sessions::{SHARDS, Session, SessionTable, WriteKind};
use std::sync::Arc;
use std::time::Duration;

const DATABASE: &str = "config";
/// Work units for examining a session.
const WORK_PER_SESSION: usize = 4;
/// Additional work units for reading a log record.
const WORK_PER_RECORD: usize = 16;

/// A generated collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionCollection {
    /// `system.sessions`: the sessions that no client has ended, with the time of their last use.
    Sessions,
    /// `transactions`: the last write of each session that did a retryable write or committed a transaction.
    Transactions,
}

impl SessionCollection {
    const ALL: [Self; 2] = [Self::Sessions, Self::Transactions];

    fn name(self) -> &'static str {
        match self {
            Self::Sessions => "system.sessions",
            Self::Transactions => "transactions",
        }
    }

    /// The generated collection that has this name, whatever the catalog holds.
    pub fn named(namespace: &Namespace) -> Option<Self> {
        if namespace.database() != DATABASE {
            return None;
        }
        Self::ALL.into_iter().find(|known| known.name() == namespace.collection())
    }

    /// The generated collection that a namespace resolves to.
    pub(crate) fn at(catalog: &Catalog, namespace: &Namespace) -> Option<Self> {
        Self::named(namespace).filter(|_| catalog.collection(namespace).is_none())
    }

    /// Opens the collection for a whole pipeline: no planner takes a part of it.
    /// # Errors
    /// `InvalidOptions` for reading a past state, which is not kept.
    pub(crate) fn open(self, surroundings: &Surroundings, pipeline: &Pipeline) -> Result<Box<dyn DocumentStream>> {
        if !Reading::of(&*surroundings.operation).is_present() {
            let message = format!(
                "{DATABASE}.{} shows the present only: it cannot be read with readConcern 'snapshot' or in a transaction",
                self.name()
            );
            return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
        }
        let times = match pipeline.dependencies() {
            Dependencies::All => Times::Read,
            Dependencies::Fields(fields) if fields.iter().any(|field| field.starts_with("lastWrite")) => Times::Read,
            Dependencies::Fields(_) => Times::LeftOut,
        };
        Ok(Box::new(SessionDocuments {
            collection: self,
            surroundings: surroundings.clone(),
            times,
            next_shard: 0,
            sessions: Vec::new(),
        }))
    }
}

/// The generated collections of a database.
pub fn in_database<'c>(catalog: &'c Catalog, database: &'c str) -> impl Iterator<Item = Namespace> + 'c {
    let namespaces = SessionCollection::ALL.into_iter().filter_map(|known| Namespace::new(database, known.name()).ok());
    namespaces.filter(|namespace| SessionCollection::at(catalog, namespace).is_some())
}

/// The database that has the generated collections.
pub fn database() -> &'static str {
    DATABASE
}

/// A session, as `config.system.sessions` and `$listSessions` show it. `last_use` counts from `began_ms`, which is in
/// milliseconds since 1970.
pub(crate) fn describe_session(id: &DocumentBuf, began_ms: i64, last_use: Duration) -> DocumentBuf {
    let last_use = ValueRef::DateTime(began_ms + last_use.as_millis() as i64);
    DocumentBuf::new().with("_id", id).with("lastUse", last_use)
}

/// Whether the times of writes are looked up in the log.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Times {
    Read,
    /// The times are left out, because no stage reads them.
    LeftOut,
}

/// The documents of a generated collection. Sessions are taken shard by shard, so that never all of them are in memory.
struct SessionDocuments {
    collection: SessionCollection,
    surroundings: Surroundings,
    times: Times,
    next_shard: usize,
    /// Sessions of the last shard that have not been shown.
    sessions: Vec<Arc<Session>>,
}

impl DocumentStream for SessionDocuments {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        loop {
            self.surroundings.operation.work(WORK_PER_SESSION)?;
            let Some(session) = self.sessions.pop() else {
                if self.next_shard == SHARDS {
                    return Ok(None);
                }
                self.sessions = self.table().in_shard(self.next_shard);
                self.next_shard += 1;
                continue;
            };
            let document = match self.collection {
                SessionCollection::Sessions => self.known(&session),
                SessionCollection::Transactions => self.written(&session)?,
            };
            if document.is_some() {
                return Ok(document);
            }
        }
    }
}

impl SessionDocuments {
    fn table(&self) -> &SessionTable {
        &self.surroundings.sessions
    }

    fn known(&self, session: &Session) -> Option<DocumentBuf> {
        if session.is_ended() || session.is_over() {
            return None;
        }
        let last_use = Duration::from_millis(session.last_use_ms());
        Some(describe_session(&session.id.to_document(), self.surroundings.started_at_ms, last_use))
    }

    fn written(&self, session: &Session) -> Result<Option<DocumentBuf>> {
        let Some(last) = session.last_write() else { return Ok(None) };
        let mut document = DocumentBuf::new().with("_id", &session.id.to_document()).with("txnNum", last.number);
        if let (Some(lsn), Times::Read) = (last.lsn, self.times) {
            self.surroundings.operation.work(WORK_PER_RECORD)?;
            let store = self.surroundings.catalog.store();
            if let Some((at, time_ms)) = Entries::last_time_at(store, lsn)? {
                let term = shown_term(store.term_at(lsn));
                document.append("lastWriteOpTime", &DocumentBuf::new().with("ts", at).with("t", term));
                document.append("lastWriteDate", ValueRef::DateTime(time_ms as i64));
            }
        }
        if last.kind == WriteKind::Transaction {
            document.append("state", "committed");
        }
        Ok(Some(document))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_one_database() {
        let named = |name| SessionCollection::named(&Namespace::parse(name).expect("well formed"));
        assert_eq!(named("config.system.sessions"), Some(SessionCollection::Sessions));
        assert_eq!(named("config.transactions"), Some(SessionCollection::Transactions));
        for other in ["config.settings", "config.transactions.a", "test.transactions", "admin.system.sessions"] {
            assert_eq!(named(other), None, "{other}");
        }
    }
}
