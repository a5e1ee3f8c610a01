//! Handshakes. They cost more than most commands, so they are computed on threads of their own.

use super::client_verifier::is_of_authority;
use super::{Tls, TlsSession};
use crate::socket::Socket;
use rustls::{AlertDescription, CertificateError, Error, ServerConnection};
use std::fmt;
use std::io;
use std::time::Duration;

/// Time limit of a handshake, from the client's first byte on; with `requireTLS`, from the connection on.
pub(crate) const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
/// Maximum number of bytes that a client may send in a handshake. Certificate chains take a few kilobytes.
const HANDSHAKE_BYTES_MAX: usize = 64 * 1024;
/// Bytes read at once.
const READ_BYTES: usize = 4096;

/// The reason why a handshake failed.
#[derive(Debug)]
pub(crate) enum HandshakeError {
    /// One side refused the other's messages.
    Tls(Error),
    /// The connection failed, or the client closed it.
    Io(io::Error),
    TooLong,
    TooSlow,
}

impl fmt::Display for HandshakeError {
    /// The reason, in words that help an operator.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = match self {
            Self::Tls(error) => error,
            Self::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return f.write_str("the client closed the connection during the handshake");
            }
            Self::Io(error) => return error.fmt(f),
            Self::TooLong => return write!(f, "the client sent more than {HANDSHAKE_BYTES_MAX} bytes"),
            Self::TooSlow => return write!(f, "the client took more than {} s", HANDSHAKE_TIME_MAX.as_secs()),
        };
        let hint = match error {
            Error::NoCertificatesPresented => {
                "the client showed no certificate, and net.tls.allowConnectionsWithoutCertificates is not set"
            }
            Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => {
                "no authority of net.tls.CAFile issued the client's certificate"
            }
            Error::InvalidCertificate(CertificateError::Revoked) => "net.tls.CRLFile revokes the client's certificate",
            Error::InvalidCertificate(CertificateError::UnknownRevocationStatus) => {
                "net.tls.CRLFile has no list of the authority that issued the client's certificate"
            }
            Error::InvalidCertificate(
                CertificateError::ExpiredRevocationList | CertificateError::ExpiredRevocationListContext { .. },
            ) => "the list in net.tls.CRLFile is out of date",
            Error::InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. }) => {
                "the client's certificate has expired"
            }
            Error::InvalidCertificate(error) if is_of_authority(error) => {
                "the client's certificate is one of an authority (basicConstraints CA:TRUE), by which a client may log in only \
                 if it stands itself in net.tls.CAFile, is for clients, and there is no net.tls.CRLFile"
            }
            Error::AlertReceived(
                AlertDescription::UnknownCA
                | AlertDescription::BadCertificate
                | AlertDescription::CertificateUnknown
                | AlertDescription::CertificateExpired
                | AlertDescription::DecryptError,
            ) => "the client does not trust the server's certificate (net.tls.certificateKeyFile)",
            Error::PeerIncompatible(_) => "client and server have no version or cipher of TLS in common",
            _ => return error.fmt(f),
        };
        write!(f, "{hint}: {error}")
    }
}

impl From<io::Error> for HandshakeError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Performs the handshake with a client whose first bytes have been read.
pub(crate) async fn shake_hands(socket: &Socket, tls: &Tls, first: Vec<u8>) -> Result<TlsSession, HandshakeError> {
    tokio::time::timeout(HANDSHAKE_TIME_MAX, converse(socket, tls, first)).await.unwrap_or(Err(HandshakeError::TooSlow))
}

async fn converse(socket: &Socket, tls: &Tls, first: Vec<u8>) -> Result<TlsSession, HandshakeError> {
    let connection = ServerConnection::new(tls.configuration()).map_err(HandshakeError::Tls)?;
    let mut session = TlsSession::new(connection);
    let (mut incoming, mut received) = (first, 0);
    loop {
        received += incoming.len();
        if received > HANDSHAKE_BYTES_MAX {
            return Err(HandshakeError::TooLong);
        }
        // The semaphore is never closed.
        let turn = tls.turns.acquire().await;
        let outcome;
        (session, outcome) = tokio::task::spawn_blocking(move || {
            let outcome = session.accept(&incoming);
            (session, outcome)
        })
        .await
        .expect("a handshake does not panic");
        drop(turn);
        if let Err(error) = outcome {
            // Tells the client the reason, unless it does not read.
            session.try_flush(socket);
            return Err(HandshakeError::Tls(error));
        }
        session.flush(socket).await?;
        if !session.is_handshaking() {
            return Ok(session);
        }
        incoming = Vec::with_capacity(READ_BYTES);
        if socket.read_more(&mut incoming).await? == 0 {
            return Err(HandshakeError::Io(io::ErrorKind::UnexpectedEof.into()));
        }
    }
}
