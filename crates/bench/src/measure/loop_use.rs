//! Processor time that the kernel spends on a loop device during a measurement.

use bunko_host::{LoopDevice, LoopWatch};
use bunko_report::result::LoopDeviceUse;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// How often kernel threads are observed.
const PERIOD: Duration = Duration::from_millis(100);

/// Observes kernel threads until it ends.
pub(crate) struct LoopUse {
    device: LoopDevice,
    over: mpsc::Sender<()>,
    /// `None` if no kernel thread is visible, or the observing thread cannot be started.
    watcher: Option<JoinHandle<LoopWatch>>,
}

impl LoopUse {
    pub fn begin(device: LoopDevice) -> Self {
        let (over, is_over) = mpsc::channel();
        let watch = LoopWatch::begin(device.clone());
        let watcher = watch.and_then(|mut watch| {
            let look = move || {
                while is_over.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                    watch.look();
                }
                watch.look();
                watch
            };
            Builder::new().name("loop-device".to_owned()).spawn(look).ok()
        });
        Self { device, over, watcher }
    }

    pub fn end(self) -> LoopDeviceUse {
        drop(self.over);
        let work = self.watcher.map(|watcher| watcher.join().expect("a watcher does not panic").work());
        LoopDeviceUse {
            device: self.device.name,
            cpu_seconds: work.map(|work| work.own.as_secs_f64()),
            shared_cpu_seconds: work.map(|work| work.shared.as_secs_f64()),
        }
    }
}
