//! Threads of the server's own work.

use bunko_catalog::UnfinishedFate;
use bunko_command::{Service, delete_expired_until_stopped};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Resumes interrupted index builds, while the first connections are served.
pub fn resume_index_builds(service: Arc<Service>) -> Result<JoinHandle<()>, String> {
    let builds = move || {
        service.resume_builds(&|build| {
            let (namespace, indexes) = (build.namespace, build.indexes.join(", "));
            match build.fate {
                UnfinishedFate::Dropped => {
                    tracing::error!(target: "INDEX", id = 20362, ctx = "index-build", namespace, indexes, error = %build.failure, "An interrupted index build could not continue: its indexes are dropped");
                }
                UnfinishedFate::Kept => {
                    tracing::warn!(target: "INDEX", id = 20363, ctx = "index-build", namespace, indexes, error = %build.failure, "An interrupted index build could not continue: the next start tries again");
                }
            }
        });
    };
    let thread = std::thread::Builder::new().name("index-build".into());
    thread.spawn(builds).map_err(|error| format!("cannot start a thread: {error}"))
}

/// Deletes expired documents, by their TTL indexes.
pub fn delete_expired(service: Arc<Service>) -> Result<JoinHandle<()>, String> {
    let passes = move || {
        delete_expired_until_stopped(&service, &|namespace, index, failure| {
            tracing::error!(target: "INDEX", id = 5_400_703, ctx = "TTLMonitor", namespace, index, error = %failure, "Expired documents could not be deleted");
        });
    };
    let thread = std::thread::Builder::new().name("ttl".into());
    thread.spawn(passes).map_err(|error| format!("cannot start a thread: {error}"))
}

/// Whether a thread that was asked to end does so within a few seconds.
pub fn has_ended(thread: &JoinHandle<()>) -> bool {
    let began = Instant::now();
    while !thread.is_finished() && began.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(2));
    }
    thread.is_finished()
}
