//! Login by the certificate that a client showed in its TLS handshake: the mechanism MONGODB-X509.
//!
//! The handshake has verified the certificate, and that the client has its key. This module only finds the user: the
//! user of `$external` whose name is the certificate's subject.
//! Source: MongoDB authentication specification, "MONGODB-X509".

use crate::access_control::EXTERNAL_DATABASE;
use crate::admission::{admitted, failed, log_in, log_refusal, log_unavailable};
use crate::authority::Authority;
use crate::client::Client;
use crate::logged_in::LoggedIn;
use bunko_access::Name;
use bunko_bson::{DocumentRef, ValueRef, Writer};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::fields::Fields;

const MECHANISM: &str = "MONGODB-X509";

/// Runs `authenticate` on a database.
/// # Errors
/// `AuthenticationFailed`, also for other mechanisms; `ProtocolError` for a database other than `$external`.
pub fn authenticate(
    authority: &Authority,
    client: &mut Client,
    fields: &Fields<'_>,
    database: &str,
    reply: &mut Writer<'_>,
) -> Result<()> {
    client.login = None;
    let mechanism = fields.string("mechanism")?.ok_or_else(|| {
        let message = "BSON field 'authenticate.mechanism' is missing but a required field";
        Failure::new(ErrorCode::IDL_FAILED_TO_PARSE, message)
    })?;
    if mechanism != MECHANISM || !authority.access.has_mechanism(MECHANISM) {
        // The other mechanisms use `saslStart`.
        log_unavailable(authority, client, database, mechanism);
        return Err(failed());
    }
    let user = fields.string("user")?;
    let proved = prove(authority, client, database, user)?;
    let name = proved.name.clone();
    log_in(authority, client, proved, MECHANISM)?;
    write(reply, &name);
    Ok(())
}

/// Logs in by the `authenticate` that a `hello` carries. A refusal adds nothing to the reply: the client then sends the
/// command itself and gets the error.
pub(crate) fn authenticate_in_hello(
    authority: &Authority,
    client: &mut Client,
    first: DocumentRef<'_>,
    reply: &mut Writer<'_>,
) {
    let text = |field| first.get(field).and_then(ValueRef::as_str);
    // A `user` of another type is refused; a missing one is allowed.
    let is_sound = text("mechanism") == Some(MECHANISM) && first.get("user").is_none_or(|user| user.as_str().is_some());
    // Drivers may leave out `db`, as `$external` is the only database for this mechanism.
    let database = first.get("db").map_or(Some(EXTERNAL_DATABASE), ValueRef::as_str);
    let Some(database) = database.filter(|_| is_sound && authority.access.has_mechanism(MECHANISM)) else { return };
    let Ok(proved) = prove(authority, client, database, text("user")) else { return };
    let name = proved.name.clone();
    if log_in(authority, client, proved, MECHANISM).is_ok() {
        reply.begin_document("speculativeAuthenticate");
        write(reply, &name);
        reply.end();
    }
}

fn write(reply: &mut Writer<'_>, name: &Name) {
    reply.append("dbname", &name.database).append("user", &name.name);
}

/// The user that the connection's certificate names. `asked` is the name that the client gives, if any.
fn prove(authority: &Authority, client: &Client, database: &str, asked: Option<&str>) -> Result<LoggedIn> {
    if database != EXTERNAL_DATABASE {
        let message = "X.509 authentication must always use the $external database.";
        return Err(Failure::new(ErrorCode::PROTOCOL_ERROR, message));
    }
    let refuse = |name: &str, reason| {
        log_refusal(authority, client, &Name::new(name, database), MECHANISM, reason);
        failed()
    };
    let subject = client.certificate_subject.as_deref().filter(|subject| !subject.is_empty());
    let subject = subject.ok_or_else(|| {
        refuse(asked.unwrap_or_default(), "the client showed no certificate by TLS, or one without a subject")
    })?;
    match asked {
        Some(other) if !other.is_empty() && other != subject => {
            Err(refuse(other, "the client's certificate names another user"))
        }
        _ => admitted(authority, client, &Name::new(subject, database), MECHANISM),
    }
}
