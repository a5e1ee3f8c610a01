//! Sessions belong to the user who named them: two users may choose the same UUID, and have a session each.

use super::Asker;
use crate::connection::ClientConnection;
use crate::invocation::Invocation;
use crate::service::Service;
use crate::sessions::id::Digest;
use crate::sessions::{NamedSession, SessionId};
use bunko_access::Action;
use bunko_catalog::NOBODY;
use bunko_errors::Result;
use std::time::Instant;

impl Service {
    /// Notes that a command of the connection names a session: which it is.
    /// # Errors
    /// `TooManyLogicalSessions`; `Unauthorized` where it is said to be another user's.
    pub(crate) fn use_session(
        &self,
        connection: &mut ClientConnection,
        named: NamedSession,
    ) -> Result<Option<SessionId>> {
        let is_enforced = self.access.is_enforced();
        // Whoever is not logged in has no sessions, and fills no memory with them.
        if is_enforced && connection.user.is_none() {
            connection.session = None;
            return Ok(None);
        }
        let session = named.of(self.session_user(connection), Reach::Own)?;
        self.sessions.touch_again(&mut connection.session, session, Instant::now())?;
        Ok(Some(session))
    }

    /// Whose the sessions are that a connection begins.
    pub(crate) fn session_user(&self, connection: &ClientConnection) -> Digest {
        let user = connection.user.as_ref().filter(|_| self.access.is_enforced());
        user.map_or(NOBODY, |user| user.digest)
    }
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
        self == Self::All || session.user == invocation.service.session_user(invocation.connection)
    }
}
