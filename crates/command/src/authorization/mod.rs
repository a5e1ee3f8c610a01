//! The privileges that each command declares in its entry of the table. They are checked before anything else of the
//! command is parsed. The checks themselves are in the crate `authority`.
//!
//! **Invariant:** a command without a declaration does not compile.

pub(crate) mod own_sessions;

use crate::connection::ClientConnection;
use crate::service::Service;
use bunko_access::Action;
use bunko_authority::Asker;
use bunko_authority::privileges::pipelines::StagePrivileges;
use bunko_errors::Result;
use bunko_pipelines::source_stages;
use bunko_request::Request;
use bunko_request::facts::CommandFacts;
use bunko_stages::CHANGE_STREAM;

/// The privileges that a command needs.
#[derive(Clone, Copy)]
pub enum Privileges {
    /// Not declared: the entry lacks its privileges, and does not compile.
    Undeclared,
    /// None: it also runs before a login.
    BeforeLogin,
    /// A login.
    Login,
    /// The action on the collection that its first value names.
    OnCollection(Action),
    /// The action on the database that it is sent to.
    OnDatabase(Action),
    /// The action on the server as a whole.
    OnCluster(Action),
    /// Decided by the request.
    By(fn(&Asker<'_>, &Request<'_>) -> bool),
    /// Decided by the request, and by the cursors, operations or commands of the server that it names.
    ByServer(fn(&Service, &Asker<'_>, &Request<'_>) -> bool),
}

impl Privileges {
    /// Whether the command as it was sent is allowed.
    pub(crate) fn allow(self, service: &Service, asker: &Asker<'_>, request: &Request<'_>) -> bool {
        match self {
            Self::Undeclared => false,
            Self::BeforeLogin => true,
            Self::Login => asker.user().is_some(),
            Self::OnCollection(action) => asker.on_named(request, action),
            Self::OnDatabase(action) => asker.on_database(request.database, action),
            Self::OnCluster(action) => asker.on_cluster(action),
            Self::By(ask) => ask(asker, request),
            Self::ByServer(ask) => ask(service, asker, request),
        }
    }

    /// Refuses a command that its client may not run.
    /// # Errors
    /// `Unauthorized`, which is logged as well.
    pub(crate) fn authorize(
        self,
        service: &Service,
        connection: &mut ClientConnection,
        command: &CommandFacts,
        request: &Request<'_>,
    ) -> Result<()> {
        if matches!(self, Self::BeforeLogin) {
            return Ok(());
        }
        let is_allowed = |asker: &Asker<'_>| self.allow(service, asker, request);
        service.authority.authorize(connection.client_mut(), command, request, is_allowed)
    }
}

/// The privileges that a pipeline beginning with a stage needs for its source; `None` if the stage is not a source.
pub(crate) fn privileges_of(stage: &str) -> Option<StagePrivileges> {
    let own = source_stages::find(stage).map(|stage| stage.privileges);
    own.or_else(|| (stage == CHANGE_STREAM.name).then_some(StagePrivileges::By(bunko_change_stream::may_open)))
}
