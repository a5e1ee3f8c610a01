//! Index builds that an earlier process did not finish. They are operations without a client: `currentOp` shows them
//! and `killOp` ends them.

use crate::commands;
use crate::service::Service;
use bunko_authority::Shown;
use bunko_bson::{ArrayBuf, DocumentBuf};
use bunko_catalog::{InterruptedBuild, UnfinishedBuild};
use bunko_operation::{MemoryLimits, OperationContext};
use bunko_session::operations::{Beginning, Interruption};
use std::sync::Arc;
use std::time::Duration;

/// How often the thread of a set's member looks for builds that a step-down interrupted, and whether it must stop.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

impl Service {
    /// Resumes the builds that a stop of the server interrupted; on a member of a set also those that a step-down
    /// interrupted, until the server stops. `on_failure` is called with builds that failed.
    pub fn resume_builds(&self, on_failure: &dyn Fn(UnfinishedBuild)) {
        let operation = self.own_operation();
        while operation.check().is_ok() {
            let builds = std::mem::take(&mut *self.builds_to_resume.lock());
            builds.iter().filter_map(|build| self.resume_build(build)).for_each(on_failure);
            if self.replica_set.is_none() {
                return;
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
    }

    /// Resumes a build. Returns the build if it failed.
    fn resume_build(&self, build: &InterruptedBuild) -> Option<UnfinishedBuild> {
        let namespace = build.collection().namespace();
        let command = as_asked_for(namespace.collection(), build);
        let shown = Shown::of_own(command.as_ref());
        let registration = self.operations.register_own();
        let beginning = Beginning {
            entry: &commands::create_indexes::COMMAND.facts,
            database: namespace.database(),
            command: shown.as_ref(),
            session: None,
        };
        let running = registration.begin(&beginning, None);
        let server = Arc::clone(&self.facts.memory_limits.server);
        let limits = MemoryLimits { server, ..MemoryLimits::none() };
        let operation = OperationContext::new(Interruption::of(&running, None), limits);
        self.catalog.resume_build(build, &*operation)
    }
}

/// The command that began such a build.
fn as_asked_for(collection: &str, build: &InterruptedBuild) -> DocumentBuf {
    let mut indexes = ArrayBuf::new();
    for index in build.indexes() {
        indexes.push(&DocumentBuf::new().with("key", index.spec().key_pattern()).with("name", &index.name));
    }
    DocumentBuf::new().with(commands::create_indexes::COMMAND.name, collection).with("indexes", &indexes)
}
