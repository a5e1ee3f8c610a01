//! The work of one thread.

use super::Executor;
use super::queue::Queue;
use super::seat::Seat;
use super::task::{Ran, Task};
use crate::executor::poller::Poller;
use bunko_lookout::{EVENTS_MAX, Patience, Serving, TICK};
use parking_lot::Mutex;
use rustix::event::epoll::Event;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Tasks run before the next look at the sockets: new requests matter as much as replies.
const RUNS_MAX: usize = 64;

/// Light tasks in a row after which a heavy one gets its turn.
const LIGHT_IN_A_ROW_MAX: usize = 8;

/// A thread of the executor.
pub(super) struct Worker<'e> {
    executor: &'e Executor,
    number: usize,
    events: Vec<Event>,
    turns: u64,
    began: Instant,
    /// Whether a queue may hold tasks.
    is_left: bool,
}

impl<'e> Worker<'e> {
    pub fn new(executor: &'e Executor, number: usize) -> Self {
        Self {
            executor,
            number,
            events: Vec::with_capacity(EVENTS_MAX),
            turns: 0,
            began: executor.clock.now(),
            is_left: false,
        }
    }

    pub fn is_stopped(&self) -> bool {
        self.executor.stopped.load(Ordering::Acquire)
    }

    /// Takes the next events and runs the ready tasks. Returns whether there were any.
    pub fn turn(&mut self, patience: Patience) -> bool {
        let lookout = &self.executor.lookout;
        lookout.came();
        self.turns += 1;
        self.take(if self.is_left { Patience::None } else { patience });
        lookout.took(self.events.len());
        let found = self.sort() || self.take_over();
        self.is_left = self.run_ready();
        if self.is_left {
            self.share();
        }
        found || self.is_left
    }

    /// Hands its remaining tasks to other threads.
    pub fn leave(&mut self) {
        if std::mem::take(&mut self.is_left) {
            let left = std::mem::take(&mut *self.own().lock());
            self.executor.woken.lock().append(left);
            self.executor.poller.ring();
        }
    }

    fn seat(&self) -> &'e Seat {
        &self.executor.seats[self.number]
    }

    fn own(&self) -> &'e Mutex<Queue> {
        &self.seat().ready
    }

    fn take(&mut self, patience: Patience) {
        let (poller, lookout, events) = (&self.executor.poller, &self.executor.lookout, &mut self.events);
        match patience {
            Patience::None => poller.take(events, Some(Duration::ZERO)),
            Patience::Tick => {
                poller.take(events, Some(Duration::ZERO));
                if events.is_empty() {
                    // The processors are busy: clients about to send a request are probably waiting for this one.
                    std::thread::yield_now();
                    lookout.wait(|| poller.take(events, Some(TICK)));
                }
            }
            Patience::Endless => lookout.wait(|| poller.take(events, None)),
        }
    }

    /// Queues the tasks of the events taken. Returns whether there were any.
    fn sort(&mut self) -> bool {
        let tasks = self.executor.tasks.read();
        let mut ready = self.own().lock();
        for (id, flags) in self.events.drain(..).filter_map(Poller::read) {
            let Some(task) = tasks.get(&id) else { continue };
            task.socket.note(flags);
            if task.notify() {
                ready.push(Arc::clone(task));
            }
        }
        if ready.len() > 1 {
            self.share();
        }
        !ready.is_empty()
    }

    /// Wakes a waiting thread to take over tasks that this one does not get to.
    fn share(&self) {
        if self.executor.threads > 1 && self.executor.lookout.is_light() {
            self.executor.poller.ring();
        }
    }

    /// Takes the tasks that other threads have not run yet. Returns whether there were any.
    fn take_over(&self) -> bool {
        let mut found = false;
        let used = self.executor.seats_used.load(Ordering::Acquire);
        for (number, seat) in self.executor.seats[..used].iter().enumerate() {
            if number != self.number {
                let left = std::mem::take(&mut *seat.ready.lock());
                found |= !left.is_empty();
                self.own().lock().append(left);
            }
        }
        found
    }

    /// Runs queued tasks: light ones, then one heavy task, so that the sockets are looked at after each heavy task.
    /// Returns whether some may be left.
    fn run_ready(&self) -> bool {
        let (own, woken) = (self.own(), &self.executor.woken);
        for runs in 0..RUNS_MAX {
            let is_heavy_due = runs == LIGHT_IN_A_ROW_MAX;
            let light = || own.lock().pop_light().or_else(|| woken.lock().pop_light());
            if let Some(task) = if is_heavy_due { None } else { light() } {
                self.run(task);
                continue;
            }
            // A guard in the condition of `if let` would be held while the task runs.
            let heavy = own.lock().pop_heavy().or_else(|| woken.lock().pop_heavy());
            if let Some(task) = heavy {
                self.run(task);
                return true;
            }
            if !is_heavy_due {
                return false;
            }
        }
        true
    }

    fn run(&self, task: Arc<Task>) {
        match self.seat().run(|| task.run()) {
            Ran::Waits => {}
            Ran::Again => self.own().lock().push(task),
            Ran::Ended => self.executor.forget(task.id),
        }
    }
}

impl Serving for Worker<'_> {
    fn is_stopped(&self) -> bool {
        Worker::is_stopped(self)
    }

    fn turn(&mut self, patience: Patience) -> bool {
        Worker::turn(self, patience)
    }

    fn turns(&self) -> u64 {
        self.turns
    }

    fn leave(&mut self) {
        Worker::leave(self);
    }

    fn rest<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.seat().rest(wait)
    }

    fn now(&self) -> Duration {
        self.executor.clock.since(self.began)
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}
