//! The parts of a command and its client that pipelines use.

use crate::operation_description::Activity;
use crate::surroundings::Surroundings;
use bunko_aggregate::Rewrites;
use bunko_authority::Asker;
use bunko_errors::{Failure, Result};
use bunko_observe::query_statistics::QueryStatistics;
use bunko_query::QueryScope;
use bunko_request::Request;
use bunko_request::deployment::Deployment;
use bunko_request::facts::CommandFacts;
use bunko_session::sessions::id::Digest;
use bunko_settings::query_settings::AllQuerySettings;
use std::sync::Arc;

/// The command that a pipeline runs for.
pub trait PipelineContext {
    /// The parts of the server that stages use, and the command's operation.
    fn surroundings(&self) -> Surroundings;

    /// The command as it was received.
    fn request(&self) -> &Request<'_>;

    /// The values that expressions see. Strings are compared by their bytes.
    fn scope(&self) -> Arc<QueryScope>;

    /// How the pipeline is rewritten.
    fn rewrites(&self) -> Rewrites;

    /// Whether the command runs on a thread of its own, which it may hold for long.
    fn has_own_thread(&self) -> bool;

    /// Fails if the work is long and would make other connections wait. Call it before anything is done.
    /// # Errors
    /// [`Failure::too_long`].
    fn check_thread(&self, is_long: bool) -> Result<()> {
        if is_long && !self.has_own_thread() { Err(Failure::too_long()) } else { Ok(()) }
    }
}

/// The client of a pipeline that begins with the server's own knowledge.
pub trait StageClient: PipelineContext {
    /// The client's identity, if the server checks privileges.
    fn asker(&self) -> Option<Asker<'_>>;

    /// The owner of the sessions that the client begins.
    fn session_user(&self) -> Digest;

    /// Whether the server is a member of a replica set.
    fn deployment(&self) -> Deployment;

    /// The work that the server does now.
    fn activity(&self) -> Activity<'_>;

    /// The settings of query shapes.
    fn query_settings(&self) -> &AllQuerySettings;

    /// The statistics of queries.
    fn query_statistics(&self) -> &QueryStatistics;

    /// The facts about a command.
    fn facts_of(&self, command: &str) -> Option<&'static CommandFacts>;
}
