//! Sessions belong to the user who named them first.

use super::Asker;
use crate::connection::ClientConnection;
use crate::invocation::Invocation;
use crate::service::Service;
use crate::sessions::SessionId;
use crate::sessions::id::{Digest, digest_of};
use bunko_access::Action;
use bunko_errors::{ErrorCode, Failure, Result};
use std::time::Instant;

impl Service {
    /// Notes that a command of the connection names a session.
    /// # Errors
    /// `TooManyLogicalSessions`; `Unauthorized` where it is another user's, or said to be.
    pub(crate) fn use_session(
        &self,
        connection: &mut ClientConnection,
        session: SessionId,
        said_of: Option<Digest>,
    ) -> Result<()> {
        let now = Instant::now();
        let is_enforced = self.access.is_enforced();
        let own = || digest_of(connection.user.as_ref().filter(|_| is_enforced).map(|user| &user.name));
        if said_of.is_some_and(|said| said != own()) {
            let message = "Unauthorized to set user digest in LogicalSessionId";
            return Err(Failure::new(ErrorCode::UNAUTHORIZED, message));
        }
        if !is_enforced {
            return self.sessions.touch_again(&mut connection.session, session, now);
        }
        // Whoever is not logged in has no sessions, and fills no memory with them.
        let Some(user) = &connection.user else {
            connection.session = None;
            return Ok(());
        };
        self.sessions.touch_again(&mut connection.session, session, now)?;
        let is_own = connection.session.as_ref().is_none_or(|session| session.belongs_to(&user.name));
        if is_own { Ok(()) } else { Err(others()) }
    }
}

fn others() -> Failure {
    Failure::new(ErrorCode::UNAUTHORIZED, "the session belongs to another user")
}

/// Which sessions a command may end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    All,
    Own,
}

impl Reach {
    /// Those of everybody for who may end them all, and where no privileges are asked for.
    pub(crate) fn of(invocation: &Invocation<'_>) -> Self {
        let reaches_all = invocation.asker().is_none_or(|asker: Asker<'_>| asker.on_cluster(Action::KillAnySession));
        if reaches_all { Self::All } else { Self::Own }
    }

    /// Those of whoever asks, where privileges are asked for.
    pub(crate) fn own(invocation: &Invocation<'_>) -> Self {
        if invocation.asker().is_some() { Self::Own } else { Self::All }
    }

    pub(crate) fn includes(self, invocation: &Invocation<'_>, session: SessionId) -> bool {
        let user = invocation.connection.user.as_ref().map(|user| &user.name);
        self == Self::All || user.is_some() && invocation.service.sessions.owner(session).as_ref() == user
    }
}
