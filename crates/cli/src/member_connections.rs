//! Connections to the other members of the set.

use crate::access::Access;
use crate::configuration::{ClusterAuth, Settings};
use bunko_client::{ClientError, Connection, Dialer, TlsOptions, Uri, percent_encoded};
use bunko_command::Process;
use std::collections::HashMap;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};

/// Longest time that a connection may take.
const CONNECT_TIMEOUT_MS: u32 = 1000;
/// Longest time that an answer may take.
const ANSWER_TIMEOUT_MS: u32 = 5000;
/// Hosts whose dialers are kept: more than a set has members.
const HOSTS_MAX: usize = 64;

/// Opens connections to other members, and logs in on them as a member.
struct MemberConnections {
    /// The part of a URI before the host: the login by each key, or nothing.
    logins: Vec<String>,
    /// Options of the URI.
    options: String,
    tls: Option<TlsOptions>,
    /// The dialers for each host, one for each login. A dialer has read the certificates.
    dialers: Mutex<HashMap<String, Vec<Dialer>>>,
}

/// The actions of commands on the process, with connections to other members, which use rotated certificates too.
pub fn with_connections(settings: &Settings, access: &Access, process: Process) -> Process {
    let connections = Arc::new(MemberConnections::new(settings, access));
    let (rotate, rotated) = (process.rotate_certificates, Arc::clone(&connections));
    Process {
        dial: Arc::new(move |host| connections.dial(host)),
        rotate_certificates: Box::new(move || {
            rotate()?;
            rotated.forget();
            Ok(())
        }),
        is_this_machine: Box::new(is_this_machine),
        ..process
    }
}

impl MemberConnections {
    fn new(settings: &Settings, access: &Access) -> Self {
        let mut options = format!(
            "directConnection=true&appName=bunko-member&connectTimeoutMS={CONNECT_TIMEOUT_MS}&socketTimeoutMS={ANSWER_TIMEOUT_MS}"
        );
        let logins = match &settings.cluster_auth {
            ClusterAuth::None => vec![String::new()],
            ClusterAuth::KeyFile(_) => {
                options.push_str("&authSource=local&authMechanism=SCRAM-SHA-256");
                access.keys().map(|key| format!("__system:{}@", percent_encoded(key))).collect()
            }
            ClusterAuth::Certificate => {
                options.push_str("&authMechanism=MONGODB-X509");
                vec![String::new()]
            }
        };
        // A server in the mode allowTLS accepts TLS, and its members talk to each other without.
        let is_encrypted = ["preferTLS", "requireTLS"].contains(&settings.tls_mode.as_str());
        let tls = settings.tls.as_ref().filter(|_| is_encrypted).map(|tls| TlsOptions {
            ca_file: Some(tls.ca_file.clone()),
            certificate_key_file: Some(tls.certificate_key_file.clone()),
            certificate_key_password: tls.certificate_key_password.clone(),
            verification: settings.verification,
        });
        if let Some(path) = tls.as_ref().and_then(|tls| tls.certificate_key_file.as_ref()) {
            let path = percent_encoded(path.as_os_str().as_encoded_bytes());
            options = format!("{options}&tls=true&tlsCertificateKeyFile={path}");
        }
        Self { logins, options, tls, dialers: Mutex::default() }
    }

    /// Connects with the first key that the other member takes: while keys are changed, members have different ones
    /// first.
    fn dial(&self, host: &str) -> Result<Connection, ClientError> {
        let dialers = self.dialers_for(host)?;
        let mut outcome = Err(ClientError::unreachable(host, "the key file has no key"));
        for dialer in dialers {
            outcome = dialer.dial();
            if !matches!(outcome, Err(ClientError::Authentication { .. })) {
                break;
            }
        }
        outcome
    }

    fn dialers_for(&self, host: &str) -> Result<Vec<Dialer>, ClientError> {
        if let Some(known) = self.dialers.lock().unwrap_or_else(PoisonError::into_inner).get(host) {
            return Ok(known.clone());
        }
        let made = self.logins.iter().map(|login| self.dialer(login, host)).collect::<Result<Vec<_>, _>>()?;
        let mut dialers = self.dialers.lock().unwrap_or_else(PoisonError::into_inner);
        if dialers.len() >= HOSTS_MAX {
            dialers.clear();
        }
        dialers.insert(host.to_owned(), made.clone());
        Ok(made)
    }

    fn dialer(&self, login: &str, host: &str) -> Result<Dialer, ClientError> {
        let uri: Result<Uri, _> = format!("mongodb://{login}{host}/?{}", self.options).parse();
        let mut uri = uri.map_err(|error| ClientError::unreachable(host, &error.to_string()))?;
        uri.tls.clone_from(&self.tls);
        Dialer::new(&uri)
    }

    /// Forgets all dialers, so that new connections read the certificates again.
    fn forget(&self) {
        self.dialers.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Whether a host name or address is this machine's.
fn is_this_machine(host: &str) -> bool {
    let is_own = |address: SocketAddr| UdpSocket::bind(address).is_ok();
    rustix::system::uname().nodename().to_str() == Ok(host)
        || (host, 0).to_socket_addrs().is_ok_and(|mut addresses| addresses.any(is_own))
}
