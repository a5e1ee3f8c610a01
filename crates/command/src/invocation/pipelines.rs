//! A command, as its pipelines see it.

use super::Invocation;
use crate::commands;
use bunko_aggregate::Rewrites;
use bunko_authority::Asker;
use bunko_observe::query_statistics::QueryStatistics;
use bunko_operation::RunOn;
use bunko_pipelines::operation_description::Activity;
use bunko_pipelines::{PipelineContext, StageClient, Surroundings};
use bunko_query::QueryScope;
use bunko_request::Request;
use bunko_request::deployment::Deployment;
use bunko_request::facts::CommandFacts;
use bunko_session::sessions::id::Digest;
use bunko_settings::query_settings::AllQuerySettings;
use std::sync::Arc;

impl PipelineContext for Invocation<'_> {
    fn surroundings(&self) -> Surroundings {
        let service = self.service;
        Surroundings {
            catalog: Arc::clone(&service.catalog),
            sessions: Arc::clone(&service.sessions),
            counters: Arc::clone(&service.counters),
            entry_count: Arc::clone(&service.entry_count),
            clock: service.world.clock.clone(),
            host: Arc::clone(&service.facts.host),
            operation: Arc::clone(self.operation()),
            started_at_ms: service.started_at_ms,
        }
    }

    fn request(&self) -> &Request<'_> {
        &self.request
    }

    fn scope(&self) -> Arc<QueryScope> {
        Invocation::scope(self)
    }

    fn rewrites(&self) -> Rewrites {
        self.service.fail_points.rewrites()
    }

    fn has_own_thread(&self) -> bool {
        self.run_on == RunOn::OwnThread
    }
}

impl StageClient for Invocation<'_> {
    fn asker(&self) -> Option<Asker<'_>> {
        Invocation::asker(self)
    }

    fn session_user(&self) -> Digest {
        self.service.session_user(self.connection)
    }

    fn deployment(&self) -> Deployment {
        self.service.deployment()
    }

    fn activity(&self) -> Activity<'_> {
        self.service.activity()
    }

    fn query_settings(&self) -> &AllQuerySettings {
        &self.service.query_settings
    }

    fn query_statistics(&self) -> &QueryStatistics {
        &self.service.query_statistics
    }

    fn facts_of(&self, command: &str) -> Option<&'static CommandFacts> {
        commands::find(command).map(|command| &command.facts)
    }
}
