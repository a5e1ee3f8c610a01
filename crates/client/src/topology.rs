//! Finding the server to talk to: every known host is asked at the same time who it is, and the first one whose role
//! suits is taken.
//!
//! A deployment is looked at once per connection. A lab wants to see a failover as errors, not to have it hidden, so
//! nothing watches the hosts afterwards.
//!
//! Source: MongoDB specifications, "Server Discovery And Monitoring" and "Server Selection".

mod member;
mod search;

pub(crate) use member::Role;

use crate::auth;
use crate::connection::{Connection, Introduction};
use crate::error::ClientError;
use crate::settings::Settings;
use search::Search;
use std::sync::Arc;

/// A connection, authenticated, to a server that the URI asks for.
/// # Errors
/// See [`Connection::connect`].
pub(crate) fn connect(settings: &Arc<Settings>) -> Result<Connection, ClientError> {
    let introduction = Search::new(settings).run()?;
    finish(settings, introduction)
}

/// Authenticates, and leaves the timeouts as commands want them.
pub(crate) fn finish(settings: &Arc<Settings>, introduction: Introduction) -> Result<Connection, ClientError> {
    let Introduction { mut connection, speculation } = introduction;
    connection.set_timeouts(Some(settings.uri.connect_timeout))?;
    if let Some(credential) = settings.uri.credential.as_ref().filter(|_| connection.role().authenticates()) {
        auth::authenticate(&mut connection, credential, speculation, &settings.keys)?;
    }
    connection.set_timeouts(settings.uri.socket_timeout)?;
    Ok(connection)
}
