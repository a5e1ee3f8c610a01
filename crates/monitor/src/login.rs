//! Who may read the metrics: a user with the privilege for `serverStatus`, by HTTP's Basic scheme.
//!
//! A password is checked against the stored credential, which takes milliseconds. The last login is remembered by a
//! keyed digest of its password, so that a scrape each second costs nothing. It is forgotten when any user or role
//! changes.
//! Source: RFC 7617.

use bunko_access::{Action, Mechanism, Name};
use bunko_authority::{Authority, Client, log_in_by_password};
use bunko_bson::base64;
use bunko_command::Peer;
use std::net::SocketAddr;
use std::sync::Mutex;

/// Database of a user whose name does not begin with one.
const DATABASE: &str = "admin";

/// The last login.
pub struct Logins {
    secret: [u8; 32],
    last: Mutex<Option<Last>>,
}

struct Last {
    user: Name,
    /// Of the password, by the secret.
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
        Self { secret, last: Mutex::default() }
    }

    /// The access of a request with that header `Authorization`. May take milliseconds.
    pub fn access(&self, authority: &Authority, header: Option<&str>, address: SocketAddr) -> Access {
        let mut client = Client::new(0, Peer::Tcp(address));
        if !authority.asks_for_login(&client) {
            return Access::Granted;
        }
        let Some((user, password)) = header.and_then(read_header) else { return Access::Unauthorized };
        let digest = Mechanism::ScramSha256.hmac(&self.secret, password.as_bytes());
        let is_same =
            |last: &Last| last.user == user && last.digest == digest && last.client.peer.ip() == client.peer.ip();
        let mut last = self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match last.take().filter(is_same) {
            Some(known) => client = known.client,
            None if log_in_by_password(authority, &mut client, &user, &password).is_err() => {
                return Access::Unauthorized;
            }
            None => {}
        }
        let Some(logged_in) = client.user() else { return Access::Unauthorized };
        let may_read = logged_in.authorization.on_cluster(Action::ServerStatus);
        *last = Some(Last { user, digest, client });
        if may_read { Access::Granted } else { Access::Forbidden }
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
