//! TLS of the server: its certificate, and the client certificates that it accepts.
//!
//! **Invariant:** a handshake takes at most [`HANDSHAKE_TIME_MAX`], reads at most `HANDSHAKE_BYTES_MAX` from the
//! client, and is computed on threads that serve no connection.

mod client_verifier;
mod configuration;
mod handshake;
mod session;

pub(crate) use handshake::{HANDSHAKE_TIME_MAX, HandshakeError, shake_hands};
pub(crate) use session::TlsSession;

use bunko_certificates::{Details, Password};
use bunko_observe::TlsVersion;
use parking_lot::RwLock;
use rustls::ServerConfig;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Maximum number of handshakes computed at once; others wait for their turn, within their time limit.
const HANDSHAKES_AT_ONCE: usize = 16;

/// Treatment of clients that do not use TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainClients {
    /// Plain clients are served on the same port.
    Served,
    /// Plain clients are refused (`requireTLS`).
    Refused,
}

/// Treatment of clients without a certificate. A certificate that a client shows must always be valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCertificates {
    /// Clients without a certificate are refused.
    Required,
    /// Clients without a certificate are served (`net.tls.allowConnectionsWithoutCertificates`).
    Optional,
}

/// Options of TLS.
#[derive(Clone, Debug)]
pub struct TlsOptions {
    /// Treatment of clients that do not use TLS.
    pub plain_clients: PlainClients,
    /// PEM: the server's certificate, the intermediate certificates, and the private key.
    pub certificate_key_file: PathBuf,
    /// The password of an encrypted key.
    pub certificate_key_password: Option<Password>,
    /// PEM: the authorities that issue client certificates.
    pub ca_file: PathBuf,
    /// PEM: lists of revoked certificates.
    pub crl_file: Option<PathBuf>,
    /// Treatment of clients without a certificate.
    pub client_certificates: ClientCertificates,
    /// Accepted versions; at least one.
    pub versions: Vec<TlsVersion>,
}

/// The server's TLS, which new connections use.
pub struct Tls {
    options: TlsOptions,
    current: RwLock<Arc<Current>>,
    turns: Semaphore,
}

/// The files as last read.
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

    /// Reads the files again, for new connections.
    /// # Errors
    /// A sentence that names the file; the files read before then stay in force.
    pub fn rotate(&self) -> Result<(), String> {
        let read = Arc::new(configuration::read(&self.options)?);
        *self.current.write() = read;
        Ok(())
    }

    /// Details of the server's own certificate.
    pub fn certificate(&self) -> Details {
        self.current.read().certificate.clone()
    }

    /// Treatment of clients that do not use TLS.
    pub fn plain_clients(&self) -> PlainClients {
        self.options.plain_clients
    }

    /// The configuration for a new connection.
    pub fn configuration(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current.read().configuration)
    }
}
