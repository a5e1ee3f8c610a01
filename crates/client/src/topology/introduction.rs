//! A handshake with a server: it says its role, and may begin the login.

use crate::auth::{self, Speculation};
use crate::connection::Connection;
use crate::error::ClientError;
use crate::settings::Settings;
use crate::uri::{Host, Uri};
use bunko_bson::DocumentBuf;
use std::sync::Arc;
use std::time::Instant;

/// A connection that has completed its handshake and has not authenticated yet.
pub(super) struct Introduction {
    pub connection: Connection,
    speculation: Option<Speculation>,
}

impl Introduction {
    /// Connects and does the handshake.
    pub fn make(settings: &Arc<Settings>, host: &Host, deadline: Instant) -> Result<Self, ClientError> {
        let speculation = settings.uri.credential.as_ref().and_then(Speculation::begin);
        let hello = hello_command(&settings.uri, speculation.as_ref());
        let connection = Connection::introduce(settings, host, deadline, hello.as_ref())?;
        Ok(Self { connection, speculation })
    }

    /// Authenticates, unless the server has no users, and sets the timeouts for commands.
    pub fn finish(self, settings: &Settings) -> Result<Connection, ClientError> {
        if self.connection.role().authenticates() {
            return self.log_in(settings);
        }
        self.connection.set_timeouts(settings.uri.socket_timeout)?;
        Ok(self.connection)
    }

    /// Authenticates, and sets the timeouts for commands.
    pub fn log_in(self, settings: &Settings) -> Result<Connection, ClientError> {
        let Self { mut connection, speculation } = self;
        connection.set_timeouts(Some(settings.uri.connect_timeout))?;
        if let Some(credential) = &settings.uri.credential {
            auth::authenticate(&mut connection, credential, speculation, &settings.keys)?;
        }
        connection.set_timeouts(settings.uri.socket_timeout)?;
        Ok(connection)
    }
}

fn hello_command(uri: &Uri, speculation: Option<&Speculation>) -> DocumentBuf {
    let driver = DocumentBuf::new().with("name", "bunko-client").with("version", env!("CARGO_PKG_VERSION"));
    let os = DocumentBuf::new().with("type", std::env::consts::OS).with("architecture", std::env::consts::ARCH);
    let mut client = DocumentBuf::new();
    if let Some(name) = &uri.app_name {
        client.append("application", &DocumentBuf::new().with("name", name));
    }
    client.append("driver", &driver).append("os", &os);
    // The older command name with helloOk: servers before 4.4.2 do not know `hello`.
    let mut hello = DocumentBuf::new().with("isMaster", 1_i32).with("helloOk", true).with("client", &client);
    if let (Some(speculation), Some(credential)) = (speculation, &uri.credential) {
        speculation.extend_hello(credential, &mut hello);
    }
    hello
}
