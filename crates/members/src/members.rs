//! A member of a set of several: its threads, and the questions of its server.

use crate::configuration::{agreed, timing};
use crate::core::{Core, Parts};
use crate::host::Host;
use crate::kept::Kept;
use crate::pieces::Piece;
use crate::sender::joined;
use crate::waits::{Need, Standing, Wait};
use crate::wire::{FROM_HOST, Fields, NEWS, TO_HOST, decode};
use crate::{Dial, Peer, SyncProgress, applier, clock, sync, worker};
use bunko_bson::{DocumentBuf, DocumentRef, Timestamp, ValueRef};
use bunko_catalog::{Catalog, from_storage};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_replica::{Agreement, Body, Event, MemberId, Memory, Start, Terms};
use bunko_replica_set::{ReplicaSet, set_id};
use bunko_store::{Bell, Lsn, Role};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Longest time that the end of the server waits for the last messages of its links.
const LAST_MESSAGES_TIME: Duration = Duration::from_millis(500);
const LOOK_INTERVAL: Duration = Duration::from_millis(2);

/// How often a request that waits checks whether it must end.
pub(crate) const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// The parts of a new member.
pub struct Setup {
    /// The catalog, whose store is a secondary's.
    pub catalog: Arc<Catalog>,
    /// The set.
    pub set: Arc<ReplicaSet>,
    /// The server.
    pub host: Weak<dyn Host>,
    /// Opens connections to other members.
    pub dial: Dial,
    /// The data directory.
    pub directory: PathBuf,
    /// The member's file.
    pub kept: Kept,
    /// The seed of election timeouts.
    pub seed: u64,
}

/// This server as a member of a set of several.
pub struct Members {
    core: Arc<Core>,
    is_over: Arc<AtomicBool>,
}

/// A message of another member, as it arrived.
pub struct Received<'a> {
    /// The command's body.
    pub body: DocumentRef<'a>,
    /// The documents with bytes of the log.
    pub parts: Vec<DocumentRef<'a>>,
}

/// A connection on which another member sends messages. When it ends, the agreement hears that it broke.
#[derive(Debug)]
pub struct Inbound {
    from: MemberId,
    core: Weak<Core>,
}

impl Drop for Inbound {
    fn drop(&mut self) {
        if let Some(core) = self.core.upgrade() {
            core.step(Event::Reset(self.from), None);
        }
    }
}

impl Members {
    /// Begins to take part in the set.
    /// # Errors
    /// `InvalidReplicaSetConfig` for a configuration that the agreement cannot use; `InternalError` if the system has no
    /// thread.
    pub fn start(setup: Setup) -> Result<Arc<Self>> {
        let Setup { catalog, set, host, dial, directory, mut kept, seed } = setup;
        let invalid = |reason| Failure::new(ErrorCode::INVALID_REPLICA_SET_CONFIG, reason);
        let configuration = agreed(kept.configuration.as_ref(), kept.base).map_err(invalid)?;
        let store = Arc::clone(catalog.store());
        // The only voter has no other to ask, and no other member wins a term.
        let has_others = configuration.election_quorum() > 1;
        if has_others && kept.memory == Memory::Kept && has_lost_vote(store.vote().is_some(), &store.terms()) {
            kept.memory = Memory::Lost;
            kept.write(&directory).map_err(from_storage)?;
        }
        let places = store.places();
        let start = Start {
            id: kept.id,
            seed,
            timing: timing(kept.configuration.as_ref()),
            journaled_majority: true,
            vote: store.vote().unwrap_or_default(),
            configuration,
            terms: store.terms(),
            log_start: places.start.0,
            log_end: places.end.0,
            committed: places.committed.0,
            memory: kept.memory,
        };
        if kept.memory != Memory::Kept {
            tracing::warn!(target: "REPL", id = 335, ctx = "member", "This member has lost its files: it gives no vote until the others have told it what it must know");
        }
        let document = kept.configuration.clone();
        let began = store.clock().now();
        let agreement = Agreement::new(start, 0);
        let parts = Parts { store, catalog, set, host, dial, directory, kept, began, agreement };
        let core = Arc::new(Core::new(parts));
        let members = Arc::new(Self { core, is_over: Arc::default() });
        members.begin()?;
        let failed = |reason| Failure::new(ErrorCode::INTERNAL_ERROR, reason);
        members.core.fit_links(document.as_ref()).map_err(failed)?;
        members.core.show_again();
        Ok(members)
    }

    fn begin(&self) -> Result<()> {
        let (core, is_over) = (&self.core, &self.is_over);
        let mut threads = core.threads.lock();
        let mut spawn = |name: String, work: Box<dyn FnOnce() + Send>| {
            let spawned = Builder::new().name(name).spawn(work);
            let failed = |error| Failure::new(ErrorCode::INTERNAL_ERROR, format!("cannot start a thread: {error}"));
            spawned.map(|thread| threads.push(thread)).map_err(failed)
        };
        let (own, over) = (Arc::clone(core), Arc::clone(is_over));
        spawn("agreement".to_owned(), Box::new(move || clock::run(&own, &over)))?;
        let own = Arc::clone(core);
        spawn("member".to_owned(), Box::new(move || worker::run(&own)))?;
        let (own, over) = (Arc::clone(core), Arc::clone(is_over));
        spawn("apply".to_owned(), Box::new(move || applier::run(&own, &over)))?;
        let (own, over) = (Arc::clone(core), Arc::clone(is_over));
        spawn("sync".to_owned(), Box::new(move || sync::run(&own, &over)))
    }

    /// Ends the threads, but waits for none that is connecting. The store's role stays.
    pub fn stop(&self) {
        self.is_over.store(true, Ordering::Release);
        self.core.tasks.end();
        self.core.resync.ring();
        self.core.links.read().iter().for_each(|link| link.end());
        let clock = &self.core.clock;
        let until = clock.now() + LAST_MESSAGES_TIME;
        let is_link = |thread: &JoinHandle<()>| {
            thread.thread().name().is_some_and(|name| name.starts_with("to-") || name == "sync")
        };
        let threads = std::mem::take(&mut *self.core.threads.lock());
        for thread in threads {
            while is_link(&thread) && !thread.is_finished() && clock.now() < until {
                std::thread::sleep(LOOK_INTERVAL);
            }
            if !is_link(&thread) {
                // A thread that panicked has been reported.
                let _ = thread.join();
            }
        }
    }

    /// Handles a message of another member. Returns this member's state, for the answer.
    /// # Errors
    /// `BadValue` for a malformed message; `NodeNotFound` if it is meant for another member, or comes from none;
    /// `InvalidReplicaSetConfig` if it comes from another set of the same name.
    pub fn receive(&self, received: &Received<'_>) -> Result<DocumentBuf> {
        let core = &self.core;
        let bad = |reason: String| Failure::bad_value(format!("{}: {reason}", crate::COMMAND));
        let from = self.check_sender(received.body)?;
        if let Some(link) = core.links.read().iter().find(|link| link.peer == from) {
            link.heard.note_message(core.clock.now());
        }
        let message = received.body.get("message").and_then(ValueRef::as_document);
        let message = message.map(decode).transpose().map_err(bad)?;
        let piece = received.body.get("piece").and_then(ValueRef::as_document);
        let piece = piece.map(|piece| Piece::parse(Fields(piece))).transpose().map_err(bad)?;
        let is_of_span = match &message {
            Some((message, _)) => matches!(message.body, Body::Span { .. }),
            None => piece.is_some(),
        };
        if !received.parts.is_empty() && !is_of_span {
            return Err(bad(format!("'{}' without a span", crate::PARTS)));
        }
        let brings_configuration =
            matches!(&message, Some((message, _)) if matches!(message.body, Body::Configuration(_)));
        if !self.is_member(from, received.body) && !brings_configuration {
            return self.answer_stranger(from, received.body);
        }
        if message.is_some() || piece.is_some() {
            self.check_set(received.body)?;
        }
        let mut bytes = joined(received.parts.iter().copied()).map_err(bad)?;
        if let Some(piece) = piece {
            core.pieces.add(from, piece, &bytes).map_err(bad)?;
        }
        if let Some((message, document)) = message {
            let told = if let Body::Configuration(told) = &message.body { told.term } else { 0 };
            let term = message.term.max(message.configuration.term).max(told);
            if core.is_far_ahead(term) {
                return Err(bad(format!("the term {term} is too far above this member's")));
            }
            if message.from != from {
                return Err(bad("'from' differs from the message's".to_owned()));
            }
            if document.as_ref().is_some_and(|document| set_id(document.as_ref()) != core.set.id()) {
                return Err(bad("the configuration is another set's".to_owned()));
            }
            if piece.is_some() {
                bytes = core.pieces.take();
            }
            core.receive(message, document, (!bytes.is_empty()).then_some(bytes));
        }
        Ok(core.host.upgrade().map_or_else(DocumentBuf::new, |host| host.status()))
    }

    /// The sender of a message, which must be meant for this member.
    /// # Errors
    /// `BadValue`; `NodeNotFound` if the message is meant for another member; `NotYetInitialized` if it may be meant for this one
    /// under another name, because the set has removed this one and added it again.
    pub(crate) fn check_sender(&self, body: DocumentRef<'_>) -> Result<MemberId> {
        let bad = |reason: String| Failure::bad_value(format!("{}: {reason}", crate::COMMAND));
        let (from, to) = (Fields(body).member("from").map_err(bad)?, Fields(body).member("to").map_err(bad)?);
        if to == self.core.id && has_host(body, TO_HOST, &self.core.own_host) {
            return Ok(from);
        }
        let code = if self.core.is_removed() { ErrorCode::NOT_YET_INITIALIZED } else { ErrorCode::NODE_NOT_FOUND };
        let (to, own) = (to.0, self.core.id.0);
        Err(Failure::new(code, format!("a message for member {to}, and this is member {own}, {}", self.core.own_host)))
    }

    /// Checks that a message comes from this set, and not from another one of the same name.
    fn check_set(&self, body: DocumentRef<'_>) -> Result<()> {
        if matches!(body.get("setId"), Some(ValueRef::ObjectId(id)) if id == self.core.set.id()) {
            return Ok(());
        }
        let message = format!("a message of another set '{}'", self.core.set.name());
        Err(Failure::new(ErrorCode::INVALID_REPLICA_SET_CONFIG, message))
    }

    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    /// Whether this member has lost its files, and does not remember enough to vote yet.
    pub fn has_lost_memory(&self) -> bool {
        self.core.memory() != Memory::Kept
    }

    /// The initial sync that is going on.
    pub fn sync_progress(&self) -> Option<SyncProgress> {
        self.core.progress.lock().clone()
    }

    /// Checks that a message comes from a member of this set.
    /// # Errors
    /// `NodeNotFound` for a sender that the configuration does not list; as [`Members::check_set`].
    pub(crate) fn check_membership(&self, from: MemberId, body: DocumentRef<'_>) -> Result<()> {
        if self.is_member(from, body) { self.check_set(body) } else { Err(not_listed(from)) }
    }

    /// Whether the configuration lists the sender of a message, under its name.
    fn is_member(&self, from: MemberId, body: DocumentRef<'_>) -> bool {
        self.core.links.read().iter().any(|link| link.peer == from && has_host(body, FROM_HOST, &link.host))
    }

    /// Answers a server of this set that the configuration does not list. If this member's configuration is newer, the server
    /// learns from the answer that it is removed.
    fn answer_stranger(&self, from: MemberId, body: DocumentRef<'_>) -> Result<DocumentBuf> {
        let known = Fields(body).document("stamp").and_then(Fields::stamp).map_err(|_| not_listed(from))?;
        self.check_set(body)?;
        let configuration = self.core.configuration();
        if !configuration.stamp().newer_than(known) {
            return Err(not_listed(from));
        }
        let news = DocumentBuf::new()
            .with("base", configuration.base as i64)
            .with("document", &self.core.document_of(&configuration));
        Ok(DocumentBuf::new().with(NEWS, &news))
    }

    /// Takes this server, which its set has removed, back under another id or host.
    /// # Errors
    /// `NodeNotFound` if the set has not removed it; `InvalidReplicaSetConfig` for the invitation of another set, and for one that
    /// is older than the configuration; `BadValue` for a malformed one; errors of the file.
    pub fn rejoin(&self, invitation: DocumentRef<'_>) -> Result<()> {
        let core = &self.core;
        if !core.is_removed() {
            return Err(Failure::new(ErrorCode::NODE_NOT_FOUND, "this server is a member of its set already"));
        }
        let kept = Kept::of_invitation(invitation).map_err(Failure::bad_value)?;
        let configuration = agreed(kept.configuration.as_ref(), kept.base).map_err(Failure::bad_value)?;
        // It may have heard of this configuration already, which lists it under another name.
        let is_old = core.configuration().stamp().newer_than(configuration.stamp());
        if core.is_far_ahead(configuration.term) {
            return Err(Failure::bad_value(format!("the term {} is too far above this member's", configuration.term)));
        }
        if set_id(kept.configuration.as_ref()) != core.set.id() || is_old {
            let message = "this server has data of another set of this name, or a newer configuration of it";
            return Err(Failure::new(ErrorCode::INVALID_REPLICA_SET_CONFIG, message));
        }
        // Its memory of its former life counts, whatever the invitation says.
        let next = Kept { memory: core.memory(), ..kept };
        let mut kept = core.kept.lock();
        next.write(&core.directory).map_err(from_storage)?;
        *kept = next.clone();
        drop(kept);
        tracing::info!(target: "REPL", id = 340, ctx = "member", member = next.id.0, "The set has added this server again, under another name: it starts again");
        if let Some(host) = core.host.upgrade() {
            host.restart();
        }
        Ok(())
    }

    /// Whether the set has removed this member.
    pub fn is_removed(&self) -> bool {
        self.core.is_removed()
    }

    /// Whether this member is the primary, and knows that a majority stores the configuration in use.
    pub fn is_configuration_committed(&self) -> bool {
        self.core.is_installed() == Some(true)
    }

    /// Notes that a connection belongs to another member.
    pub fn inbound(&self, body: DocumentRef<'_>) -> Option<Inbound> {
        let from = Fields(body).member("from").ok()?;
        Some(Inbound { from, core: Arc::downgrade(&self.core) })
    }

    /// The other members, as this one sees them.
    pub fn peers(&self) -> Vec<Peer> {
        self.core.links.read().iter().map(|link| link.heard.seen()).collect()
    }

    /// How far the commit point is behind the writes of this primary, in milliseconds; 0 on other members.
    pub fn commit_lag_ms(&self) -> u64 {
        self.core.commit_lag_ms.load(Ordering::Relaxed)
    }

    /// Whether a thread of this member changes the store now.
    pub fn is_changing(&self) -> bool {
        self.core.is_changing()
    }

    /// Whether a read that must see everything up to a time need not wait: this member has applied it, or is no secondary.
    pub fn has_applied(&self, time: Timestamp) -> bool {
        self.core.has_applied(time)
    }

    /// Begins the wait of a read for a time, whose bell is rung once when it is over. The caller asks
    /// [`Members::has_applied`] afterwards.
    pub fn add_wait_for_time(&self, time: Timestamp) -> Arc<Bell> {
        self.core.add_wait_for_time(time)
    }

    /// Where a write stands.
    pub fn standing(&self, wait: &Wait) -> Standing {
        self.core.standing(wait)
    }

    /// The wait of a write that ends at `end`, which the caller may add by [`Members::add_wait`]. It stands at
    /// [`Standing::SteppedDown`] if this member has left the primary's role since the write: no member may be counted
    /// for the write any more, because the next primary may not have it.
    pub fn wait_for(&self, end: Lsn, need: Need) -> Wait {
        Wait { end, need, term: self.term_led(), confirmation: None }
    }

    /// The wait of a linearizable read that has seen the log up to `end`: all of that must be committed, and a majority must
    /// confirm afterwards that this member is still the primary of the term in which the read began. So no other primary has
    /// acknowledged a write before the read began that it has not seen.
    pub fn wait_for_read(&self, end: Lsn, term: u64) -> Wait {
        Wait { end, need: Need::Majority, term, confirmation: Some(self.core.confirm_read()) }
    }

    /// The term in which this member is the primary, or 0. Elections begin with term 1.
    pub fn term_led(&self) -> u64 {
        match self.core.store.role() {
            Role::Primary { term } => term,
            Role::Secondary | Role::Standalone => 0,
        }
    }

    /// Begins a wait, whose bell is rung once when it is over. The caller asks [`Members::standing`] afterwards.
    pub fn add_wait(&self, wait: Wait) -> Arc<Bell> {
        self.core.add_wait(wait)
    }
}

/// Whether the file with the member's vote was lost: each term in its log began after it had voted, or had taken over the term
/// of another member, and both are kept before records of the term are.
fn has_lost_vote(has_vote: bool, terms: &Terms) -> bool {
    !has_vote && terms.iter().next().is_some()
}

fn not_listed(from: MemberId) -> Failure {
    let message = format!("a message of member {}, which is not in the configuration", from.0);
    Failure::new(ErrorCode::NODE_NOT_FOUND, message)
}

/// Whether a field of a message names that host. Messages of earlier versions name none.
fn has_host(body: DocumentRef<'_>, field: &str, host: &str) -> bool {
    body.get(field).is_none_or(|named| named.as_str() == Some(host))
}
