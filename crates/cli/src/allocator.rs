//! The memory allocator of the whole program.
#![allow(unsafe_code)]

use crate::memory_pressure::{Pressure, PressureGauge};
use bunko_heap::{Counting, Mimalloc, note_scarcity};
use bunko_host::private_resident_bytes;
use libmimalloc_sys::{mi_collect, mi_option_set, mi_option_t};
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: Counting<Mimalloc> = Counting(Mimalloc);

/// `mi_option_purge_delay` of mimalloc.h, for which the bindings have no name: for how many milliseconds memory is free
/// before it goes back to the system; below 0 it never does.
const PURGE_DELAY: mi_option_t = 15;
/// A year: mimalloc never finds it over.
const NOT_BY_ITSELF_MS: i64 = 365 * 24 * 3600 * 1000;

/// For how long memory is free while there is little of it.
const SCARCE_MS: i64 = 10;

/// How often it is asked how much memory the process has, and while it has much.
const GLANCE: Duration = Duration::from_millis(200);
const GLANCE_NEAR: Duration = Duration::from_millis(20);
/// How often memory is given back while there is little of it: to look for free memory takes long.
const SCARCE_LOOK: Duration = Duration::from_millis(200);

/// How often it is asked whether the process is idle.
const LOOK: Duration = Duration::from_secs(1);
/// A process that takes less than a tenth of a processor is idle.
const IDLE_CPU_MAX: Duration = Duration::from_millis(100);
/// How long one that never is keeps what it freed.
const KEPT_MAX: Duration = Duration::from_mins(10);

/// Keeps what is freed, for a process that ends when its work is done: it needs the same memory again, which the system
/// would clear first.
pub(crate) fn keep_freed_memory() {
    set_purge_delay(-1);
}

/// Starts a thread that gives freed memory back to the system while the process is idle, every ten minutes where it never is, and at
/// once where the process comes near to its limit. `held_elsewhere` says what other processes hold for it, which counts too.
///
/// By itself mimalloc does so a second after, and the next thread that asks for memory does the work: a client's request
/// waited up to 8 ms for what a flush had freed, which the next memtable then had to have cleared again.
/// # Errors
/// No thread can be started.
pub(crate) fn give_freed_memory_back(
    mut gauge: PressureGauge,
    held_elsewhere: impl Fn() -> u64 + Send + 'static,
) -> std::io::Result<()> {
    leave_giving_back_to_us();
    let mut freed = Freed { cpu: process_cpu(), kept: Duration::ZERO };
    std::thread::Builder::new().name("memory".to_owned()).spawn(move || {
        let (mut pressure, mut since_look) = (Pressure::None, Duration::ZERO);
        loop {
            let taken = private_resident_bytes().unwrap_or(0) + held_elsewhere();
            let was = std::mem::replace(&mut pressure, gauge.note(taken));
            if pressure != was {
                set_purge_delay(if pressure == Pressure::None { NOT_BY_ITSELF_MS } else { SCARCE_MS });
                note_scarcity(pressure != Pressure::None);
            }
            let glance = if gauge.is_near(taken) { GLANCE_NEAR } else { GLANCE };
            std::thread::sleep(glance);
            since_look += glance;
            if pressure != Pressure::None && since_look >= SCARCE_LOOK {
                since_look = Duration::ZERO;
                collect();
            } else if since_look >= LOOK {
                since_look = Duration::ZERO;
                if freed.goes_back(process_cpu()) {
                    collect();
                }
            }
        }
    })?;
    Ok(())
}

/// Memory that is free and not given back.
struct Freed {
    /// What the process had taken of its processors at the last look.
    cpu: Duration,
    /// For how long it has been kept.
    kept: Duration,
}

impl Freed {
    /// Another look: whether it goes back now.
    fn goes_back(&mut self, cpu: Duration) -> bool {
        let cpu_before = std::mem::replace(&mut self.cpu, cpu);
        self.kept += LOOK;
        let goes_back = cpu.saturating_sub(cpu_before) < IDLE_CPU_MAX || self.kept >= KEPT_MAX;
        if goes_back {
            self.kept = Duration::ZERO;
        }
        goes_back
    }
}

/// Takes memory from the system in pages of 4 KiB, for processes whose slowest moments count: to clear a page of 2 MiB
/// holds up all that the thread has to do, for up to milliseconds in a virtual machine.
pub(crate) fn use_small_pages() {
    // A kernel without large pages refuses, and has none to use.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

fn set_purge_delay(milliseconds: i64) {
    // SAFETY: takes two numbers, and is made to be called at any time.
    unsafe { mi_option_set(PURGE_DELAY, milliseconds) };
}

fn leave_giving_back_to_us() {
    set_purge_delay(NOT_BY_ITSELF_MS);
    // What was freed before has its time already, and takes along what is free then.
    collect();
}

/// Gives free memory back to the system.
fn collect() {
    // SAFETY: takes a flag; each thread may call it at any time.
    unsafe { mi_collect(true) };
}

/// Processor time of all threads so far, user and system.
fn process_cpu() -> Duration {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(tv_sec as u64, tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_host::ProcessReading;
    use libmimalloc_sys::mi_stats_print_out;
    use std::process::Command;

    const FREED_BYTES: usize = 256 << 20;

    fn resident_bytes() -> u64 {
        ProcessReading::of(std::process::id()).expect("this process can be read").resident_bytes
    }

    /// Resident memory above that of before, once a lot was allocated in pieces, used and freed.
    fn resident_after_freeing(before: u64, mut after: impl FnMut()) -> u64 {
        let pieces: Vec<Vec<u8>> = (0..FREED_BYTES / 4096).map(|_| vec![1; 4096]).collect();
        drop(std::hint::black_box(pieces));
        after();
        resident_bytes().saturating_sub(before)
    }

    /// Names the process in which nothing else runs.
    const ALONE: &str = "BUNKO_TEST_ALONE";

    /// One test, because the delay is one for the whole process; and a process of its own, because threads of other tests
    /// take memory meanwhile and keep free memory from going back that they look at.
    #[test]
    fn freed_memory_goes_back_when_it_shall() {
        if std::env::var_os(ALONE).is_some() {
            return freed_memory_goes_back();
        }
        let mut process = Command::new(std::env::current_exe().expect("the path of this program"));
        process.args(["--exact", "allocator::tests::freed_memory_goes_back_when_it_shall", "--nocapture"]);
        let output = process.env(ALONE, "1").output().expect("this program starts");
        let printed = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&printed));
    }

    fn freed_memory_goes_back() {
        // SAFETY: takes a number.
        let delay = || unsafe { libmimalloc_sys::mi_option_get(PURGE_DELAY) };
        // What mimalloc has by default; no other option has.
        assert_eq!(delay(), 1000);
        let before = resident_bytes();
        let of_freed = |part: u64| FREED_BYTES as u64 * part / 8;

        leave_giving_back_to_us();
        // Longer than the usual delay, and a thread that asks for memory.
        let kept = resident_after_freeing(before, || {
            std::thread::sleep(Duration::from_millis(1100));
            drop(std::hint::black_box((0..10_000).map(|_| vec![1_u8; 4096]).collect::<Vec<_>>()));
        });
        assert!(kept > of_freed(7), "{kept} bytes are kept");
        // What mimalloc misses once, because another thread looks at it, goes back when it was used and freed again.
        let left: Vec<u64> = std::iter::repeat_with(|| resident_after_freeing(before, collect)).take(5).collect();
        if left.iter().all(|left| *left > of_freed(2)) {
            // SAFETY: prints, to the standard error stream, as no function is given.
            unsafe { mi_stats_print_out(None, std::ptr::null_mut()) };
            panic!("each time so many bytes are left: {left:?}");
        }

        keep_freed_memory();
        assert_eq!(delay(), -1);
        let kept = resident_after_freeing(before, collect);
        assert!(kept > of_freed(7), "{kept} bytes are kept");
    }

    #[test]
    fn a_busy_process_keeps_freed_memory_for_a_while() {
        let mut freed = Freed { cpu: Duration::ZERO, kept: Duration::ZERO };
        let mut cpu = Duration::ZERO;
        let mut look = |milliseconds| {
            cpu += Duration::from_millis(milliseconds);
            freed.goes_back(cpu)
        };
        assert!(!look(100));
        assert!(look(99));
        assert_eq!((0..1200).filter(|_| look(150)).count(), 2, "in twenty minutes");
    }

    #[test]
    fn large_pages_are_off() {
        use_small_pages();
        assert!(rustix::thread::transparent_huge_pages_are_disabled().expect("a kernel that has them"));
    }
}
