//! Waits for the server's background work after a load: flushes, compaction, checkpoints.

use super::variant::{DataRole, Session};
use crate::clock;
use crate::database;
use bunko_bson::{DocumentBuf, number};
use bunko_report::result::{Finding, Settling};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(250);
/// The server has settled when it showed no sign of work for this long.
const QUIET: Duration = Duration::from_secs(2);
/// Share of one processor above which a server is working; answering the probe takes less.
const BUSY_SHARE: f64 = 0.05;

/// Result of a wait.
pub(super) struct Settled {
    pub settling: Settling,
    pub finding: Option<Finding>,
}

/// Asks the server to write everything to disk (`fsync`, which a server without it may refuse). Then waits until the
/// sizes in `dbStats`, the data directory and the server's processor time have not changed for two seconds. `None` for
/// all but the first of several generators.
pub(super) fn settle(session: &mut Session<'_>, longest: Duration) -> Option<Settled> {
    if session.role == DataRole::Guest {
        return None;
    }
    let began = clock::now();
    let process = session.probe.process();
    let fsync = DocumentBuf::new().with("fsync", 1_i32);
    let _ = session.control.run_command("admin", fsync.as_ref());
    let mut before = SignsOfWork::read(session);
    let mut last_sign = clock::now();
    let is_quiet = loop {
        if clock::since(last_sign) >= QUIET || session.stop.load(Ordering::Relaxed) {
            break true;
        }
        if clock::since(began) >= longest {
            break false;
        }
        std::thread::sleep(POLL);
        let now = SignsOfWork::read(session);
        if now.differs_from(&before) {
            last_sign = now.at;
        }
        before = now;
    };
    let used = session.probe.process().zip(process).map(|(now, before)| now.since(&before).cpu.as_secs_f64());
    let seconds = last_sign.duration_since(began).as_secs_f64();
    Some(Settled {
        settling: Settling { seconds, server_cpu_seconds: used },
        finding: (!is_quiet).then_some(Finding::NotSettled { seconds: longest.as_secs_f64() }),
    })
}

/// Signs of work in a server.
struct SignsOfWork {
    at: Instant,
    /// Sizes of storage, indexes and the data directory, in bytes.
    sizes: [Option<f64>; 3],
    process: Option<bunko_host::ProcessReading>,
}

impl SignsOfWork {
    fn read(session: &mut Session<'_>) -> Self {
        let statistics = database::statistics(&mut session.control);
        let size = |name: &str| statistics.as_ref().get(name).and_then(number::as_f64);
        let on_disk = session.probe.data_directory().map(|directory| bunko_host::directory_bytes(directory) as f64);
        let sizes = [size("storageSize"), size("indexSize"), on_disk];
        Self { at: clock::now(), sizes, process: session.probe.process() }
    }

    fn differs_from(&self, before: &Self) -> bool {
        let used = self.process.as_ref().zip(before.process.as_ref()).map(|(now, before)| now.since(before).cpu);
        let busy = used.map_or(0.0, |cpu| cpu.as_secs_f64() / (self.at - before.at).as_secs_f64());
        self.sizes != before.sizes || busy > BUSY_SHARE
    }
}
