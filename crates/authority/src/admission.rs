//! Admits a user who has proved their identity, or refuses the login. Each outcome is logged and audited.

use crate::audit::note_login;
use crate::authority::Authority;
use crate::client::Client;
use crate::logged_in::LoggedIn;
use crate::users::find_user;
use bunko_access::{Name, Rejection};
use bunko_errors::{ErrorCode, Failure, Result};

/// The failure of a refused login.
pub(crate) fn failed() -> Failure {
    Failure::new(ErrorCode::AUTHENTICATION_FAILED, "Authentication failed.")
}

/// Reads the rights of a user who has proved their identity, and checks that they may log in from this address.
pub(crate) fn admitted(authority: &Authority, client: &Client, user: &Name, mechanism: &str) -> Result<LoggedIn> {
    let generation = authority.access.generation();
    let refuse = |reason| {
        log_refusal(authority, client, user, mechanism, reason);
        failed()
    };
    if authority.access.is_reserved(user) {
        return Err(refuse("the name is that of the set's members, who prove a key or a certificate"));
    }
    let document = find_user(&authority.catalog, user)?.ok_or_else(|| refuse(Rejection::UnknownUser.reason()))?;
    let proved = LoggedIn::read(authority, user, document.as_ref(), generation)?;
    if !proved.may_come_from(client.peer.ip()) {
        return Err(refuse("authentication restrictions are not met"));
    }
    Ok(proved)
}

/// The user that another member of the set is logged in as, after it has proved its membership.
pub(crate) fn admitted_member(authority: &Authority) -> LoggedIn {
    LoggedIn::member(authority.access.generation())
}

/// Makes `proved` the connection's user. Logging in again as the same user renews their rights; another user is refused
/// until a `logout`.
pub(crate) fn log_in(authority: &Authority, client: &mut Client, proved: LoggedIn, mechanism: &str) -> Result<()> {
    if let Some(other) = client.user.as_ref().filter(|other| other.name != proved.name) {
        let message = format!("the connection is authenticated as {} already: log out first", other.name);
        return Err(Failure::new(ErrorCode::PROTOCOL_ERROR, message));
    }
    let (connection, user) = (format!("conn{}", client.id), &proved.name);
    tracing::info!(target: "ACCESS", id = 5_286_306, ctx = connection, remote = %client.peer, user = user.name, db = user.database, mechanism, "Successfully authenticated");
    let name = proved.name.clone();
    client.user = Some(proved);
    note_login(authority, client, &name, mechanism, None);
    Ok(())
}

/// Logs and audits a refused login.
pub(crate) fn log_refusal(authority: &Authority, client: &Client, user: &Name, mechanism: &str, reason: &str) {
    let connection = format!("conn{}", client.id);
    tracing::info!(target: "ACCESS", id = 5_286_307, ctx = connection, remote = %client.peer, user = user.name, db = user.database, mechanism, reason, "Failed to authenticate");
    note_login(authority, client, user, mechanism, Some(ErrorCode::AUTHENTICATION_FAILED));
}

/// Logs a login by a mechanism that this server does not have. The user is not known at that point.
pub(crate) fn log_unavailable(authority: &Authority, client: &Client, database: &str, mechanism: &str) {
    let reason = "the mechanism is unknown or not enabled: there are SCRAM-SHA-256, SCRAM-SHA-1 and MONGODB-X509";
    log_refusal(authority, client, &Name::new("", database), mechanism, reason);
}
