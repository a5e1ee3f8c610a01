//! TLS of the server: with which certificate it shows itself, and whose certificates it takes.
//!
//! **Invariant:** a handshake has as much time as [`HANDSHAKE_TIME_MAX`], takes at most [`HANDSHAKE_BYTES_MAX`] from the
//! client, and is reckoned on threads that serve no connection.

mod client_verifier;
mod configuration;
mod handshake;
mod session;

pub(crate) use handshake::{HANDSHAKE_TIME_MAX, HandshakeError, shake_hands};
pub(crate) use session::TlsSession;

use bunko_certificates::{Details, Password};
use bunko_command::TlsVersion;
use parking_lot::RwLock;
use rustls::ServerConfig;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Most handshakes that are reckoned at once; others wait for their turn, and their time runs.
const HANDSHAKES_AT_ONCE: usize = 16;

/// What becomes of clients that do not speak TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainClients {
    /// They are served on the same port.
    Served,
    /// They are refused (`requireTLS`).
    Refused,
}

/// What becomes of clients without a certificate. One that is shown must be valid in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCertificates {
    /// They are refused.
    Required,
    /// They are served (`net.tls.allowConnectionsWithoutCertificates`).
    Optional,
}

/// How TLS is spoken.
#[derive(Clone, Debug)]
pub struct TlsOptions {
    /// What becomes of clients that do not speak it.
    pub plain_clients: PlainClients,
    /// PEM: the server's certificate, those between it and its authority, its key.
    pub certificate_key_file: PathBuf,
    /// What opens that key, where it is encrypted.
    pub certificate_key_password: Option<Password>,
    /// PEM: the authorities that certificates of clients are issued by.
    pub ca_file: PathBuf,
    /// PEM: which certificates are revoked.
    pub crl_file: Option<PathBuf>,
    /// What becomes of clients without a certificate.
    pub client_certificates: ClientCertificates,
    /// Those that are spoken; at least one.
    pub versions: Vec<TlsVersion>,
}

/// What the server knows of its TLS, and new connections are made with.
pub struct Tls {
    options: TlsOptions,
    current: RwLock<Arc<Current>>,
    turns: Semaphore,
}

/// What was on disk when it was last read.
struct Current {
    configuration: Arc<ServerConfig>,
    certificate: Details,
}

impl Tls {
    /// Reads the files.
    /// # Errors
    /// A sentence that names the file.
    pub fn load(options: TlsOptions) -> Result<Self, String> {
        let current = RwLock::new(Arc::new(configuration::read(&options)?));
        Ok(Self { options, current, turns: Semaphore::new(HANDSHAKES_AT_ONCE) })
    }

    /// Reads the files anew, for connections that come from now on.
    /// # Errors
    /// A sentence that names the file; then what was read before stays in force.
    pub fn rotate(&self) -> Result<(), String> {
        let read = Arc::new(configuration::read(&self.options)?);
        *self.current.write() = read;
        Ok(())
    }

    /// Of the server's own certificate.
    pub fn certificate(&self) -> Details {
        self.current.read().certificate.clone()
    }

    pub(crate) fn plain_clients(&self) -> PlainClients {
        self.options.plain_clients
    }

    fn configuration(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current.read().configuration)
    }
}
