//! Logins in `hello`: the mechanisms of the user that the client asks about, and the answer to a login's first message,
//! which a client sends with `hello` to save a round trip.

use crate::authority::Authority;
use crate::client::Client;
use crate::scram::{offered, start_in_hello};
use crate::x509::authenticate_in_hello;
use bunko_access::Name;
use bunko_bson::{ArrayBuf, DocumentRef, ValueRef, Writer};
use bunko_errors::{Failure, Result};
use bunko_request::fields::Fields;

/// The first message of a login inside a `hello`, by the command that it stands for.
pub enum FirstMessage<'a> {
    /// A `saslStart`.
    SaslStart(Fields<'a>),
    /// An `authenticate`.
    Authenticate(DocumentRef<'a>),
    /// Another command, which is not answered.
    Other,
}

/// The user whose mechanisms the client asks for, given as a string or as a document.
fn asked_about(fields: &Fields<'_>, database: &str) -> Result<Option<Name>> {
    const FIELD: &str = "saslSupportedMechs";
    match fields.field(FIELD) {
        None => Ok(None),
        Some(ValueRef::String(text)) => match text.split_once('.') {
            Some((database, user)) => Ok(Some(Name::new(user, database))),
            None => Err(Failure::bad_value(format!("'{FIELD}' must be <database>.<user>, but has no dot"))),
        },
        Some(value @ ValueRef::Document(_)) => {
            let name = Name::parse(value, "user", database);
            name.map(Some).map_err(|error| Failure::bad_value(format!("'{FIELD}': {error}")))
        }
        Some(other) => Err(fields.mismatch(FIELD, other, "types '[string, object]'")),
    }
}

/// Appends the mechanisms of the user that a `hello` asks about to its reply.
/// # Errors
/// `BadValue`, `TypeMismatch`; errors of reading the user.
pub fn offer_mechanisms(
    authority: &Authority,
    fields: &Fields<'_>,
    database: &str,
    reply: &mut Writer<'_>,
) -> Result<()> {
    if let Some(user) = asked_about(fields, database)? {
        let names: ArrayBuf = offered(authority, &user)?.into_iter().collect();
        reply.append("saslSupportedMechs", &names);
    }
    Ok(())
}

/// Appends the answer to a first message to the reply of `hello`. A login that had begun ends.
/// # Errors
/// Errors of malformed fields. A refused login is not an error of the handshake: the client then logs in by a command.
pub fn answer_first_message(
    authority: &Authority,
    client: &mut Client,
    first: &FirstMessage<'_>,
    reply: &mut Writer<'_>,
) -> Result<()> {
    client.login = None;
    match first {
        FirstMessage::SaslStart(fields) => start_in_hello(authority, client, fields, reply),
        FirstMessage::Authenticate(body) => {
            authenticate_in_hello(authority, client, *body, reply);
            Ok(())
        }
        FirstMessage::Other => Ok(()),
    }
}
