//! A session belongs to the user who named it: two users may choose the same UUID and have separate sessions.

use crate::connection::ClientConnection;
use crate::invocation::Invocation;
use crate::service::Service;
use bunko_access::Action;
use bunko_authority::Asker;
use bunko_catalog::NOBODY;
use bunko_errors::Result;
use bunko_session::sessions::id::Digest;
use bunko_session::sessions::{NamedSession, SessionId};

impl Service {
    /// Notes that a command of the connection names a session, and returns the session's id.
    /// # Errors
    /// `TooManyLogicalSessions`; `Unauthorized` if the session is named as another user's.
    pub(crate) fn use_session(
        &self,
        connection: &mut ClientConnection,
        named: NamedSession,
    ) -> Result<Option<SessionId>> {
        let is_enforced = self.authority.access.is_enforced();
        // A client that is not logged in gets no sessions, so it cannot fill memory with them.
        if is_enforced && connection.user().is_none() {
            connection.session = None;
            return Ok(None);
        }
        let session = named.of(self.session_user(connection))?;
        self.sessions.touch_again(&mut connection.session, session, self.world.clock.now())?;
        Ok(Some(session))
    }

    /// The user who owns the sessions that a connection begins.
    pub(crate) fn session_user(&self, connection: &ClientConnection) -> Digest {
        let user = connection.user().filter(|_| self.authority.access.is_enforced());
        user.map_or(NOBODY, |user| user.digest)
    }
}

/// The sessions that a command may end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    All,
    Own,
}

impl Reach {
    /// All sessions if the user may end any session or if privileges are not checked, else the user's own.
    pub(crate) fn of(invocation: &Invocation<'_>) -> Self {
        let reaches_all = invocation.asker().is_none_or(|asker: Asker<'_>| asker.on_cluster(Action::KillAnySession));
        if reaches_all { Self::All } else { Self::Own }
    }

    /// The user's own sessions if privileges are checked, else all.
    pub(crate) fn own(invocation: &Invocation<'_>) -> Self {
        if invocation.asker().is_some() { Self::Own } else { Self::All }
    }

    pub(crate) fn includes(self, invocation: &Invocation<'_>, session: SessionId) -> bool {
        self == Self::All || session.user == invocation.service.session_user(invocation.connection)
    }
}
