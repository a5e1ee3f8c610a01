//! How the kernel shares processors among the threads of this process.
#![allow(unsafe_code)]

use std::time::Duration;

/// Time slice of a thread that serves requests: the shortest that Linux accepts.
const SHORT: Duration = Duration::from_micros(100);
/// Time slice of a busy thread. A serving thread that wakes meanwhile runs at once, because its own slice is shorter.
const LONG: Duration = Duration::from_millis(3);

/// Makes the kernel give this thread, and threads that it starts from now on, slices of 0.1 ms while other threads
/// wait.
///
/// By default the kernel lets a busy thread run for some milliseconds. A thread that serves short requests beside two
/// busy ones, such as a large update and the flush of its writes, would wait that long at every step. `sched_yield`
/// would help as well, but at a price: since Linux 6.18 a thread that yields loses the rest of its slice, so that one
/// busy process beside the server would take nearly all of its processor.
///
/// Kernels before 6.12 ignore this setting.
pub fn use_short_slices() {
    use_slices(SHORT);
}

/// Makes the kernel give this thread, and threads that it starts from now on, slices of 3 ms while other threads wait,
/// unless a waiting thread has short slices.
///
/// Between two threads of equal slices, a thread that wakes waits for the kernel's next tick, which may be 4 ms away.
pub fn use_long_slices() {
    use_slices(LONG);
}

fn use_slices(length: Duration) {
    let Some(mut attributes) = attributes() else { return };
    // A thread with another policy, such as real time, keeps it.
    if attributes.sched_policy != libc::SCHED_OTHER as u32 {
        return;
    }
    attributes.sched_runtime = length.as_nanos() as u64;
    let flags: libc::c_uint = 0;
    // SAFETY: the structure is complete and states its size; the call affects only this thread. A refusal changes
    // nothing.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, flags) };
}

/// Scheduling attributes of this thread; `None` where the kernel does not tell.
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
        // In a thread of its own, so that other threads of this process keep their slices.
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
