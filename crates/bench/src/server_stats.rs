//! What a server on this machine costs: CPU and memory from `/proc`.

mod listener;

use rustix::param::{clock_ticks_per_second, page_size};
use std::fs;
use std::net::ToSocketAddrs;
use std::time::Duration;

/// A server process on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerProcess {
    /// Its process id.
    pub pid: u32,
}

/// CPU time of all threads, user and system, read twice: once exact, once complete.
#[derive(Clone, Copy, Debug)]
pub struct CpuReading {
    /// Nanoseconds that the scheduler counted for each thread that lives now.
    living_threads: Option<Duration>,
    /// Clock ticks (10 ms) of all threads, those that have ended included.
    all_threads: Duration,
}

/// The two ways may differ by this much through rounding alone: a tick for user and system time at either end.
const ROUNDING_TICKS: u32 = 4;

impl ServerProcess {
    /// Finds the process behind a server's address: it must listen there, and be the one that the server says it is.
    /// `None` where the server is on another machine, in a container, or another user's.
    pub fn find(host: &str, port: u16, stated_pid: Option<u32>) -> Option<Self> {
        let is_local = (host, port).to_socket_addrs().ok()?.all(|address| address.ip().is_loopback());
        let pid = listener::pid_of_listener(port).filter(|_| is_local)?;
        // Through a forwarded port the listener is the forwarder.
        stated_pid.is_none_or(|stated| stated == pid).then_some(Self { pid })
    }

    /// CPU time so far; `None` once the process is gone.
    pub fn cpu(self) -> Option<CpuReading> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).ok()?;
        Some(CpuReading { living_threads: self.living_threads_cpu(), all_threads: parse_stat(&stat)? })
    }

    /// Resident memory in bytes; `None` once the process is gone.
    pub fn resident_bytes(self) -> Option<u64> {
        let statm = fs::read_to_string(format!("/proc/{}/statm", self.pid)).ok()?;
        let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
        Some(pages * page_size() as u64)
    }

    fn living_threads_cpu(self) -> Option<Duration> {
        let mut sum = Duration::ZERO;
        for task in fs::read_dir(format!("/proc/{}/task", self.pid)).ok()?.flatten() {
            // A thread that ended in between is missing here; the other reading has it.
            let Ok(schedstat) = fs::read_to_string(task.path().join("schedstat")) else { continue };
            sum += Duration::from_nanos(schedstat.split_whitespace().next()?.parse().ok()?);
        }
        Some(sum)
    }
}

impl CpuReading {
    /// CPU time between two readings.
    ///
    /// Nanoseconds of the living threads, unless threads ended in between and took theirs along: then ticks.
    pub fn since(self, before: Self) -> Duration {
        let all = self.all_threads.saturating_sub(before.all_threads);
        let rounding = tick() * ROUNDING_TICKS;
        match (self.living_threads, before.living_threads) {
            (Some(after), Some(before)) if after.saturating_sub(before) + rounding >= all => {
                after.saturating_sub(before)
            }
            _ => all,
        }
    }
}

fn tick() -> Duration {
    Duration::from_nanos(1_000_000_000 / clock_ticks_per_second())
}

/// `utime` and `stime`, the 14th and 15th fields. The second is the name in parentheses, which may hold anything.
/// Source: proc(5), `/proc/pid/stat`.
fn parse_stat(stat: &str) -> Option<Duration> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace().skip(11);
    let (user, system): (u32, u32) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(tick() * (user + system))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let stat = "25736 (a) b) (c) S 1 2 3 4 5 6 7 8 9 10 120 30 0 0 20 0 27 0";
        assert_eq!(parse_stat(stat), Some(tick() * 150));
    }

    #[test]
    fn ended_threads_switch_to_the_complete_reading() {
        let reading = |living: u64, all: u64| CpuReading {
            living_threads: Some(Duration::from_millis(living)),
            all_threads: Duration::from_millis(all),
        };
        assert_eq!(reading(1_003, 1_000).since(reading(0, 0)), Duration::from_millis(1_003));
        assert_eq!(reading(400, 1_000).since(reading(0, 0)), Duration::from_secs(1));
        assert_eq!(reading(100, 1_000).since(reading(300, 300)), Duration::from_millis(700));
    }

    #[test]
    fn this_process_is_found_and_costs_something() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let pid = std::process::id();
        let process = ServerProcess::find("127.0.0.1", port, None).expect("it listens");
        assert_eq!(process, ServerProcess { pid });
        assert_eq!(ServerProcess::find("127.0.0.1", port, Some(pid + 1)), None);
        assert!(process.resident_bytes().is_some_and(|bytes| bytes > 100_000));
        let before = process.cpu().expect("alive");
        let mut work = 0_u64;
        while process.cpu().expect("alive").since(before) < Duration::from_millis(20) {
            work = std::hint::black_box(work + 1);
        }
        drop(listener);
        assert_eq!(ServerProcess::find("127.0.0.1", port, None), None);
    }
}
