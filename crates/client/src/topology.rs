//! The search for a server: every known host is asked for its role at the same time, and the first one that suits is
//! used.
//!
//! A deployment is searched once per connection. A lab wants a failover to appear as errors and not to be hidden, so
//! the hosts are not monitored afterwards.
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

/// An authenticated connection to a server that the URI asks for.
/// # Errors
/// See [`Connection::connect`].
pub(crate) fn connect(settings: &Arc<Settings>) -> Result<Connection, ClientError> {
    let introduction = Search::new(settings).run()?;
    finish(settings, introduction)
}

/// Authenticates, and sets the timeouts for commands.
pub(crate) fn finish(settings: &Arc<Settings>, introduction: Introduction) -> Result<Connection, ClientError> {
    let Introduction { mut connection, speculation } = introduction;
    connection.set_timeouts(Some(settings.uri.connect_timeout))?;
    if let Some(credential) = settings.uri.credential.as_ref().filter(|_| connection.role().authenticates()) {
        auth::authenticate(&mut connection, credential, speculation, &settings.keys)?;
    }
    connection.set_timeouts(settings.uri.socket_timeout)?;
    Ok(connection)
}
