//! The agreement behind its mutex, and the way of each action to the part that carries it out.

use crate::Dial;
use crate::configuration::Documents;
use crate::host::Host;
use crate::installed::Installed;
use crate::kept::Kept;
use crate::link::Link;
use crate::pieces::Pieces;
use crate::requests::Requests;
use crate::sync_progress::SyncProgress;
use crate::tasks::{Task, Tasks};
use crate::waits::{Confirmation, IsConfirmed, Standing, Wait, Waits};
use bunko_bson::{DocumentBuf, Timestamp};
use bunko_catalog::Catalog;
use bunko_replica::{Action, Agreement, Body, Event, Fatal, MemberId, Memory, Message, State, Term};
use bunko_replica_set::{MemberState, ReplicaSet, Seen};
use bunko_store::{Bell, Clock, Lsn, Role, Store};
use parking_lot::{Mutex, RwLock};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Maximum number of terms by which a message may be ahead of this member. Elections a second apart would take a century
/// to reach it. A forged term near the largest number would end all elections.
const TERM_JUMP_MAX: Term = u32::MAX as Term;

/// Interval at which the thread that holds the log checks whether other threads have finished their changes.
const HOLD_INTERVAL: Duration = Duration::from_millis(2);

/// A member's state, and the parts that carry out actions.
pub(crate) struct Core {
    pub(crate) id: MemberId,
    /// `host:port` under which the set knows this member.
    pub(crate) own_host: String,
    pub(crate) store: Arc<Store>,
    pub(crate) clock: Clock,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) set: Arc<ReplicaSet>,
    pub(crate) host: Weak<dyn Host>,
    pub(crate) dial: Dial,
    pub(crate) directory: PathBuf,
    pub(crate) tasks: Tasks,
    pub(crate) requests: Requests,
    pub(crate) links: RwLock<Vec<Arc<Link>>>,
    /// The threads of the links, and the others.
    pub(crate) threads: Mutex<Vec<JoinHandle<()>>>,
    /// The members that a configuration adds which this member proposes, and that configuration's label.
    pub(crate) added: Mutex<(u64, Vec<MemberId>)>,
    pub(crate) kept: Mutex<Kept>,
    pub(crate) pieces: Pieces,
    /// Whether the last records of the primary could not be appended.
    pub(crate) appends_fail: AtomicBool,
    /// Number of threads that change the store for the primary of another member.
    changing: AtomicUsize,
    /// Whether no thread may change the store any more, because an image takes its place.
    is_log_held: AtomicBool,
    /// Whether an action has failed and is tried again.
    pub(crate) retries: AtomicBool,
    /// Rung when this member's data cannot follow the primary's log any more, and at the end.
    pub(crate) resync: Arc<Bell>,
    /// The initial sync that is going on.
    pub(crate) progress: Mutex<Option<SyncProgress>>,
    /// Members that refuse messages because they are in no set, and since when.
    pub(crate) strangers: Mutex<Vec<(MemberId, Instant)>>,
    pub(crate) waits: Waits<Wait>,
    /// Reads that wait until this secondary has applied everything up to a time.
    pub(crate) waits_for_times: Waits<Timestamp>,
    /// Linearizable reads that a majority has not confirmed yet, each under its token. The agreement ends each of them.
    reads: Mutex<HashMap<u64, Arc<Confirmation>>>,
    last_token: AtomicU64,
    /// The commit point, as the agreement told it last.
    committed: AtomicU64,
    /// How far the commit point is behind this primary's writes, in milliseconds; 0 on other members.
    pub(crate) commit_lag_ms: AtomicU64,
    /// When the member started.
    pub(crate) began: Instant,
    pub(crate) held: Mutex<Held>,
}

/// The agreement, and what changes with it.
pub(crate) struct Held {
    pub(crate) agreement: Agreement,
    /// Reused by each step.
    actions: Vec<Action>,
    /// The last term that the agreement knows to be in the log.
    logged: Term,
    /// Where the log began when the agreement was told last.
    log_start: Lsn,
    /// Number of changes of role that the thread `member` has not finished.
    role_changes: usize,
    pub(crate) documents: Documents,
    pub(crate) installed: Installed,
    /// Whether the data with which the set began are applied.
    has_base: bool,
    /// The primary's first commit point that a member heard which began without data: it serves no reads before it has applied
    /// that much.
    catches_up_to: Option<u64>,
    /// Whether this member's log is too old to be continued by the primary's.
    needs_resync: bool,
    seen: Seen,
}

impl Held {
    /// The end of the data without which this member serves no reads.
    fn first_data_end(&self) -> u64 {
        self.agreement.configuration().base.max(self.catches_up_to.unwrap_or(0))
    }
}

/// The parts of a new core.
pub(crate) struct Parts {
    pub(crate) store: Arc<Store>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) set: Arc<ReplicaSet>,
    pub(crate) host: Weak<dyn Host>,
    pub(crate) dial: Dial,
    pub(crate) directory: PathBuf,
    pub(crate) kept: Kept,
    pub(crate) began: Instant,
    pub(crate) agreement: Agreement,
}

impl Core {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts { store, catalog, set, host, dial, directory, kept, began, agreement } = parts;
        let logged = agreement.terms().iter().next_back().map_or(0, |(term, _)| term);
        Self {
            id: agreement.id(),
            tasks: Tasks::default(),
            requests: Requests::default(),
            links: RwLock::default(),
            threads: Mutex::default(),
            added: Mutex::default(),
            own_host: kept.host.clone(),
            appends_fail: AtomicBool::new(false),
            changing: AtomicUsize::new(0),
            is_log_held: AtomicBool::new(false),
            retries: AtomicBool::new(false),
            resync: Arc::default(),
            progress: Mutex::default(),
            strangers: Mutex::default(),
            waits: Waits::default(),
            waits_for_times: Waits::default(),
            reads: Mutex::default(),
            last_token: AtomicU64::new(0),
            committed: AtomicU64::new(agreement.committed()),
            commit_lag_ms: AtomicU64::new(0),
            held: Mutex::new(Held {
                actions: Vec::new(),
                logged,
                log_start: store.places().start,
                role_changes: 0,
                documents: Documents::new(kept.configuration.clone()),
                installed: Installed::default(),
                has_base: false,
                catches_up_to: (store.places().end == Lsn(0)).then_some(u64::MAX),
                needs_resync: false,
                seen: Seen::default(),
                agreement,
            }),
            kept: Mutex::new(kept),
            pieces: Pieces::default(),
            began,
            clock: store.clock().clone(),
            store,
            catalog,
            set,
            host,
            dial,
            directory,
        }
    }

    /// Milliseconds since the member started.
    pub(crate) fn now_ms(&self) -> u64 {
        self.clock.since(self.began).as_millis() as u64
    }

    /// Tells the agreement of an event, and passes its actions on. `bytes` of the log came with a message.
    pub(crate) fn step(&self, event: Event, bytes: Option<Vec<u8>>) {
        self.step_held(&mut self.held.lock(), event, bytes);
    }

    pub(crate) fn step_held(&self, held: &mut Held, event: Event, mut bytes: Option<Vec<u8>>) {
        let mut actions = std::mem::take(&mut held.actions);
        held.agreement.step(self.now_ms(), event, &mut actions);
        held.installed.note(&held.agreement);
        for action in actions.drain(..) {
            self.pass_on(held, action, &mut bytes);
        }
        held.actions = actions;
        self.show(held);
        if self.waits.are_any() {
            self.waits.end(|wait| self.standing_of(held, wait) != Standing::Waits);
        }
    }

    /// As [`Core::step`], for a message that may bring the document of its configuration.
    pub(crate) fn receive(&self, message: Message, document: Option<DocumentBuf>, bytes: Option<Vec<u8>>) {
        let mut held = self.held.lock();
        if self.comes_too_early(&held, &message) {
            return;
        }
        if let Some(document) = document {
            held.documents.note(document);
        }
        if let (Body::Heartbeat { commit, .. }, Some(u64::MAX)) = (&message.body, held.catches_up_to) {
            held.catches_up_to = Some(*commit);
        }
        self.step_held(&mut held, Event::Received(message), bytes);
    }

    /// Whether a message must be dropped because it says how far this log equals another primary's, while this member may
    /// still write records of its own. The agreement takes over the commit point as far as the logs are equal, and would
    /// count such records as part of them. Until the thread `member` has carried out a step-down, clients may write; and a
    /// record that was written before may not be in the kernel yet. The other primary sends its span again.
    fn comes_too_early(&self, held: &Held, message: &Message) -> bool {
        let agreement = &held.agreement;
        if !matches!(message.body, Body::Span { .. }) {
            return false;
        }
        if agreement.state() == State::Primary {
            return message.term > agreement.term();
        }
        held.role_changes > 0 || self.store.last_position().end != agreement.position().end
    }

    /// Notes that the thread `member` has finished a change of role.
    pub(crate) fn note_role(&self) {
        self.held.lock().role_changes -= 1;
    }

    /// Whether the configuration in use does not list this member.
    pub(crate) fn is_removed(&self) -> bool {
        self.held.lock().agreement.configuration().member(self.id).is_none()
    }

    /// Whether this member is the primary, as the agreement knows.
    pub(crate) fn is_primary(&self) -> bool {
        self.held.lock().agreement.state() == State::Primary
    }

    fn pass_on(&self, held: &mut Held, action: Action, bytes: &mut Option<Vec<u8>>) {
        match action {
            Action::Send { to, message } => {
                if let Some(link) = self.links.read().iter().find(|link| link.peer == to) {
                    link.post(message);
                }
            }
            Action::SaveVote(vote) => self.tasks.put(Task::SaveVote(vote)),
            Action::Keep(configuration) => {
                let document = held.documents.of(&configuration);
                self.tasks.put(Task::Keep(configuration, document));
            }
            Action::BecomePrimary { term } => {
                held.role_changes += 1;
                // The others follow this member's log now.
                (held.needs_resync, held.catches_up_to) = (false, None);
                self.tasks.put(Task::BecomePrimary(term));
            }
            Action::StepDown { .. } => {
                held.role_changes += 1;
                self.tasks.put(Task::StepDown);
            }
            Action::PauseWrites => self.set.pause_writes(),
            Action::ResumeWrites => self.set.resume_writes(),
            Action::Append { .. } => {
                // The logs fit together again.
                held.needs_resync = false;
                if let Some(bytes) = bytes.take() {
                    self.tasks.put_append(held.agreement.position(), bytes);
                }
            }
            Action::Truncate(position) => self.tasks.put(Task::Truncate(position)),
            Action::Remembered => self.tasks.put(Task::Remember),
            Action::Resync { start } => self.note_resync(held, start),
            Action::Committed(end) => {
                self.committed.store(end, Ordering::Release);
                self.store.set_committed(Lsn(end));
            }
            Action::Refused(refused) => self.requests.refuse(refused),
            Action::Fatal(fatal) => note_fatal(fatal),
            Action::ReadConfirmed { token, .. } => self.end_read(token, IsConfirmed::Yes),
            Action::ReadRefused { token } => self.end_read(token, IsConfirmed::No),
        }
    }

    /// Notes that this member's data cannot follow the primary's log.
    pub(crate) fn need_resync(&self) {
        let mut held = self.held.lock();
        held.needs_resync = true;
        self.resync.ring();
        self.show(&mut held);
    }

    /// Whether this member's data cannot follow the primary's log.
    pub(crate) fn needs_resync(&self) -> bool {
        self.held.lock().needs_resync
    }

    /// The primary that this member knows.
    pub(crate) fn primary(&self) -> Option<MemberId> {
        self.held.lock().agreement.primary()
    }

    /// Whether this member remembers its votes and what it had acknowledged.
    pub(crate) fn memory(&self) -> Memory {
        self.held.lock().agreement.memory()
    }

    fn note_resync(&self, held: &mut Held, start: u64) {
        if !held.needs_resync {
            held.needs_resync = true;
            self.resync.ring();
            tracing::warn!(target: "REPL", id = 302, ctx = "member", start, "The primary's log does not reach back to the end of this member's: it needs an initial sync");
        }
    }

    /// Tells the agreement how far the log is.
    pub(crate) fn note_log(&self) {
        let mut held = self.held.lock();
        let (position, places) = (self.store.last_position(), self.store.places());
        if position.term > held.logged {
            let logged = held.logged;
            for (term, at) in self.store.terms().iter().filter(|(term, _)| *term > logged) {
                held.logged = term;
                self.step_held(&mut held, Event::TermBegan { term, at }, None);
            }
        }
        if places.start != held.log_start {
            held.log_start = places.start;
            self.step_held(&mut held, Event::Reclaimed { start: places.start.0 }, None);
        }
        let (written, synced) = (places.written.0, places.synced.0);
        self.step_held(&mut held, Event::LogMoved { written, synced }, None);
    }

    /// Tells the agreement that the log was cut.
    pub(crate) fn note_truncation(&self, end: u64) {
        let mut held = self.held.lock();
        held.logged = self.store.last_position().term;
        self.step_held(&mut held, Event::Truncated { end }, None);
    }

    /// Tells the agreement that time has passed, if it waits for that. Returns when it waits for the next time.
    pub(crate) fn tick(&self) -> Instant {
        let mut held = self.held.lock();
        if self.now_ms() >= held.agreement.wake_at() {
            self.step_held(&mut held, Event::Tick, None);
        }
        self.began + Duration::from_millis(held.agreement.wake_at())
    }

    /// Shows clients what has changed.
    fn show(&self, held: &mut Held) {
        if !held.has_base {
            held.has_base = self.store.visible_end().0 >= held.first_data_end();
        }
        let seen = self.seen(held);
        if seen != held.seen {
            held.seen = seen.clone();
            self.set.show(seen);
        }
    }

    fn seen(&self, held: &Held) -> Seen {
        let agreement = &held.agreement;
        let state = match agreement.state() {
            State::Primary if matches!(self.store.role(), Role::Primary { .. }) => MemberState::Primary,
            State::Arbiter => MemberState::Arbiter,
            State::Removed => MemberState::Removed,
            State::Stopped => MemberState::Recovering,
            State::Primary | State::Secondary | State::Candidate => match (held.has_base, held.needs_resync) {
                (true, false) => MemberState::Secondary,
                (false, _) | (_, true) => MemberState::Startup2,
            },
        };
        // A new primary is told once it takes writes.
        let primary = agreement.primary().filter(|id| *id != self.id || state == MemberState::Primary);
        Seen { state, primary: primary.map(|id| id.0), term: agreement.term() }
    }

    /// Updates the state that clients see, after the store has changed.
    pub(crate) fn show_again(&self) {
        self.show(&mut self.held.lock());
    }

    /// Lets a thread change the store, unless the files or the log are held.
    pub(crate) fn begin_change(&self) -> Option<Change<'_>> {
        // Sequentially consistent, so that the thread that holds files or log sees this change, or this thread sees that they are held.
        self.changing.fetch_add(1, Ordering::SeqCst);
        let change = Change(&self.changing);
        let are_files_held = || self.host.upgrade().is_some_and(|host| host.are_files_held());
        let is_held = self.is_log_held.load(Ordering::SeqCst) || are_files_held();
        (!is_held).then_some(change)
    }

    /// Lets no other thread change the store from now on, and waits until running changes end. Returns this thread's own
    /// change; `None` while the files or the log are held.
    pub(crate) fn hold_log(&self) -> Option<Change<'_>> {
        let own = self.begin_change()?;
        self.is_log_held.store(true, Ordering::SeqCst);
        while self.changing.load(Ordering::SeqCst) > 1 {
            std::thread::sleep(HOLD_INTERVAL);
        }
        Some(own)
    }

    /// Ends [`Core::hold_log`].
    pub(crate) fn release_log(&self) {
        self.is_log_held.store(false, Ordering::SeqCst);
    }

    /// Whether a thread changes the store.
    pub(crate) fn is_changing(&self) -> bool {
        self.changing.load(Ordering::SeqCst) > 0
    }

    /// Whether a term is so far above this member's that elections cannot have reached it.
    pub(crate) fn is_far_ahead(&self, term: Term) -> bool {
        term > self.held.lock().agreement.term().saturating_add(TERM_JUMP_MAX)
    }

    /// Whether this member still is to be the primary of a term.
    pub(crate) fn is_to_lead(&self, term: Term) -> bool {
        let held = self.held.lock();
        held.agreement.state() == State::Primary && held.agreement.term() == term
    }

    /// The commit point, which may lie beyond what is applied.
    pub(crate) fn committed(&self) -> Lsn {
        Lsn(self.committed.load(Ordering::Acquire))
    }

    /// A delayed member applies no record yet that was written after this time, in milliseconds since 1970, and that ends above
    /// this position. It gets the data without a delay with which the set, or its part in it, began. It keeps its delay when
    /// the set removes it: its past may be the reason why it is removed.
    pub(crate) fn applies_until(&self) -> Option<(u64, Lsn)> {
        let member = self.set.member();
        let delay_secs = member.own().map_or_else(|| self.kept.lock().delay_secs, |own| own.delay_secs);
        let until_ms = || self.clock.now_ms().saturating_sub(delay_secs.saturating_mul(1000));
        (delay_secs > 0).then(|| (until_ms(), Lsn(self.held.lock().first_data_end())))
    }

    /// Asks the others whether this member is still the primary.
    pub(crate) fn confirm_read(&self) -> Arc<Confirmation> {
        let token = self.last_token.fetch_add(1, Ordering::Relaxed);
        let confirmation = Arc::<Confirmation>::default();
        self.reads.lock().insert(token, Arc::clone(&confirmation));
        self.step(Event::Read { token }, None);
        confirmation
    }

    fn end_read(&self, token: u64, is_confirmed: IsConfirmed) {
        if let Some(confirmation) = self.reads.lock().remove(&token) {
            confirmation.end(is_confirmed);
        }
    }
}

/// A change of the store that a thread makes; it ends with this value.
pub(crate) struct Change<'a>(&'a AtomicUsize);

impl Drop for Change<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn note_fatal(fatal: Fatal) {
    let reason = match fatal {
        Fatal::DivergedBelowCommit { at, committed } => {
            format!(
                "the primary's log parts from this one at {} in term {}, and {committed} is committed",
                at.end, at.term
            )
        }
        Fatal::TwoPrimaries { term, other } => format!("member {} is primary in term {term} too", other.0),
    };
    tracing::error!(target: "REPL", id = 303, ctx = "member", reason, "This member no longer takes part in its set");
}
