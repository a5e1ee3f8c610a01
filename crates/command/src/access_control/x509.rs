//! Login by the certificate that a client showed in its TLS handshake: the mechanism MONGODB-X509.
//!
//! The handshake has verified the certificate, and that the client has its key. This module only finds the user: the
//! user of `$external` whose name is the certificate's subject.
//! Source: MongoDB authentication specification, "MONGODB-X509".

use super::logged_in::LoggedIn;
use super::login::{admitted, failed, log_in, log_refusal, log_unavailable};
use crate::connection::ClientConnection;
use crate::invocation::Invocation;
use crate::service::Service;
use bunko_access::Name;
use bunko_bson::{DocumentRef, ValueRef, Writer};
use bunko_errors::{ErrorCode, Failure, Result};

/// The database of users whose credentials are elsewhere. Only their rights are stored.
pub(crate) const EXTERNAL_DATABASE: &str = "$external";
const MECHANISM: &str = "MONGODB-X509";

/// Runs `authenticate`.
/// # Errors
/// `AuthenticationFailed`, also for other mechanisms; `ProtocolError` for a database other than `$external`.
pub(crate) fn authenticate(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<()> {
    invocation.connection.login = None;
    let mechanism = invocation.string("mechanism")?.ok_or_else(|| {
        let message = "BSON field 'authenticate.mechanism' is missing but a required field";
        Failure::new(ErrorCode::IDL_FAILED_TO_PARSE, message)
    })?;
    if mechanism != MECHANISM || !invocation.service.access.has_mechanism(MECHANISM) {
        // The other mechanisms use `saslStart`.
        log_unavailable(invocation.service, invocation.connection, invocation.request.database, mechanism);
        return Err(failed());
    }
    let user = invocation.string("user")?;
    let proved = prove(invocation.service, invocation.connection, invocation.request.database, user)?;
    finish(invocation.service, invocation.connection, proved, reply)
}

/// Logs in by the `authenticate` that a `hello` carries. A refusal adds nothing to the reply: the client then sends the
/// command itself and gets the error.
pub(super) fn authenticate_in_hello(
    service: &Service,
    connection: &mut ClientConnection,
    first: DocumentRef<'_>,
    reply: &mut Writer<'_>,
) {
    let text = |field| first.get(field).and_then(ValueRef::as_str);
    // A `user` of another type is refused; a missing one is allowed.
    let is_sound = text("mechanism") == Some(MECHANISM) && first.get("user").is_none_or(|user| user.as_str().is_some());
    // Drivers may leave out `db`, as `$external` is the only database for this mechanism.
    let database = first.get("db").map_or(Some(EXTERNAL_DATABASE), ValueRef::as_str);
    let Some(database) = database.filter(|_| is_sound && service.access.has_mechanism(MECHANISM)) else { return };
    let Ok(proved) = prove(service, connection, database, text("user")) else { return };
    let name = proved.name.clone();
    if log_in(service, connection, proved, MECHANISM).is_ok() {
        reply.begin_document("speculativeAuthenticate");
        write(reply, &name);
        reply.end();
    }
}

fn finish(
    service: &Service,
    connection: &mut ClientConnection,
    proved: LoggedIn,
    reply: &mut Writer<'_>,
) -> Result<()> {
    let name = proved.name.clone();
    log_in(service, connection, proved, MECHANISM)?;
    write(reply, &name);
    Ok(())
}

fn write(reply: &mut Writer<'_>, name: &Name) {
    reply.append("dbname", &name.database).append("user", &name.name);
}

/// The user that the connection's certificate names. `asked` is the name that the client gives, if any.
fn prove(service: &Service, connection: &ClientConnection, database: &str, asked: Option<&str>) -> Result<LoggedIn> {
    if database != EXTERNAL_DATABASE {
        let message = "X.509 authentication must always use the $external database.";
        return Err(Failure::new(ErrorCode::PROTOCOL_ERROR, message));
    }
    let refuse = |name: &str, reason| {
        log_refusal(service, connection, &Name::new(name, database), MECHANISM, reason);
        failed()
    };
    let subject = connection.certificate_subject.as_deref().filter(|subject| !subject.is_empty());
    let subject = subject.ok_or_else(|| {
        refuse(asked.unwrap_or_default(), "the client showed no certificate by TLS, or one without a subject")
    })?;
    match asked {
        Some(other) if !other.is_empty() && other != subject => {
            Err(refuse(other, "the client's certificate names another user"))
        }
        _ => admitted(service, connection, &Name::new(subject, database), MECHANISM),
    }
}
