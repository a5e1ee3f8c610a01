//! Logging in by the certificate that a client showed in its TLS handshake: the mechanism MONGODB-X509.
//!
//! The handshake has verified the certificate, and that the client has its key. What is left is whom it names: the user of
//! `$external` whose name is the certificate's subject.
//! Source: MongoDB authentication specification, "MONGODB-X509".

use super::logged_in::LoggedIn;
use super::login::{admitted, failed, log_in, log_refusal, log_unavailable};
use crate::connection::ClientConnection;
use crate::invocation::Invocation;
use crate::service::Service;
use bunko_access::Name;
use bunko_bson::{DocumentRef, ValueRef, Writer};
use bunko_errors::{ErrorCode, Failure, Result};

/// The database of users whom somebody else knows: nothing is kept of them but their rights.
pub(crate) const EXTERNAL_DATABASE: &str = "$external";
const MECHANISM: &str = "MONGODB-X509";

/// `authenticate`.
/// # Errors
/// `AuthenticationFailed`, also for other mechanisms; `ProtocolError` outside of `$external`.
pub(crate) fn authenticate(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<()> {
    invocation.connection.login = None;
    let mechanism = invocation.string("mechanism")?.ok_or_else(|| {
        let message = "BSON field 'authenticate.mechanism' is missing but a required field";
        Failure::new(ErrorCode::IDL_FAILED_TO_PARSE, message)
    })?;
    if mechanism != MECHANISM || !invocation.service.access.has_mechanism(MECHANISM) {
        // Others go by `saslStart`.
        log_unavailable(invocation.service, invocation.connection, invocation.request.database, mechanism);
        return Err(failed());
    }
    let user = invocation.string("user")?;
    let proved = prove(invocation.service, invocation.connection, invocation.request.database, user)?;
    finish(invocation.service, invocation.connection, proved, reply)
}

/// The same where `hello` carries it. What is refused here leaves no trace in the reply: the client asks once more and
/// hears why.
pub(super) fn authenticate_in_hello(
    service: &Service,
    connection: &mut ClientConnection,
    first: DocumentRef<'_>,
    reply: &mut Writer<'_>,
) {
    let text = |field| first.get(field).and_then(ValueRef::as_str);
    // A user that is no text is not the same as none.
    let is_sound = text("mechanism") == Some(MECHANISM) && first.get("user").is_none_or(|user| user.as_str().is_some());
    // Drivers may leave out the only database that there is for it.
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

/// The user whom the connection's certificate names. `asked` is whom the client takes that to be, if it says so.
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
        refuse(asked.unwrap_or_default(), "the client showed no certificate by TLS, or one that names nobody")
    })?;
    match asked {
        Some(other) if !other.is_empty() && other != subject => {
            Err(refuse(other, "the client's certificate names somebody else"))
        }
        _ => admitted(service, connection, &Name::new(subject, database), MECHANISM),
    }
}
