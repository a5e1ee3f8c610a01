//! Resource use of a process on this machine: CPU, memory, page faults and device traffic.

use crate::raw_calls::cpu_time_of;
use crate::ticks::duration_of_ticks;
use rustix::param::page_size;
use std::fs;
use std::time::Duration;

/// A process's counters since its start, read from `/proc`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessReading {
    /// User and system time of all threads, including those that have ended. In nanoseconds from the process's clock;
    /// where that may not be read, in clock ticks of 10 ms.
    pub cpu: Duration,
    /// Resident memory in bytes, now.
    pub resident_bytes: u64,
    /// Page faults that read from a device.
    pub major_faults: u64,
    /// Page faults that were served from memory.
    pub minor_faults: u64,
    /// Bytes that the process caused to be read from devices; `None` where this process may not see it.
    pub read_bytes: Option<u64>,
    /// Bytes of pages that the process dirtied, which are written to devices later; `None` where this process may not
    /// see it.
    pub written_bytes: Option<u64>,
}

/// Resources that a process used between two readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessUse {
    /// User and system time of all threads.
    pub cpu: Duration,
    /// Page faults that read from a device.
    pub major_faults: u64,
    /// Page faults that were served from memory.
    pub minor_faults: u64,
    /// Bytes read from devices; `None` where either reading lacks them.
    pub read_bytes: Option<u64>,
    /// Bytes dirtied for devices to write; `None` where either reading lacks them.
    pub written_bytes: Option<u64>,
}

/// Resident memory of this process without file pages, in bytes: memory that the system cannot reclaim by itself.
pub fn private_resident_bytes() -> Option<u64> {
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    parse_private(&statm).map(|pages| pages * page_size() as u64)
}

/// Resident pages (second field) minus pages of files and of shared memory (third field).
/// Source: `proc_pid_statm(5)`.
fn parse_private(statm: &str) -> Option<u64> {
    let mut fields = statm.split_ascii_whitespace().skip(1).map(|field| field.parse::<u64>().ok());
    let (resident, shared) = (fields.next()??, fields.next()??);
    Some(resident.saturating_sub(shared))
}

impl ProcessReading {
    /// Reads the counters; `None` once the process is gone.
    pub fn of(pid: u32) -> Option<Self> {
        let file = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).ok();
        let stat = parse_stat(&file("stat")?)?;
        let io = file("io");
        let device_bytes = |field| io.as_deref().and_then(|io| parse_io(io, field));
        Some(Self {
            cpu: cpu_time_of(pid).unwrap_or(stat.cpu),
            resident_bytes: parse_statm(&file("statm")?)? * page_size() as u64,
            major_faults: stat.major_faults,
            minor_faults: stat.minor_faults,
            read_bytes: device_bytes("read_bytes"),
            written_bytes: device_bytes("write_bytes"),
        })
    }

    /// Resources that the process used since an earlier reading.
    pub fn since(&self, before: &Self) -> ProcessUse {
        let bytes = |after: Option<u64>, before: Option<u64>| Some(after?.saturating_sub(before?));
        ProcessUse {
            cpu: self.cpu.saturating_sub(before.cpu),
            major_faults: self.major_faults.saturating_sub(before.major_faults),
            minor_faults: self.minor_faults.saturating_sub(before.minor_faults),
            read_bytes: bytes(self.read_bytes, before.read_bytes),
            written_bytes: bytes(self.written_bytes, before.written_bytes),
        }
    }
}

/// The fields of `/proc/pid/stat` that are read here.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    /// User and system time.
    cpu: Duration,
    major_faults: u64,
    minor_faults: u64,
}

/// Reads the fields 10 `minflt`, 12 `majflt`, 14 `utime` and 15 `stime`, counted from 1. The second field is the name
/// in parentheses, which may contain any character.
/// Source: proc_pid_stat(5).
fn parse_stat(stat: &str) -> Option<Stat> {
    const FIRST_AFTER_NAME: usize = 3;
    let (_, after_name) = stat.rsplit_once(')')?;
    let field = |number: usize| after_name.split_whitespace().nth(number - FIRST_AFTER_NAME)?.parse::<u64>().ok();
    Some(Stat { cpu: duration_of_ticks(field(14)? + field(15)?), major_faults: field(12)?, minor_faults: field(10)? })
}

/// Resident pages, the second field.
/// Source: proc_pid_statm(5).
fn parse_statm(statm: &str) -> Option<u64> {
    statm.split_whitespace().nth(1)?.parse().ok()
}

/// Reads one line of the form `name: number`.
/// Source: proc_pid_io(5).
fn parse_io(io: &str, field: &str) -> Option<u64> {
    io.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let stat = "25736 (a) b) (c) S 12411 12411 10408 0 -1 4194304 101 5 7 9 120 30 0 0 20 0 27 0 1209762 3133440";
        let expected = Stat { cpu: duration_of_ticks(150), major_faults: 7, minor_faults: 101 };
        assert_eq!(parse_stat(stat), Some(expected));
        assert_eq!(parse_stat("25736 (cut"), None);
        assert_eq!(parse_stat("25736 (cut) S 1 2"), None);
    }

    #[test]
    fn resident_pages_are_the_second_field() {
        assert_eq!(parse_statm("765 430 402 5 0 121 0\n"), Some(430));
        assert_eq!(parse_statm(""), None);
        assert_eq!((parse_private("765 430 402 5 0 121 0\n"), parse_private("765 430")), (Some(28), None));
        assert!(private_resident_bytes().is_some_and(|bytes| bytes > 100_000));
    }

    #[test]
    fn cancelled_writes_are_not_taken_for_writes() {
        let io = "rchar: 6976\nwchar: 12\nsyscr: 10\nsyscw: 0\nread_bytes: 4096\nwrite_bytes: 8192\n\
            cancelled_write_bytes: 1\n";
        assert_eq!(parse_io(io, "read_bytes"), Some(4096));
        assert_eq!(parse_io(io, "write_bytes"), Some(8192));
        assert_eq!(parse_io(io, "write"), None);
    }

    #[test]
    fn threads_that_have_ended_count_to_the_nanosecond() {
        let pid = std::process::id();
        let reading = move || ProcessReading::of(pid).expect("it lives");
        let before = reading();
        // Each thread lives shorter than a clock tick.
        for _ in 0..20 {
            let spend = move || {
                let began = reading();
                while reading().since(&began).cpu < Duration::from_millis(2) {}
            };
            std::thread::spawn(spend).join().expect("it ends");
        }
        let used = reading().since(&before).cpu;
        assert!(used >= Duration::from_millis(40), "{used:?}");
        assert_ne!(used.subsec_nanos() % 1_000_000, 0, "ticks: {used:?}");
    }

    #[test]
    fn counters_are_subtracted_and_what_is_hidden_stays_hidden() {
        let before = ProcessReading {
            cpu: Duration::from_millis(5),
            resident_bytes: 4096,
            major_faults: 1,
            minor_faults: 2,
            read_bytes: Some(100),
            written_bytes: None,
        };
        let after = ProcessReading {
            cpu: Duration::from_nanos(5_000_003),
            major_faults: 4,
            minor_faults: 10,
            read_bytes: Some(350),
            ..before.clone()
        };
        let used = after.since(&before);
        assert_eq!(used.cpu, Duration::from_nanos(3));
        assert_eq!((used.major_faults, used.minor_faults), (3, 8));
        assert_eq!((used.read_bytes, used.written_bytes), (Some(250), None));
    }

    #[test]
    fn this_process_costs_something() {
        let pid = std::process::id();
        let before = ProcessReading::of(pid).expect("it lives");
        assert!(before.resident_bytes > 100_000);
        assert!(before.minor_faults > 0);
        let mut work = 0_u64;
        while ProcessReading::of(pid).expect("it lives").since(&before).cpu < Duration::from_millis(20) {
            work = std::hint::black_box(work + 1);
        }
    }

    #[test]
    fn a_process_that_does_not_exist_has_no_reading() {
        // This id is above the kernel's limit of 2^22.
        assert_eq!(ProcessReading::of(u32::MAX), None);
    }
}
