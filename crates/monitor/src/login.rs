//! Access to the metrics: for a user with the privilege for `serverStatus`, by HTTP's Basic scheme.
//!
//! A password is checked against the stored credential, which takes milliseconds. Recent logins are remembered by a
//! keyed digest of their passwords, so that a scrape each second costs nothing and is logged once. All are forgotten
//! when any user or role changes.
//! Source: RFC 7617.

use bunko_access::{Action, Mechanism, Name};
use bunko_authority::{Authority, Client, log_in_by_password};
use bunko_bson::base64;
use bunko_command::Peer;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Database of a user whose name does not begin with one.
const DATABASE: &str = "admin";
/// Maximum number of logins that are remembered.
const REMEMBERED_MAX: usize = 16;

/// The recent logins.
pub struct Logins {
    secret: [u8; 32],
    recent: Mutex<Vec<Remembered>>,
}

struct Remembered {
    user: Name,
    /// HMAC of the password by the secret.
    digest: Vec<u8>,
    client: Client,
}

/// Whether a request may read the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Granted,
    /// There is no valid login.
    Unauthorized,
    /// The user lacks the privilege.
    Forbidden,
}

impl Logins {
    /// With random bits for the secret.
    pub fn new(random: &dyn Fn() -> u64) -> Self {
        let mut secret = [0; 32];
        secret.chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&random().to_le_bytes()));
        Self { secret, recent: Mutex::default() }
    }

    /// The access of a request with that header `Authorization`, if no password must be checked to know it.
    pub fn known_access(&self, authority: &Authority, header: Option<&str>, address: SocketAddr) -> Option<Access> {
        let client = Client::new(0, Peer::Tcp(address));
        if !authority.asks_for_login(&client) {
            return Some(Access::Granted);
        }
        let Some((user, password)) = header.and_then(read_header) else { return Some(Access::Unauthorized) };
        let digest = self.digest(&password);
        let is_same = |login: &&Remembered| {
            login.user == user && login.digest == digest && login.client.peer.ip() == client.peer.ip()
        };
        let mut recent = self.recent();
        // The change may be of one of these users: of the password, the rights or the addresses.
        recent.retain(|login| !login.client.has_outdated_user(authority));
        recent.iter().find(is_same).map(|login| access_of(&login.client))
    }

    /// Checks the password of the header, and remembers a login that succeeds. Takes milliseconds.
    pub fn check(&self, authority: &Authority, header: Option<&str>, address: SocketAddr) -> Access {
        let Some((user, password)) = header.and_then(read_header) else { return Access::Unauthorized };
        let mut client = Client::new(0, Peer::Tcp(address));
        if log_in_by_password(authority, &mut client, &user, &password).is_err() {
            return Access::Unauthorized;
        }
        let access = access_of(&client);
        let digest = self.digest(&password);
        let mut recent = self.recent();
        if recent.len() == REMEMBERED_MAX {
            recent.remove(0);
        }
        recent.push(Remembered { user, digest, client });
        access
    }

    fn digest(&self, password: &str) -> Vec<u8> {
        Mechanism::ScramSha256.hmac(&self.secret, password.as_bytes())
    }

    fn recent(&self) -> MutexGuard<'_, Vec<Remembered>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn access_of(client: &Client) -> Access {
    match client.user() {
        Some(user) if user.authorization.on_cluster(Action::ServerStatus) => Access::Granted,
        Some(_) => Access::Forbidden,
        None => Access::Unauthorized,
    }
}

/// The user and the password of the header. A name may begin with its database and a slash: `db/name`.
fn read_header(header: &str) -> Option<(Name, String)> {
    let (scheme, encoded) = header.split_once(' ')?;
    let decoded = String::from_utf8(base64::decode(encoded.trim())?).ok()?;
    let (user, password) = decoded.split_once(':').filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    let (database, name) = user.split_once('/').unwrap_or((DATABASE, user));
    Some((Name::new(name, database), password.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read() {
        let header = |scheme: &str, text: &str| format!("{scheme} {}", base64::encode(text.as_bytes()));
        assert_eq!(read_header(&header("Basic", "ann:p:w")), Some((Name::new("ann", "admin"), "p:w".to_owned())));
        assert_eq!(read_header(&header("basic", "shop/ann:")), Some((Name::new("ann", "shop"), String::new())));
        for wrong in [header("Bearer", "ann:pw"), header("Basic", "ann"), "Basic !".to_owned(), "Basic".to_owned()] {
            assert_eq!(read_header(&wrong), None, "{wrong}");
        }
    }
}
