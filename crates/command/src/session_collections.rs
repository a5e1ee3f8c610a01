//! `config.system.sessions` and `config.transactions`: what the server knows of sessions, for `find`, `aggregate`, `count`
//! and `distinct`. Nothing is stored for them: the documents are made of the table of sessions while they are read, and all
//! commands that would change them are refused.
//!
//! A collection that is really there under such a name, from a version that let clients make it, is what it was.
//! Source: MongoDB manual 8.2, "The `config` Database"; fields as a replica set of MongoDB's shows them.

use crate::sessions::{SHARDS, Session, SessionTable, WriteKind};
use crate::source_stages::Surroundings;
use bunko_aggregate::{DocumentStream, Pipeline};
use bunko_bson::{DocumentBuf, ValueRef};
use bunko_catalog::{Catalog, Namespace, Reading};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::Dependencies;
use bunko_oplog::{Entries, TERM};
use std::sync::Arc;
use std::time::Duration;

const DATABASE: &str = "config";
/// How much work it is to look at a session.
const WORK_PER_SESSION: usize = 4;
/// How much more it is to read a record of the log.
const WORK_PER_RECORD: usize = 16;

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionCollection {
    /// `system.sessions`: the sessions that no client has ended, and when each was used last.
    Sessions,
    /// `transactions`: what each session that wrote retryably or committed a transaction wrote last.
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

    /// The one that a name is kept for.
    pub(crate) fn named(namespace: &Namespace) -> Option<Self> {
        if namespace.database() != DATABASE {
            return None;
        }
        Self::ALL.into_iter().find(|known| known.name() == namespace.collection())
    }

    /// The one that a namespace leads to.
    pub(crate) fn at(catalog: &Catalog, namespace: &Namespace) -> Option<Self> {
        Self::named(namespace).filter(|_| catalog.collection(namespace).is_none())
    }

    /// Opens it under a pipeline, of which the planner has taken nothing.
    /// # Errors
    /// `InvalidOptions` where a past state is read, which is not kept.
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

/// Those that a database has.
pub(crate) fn in_database<'c>(catalog: &'c Catalog, database: &'c str) -> impl Iterator<Item = Namespace> + 'c {
    let namespaces = SessionCollection::ALL.into_iter().filter_map(|known| Namespace::new(database, known.name()).ok());
    namespaces.filter(|namespace| SessionCollection::at(catalog, namespace).is_some())
}

/// The database that has them.
pub(crate) fn database() -> &'static str {
    DATABASE
}

/// A session as `config.system.sessions` and `$listSessions` show it: when it was used last is told from a moment on, in
/// milliseconds since 1970.
pub(crate) fn describe_session(id: &DocumentBuf, began_ms: i64, last_use: Duration) -> DocumentBuf {
    let last_use = ValueRef::DateTime(began_ms + last_use.as_millis() as i64);
    DocumentBuf::new().with("_id", id).with("lastUse", last_use)
}

/// Whether the times of writes are looked up in the log.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Times {
    Read,
    /// No stage looks at them.
    LeftOut,
}

/// The documents of one of them. Sessions are taken shard by shard, so that of many there are never all at hand.
struct SessionDocuments {
    collection: SessionCollection,
    surroundings: Surroundings,
    times: Times,
    next_shard: usize,
    /// Those of the shard before that are yet to be shown.
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
            if let Some((at, time_ms)) = Entries::last_time_at(self.surroundings.catalog.store(), lsn)? {
                document.append("lastWriteOpTime", &DocumentBuf::new().with("ts", at).with("t", TERM));
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
