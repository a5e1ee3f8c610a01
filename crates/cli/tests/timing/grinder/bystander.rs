//! A client that only pings, on a connection of its own.

use super::mill::connect;
use bunko_bson::DocumentBuf;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Pause between two pings.
const PAUSE: Duration = Duration::from_millis(10);
/// Maximum time that 95 of 100 pings may take.
const PATIENCE: Duration = Duration::from_millis(50);

pub struct Bystander {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Duration>>,
}

/// Latencies of pings in ascending order.
pub struct Pings(Vec<Duration>);

impl Bystander {
    pub fn start(address: SocketAddr) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut connection = connect(address);
            let mut took = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                let began = Instant::now();
                connection.run_command("admin", DocumentBuf::new().with("ping", 1).as_ref()).expect("a pong");
                took.push(began.elapsed());
                thread::sleep(PAUSE);
            }
            took
        });
        Self { stop, thread }
    }

    pub fn stop(self) -> Pings {
        self.stop.store(true, Ordering::Relaxed);
        let mut took = self.thread.join().expect("every ping is answered");
        took.sort();
        Pings(took)
    }
}

impl Pings {
    fn quantile(&self, percent: usize) -> Duration {
        self.0[(self.0.len() * percent / 100).min(self.0.len() - 1)]
    }

    pub fn assert_quick(&self) {
        assert!(self.quantile(50) < PATIENCE && self.quantile(95) < PATIENCE, "a bystander waits: {self}");
    }
}

impl fmt::Display for Pings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [median, most, max] = [50, 95, 100].map(|percent| self.quantile(percent));
        write!(f, "{} pings, median {median:?}, 95 of 100 within {most:?}, the slowest {max:?}", self.0.len())
    }
}
