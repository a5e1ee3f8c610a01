//! How many threads serve.
//!
//! One thread always does. While the load is light the others wait beside it, and the system wakes whoever waited last:
//! a second one only where the first is at something. Under load that would be a wake-up for every few requests, so all
//! but one rest. That one is on the lookout: it wakes once a tick, and serves where nobody came back for events for a
//! whole tick, because that thread is long at a command or has no processor. Where the threads that serve stay behind,
//! it serves beside them for a stint, and the next one takes the lookout over.

#[cfg(all(test, feature = "models"))]
mod model;

use super::worker::{EVENTS_MAX, Patience};
use bunko_store::sync::Mutex;
use bunko_store::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// How often the lookout looks.
pub(super) const TICK: Duration = Duration::from_millis(1);
/// The load is light while fewer turns find events in so much time.
const LIGHT_TURNS: u64 = 50;
const LIGHT_TIME: Duration = Duration::from_millis(100);
/// Ticks behind after which the threads that serve are too few. They are behind where nobody waits and there are more
/// events than one takes at once, or a turn takes longer than a tick.
const BEHIND_TICKS: u32 = 20;
/// Ticks behind that one makes good at which somebody waited.
const WAITED: u32 = 5;
/// How long a thread serves before it sees whether it is needed: at first, and at most. Twice as long every time that
/// it was.
const STINT: Duration = Duration::from_millis(50);
const STINT_MAX: Duration = Duration::from_millis(1600);

/// One of the threads, as the lookout sees it.
pub(super) trait Serving {
    fn is_stopped(&self) -> bool;

    /// Takes the next events and runs what is ready; whether there was anything.
    fn turn(&mut self, patience: Patience) -> bool;

    /// Turns so far.
    fn turns(&self) -> u64;

    /// Leaves to others what it has not come to.
    fn leave(&mut self);

    /// Waits until it is needed.
    fn rest<T>(&self, wait: impl FnOnce() -> T) -> T;

    /// The time since some moment.
    fn now(&self) -> Duration;

    fn sleep(&self, duration: Duration);
}

/// What the threads know about each other.
#[derive(Default)]
pub(super) struct Lookout {
    is_loaded: AtomicBool,
    /// Threads that serve for a stint, or in place of another.
    helpers: AtomicUsize,
    /// Threads that wait for events.
    waiting: AtomicUsize,
    /// Times that a thread came for events.
    turns: AtomicU64,
    /// Those that found some.
    served: AtomicU64,
    /// Those that found as many as are taken at once.
    full_turns: AtomicU64,
    /// Held by the thread on the lookout.
    post: Mutex<()>,
}

/// What was counted at a tick.
#[derive(Clone, Copy)]
struct Progress {
    waiting: usize,
    turns: u64,
    full_turns: u64,
}

/// Where a count of turns began.
struct Load {
    since: Duration,
    served: u64,
}

impl Lookout {
    /// How long a thread that serves waits.
    pub fn patience(&self) -> Patience {
        if self.helpers() == 0 { Patience::Endless } else { Patience::Tick }
    }

    /// Whether all threads wait.
    pub fn is_light(&self) -> bool {
        !self.is_loaded.load(Ordering::Relaxed)
    }

    /// Threads that serve for a stint, or in place of another.
    pub fn helpers(&self) -> usize {
        self.helpers.load(Ordering::Relaxed)
    }

    /// Serves for a while by `serve`.
    pub fn help(&self, serve: impl FnOnce()) {
        self.helpers.fetch_add(1, Ordering::Relaxed);
        serve();
        self.helpers.fetch_sub(1, Ordering::Relaxed);
    }

    /// Threads that wait for events.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Turns so far of all threads.
    pub fn turns(&self) -> u64 {
        self.turns.load(Ordering::Relaxed)
    }

    /// Turns so far that found events.
    pub fn served(&self) -> u64 {
        self.served.load(Ordering::Relaxed)
    }

    /// A thread comes for events.
    pub fn came(&self) {
        self.turns.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits for events by `wait`.
    pub fn wait(&self, wait: impl FnOnce()) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        wait();
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// So many events were taken.
    pub fn took(&self, events: usize) {
        self.served.fetch_add(u64::from(events > 0), Ordering::Relaxed);
        if events >= EVENTS_MAX {
            self.full_turns.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The life of a thread that serves where it is needed.
    pub fn keep(&self, worker: &mut impl Serving) {
        let mut stint = STINT;
        let mut load = self.load(worker.now());
        while !worker.is_stopped() {
            if self.is_light() {
                worker.turn(Patience::Endless);
                self.weigh(&mut load, worker.now());
                continue;
            }
            worker.leave();
            let Some(looked) = self.look(worker) else { continue };
            stint = if looked < TICK * BEHIND_TICKS * 4 { (stint * 2).min(STINT_MAX) } else { STINT };
            self.help(|| {
                let end = worker.now() + stint;
                while worker.now() < end && !worker.is_stopped() {
                    worker.turn(Patience::Tick);
                }
            });
        }
    }

    /// Looks until one more thread is needed: how long that took. `None` where there is nothing more to look for.
    fn look(&self, worker: &mut impl Serving) -> Option<Duration> {
        let _post = worker.rest(|| self.post.lock());
        let began = worker.now();
        let mut load = self.load(began);
        let mut behind_ticks = 0_u32;
        let mut last = self.progress();
        while !worker.is_stopped() && !self.is_light() {
            worker.sleep(TICK);
            let now = self.progress();
            let turns = now.turns - last.turns;
            if now.waiting > 0 {
                behind_ticks = behind_ticks.saturating_sub(WAITED);
            } else if now.full_turns > last.full_turns || turns <= 1 + self.helpers() as u64 {
                behind_ticks += 1;
            }
            if behind_ticks >= BEHIND_TICKS {
                return Some(worker.now().saturating_sub(began));
            }
            // Who waits may have been woken, and have no processor to wake up on.
            if turns == 0 || now.waiting > 0 && worker.turn(Patience::None) {
                self.stand_in(worker);
            }
            self.weigh(&mut load, worker.now());
            last = self.progress();
        }
        None
    }

    /// Serves until another thread comes back for events.
    fn stand_in(&self, worker: &mut impl Serving) {
        let before = self.turns() - worker.turns();
        while self.turns() - worker.turns() == before && !worker.is_stopped() {
            worker.turn(Patience::Tick);
        }
        worker.leave();
    }

    fn progress(&self) -> Progress {
        Progress {
            waiting: self.waiting.load(Ordering::Relaxed),
            turns: self.turns(),
            full_turns: self.full_turns.load(Ordering::Relaxed),
        }
    }

    fn load(&self, now: Duration) -> Load {
        Load { since: now, served: self.served() }
    }

    /// Sees whether the load is light.
    fn weigh(&self, load: &mut Load, now: Duration) {
        let is_light = self.served() - load.served < LIGHT_TURNS;
        let is_over = now.saturating_sub(load.since) >= LIGHT_TIME;
        // Many turns say something only where the time is short, few only once it is over.
        if is_light == is_over {
            self.is_loaded.store(!is_light, Ordering::Relaxed);
        }
        if is_over || !is_light {
            *load = self.load(now);
        }
    }
}
