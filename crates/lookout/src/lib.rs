//! Deciding how many threads serve.
//!
//! The first thread always serves. While the load is light, the other threads wait for events too. The kernel wakes the
//! thread that began to wait last, so a second thread runs only while the first is busy. Under load this would cost a
//! wake-up for every few requests, so all threads but the first rest, and one of the resting threads is the lookout: it
//! wakes once a tick. If no thread came back for events for a whole tick (because the serving thread is in a long
//! command or has no processor), the lookout serves itself. If the serving threads fall behind, the lookout serves with
//! them for a stint, and the next resting thread becomes the lookout.

#![forbid(unsafe_code)]

#[cfg(all(test, feature = "models"))]
mod model;

use bunko_sync::Mutex;
use bunko_sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Maximum number of events taken at once: the rest is left to other threads.
pub const EVENTS_MAX: usize = 16;
/// Interval between two looks.
pub const TICK: Duration = Duration::from_millis(1);
/// The load is light while fewer than `LIGHT_TURNS` turns find events in `LIGHT_TIME`.
const LIGHT_TURNS: u64 = 50;
const LIGHT_TIME: Duration = Duration::from_millis(100);
/// After this many ticks behind, more threads must serve. The threads are behind in a tick if none waits and either
/// there were more events than a turn takes at once, or a turn took longer than a tick.
const BEHIND_TICKS: u32 = 20;
/// Number of ticks behind that one tick with a waiting thread makes up for.
const WAITED: u32 = 5;
/// Length of a stint at first, and at most. After a stint, a thread checks whether it is still needed; the length
/// doubles each time the thread is needed again soon.
const STINT: Duration = Duration::from_millis(50);
const STINT_MAX: Duration = Duration::from_millis(1600);

/// How long a thread waits for events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Not at all.
    None,
    /// At most a tick: other threads serve too, and may have left tasks behind.
    Tick,
    /// Until an event arrives.
    Endless,
}

/// A thread, as seen by the lookout.
pub trait Serving {
    /// Whether the server stops.
    fn is_stopped(&self) -> bool;

    /// Takes the next events and runs the ready tasks. Returns whether there were any.
    fn turn(&mut self, patience: Patience) -> bool;

    /// Turns of this thread so far.
    fn turns(&self) -> u64;

    /// Hands the thread's remaining tasks to other threads.
    fn leave(&mut self);

    /// Calls `wait`, and counts as resting until it returns.
    fn rest<T>(&self, wait: impl FnOnce() -> T) -> T;

    /// The time since a fixed moment.
    fn now(&self) -> Duration;

    /// Sleeps that long.
    fn sleep(&self, duration: Duration);
}

/// State that the threads share.
#[derive(Default)]
pub struct Lookout {
    is_loaded: AtomicBool,
    /// Threads that serve for a stint, or as a substitute.
    helpers: AtomicUsize,
    /// Threads that wait for events.
    waiting: AtomicUsize,
    /// Times that a thread came for events.
    turns: AtomicU64,
    /// Turns that found events.
    served: AtomicU64,
    /// Turns that found as many events as are taken at once.
    full_turns: AtomicU64,
    /// Held by the thread on the lookout.
    post: Mutex<()>,
}

/// Counters at a tick.
#[derive(Clone, Copy)]
struct Progress {
    waiting: usize,
    turns: u64,
    full_turns: u64,
}

/// The start of a period in which turns are counted.
struct Load {
    since: Duration,
    served: u64,
}

impl Lookout {
    /// How long a serving thread waits for events.
    pub fn patience(&self) -> Patience {
        if self.helpers() == 0 { Patience::Endless } else { Patience::Tick }
    }

    /// Whether the load is light, so that all threads serve.
    pub fn is_light(&self) -> bool {
        !self.is_loaded.load(Ordering::Relaxed)
    }

    /// Threads that serve for a stint, or as a substitute.
    pub fn helpers(&self) -> usize {
        self.helpers.load(Ordering::Relaxed)
    }

    /// Counts the thread as a helper while `serve` runs.
    pub fn help(&self, serve: impl FnOnce()) {
        self.helpers.fetch_add(1, Ordering::Relaxed);
        serve();
        self.helpers.fetch_sub(1, Ordering::Relaxed);
    }

    /// Threads that wait for events.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Turns of all threads so far.
    pub fn turns(&self) -> u64 {
        self.turns.load(Ordering::Relaxed)
    }

    /// Turns of all threads so far that found events.
    pub fn served(&self) -> u64 {
        self.served.load(Ordering::Relaxed)
    }

    /// Counts a turn.
    pub fn came(&self) {
        self.turns.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the thread as waiting while `wait` runs.
    pub fn wait(&self, wait: impl FnOnce()) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        wait();
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts a turn that took `events` events.
    pub fn took(&self, events: usize) {
        self.served.fetch_add(u64::from(events > 0), Ordering::Relaxed);
        if events >= EVENTS_MAX {
            self.full_turns.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The main loop of a thread that serves when it is needed.
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

    /// Looks until one more thread is needed, and returns how long that took. `None` once the load is light or the
    /// server stops.
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
            // A waiting thread may have been woken without getting a processor, so the lookout looks for events too.
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

    /// Updates whether the load is light.
    fn weigh(&self, load: &mut Load, now: Duration) {
        let is_light = self.served() - load.served < LIGHT_TURNS;
        let is_over = now.saturating_sub(load.since) >= LIGHT_TIME;
        // Many turns show a load before the period is over; few turns show a light one only after it.
        if is_light == is_over {
            self.is_loaded.store(!is_light, Ordering::Relaxed);
        }
        if is_over || !is_light {
            *load = self.load(now);
        }
    }
}
