//! Connections of one server to another, which are opened again and again.

use super::introduction::Introduction;
use crate::connection::Connection;
use crate::error::ClientError;
use crate::settings::Settings;
use crate::uri::Uri;
use std::sync::Arc;

/// Opens connections to the first host of a URI. It reads the URI's files once, and derives the key from the password
/// once.
#[derive(Clone)]
pub struct Dialer(Arc<Settings>);

impl Dialer {
    /// Reads the URI's TLS files.
    /// # Errors
    /// `Tls`, if a file cannot be used.
    pub fn new(uri: &Uri) -> Result<Self, ClientError> {
        Settings::new(uri).map(Self)
    }

    /// Connects once, whatever the server's role is. It logs in to an arbiter too, which knows no users but the other
    /// members of its set.
    /// # Errors
    /// As [`Connection::dial`].
    pub fn dial(&self) -> Result<Connection, ClientError> {
        let Self(settings) = self;
        let deadline = settings.clock.now() + settings.uri.connect_timeout;
        Introduction::make(settings, &settings.uri.hosts[0], deadline)?.log_in(settings)
    }
}
