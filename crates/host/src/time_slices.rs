//! How the kernel shares the processors among the threads of this process.
#![allow(unsafe_code)]

use std::time::Duration;

/// How long a thread that serves works until another that waits for its processor may have it. The least that Linux takes.
const SHORT: Duration = Duration::from_micros(100);
/// The same of a thread that works for long. Where one that serves wakes, it need not have worked so long: it has the
/// processor at once, because its own slice is shorter.
const LONG: Duration = Duration::from_millis(3);

/// Has the kernel let this thread, and those that it starts from now on, work for 0.1 ms at a time where others wait.
///
/// By itself the kernel leaves a thread that only works alone for some milliseconds, and whoever serves short requests beside
/// two such threads, an update of many and the flush of what it wrote, waits for that at every step. To give way by
/// `sched_yield` would do as well, and cost what others may need later: since Linux 6.18 a thread that yields loses the rest of
/// its slice, so that one process that computes beside the server would take nearly all of its processor.
///
/// A kernel before 6.12 takes no notice.
pub fn use_short_slices() {
    use_slices(SHORT);
}

/// Has the kernel let this thread, and those that it starts from now on, work for 3 ms at a time where others wait, unless one
/// of them has short slices.
///
/// Between two threads of equal slices the one that wakes waits for the kernel's next tick, which may be 4 ms away.
pub fn use_long_slices() {
    use_slices(LONG);
}

fn use_slices(length: Duration) {
    let Some(mut attributes) = attributes() else { return };
    // Whoever asked for another policy, such as real time, knows what for.
    if attributes.sched_policy != libc::SCHED_OTHER as u32 {
        return;
    }
    attributes.sched_runtime = length.as_nanos() as u64;
    let flags: libc::c_uint = 0;
    // SAFETY: the structure is whole, and says its size; only this thread is concerned. A refusal changes nothing.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, flags) };
}

/// Those of this thread; `None` where the kernel does not tell.
fn attributes() -> Option<libc::sched_attr> {
    let mut attributes = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: 0,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    };
    let (size, flags): (libc::c_uint, libc::c_uint) = (attributes.size, 0);
    // SAFETY: the kernel writes no more than `size` bytes.
    let outcome = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, flags) };
    (outcome == 0).then_some(attributes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice() -> Duration {
        Duration::from_nanos(attributes().expect("a kernel that tells").sched_runtime)
    }

    #[test]
    fn threads_inherit_slices() {
        // On a thread of its own: others of this process keep theirs.
        let inherited = std::thread::spawn(|| {
            let nice = attributes().map(|attributes| attributes.sched_nice);
            use_short_slices();
            let short = std::thread::spawn(slice).join().expect("no panic");
            use_long_slices();
            assert_eq!(attributes().map(|attributes| attributes.sched_nice), nice);
            (short, std::thread::spawn(slice).join().expect("no panic"))
        });
        match inherited.join().expect("no panic") {
            (Duration::ZERO, _) => eprintln!("SKIPPED: this kernel has no slices of threads"),
            inherited => assert_eq!(inherited, (SHORT, LONG)),
        }
    }
}
