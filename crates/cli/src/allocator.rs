//! The memory allocator of the whole program.
#![allow(unsafe_code)]

use crate::memory_pressure::{Pressure, PressureGauge};
use bunko_heap::{Counting, Mimalloc};
use bunko_host::private_resident_bytes;
use libmimalloc_sys::{mi_collect, mi_option_set, mi_option_t};
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: Counting<Mimalloc> = Counting(Mimalloc);

/// `mi_option_purge_delay` of mimalloc.h, for which the bindings have no name: milliseconds that memory stays free
/// before mimalloc returns it to the system. Below 0 it never does.
const PURGE_DELAY: mi_option_t = 15;
/// A year, which never passes in practice.
const NOT_BY_ITSELF_MS: i64 = 365 * 24 * 3600 * 1000;

/// Purge delay while memory is scarce, in milliseconds.
const SCARCE_MS: i64 = 10;

/// Pause between two readings of the process's memory: while it is far from its limit, and while it is near.
const GLANCE: Duration = Duration::from_millis(200);
const GLANCE_NEAR: Duration = Duration::from_millis(20);
/// Pause between two returns of free memory while memory is scarce: the search for it takes long.
const SCARCE_LOOK: Duration = Duration::from_millis(200);

/// Pause between two checks whether the process is idle.
const LOOK: Duration = Duration::from_secs(1);
/// A process that uses less than this in [`LOOK`], a tenth of a processor, is idle.
const IDLE_CPU_MAX: Duration = Duration::from_millis(100);
/// How long a process that is never idle keeps freed memory.
const KEPT_MAX: Duration = Duration::from_mins(10);

/// Keeps freed memory, for a process that ends when its work is done. It needs that memory again, and the system would
/// clear it first.
pub(crate) fn keep_freed_memory() {
    set_purge_delay(-1);
}

/// Starts a thread that returns freed memory to the system: while the process is idle, every ten minutes if it never
/// is, and at once when the process comes near its limit. `held_elsewhere` returns the bytes that other processes hold
/// for it, which count too, and `pinned` the bytes that engines hold as long as their files exist.
///
/// By default mimalloc returns memory a second after it was freed, in the next thread that allocates. A client's
/// request waited up to 8 ms while it returned what a flush had freed, and the next memtable then had to have that
/// memory cleared again.
/// # Errors
/// If no thread can be started.
pub(crate) fn give_freed_memory_back(
    mut gauge: PressureGauge,
    held_elsewhere: impl Fn() -> u64 + Send + 'static,
    pinned: impl Fn() -> u64 + Send + 'static,
) -> std::io::Result<()> {
    leave_giving_back_to_us();
    let mut freed = Freed { cpu: process_cpu(), kept: Duration::ZERO };
    std::thread::Builder::new().name("memory".to_owned()).spawn(move || {
        let (mut pressure, mut since_look) = (Pressure::None, Duration::ZERO);
        loop {
            let taken = private_resident_bytes().unwrap_or(0) + held_elsewhere();
            let was = std::mem::replace(&mut pressure, gauge.note(taken, pinned()));
            if pressure != was {
                set_purge_delay(if pressure == Pressure::None { NOT_BY_ITSELF_MS } else { SCARCE_MS });
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

/// Freed memory that has not been returned.
struct Freed {
    /// Processor time of the process at the last check.
    cpu: Duration,
    /// How long the memory has been kept.
    kept: Duration,
}

impl Freed {
    /// Makes a check: whether the memory is to be returned now.
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

/// Makes the system give memory in pages of 4 KiB, for processes whose slowest moments matter. Clearing a page of 2 MiB
/// stops the thread for up to milliseconds in a virtual machine.
pub(crate) fn use_small_pages() {
    // A kernel without large pages refuses, and then none are used.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

fn set_purge_delay(milliseconds: i64) {
    // SAFETY: the function takes two numbers and may be called at any time.
    unsafe { mi_option_set(PURGE_DELAY, milliseconds) };
}

fn leave_giving_back_to_us() {
    set_purge_delay(NOT_BY_ITSELF_MS);
    // Memory that was freed earlier still has the old delay. When that delay is over, mimalloc would return all memory
    // that is free by then.
    collect();
}

/// Returns free memory to the system.
fn collect() {
    // SAFETY: the function takes a flag; any thread may call it at any time.
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

    /// Growth of resident memory over `before`, after many pieces were allocated, used and freed.
    fn resident_after_freeing(before: u64, mut after: impl FnMut()) -> u64 {
        let pieces: Vec<Vec<u8>> = (0..FREED_BYTES / 4096).map(|_| vec![1; 4096]).collect();
        drop(std::hint::black_box(pieces));
        after();
        resident_bytes().saturating_sub(before)
    }

    /// Environment variable that marks the process in which nothing else runs.
    const ALONE: &str = "BUNKO_TEST_ALONE";

    /// One test, because the delay applies to the whole process. It has a process of its own, because threads of other
    /// tests allocate meanwhile, and prevent the return of free memory that they are looking at.
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
        // SAFETY: the function takes a number.
        let delay = || unsafe { libmimalloc_sys::mi_option_get(PURGE_DELAY) };
        // mimalloc's default for this option, and for no other.
        assert_eq!(delay(), 1000);
        let before = resident_bytes();
        let of_freed = |part: u64| FREED_BYTES as u64 * part / 8;

        leave_giving_back_to_us();
        // Longer than the usual delay, followed by a thread that allocates.
        let kept = resident_after_freeing(before, || {
            std::thread::sleep(Duration::from_millis(1100));
            drop(std::hint::black_box((0..10_000).map(|_| vec![1_u8; 4096]).collect::<Vec<_>>()));
        });
        assert!(kept > of_freed(7), "{kept} bytes are kept");
        // mimalloc may miss memory that another thread is looking at. Once it was used and freed again, it is returned.
        let left: Vec<u64> = std::iter::repeat_with(|| resident_after_freeing(before, collect)).take(5).collect();
        if left.iter().all(|left| *left > of_freed(2)) {
            // SAFETY: without a function the statistics go to standard error.
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
