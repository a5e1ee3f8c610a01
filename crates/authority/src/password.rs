//! Login by a plain password, which HTTP's Basic scheme sends.

use crate::admission::{admitted, failed, log_in, log_refusal};
use crate::authority::Authority;
use crate::client::Client;
use crate::scram::credential_of;
use crate::users::find_user;
use bunko_access::{Mechanism, Name, Rejection, ScramCredential};
use bunko_errors::Result;
use std::sync::atomic::Ordering;

/// The mechanism as logs and audits name it.
const NAME: &str = "PLAIN";

/// Makes the user with that name and password the client's user. Takes milliseconds, and as long for an unknown user as
/// for a known one.
/// # Errors
/// `AuthenticationFailed`, which is logged and audited; errors of reading users and roles.
pub fn log_in_by_password(authority: &Authority, client: &mut Client, user: &Name, password: &str) -> Result<()> {
    let document = find_user(&authority.catalog, user)?;
    // A credential of a mechanism that the server's settings turn off does not count here, either.
    let mut enabled = Mechanism::ALL.into_iter().filter(|mechanism| authority.access.has_mechanism(mechanism.name()));
    let known = document.as_ref().and_then(|document| {
        enabled.find_map(|mechanism| Some((mechanism, credential_of(mechanism, document.as_ref())?)))
    });
    let (mechanism, credential) = known.unwrap_or_else(|| {
        let mechanism = Mechanism::ScramSha256;
        let iterations = authority.access.iterations(mechanism).load(Ordering::Relaxed) as u32;
        let secret = authority.access.secret(&*authority.random);
        (mechanism, ScramCredential::pretended(mechanism, secret, &user.id(), iterations))
    });
    let is_right =
        mechanism.prepare_password(&user.name, password).is_ok_and(|prepared| credential.is_of(mechanism, &prepared));
    if !is_right {
        let reason = if document.is_none() { Rejection::UnknownUser } else { Rejection::WrongPassword };
        log_refusal(authority, client, user, NAME, reason.reason());
        return Err(failed());
    }
    let proved = admitted(authority, client, user, NAME)?;
    log_in(authority, client, proved, NAME)
}
