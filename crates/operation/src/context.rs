//! One operation, as whatever works for it sees it.

mod drawing;

pub use drawing::OperationDraw;

use crate::memory::{Allowance, HeldMemory, MemoryLimits};
use crate::patience::Patience;
use crate::{DiskUse, Gatherer, HelperPermit, ScratchSpace, ScriptHost, Scripting, StageLimits, WorkCounters};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_host::rest_in_crowds;
use parking_lot::Mutex;
use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Steps between two questions. A step takes about as long as a look at an element of an array, so that a question
/// comes every few microseconds and costs a hundredth of them.
const STEPS_PER_QUESTION: u32 = 512;
/// Bytes that its thread may take of the heap between two questions, beside those of one step. Every thread may take
/// as many at the same moment, before any of them is refused.
const BYTES_PER_QUESTION: i64 = 256 * 1024;
/// How long it waits for somebody else before it asks again whether it has to stop. Longer than waits are as a rule: who
/// asks again stands behind all others who wait.
const WAIT: Duration = Duration::from_millis(100);
/// How long one that only reads works until it rests, where short requests wait for processors.
const STINT: Duration = Duration::from_micros(700);
/// The same of one that writes. What it writes others flush and merge, beside it.
const STINT_OF_WRITES: Duration = Duration::from_micros(100);

/// Why an operation has to stop, other than for its memory.
pub trait Interruption: Send + Sync {
    /// `Interrupted`, `MaxTimeMSExpired` and so on, if it has to. Asked every few microseconds.
    fn reason(&self) -> Option<Failure>;
}

/// What an operation's writes belong to beyond themselves, as the crate that writes knows it.
pub type UnitOfWork = dyn Any + Send + Sync;

/// What never has to stop: the server's own work.
struct Uninterrupted;

impl Interruption for Uninterrupted {
    fn reason(&self) -> Option<Failure> {
        None
    }
}

/// Where an operation works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On a thread that serves others too, so not for long.
    SharedThread,
    /// On one that is kept for what may turn out to be short while many wait for threads of their own: until it has had a
    /// little of a processor.
    SpareThread,
    /// On a thread of its own, for as long as it likes.
    OwnThread,
}

/// What one operation may still do. It is shared by all that works for the operation, one thread at a time.
pub struct OperationContext {
    interruption: Arc<dyn Interruption>,
    /// Steps until the next question.
    steps_left: AtomicU32,
    /// The next question comes once its thread has taken so many bytes, as [`bunko_heap::taken_bytes`] counts them.
    asks_at_bytes: AtomicI64,
    /// Bytes that a stage that may go on disk may gather, as of the last question.
    stage_bytes_now: AtomicU64,
    turn: Mutex<Turn>,
    /// What the next random number is made of.
    random: AtomicU64,
    bypasses_validation: AtomicBool,
    is_kept_from_writing: AtomicBool,
    unit: OnceLock<Arc<UnitOfWork>>,
    stages: StageLimits,
    may_use_disk: AtomicBool,
    /// The collections that it made without being told to.
    created: Mutex<Vec<String>>,
    done: WorkCounters,
}

/// A thread's work for the operation, from when it enters until it leaves.
struct Turn {
    memory: HeldMemory,
    patience: Patience,
    place: Place,
    was_too_long: bool,
    has_changed: bool,
}

impl OperationContext {
    /// An operation that begins on this thread, where it may stay as long as it likes until [`Self::enter`] says
    /// otherwise.
    pub fn new(interruption: Arc<dyn Interruption>, limits: MemoryLimits) -> Arc<Self> {
        Self::within(None, interruption, limits)
    }

    /// The same, whose writes belong to that unit of work from the beginning, if there is one.
    pub fn within(
        unit: Option<Arc<UnitOfWork>>,
        interruption: Arc<dyn Interruption>,
        limits: MemoryLimits,
    ) -> Arc<Self> {
        let stages = limits.stages.clone();
        let turn = Turn {
            memory: HeldMemory::new(limits),
            patience: Patience::Endless,
            place: Place::OwnThread,
            was_too_long: false,
            has_changed: false,
        };
        Arc::new(Self {
            interruption,
            steps_left: AtomicU32::new(STEPS_PER_QUESTION),
            asks_at_bytes: AtomicI64::new(bunko_heap::taken_bytes() + BYTES_PER_QUESTION),
            stage_bytes_now: AtomicU64::new(turn.memory.stage_bytes_now()),
            turn: Mutex::new(turn),
            random: AtomicU64::new(0),
            bypasses_validation: AtomicBool::new(false),
            is_kept_from_writing: AtomicBool::new(false),
            unit: unit.map_or_else(OnceLock::new, OnceLock::from),
            may_use_disk: AtomicBool::new(stages.disk_use == DiskUse::Allowed),
            stages,
            created: Mutex::default(),
            done: WorkCounters::default(),
        })
    }

    /// Notes that it made a collection of that whole name, which nobody asked for by itself.
    pub fn note_created(&self, namespace: String) {
        self.created.lock().push(namespace);
    }

    /// The collections that have been noted since the last call.
    pub fn take_created(&self) -> Vec<String> {
        std::mem::take(&mut self.created.lock())
    }

    /// Counters of its work.
    pub fn work_done(&self) -> &WorkCounters {
        &self.done
    }

    /// An operation of the server's own, or of a test: without limits.
    pub fn unlimited() -> Arc<Self> {
        Self::new(Arc::new(Uninterrupted), MemoryLimits::none())
    }

    /// Its writes belong to that unit of work from now on; the first word counts.
    pub fn join(&self, unit: Arc<UnitOfWork>) {
        let _ = self.unit.set(unit);
    }

    /// The unit of work that its writes belong to, if they belong to a larger one than themselves.
    pub fn unit(&self) -> Option<&UnitOfWork> {
        self.unit.get().map(|unit| &**unit)
    }

    /// What its random numbers are to follow from; without it they are the same for each operation.
    pub fn seed(&self, seed: u64) {
        self.random.store(seed, Ordering::Relaxed);
    }

    /// A number from 0 up to 1, another one each time. Source: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number
    /// Generators", SplitMix64.
    pub fn random(&self) -> f64 {
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut bits = self.random.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^= bits >> 31;
        // A double holds 53 bits.
        (bits >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// This thread works for the operation from now on, which began a while ago.
    pub fn enter(&self, place: Place, began: Instant) {
        let mut turn = self.turn.lock();
        turn.memory.enter();
        self.asks_at_bytes.store(bunko_heap::taken_bytes() + BYTES_PER_QUESTION, Ordering::Relaxed);
        turn.was_too_long = false;
        turn.place = place;
        turn.patience = Patience::at(place, began);
    }

    /// This thread works for it no longer; what it made meanwhile is kept, for a cursor, but for what it gave away, such
    /// as a reply.
    pub fn leave(&self, given_away_bytes: usize) {
        self.turn.lock().memory.leave(given_away_bytes);
    }

    /// Its cursor waits for the client from now on: what it holds counts for the share of idle cursors.
    pub fn rest(&self) {
        self.turn.lock().memory.rest();
    }

    /// Its cursor waits no longer, and is gone.
    pub fn end_rest(&self) {
        self.turn.lock().memory.end_rest();
    }

    /// Bytes that it held when a thread left it last.
    pub fn kept_bytes(&self) -> u64 {
        self.turn.lock().memory.kept_bytes()
    }

    /// Something has been changed: from now on it cannot begin anew on another thread.
    pub fn note_change(&self) {
        let mut turn = self.turn.lock();
        turn.patience = Patience::Endless;
        turn.was_too_long = false;
        turn.has_changed = true;
    }

    /// What it writes need not satisfy validators from now on: `bypassDocumentValidation`.
    pub fn bypass_validation(&self) {
        self.bypasses_validation.store(true, Ordering::Relaxed);
    }

    /// Whether what it writes need not satisfy validators.
    pub fn bypasses_validation(&self) -> bool {
        self.bypasses_validation.load(Ordering::Relaxed)
    }

    /// It may not write to databases of users: `setUserWriteBlockMode`.
    pub fn keep_from_writing(&self) {
        self.is_kept_from_writing.store(true, Ordering::Relaxed);
    }

    /// Whether it may not write to databases of users.
    pub fn is_kept_from_writing(&self) -> bool {
        self.is_kept_from_writing.load(Ordering::Relaxed)
    }

    /// Bytes that one of its stages may gather in memory.
    pub fn stage_bytes_max(&self, gatherer: Gatherer) -> usize {
        usize::try_from(self.stages.bytes_max(gatherer)).unwrap_or(usize::MAX)
    }

    /// As [`Self::stage_bytes_max`], for a stage that can go on disk: fewer where little memory is left for all
    /// operations, so that the stage makes room instead of failing.
    pub fn stage_bytes_now(&self, gatherer: Gatherer) -> usize {
        let bytes_max = self.stage_bytes_max(gatherer);
        let now = usize::try_from(self.stage_bytes_now.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
        if now >= bytes_max || self.scratch().is_none() { bytes_max } else { now }
    }

    /// Says whether what its stages gather beyond that may go on disk: `allowDiskUse`.
    pub fn set_disk_use(&self, disk_use: DiskUse) {
        self.may_use_disk.store(disk_use == DiskUse::Allowed, Ordering::Relaxed);
    }

    /// Whether it may, where there is a place for it.
    pub fn disk_use(&self) -> DiskUse {
        if self.may_use_disk.load(Ordering::Relaxed) { DiskUse::Allowed } else { DiskUse::Refused }
    }

    /// Whether it may run scripts of clients.
    pub fn may_run_scripts(&self) -> bool {
        self.stages.scripting == Scripting::Allowed
    }

    /// What runs its scripts, if anything beside this process does.
    pub fn script_host(&self) -> Option<Arc<ScriptHost>> {
        self.stages.script_host.clone()
    }

    /// Goes on only on a thread of its own, whatever the time: what follows may hold its thread for long.
    /// # Errors
    /// [`Failure::too_long`] on a thread that is not its own, unless something has been changed already.
    pub fn leave_shared_thread(&self) -> Result<()> {
        let mut turn = self.turn.lock();
        if turn.place == Place::OwnThread {
            return Ok(());
        }
        if turn.patience == Patience::Endless {
            let message = "a script may not begin behind a change; send it in a command of its own";
            return Err(Failure::new(ErrorCode::ILLEGAL_OPERATION, message));
        }
        turn.was_too_long = true;
        Err(Failure::too_long())
    }

    /// Leave for one more thread to work for it, where it has one of its own, may have two, and there is one to be had.
    pub fn helper(&self) -> Option<HelperPermit> {
        let may_have_two = self.stages.workers_max > 1 && self.place() == Place::OwnThread;
        if may_have_two { self.stages.helpers.take() } else { None }
    }

    /// The operation for a thread that works beside its own: it is interrupted with it. What it holds is for its own
    /// thread to count.
    pub fn beside(&self) -> Arc<Self> {
        Self::new(Arc::clone(&self.interruption), MemoryLimits::none())
    }

    /// Where scratch files go, if it may make any.
    pub fn scratch(&self) -> Option<&Arc<dyn ScratchSpace>> {
        self.stages.scratch.as_ref().filter(|_| self.disk_use() == DiskUse::Allowed)
    }

    /// Whether it was sent to a thread of its own; then whatever came of it here is void.
    pub fn was_too_long(&self) -> bool {
        self.turn.lock().was_too_long
    }

    /// Where it works at this moment.
    pub fn place(&self) -> Place {
        self.turn.lock().place
    }

    /// When it is sent to a thread of its own, if it is: nothing may wait longer than that.
    pub fn patience_ends(&self) -> Option<Instant> {
        self.turn.lock().patience.end()
    }

    /// Until when it may wait for somebody else, a lock for one, before it asks again.
    /// # Errors
    /// As [`Self::check`].
    pub fn may_wait_until(&self) -> Result<Instant> {
        self.ask()?;
        let until = Instant::now() + WAIT;
        Ok(self.patience_ends().map_or(until, |end| end.min(until)))
    }

    /// Counts work: `steps` elements looked at, or about 64 bytes copied for each.
    /// # Errors
    /// Now and then, those of [`Self::check`].
    #[inline]
    pub fn work(&self, steps: usize) -> Result<()> {
        let left = self.steps_left.load(Ordering::Relaxed);
        let has_taken_little = bunko_heap::taken_bytes() < self.asks_at_bytes.load(Ordering::Relaxed);
        // Only the thread that works for the operation counts, so that a plain store is enough.
        match u32::try_from(steps).ok().and_then(|steps| left.checked_sub(steps)) {
            Some(left) if has_taken_little => {
                self.steps_left.store(left, Ordering::Relaxed);
                Ok(())
            }
            _ => self.question(),
        }
    }

    /// Asks before something is allocated that grows with the request: so many bytes count as held from now on until the next
    /// question finds out what has been taken. Few bytes are left to the questions of [`Self::work`].
    /// # Errors
    /// As [`Self::check`].
    #[inline]
    pub fn will_take(&self, bytes: usize) -> Result<()> {
        if bytes <= BYTES_PER_QUESTION as usize / 4 { Ok(()) } else { self.ask_for(bytes, Waiting::Allowed).map(drop) }
    }

    #[cold]
    fn question(&self) -> Result<()> {
        self.steps_left.store(STEPS_PER_QUESTION, Ordering::Relaxed);
        // Who changes something may hold locks here.
        if let (Place::OwnThread, false) = self.ask_for(0, Waiting::Allowed)? {
            rest_in_crowds(STINT);
        }
        Ok(())
    }

    /// Asks now; to be called with no lock held that short requests need. On a thread of its own it may also rest for a moment,
    /// where those wait for processors.
    /// # Errors
    /// What the interruption says; `ExceededMemoryLimit`; [`Failure::too_long`] on a thread that is not its own.
    pub fn check(&self) -> Result<()> {
        if let (Place::OwnThread, has_changed) = self.ask_for(0, Waiting::Allowed)? {
            rest_in_crowds(if has_changed { STINT_OF_WRITES } else { STINT });
        }
        Ok(())
    }

    /// Asks only, and waits for no memory: where it works, and whether it has changed something.
    fn ask(&self) -> Result<(Place, bool)> {
        self.ask_for(0, Waiting::Never)
    }

    fn ask_for(&self, more_bytes: usize, waiting: Waiting) -> Result<(Place, bool)> {
        if let Some(failure) = self.interruption.reason() {
            return Err(failure);
        }
        let mut turn = self.turn.lock();
        self.asks_at_bytes.store(bunko_heap::taken_bytes() + BYTES_PER_QUESTION, Ordering::Relaxed);
        // Where it has changed something, others may wait for it.
        let can_wait = waiting == Waiting::Allowed && !turn.has_changed && self.unit.get().is_none();
        let allowance = turn.memory.check(more_bytes, can_wait);
        self.stage_bytes_now.store(turn.memory.stage_bytes_now(), Ordering::Relaxed);
        let needs_grant = match allowance? {
            Allowance::NeedsGrant(bytes) => Some(bytes),
            Allowance::Given => None,
        };
        if turn.patience.is_over() || (needs_grant.is_some() && turn.place != Place::OwnThread) {
            turn.was_too_long = true;
            return Err(Failure::too_long());
        }
        let (place, has_changed) = (turn.place, turn.has_changed);
        drop(turn);
        if let Some(bytes) = needs_grant {
            self.wait_for_grant(bytes)?;
            self.turn.lock().memory.check(more_bytes, false)?;
        }
        Ok((place, has_changed))
    }
}

/// Whether an operation that asks may wait for memory, because it holds no lock that others need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    Allowed,
    Never,
}

/// Who can name the operation. Most writes come to their end without asking, and begin none.
pub trait OperationSource {
    /// It begins with the first call.
    fn operation(&self) -> &OperationContext;

    /// The unit of work that its writes belong to, if they belong to a larger one than themselves.
    fn unit(&self) -> Option<&UnitOfWork> {
        self.operation().unit()
    }
}

impl OperationSource for OperationContext {
    fn operation(&self) -> &OperationContext {
        self
    }
}

impl fmt::Debug for OperationContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperationContext").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patience::SHARED;
    use bunko_testkit::sleeps::sleeps;

    struct Killed;

    impl Interruption for Killed {
        fn reason(&self) -> Option<Failure> {
            Some(Failure::new(ErrorCode::INTERRUPTED, "operation was interrupted"))
        }
    }

    #[test]
    fn much_work_asks_soon() {
        let operation = OperationContext::new(Arc::new(Killed), MemoryLimits::none());
        let failure = (0..2 * STEPS_PER_QUESTION).find_map(|_| operation.work(1).err());
        assert_eq!(failure.map(|failure| failure.code()), Some(ErrorCode::INTERRUPTED));
        assert!(operation.work(usize::MAX).is_err(), "one large piece of work asks at once");
    }

    #[test]
    fn a_shared_thread_is_left_unless_something_was_changed() {
        let operation = OperationContext::unlimited();
        let long_ago = Instant::now().checked_sub(2 * SHARED).expect("a machine that has run for a while");
        operation.enter(Place::SharedThread, long_ago);
        assert!(operation.check().is_err_and(|failure| failure.is_too_long()));
        assert!(operation.was_too_long());
        operation.enter(Place::OwnThread, long_ago);
        assert!(operation.check().is_ok() && !operation.was_too_long());
        operation.enter(Place::SharedThread, long_ago);
        operation.note_change();
        assert!(operation.check().is_ok());
    }

    #[test]
    fn a_thread_of_its_own_rests_where_processors_are_crowded() {
        let crowding = bunko_host::Crowding::begin();
        let sleeps_of = |place, ask: fn(&OperationContext) -> Result<()>| {
            let operation = OperationContext::unlimited();
            let (began, before) = (Instant::now(), sleeps());
            operation.enter(place, began);
            operation.note_change();
            while began.elapsed() < Duration::from_millis(20) {
                ask(&operation).expect("nothing ends it");
            }
            sleeps() - before
        };
        let own = sleeps_of(Place::OwnThread, OperationContext::check);
        let shared = sleeps_of(Place::SharedThread, OperationContext::check);
        let amid_changes = sleeps_of(Place::OwnThread, |operation| operation.work(usize::MAX));
        drop(crowding);
        assert!(own > 10 * shared.max(amid_changes), "{own} rests, {shared} and {amid_changes} where none are due");
    }

    #[test]
    fn nothing_waits_longer_than_its_thread_may() {
        let operation = OperationContext::unlimited();
        let began = Instant::now();
        operation.enter(Place::SharedThread, began);
        assert!(operation.may_wait_until().is_ok_and(|until| until <= began + SHARED));
        operation.note_change();
        assert!(operation.may_wait_until().is_ok_and(|until| until >= began + WAIT));
        let killed = OperationContext::new(Arc::new(Killed), MemoryLimits::none());
        assert!(killed.may_wait_until().is_err());
    }
}
