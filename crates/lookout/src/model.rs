//! A model of two threads, one of them on the lookout, and a command that ends only after all other events are served.

use super::Patience;
use super::{LIGHT_TURNS, Lookout, Serving};
use bunko_sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use bunko_sync::{explore, thread};
use std::sync::Arc;
use std::time::Duration;

/// Enough events at one moment that the load is not light.
const EVENTS: usize = LIGHT_TURNS as usize + 30;

struct Model {
    lookout: Lookout,
    /// Events not taken yet.
    pending: AtomicUsize,
    served: AtomicUsize,
    /// The event that is the long command, counted down from the last.
    long: usize,
    now_ms: AtomicU64,
    is_stopped: AtomicBool,
}

/// A thread of the model.
struct Worker {
    model: Arc<Model>,
    turns: u64,
}

impl Model {
    fn new(long: usize) -> Arc<Self> {
        Arc::new(Self {
            lookout: Lookout::default(),
            pending: AtomicUsize::new(EVENTS),
            served: AtomicUsize::new(0),
            long,
            now_ms: AtomicU64::new(0),
            is_stopped: AtomicBool::new(false),
        })
    }

    fn take(&self) -> Option<usize> {
        self.pending.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).ok()
    }

    /// Serves an event. The long command ends once all other events have been served.
    fn serve(&self, event: usize) {
        while event == self.long && self.served.load(Ordering::SeqCst) < EVENTS - 1 {
            thread::yield_now();
        }
        if self.served.fetch_add(1, Ordering::SeqCst) + 1 == EVENTS {
            self.is_stopped.store(true, Ordering::SeqCst);
        }
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }
}

impl Serving for Worker {
    fn is_stopped(&self) -> bool {
        self.model.is_stopped()
    }

    fn turn(&mut self, patience: Patience) -> bool {
        let model = &self.model;
        model.lookout.came();
        self.turns += 1;
        let mut taken = model.take();
        if taken.is_none() {
            match patience {
                Patience::None => {}
                Patience::Tick => model.lookout.wait(|| self.sleep(super::TICK)),
                Patience::Endless => model.lookout.wait(|| {
                    while taken.is_none() && !model.is_stopped() {
                        thread::yield_now();
                        taken = model.take();
                    }
                }),
            }
        }
        model.lookout.took(usize::from(taken.is_some()));
        if let Some(event) = taken {
            model.serve(event);
        }
        taken.is_some()
    }

    fn turns(&self) -> u64 {
        self.turns
    }

    fn leave(&mut self) {}

    fn rest<T>(&self, wait: impl FnOnce() -> T) -> T {
        wait()
    }

    fn now(&self) -> Duration {
        Duration::from_millis(self.model.now_ms.load(Ordering::SeqCst))
    }

    fn sleep(&self, duration: Duration) {
        self.model.now_ms.fetch_add(duration.as_millis() as u64, Ordering::SeqCst);
        thread::yield_now();
    }
}

/// If no thread serves during the long command, the run never ends, which the scheduler reports.
#[test]
fn a_long_command_keeps_no_other_waiting() {
    // Early, while the load is light; late, while a thread is on the lookout; and as the last event.
    for long in [EVENTS, 10, 1] {
        explore(300, move || {
            let model = Model::new(long);
            let keeper = {
                let model = Arc::clone(&model);
                thread::spawn(move || {
                    let mut worker = Worker { model: Arc::clone(&model), turns: 0 };
                    model.lookout.keep(&mut worker);
                })
            };
            let mut worker = Worker { model: Arc::clone(&model), turns: 0 };
            while !model.is_stopped() {
                worker.turn(model.lookout.patience());
            }
            keeper.join().expect("no panic");
            assert_eq!(model.served.load(Ordering::SeqCst), EVENTS);
            assert_eq!((model.lookout.helpers(), model.lookout.waiting()), (0, 0));
        });
    }
}
