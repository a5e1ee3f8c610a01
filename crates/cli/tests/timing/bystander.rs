//! A client that only pings, on a connection of its own, beside one that pings an idle server: programs outside the
//! test slow both down, and the server under test only its own.

use crate::peer::{Peer, Running};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Pause between two pings.
const PAUSE: Duration = Duration::from_millis(5);
/// How many times as long as a ping of the idle server a ping may take in addition to its limit.
const BUSY_FACTOR: u32 = 4;

/// Stops its threads when it goes out of scope, also if the test fails.
pub struct Bystander {
    stop: Arc<AtomicBool>,
    served: Option<JoinHandle<Latencies>>,
    idle: Option<JoinHandle<Latencies>>,
    _idle_server: Running,
}

/// In ascending order.
struct Latencies(Vec<Duration>);

/// Latencies of pings that were sent at the same time to the server under test and to an idle one.
pub struct Pings {
    served: Latencies,
    idle: Latencies,
}

impl Bystander {
    pub fn start(address: SocketAddr) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let idle_server = Running::start();
        let ping = |address| {
            let (stop, mut peer) = (Arc::clone(&stop), Peer::connect(address));
            Some(thread::spawn(move || Latencies::of_pings(&mut peer, &stop)))
        };
        let (served, idle) = (ping(address), ping(idle_server.address()));
        Self { stop, served, idle, _idle_server: idle_server }
    }

    pub fn stop(mut self) -> Pings {
        self.stop.store(true, Ordering::Relaxed);
        let [served, idle] = [self.served.take(), self.idle.take()].map(|pinging| {
            let mut latencies = pinging.expect("it runs").join().expect("every ping is answered");
            latencies.0.sort();
            latencies
        });
        Pings { served, idle }
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Latencies {
    fn of_pings(peer: &mut Peer, stop: &AtomicBool) -> Self {
        let mut latencies = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let began = Instant::now();
            assert_eq!(peer.text("admin", "{ping: 1}"), "{ok: 1.0}");
            latencies.push(began.elapsed());
            thread::sleep(PAUSE);
        }
        Self(latencies)
    }

    fn quantile(&self, percent: usize) -> Duration {
        self.0[(self.0.len() * percent / 100).min(self.0.len() - 1)]
    }
}

impl Pings {
    /// Asserts limits for half of the pings and for 95 of 100.
    pub fn assert_quick(&self, median: Duration, most: Duration) {
        for (percent, limit) in [(50, median), (95, most)] {
            let allowed = limit + BUSY_FACTOR * self.idle.quantile(percent);
            assert!(self.served.quantile(percent) < allowed, "a bystander waits: {self}");
        }
    }
}

impl fmt::Display for Pings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |latencies: &Latencies| {
            let [median, most, max] = [50, 95, 100].map(|percent| latencies.quantile(percent));
            format!("median {median:.1?}, 95 of 100 within {most:.1?}, the slowest {max:.1?}")
        };
        let count = self.served.0.len();
        write!(f, "{count} pings, {}; of an idle server {}", of(&self.served), of(&self.idle))
    }
}
