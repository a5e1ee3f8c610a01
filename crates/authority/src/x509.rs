//! Login by the certificate that a client showed in its TLS handshake: the mechanism MONGODB-X509.
//!
//! The handshake has verified the certificate, and that the client has its key. This module only finds the user: the
//! user of `$external` whose name is the certificate's subject.
//! Source: MongoDB authentication specification, "MONGODB-X509".

use crate::access_control::EXTERNAL_DATABASE;
use crate::admission::{admitted, admitted_member, failed, log_in, log_refusal, log_unavailable};
use crate::authority::Authority;
use crate::client::Client;
use crate::logged_in::LoggedIn;
use bunko_access::Name;
use bunko_bson::{DocumentRef, ValueRef, Writer};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::fields::Fields;

/// The mechanism's name.
pub const MECHANISM: &str = "MONGODB-X509";

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
    let mechanism = fields.string("mechanism")?.ok_or_else(|| Failure::missing_field("authenticate.mechanism"))?;
    if mechanism != MECHANISM || !authority.access.has_mechanism(MECHANISM) {
        // The other mechanisms use `saslStart`.
        log_unavailable(authority, client, database, mechanism);
        return Err(failed());
    }
    let user = fields.string("user")?;
    let proved = prove(authority, client, database, user)?;
    log_in(authority, client, proved, MECHANISM)?;
    write(reply, client);
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
    if log_in(authority, client, proved, MECHANISM).is_ok() {
        reply.begin_document("speculativeAuthenticate");
        write(reply, client);
        reply.end();
    }
}

fn write(reply: &mut Writer<'_>, client: &Client) {
    reply.append("dbname", EXTERNAL_DATABASE).append("user", client.certificate_subject.as_deref().unwrap_or_default());
}

/// Whether a certificate with this subject belongs to another member of the set.
fn is_member(authority: &Authority, subject: &str) -> bool {
    authority.access.membership().is_some_and(|membership| membership.has_certificate_like(subject))
}

/// Refuses a user who could never log in, because a certificate of that name is a member's.
/// # Errors
/// `BadValue`.
pub fn check_no_member(authority: &Authority, name: &Name) -> Result<()> {
    if name.database != EXTERNAL_DATABASE || !is_member(authority, &name.name) {
        return Ok(());
    }
    Err(Failure::bad_value(
        "Cannot create an x.509 user with a subjectname that would be recognized as an internal cluster member",
    ))
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
        _ if is_member(authority, subject) => Ok(admitted_member(authority)),
        _ => admitted(authority, client, &Name::new(subject, database), MECHANISM),
    }
}
