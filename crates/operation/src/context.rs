//! One operation: its limits and state, as code that works for it sees them.

mod drawing;

pub use drawing::OperationDraw;

use crate::memory::{Allowance, HeldMemory, MemoryLimits};
use crate::patience::{Patience, RunOn};
use crate::{DiskUse, Gatherer, HelperPermit, ScratchSpace, ScriptHost, Scripting, StageLimits, WorkCounters};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_host::{Clock, rest_in_crowds};
use parking_lot::Mutex;
use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Steps between two checks. A step takes about as long as reading an element of an array, so a check comes every few
/// microseconds and costs a hundredth of them.
const STEPS_PER_QUESTION: u32 = 512;
/// Bytes of heap that the operation's thread may take between two checks, besides those of one step. All threads may
/// take as many at the same moment, before any of them is refused.
const BYTES_PER_QUESTION: i64 = 256 * 1024;
/// How long the operation waits, for a lock for example, before it checks again whether it must stop. Longer than most
/// waits, because an operation that asks for the lock again goes to the end of the queue.
const WAIT: Duration = Duration::from_millis(100);
/// How long an operation that only reads works between two rests, while short requests wait for processors.
const STINT: Duration = Duration::from_micros(700);
/// How long an operation that writes works between two rests. Other threads flush and merge its writes meanwhile.
const STINT_OF_WRITES: Duration = Duration::from_micros(100);

/// Reasons to stop an operation, other than its memory.
pub trait Interruption: Send + Sync {
    /// The failure to stop with, such as `Interrupted` or `MaxTimeMSExpired`; `None` to go on. Called every few
    /// microseconds.
    fn reason(&self) -> Option<Failure>;

    /// The clock of the operation's deadlines, by which the operation also limits its waits.
    fn clock(&self) -> Clock {
        Clock::machine()
    }
}

/// The larger unit that an operation's writes belong to, such as a transaction. The crate that writes knows its type.
pub type UnitOfWork = dyn Any + Send + Sync;

/// The interruption of the server's own operations, which never stops them.
struct Uninterrupted;

impl Interruption for Uninterrupted {
    fn reason(&self) -> Option<Failure> {
        None
    }
}

/// The state and limits of one operation, shared by all code that works for it. One thread at a time works for it.
pub struct OperationContext {
    interruption: Arc<dyn Interruption>,
    clock: Clock,
    /// Steps until the next check.
    steps_left: AtomicU32,
    /// The next check comes once the thread has taken this many bytes, as counted by [`bunko_heap::taken_bytes`].
    asks_at_bytes: AtomicI64,
    /// Bytes that a stage that can spill may gather, as of the last check.
    stage_bytes_now: AtomicU64,
    turn: Mutex<ThreadStint>,
    /// The state of the random number generator.
    random: AtomicU64,
    bypasses_validation: AtomicBool,
    is_kept_from_writing: AtomicBool,
    unit: OnceLock<Arc<UnitOfWork>>,
    stages: StageLimits,
    may_use_disk: AtomicBool,
    /// The collections that the operation created implicitly.
    created: Mutex<Vec<String>>,
    done: WorkCounters,
}

/// A thread's work for the operation, between `enter` and `leave`.
struct ThreadStint {
    memory: HeldMemory,
    patience: Patience,
    run_on: RunOn,
    was_too_long: bool,
    has_changed: bool,
}

impl OperationContext {
    /// An operation that begins on this thread. It may stay for any time, until [`Self::enter`] names another thread.
    pub fn new(interruption: Arc<dyn Interruption>, limits: MemoryLimits) -> Arc<Self> {
        Self::within(None, interruption, limits)
    }

    /// As [`Self::new`], with the unit of work that the operation's writes belong to, if there is one.
    pub fn within(
        unit: Option<Arc<UnitOfWork>>,
        interruption: Arc<dyn Interruption>,
        limits: MemoryLimits,
    ) -> Arc<Self> {
        let MemoryLimits { operation_bytes_max, server, prepaid_bytes, stages } = limits;
        let memory = HeldMemory::new(server, operation_bytes_max, prepaid_bytes);
        let stage_bytes_now = memory.stage_bytes_now();
        Arc::new(Self {
            clock: interruption.clock(),
            interruption,
            steps_left: AtomicU32::new(STEPS_PER_QUESTION),
            asks_at_bytes: AtomicI64::new(bunko_heap::taken_bytes() + BYTES_PER_QUESTION),
            stage_bytes_now: AtomicU64::new(stage_bytes_now),
            turn: Mutex::new(ThreadStint {
                memory,
                patience: Patience::Endless,
                run_on: RunOn::OwnThread,
                was_too_long: false,
                has_changed: false,
            }),
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

    /// Notes the full name of a collection that was created implicitly.
    pub fn note_created(&self, namespace: String) {
        self.created.lock().push(namespace);
    }

    /// The collections noted since the last call.
    pub fn take_created(&self) -> Vec<String> {
        std::mem::take(&mut self.created.lock())
    }

    /// The clock by which the operation measures time.
    #[inline]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Counters of the operation's work.
    pub fn work_done(&self) -> &WorkCounters {
        &self.done
    }

    /// An operation of the server itself, or of a test, without limits.
    pub fn unlimited() -> Arc<Self> {
        Self::new(Arc::new(Uninterrupted), MemoryLimits::none())
    }

    /// Joins a unit of work. Only the first call counts.
    pub fn join(&self, unit: Arc<UnitOfWork>) {
        let _ = self.unit.set(unit);
    }

    /// The unit of work that the operation's writes belong to; `None` if they belong to none.
    pub fn unit(&self) -> Option<&UnitOfWork> {
        self.unit.get().map(|unit| &**unit)
    }

    /// Seeds the random numbers. Without a seed they are equal for all operations.
    pub fn seed(&self, seed: u64) {
        self.random.store(seed, Ordering::Relaxed);
    }

    /// The next random number, from 0 to below 1.
    /// Source: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", SplitMix64.
    pub fn random(&self) -> f64 {
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut bits = self.random.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^= bits >> 31;
        // A double holds 53 bits exactly.
        (bits >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Begins this thread's work for the operation, which started at `began`.
    pub fn enter(&self, run_on: RunOn, began: Instant) {
        let mut turn = self.turn.lock();
        turn.memory.enter();
        self.asks_at_bytes.store(bunko_heap::taken_bytes() + BYTES_PER_QUESTION, Ordering::Relaxed);
        turn.was_too_long = false;
        turn.run_on = run_on;
        turn.patience = Patience::at(run_on, began, &self.clock);
    }

    /// Ends this thread's work. Memory that the thread still holds counts for a later batch of the cursor, except
    /// `given_away_bytes`, such as a reply.
    pub fn leave(&self, given_away_bytes: usize) {
        self.turn.lock().memory.leave(given_away_bytes);
    }

    /// Notes that the operation's cursor begins to wait for the client: its memory now counts for the share of idle
    /// cursors.
    pub fn rest(&self) {
        self.turn.lock().memory.rest();
    }

    /// Notes that the operation's waiting cursor was closed: its memory no longer counts for the share of idle cursors.
    pub fn end_rest(&self) {
        self.turn.lock().memory.end_rest();
    }

    /// Bytes that the operation held when a thread last left it.
    pub fn kept_bytes(&self) -> u64 {
        self.turn.lock().memory.kept_bytes()
    }

    /// Notes a change: from now on the operation cannot restart on another thread.
    pub fn note_change(&self) {
        let mut turn = self.turn.lock();
        turn.patience = Patience::Endless;
        turn.was_too_long = false;
        turn.has_changed = true;
    }

    /// Lets the operation's writes skip validators: `bypassDocumentValidation`.
    pub fn bypass_validation(&self) {
        self.bypasses_validation.store(true, Ordering::Relaxed);
    }

    /// Whether the operation's writes skip validators.
    pub fn bypasses_validation(&self) -> bool {
        self.bypasses_validation.load(Ordering::Relaxed)
    }

    /// Forbids writes to databases of users: `setUserWriteBlockMode`.
    pub fn keep_from_writing(&self) {
        self.is_kept_from_writing.store(true, Ordering::Relaxed);
    }

    /// Whether the operation must not write to databases of users.
    pub fn is_kept_from_writing(&self) -> bool {
        self.is_kept_from_writing.load(Ordering::Relaxed)
    }

    /// Bytes that one stage of the operation may hold in memory.
    pub fn stage_bytes_max(&self, gatherer: Gatherer) -> usize {
        usize::try_from(self.stages.bytes_max(gatherer)).unwrap_or(usize::MAX)
    }

    /// As [`Self::stage_bytes_max`], for a stage that can spill. Fewer bytes while memory is short for all operations,
    /// so that the stage spills instead of failing.
    pub fn stage_bytes_now(&self, gatherer: Gatherer) -> usize {
        let bytes_max = self.stage_bytes_max(gatherer);
        let now = usize::try_from(self.stage_bytes_now.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
        if now >= bytes_max || self.scratch().is_none() { bytes_max } else { now }
    }

    /// Sets whether stages may spill to disk: `allowDiskUse`.
    pub fn set_disk_use(&self, disk_use: DiskUse) {
        self.may_use_disk.store(disk_use == DiskUse::Allowed, Ordering::Relaxed);
    }

    /// Whether stages may spill to disk, if there is scratch space.
    pub fn disk_use(&self) -> DiskUse {
        if self.may_use_disk.load(Ordering::Relaxed) { DiskUse::Allowed } else { DiskUse::Refused }
    }

    /// Whether the operation may run scripts of clients.
    pub fn may_run_scripts(&self) -> bool {
        self.stages.scripting == Scripting::Allowed
    }

    /// The host of the operation's scripts; `None` if they run in this process.
    pub fn script_host(&self) -> Option<Arc<ScriptHost>> {
        self.stages.script_host.clone()
    }

    /// Sends the operation to a thread of its own now, because its next step may hold a thread for long.
    /// # Errors
    /// [`Failure::too_long`] on a thread that is not its own; `IllegalOperation` there once something has been changed.
    pub fn leave_shared_thread(&self) -> Result<()> {
        let mut turn = self.turn.lock();
        if turn.run_on == RunOn::OwnThread {
            return Ok(());
        }
        if turn.patience == Patience::Endless {
            let message = "a script may not begin after a change; send it in a command of its own";
            return Err(Failure::new(ErrorCode::ILLEGAL_OPERATION, message));
        }
        turn.was_too_long = true;
        Err(Failure::too_long())
    }

    /// A permit for a second thread, if the operation has its own thread, may use two, and a permit is free.
    pub fn helper(&self) -> Option<HelperPermit> {
        let may_have_two = self.stages.workers_max > 1 && self.run_on() == RunOn::OwnThread;
        if may_have_two { self.stages.helpers.take() } else { None }
    }

    /// An operation for this one's second thread. Both are interrupted together; the memory of the second thread counts
    /// for this operation's own thread.
    pub fn beside(&self) -> Arc<Self> {
        Self::new(Arc::clone(&self.interruption), MemoryLimits::none())
    }

    /// The place of scratch files; `None` if the operation may make none.
    pub fn scratch(&self) -> Option<&Arc<dyn ScratchSpace>> {
        self.stages.scratch.as_ref().filter(|_| self.disk_use() == DiskUse::Allowed)
    }

    /// Whether the operation was sent to a thread of its own. Any result of this run is then void.
    pub fn was_too_long(&self) -> bool {
        self.turn.lock().was_too_long
    }

    /// The kind of thread that the operation works on now.
    pub fn run_on(&self) -> RunOn {
        self.turn.lock().run_on
    }

    /// The time when the operation is sent to a thread of its own; `None` if it may stay. No wait may last longer.
    pub fn patience_ends(&self) -> Option<Instant> {
        self.turn.lock().patience.end()
    }

    /// Until when the operation may wait for another one, for a lock for example, before it checks again.
    /// # Errors
    /// As [`Self::check`].
    pub fn may_wait_until(&self) -> Result<Instant> {
        self.ask()?;
        let until = self.clock.now() + WAIT;
        Ok(self.patience_ends().map_or(until, |end| end.min(until)))
    }

    /// Counts work: one step per element read, or per about 64 bytes copied.
    /// # Errors
    /// Errors of [`Self::check`], when a check is due.
    #[inline]
    pub fn work(&self, steps: usize) -> Result<()> {
        let left = self.steps_left.load(Ordering::Relaxed);
        let has_taken_little = bunko_heap::taken_bytes() < self.asks_at_bytes.load(Ordering::Relaxed);
        // Only the operation's thread counts steps, so a plain store is enough.
        match u32::try_from(steps).ok().and_then(|steps| left.checked_sub(steps)) {
            Some(left) if has_taken_little => {
                self.steps_left.store(left, Ordering::Relaxed);
                Ok(())
            }
            _ => self.question(),
        }
    }

    /// Checks before an allocation whose size depends on the request. `bytes` count as held until the next check
    /// measures the memory taken. Small sizes are left to the checks of [`Self::work`].
    /// # Errors
    /// As [`Self::check`].
    #[inline]
    pub fn will_take(&self, bytes: usize) -> Result<()> {
        if bytes <= BYTES_PER_QUESTION as usize / 4 { Ok(()) } else { self.ask_for(bytes, Waiting::Allowed).map(drop) }
    }

    #[cold]
    fn question(&self) -> Result<()> {
        self.steps_left.store(STEPS_PER_QUESTION, Ordering::Relaxed);
        // An operation that has changed something may hold locks here, so it does not rest.
        if let (RunOn::OwnThread, false) = self.ask_for(0, Waiting::Allowed)? {
            rest_in_crowds(STINT);
        }
        Ok(())
    }

    /// Checks now. The caller must hold no lock that short requests need: on its own thread, the operation may also
    /// rest for a moment while short requests wait for processors.
    /// # Errors
    /// Errors of the interruption; `ExceededMemoryLimit`; [`Failure::too_long`] on a thread that is not its own.
    pub fn check(&self) -> Result<()> {
        if let (RunOn::OwnThread, has_changed) = self.ask_for(0, Waiting::Allowed)? {
            rest_in_crowds(if has_changed { STINT_OF_WRITES } else { STINT });
        }
        Ok(())
    }

    /// Checks without waiting for memory. Returns the kind of the operation's thread, and whether the operation has
    /// changed something.
    fn ask(&self) -> Result<(RunOn, bool)> {
        self.ask_for(0, Waiting::Never)
    }

    fn ask_for(&self, more_bytes: usize, waiting: Waiting) -> Result<(RunOn, bool)> {
        if let Some(failure) = self.interruption.reason() {
            return Err(failure);
        }
        let mut turn = self.turn.lock();
        self.asks_at_bytes.store(bunko_heap::taken_bytes() + BYTES_PER_QUESTION, Ordering::Relaxed);
        // Other operations may wait for one that has changed something, so that one must not wait for memory.
        let can_wait = waiting == Waiting::Allowed && !turn.has_changed && self.unit.get().is_none();
        let allowance = turn.memory.check(more_bytes, can_wait);
        self.stage_bytes_now.store(turn.memory.stage_bytes_now(), Ordering::Relaxed);
        let needs_grant = match allowance? {
            Allowance::NeedsGrant(bytes) => Some(bytes),
            Allowance::Given => None,
        };
        if turn.patience.is_over(&self.clock) || (needs_grant.is_some() && turn.run_on != RunOn::OwnThread) {
            turn.was_too_long = true;
            return Err(Failure::too_long());
        }
        let (run_on, has_changed) = (turn.run_on, turn.has_changed);
        drop(turn);
        if let Some(bytes) = needs_grant {
            self.wait_for_grant(bytes)?;
            self.turn.lock().memory.check(more_bytes, false)?;
        }
        Ok((run_on, has_changed))
    }
}

/// Whether an operation may wait for memory in a check, because it holds no lock that others need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    Allowed,
    Never,
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
        operation.enter(RunOn::SharedThread, long_ago);
        assert!(operation.check().is_err_and(|failure| failure.is_too_long()));
        assert!(operation.was_too_long());
        operation.enter(RunOn::OwnThread, long_ago);
        assert!(operation.check().is_ok() && !operation.was_too_long());
        operation.enter(RunOn::SharedThread, long_ago);
        operation.note_change();
        assert!(operation.check().is_ok());
    }

    #[test]
    fn a_thread_of_its_own_rests_where_processors_are_crowded() {
        let crowding = bunko_host::Crowding::begin();
        let sleeps_of = |run_on, ask: fn(&OperationContext) -> Result<()>| {
            let operation = OperationContext::unlimited();
            let (began, before) = (Instant::now(), sleeps());
            operation.enter(run_on, began);
            operation.note_change();
            while began.elapsed() < Duration::from_millis(20) {
                ask(&operation).expect("nothing ends it");
            }
            sleeps() - before
        };
        let own = sleeps_of(RunOn::OwnThread, OperationContext::check);
        let shared = sleeps_of(RunOn::SharedThread, OperationContext::check);
        let amid_changes = sleeps_of(RunOn::OwnThread, |operation| operation.work(usize::MAX));
        drop(crowding);
        assert!(own > 10 * shared.max(amid_changes), "{own} rests, {shared} and {amid_changes} where none are due");
    }

    #[test]
    fn nothing_waits_longer_than_its_thread_may() {
        let operation = OperationContext::unlimited();
        let began = Instant::now();
        operation.enter(RunOn::SharedThread, began);
        assert!(operation.may_wait_until().is_ok_and(|until| until <= began + SHARED));
        operation.note_change();
        assert!(operation.may_wait_until().is_ok_and(|until| until >= began + WAIT));
        let killed = OperationContext::new(Arc::new(Killed), MemoryLimits::none());
        assert!(killed.may_wait_until().is_err());
    }
}
