//! The processor time of a thread: it tells how much work the thread has done, however busy the machine is.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// A moment on the clock of the processor time of the thread that asks.
#[derive(Clone, Copy, Debug)]
pub struct CpuTime(Duration);

impl CpuTime {
    /// The processor time of this thread so far.
    pub fn now() -> Self {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Self(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
    }

    /// Processor time that this thread has used since. It must be the thread that called [`CpuTime::now`].
    pub fn elapsed(self) -> Duration {
        Self::now().0.saturating_sub(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_sleeps_uses_none() {
        let began = CpuTime::now();
        std::thread::sleep(Duration::from_millis(200));
        assert!(began.elapsed() < Duration::from_millis(100), "{:?}", began.elapsed());
        while began.elapsed() < Duration::from_millis(20) {
            std::hint::spin_loop();
        }
    }
}
