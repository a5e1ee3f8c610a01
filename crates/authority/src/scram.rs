//! Login by SCRAM: `saslStart`, `saslContinue`, and the first message that `hello` may carry.
//!
//! A refused client learns only that authentication failed. The log says why.
//!
//! A conversation with an unknown user goes on as with a known one: its salt is derived from a secret of the process
//! and the user's name (`ScramCredential::pretended`), so that replies do not tell which users exist.

use crate::admission::{admitted, admitted_member, failed, log_in, log_refusal, log_unavailable};
use crate::authority::Authority;
use crate::client::Client;
use crate::login::{LastExchange, Login, Stage};
use crate::membership::KEY_MECHANISM;
use crate::users::find_user;
use bunko_access::{ClientFirst, Conversation, Mechanism, Name, Rejection, ScramCredential, Standing};
use bunko_bson::{BinarySubtype, DocumentRef, ValueRef, Writer, base64, number};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::fields::Fields;
use bunko_request::statement::required_value;
use std::sync::atomic::Ordering;

/// Id of a connection's conversation: a connection has one at a time.
const CONVERSATION_ID: i32 = 1;
/// Random bytes of a nonce.
const NONCE_BYTES: usize = 24;

/// The reply to one message of a conversation.
struct Step {
    is_done: bool,
    payload: String,
}

/// Runs `saslStart` on a database.
/// # Errors
/// `AuthenticationFailed`; `MechanismUnavailable`; errors of malformed fields.
pub fn start_login(
    authority: &Authority,
    client: &mut Client,
    fields: &Fields<'_>,
    database: &str,
    reply: &mut Writer<'_>,
) -> Result<()> {
    let exchange = exchange(fields)?;
    let name = fields.string("mechanism")?.unwrap_or_default();
    required_value(fields, "mechanism")?;
    let payload = payload(fields)?;
    client.login = None;
    let mechanism = Mechanism::named(name).filter(|_| authority.access.has_mechanism(name)).ok_or_else(|| {
        log_unavailable(authority, client, database, name);
        unavailable(name)
    })?;
    let step = start(authority, client, mechanism, database, &payload, exchange)?;
    write_step(reply, &step, fields.body);
    Ok(())
}

/// Runs the `saslStart` that a `hello` carries. A refusal adds nothing to the reply: the client then logs in by a
/// command.
/// # Errors
/// Errors of malformed fields.
pub(crate) fn start_in_hello(
    authority: &Authority,
    client: &mut Client,
    fields: &Fields<'_>,
    reply: &mut Writer<'_>,
) -> Result<()> {
    let text = |field| fields.body.get(field).and_then(ValueRef::as_str);
    let is_enabled = |name: &&str| authority.access.has_mechanism(name);
    let (Some(mechanism), Some(database), Some(payload)) =
        (text("mechanism").filter(is_enabled).and_then(Mechanism::named), text("db"), payload_of(fields.body))
    else {
        return Ok(());
    };
    let exchange = exchange(fields)?;
    // If the `hello` has no answer, the client chooses a mechanism that the user has, and logs in by a command.
    if let Ok(message) = ClientFirst::parse(&payload)
        && !offered(authority, &Name::new(message.user, database))?.contains(&mechanism.name())
    {
        return Ok(());
    }
    if let Ok(step) = start(authority, client, mechanism, database, &payload, exchange) {
        reply.begin_document("speculativeAuthenticate");
        write_step(reply, &step, fields.body);
        reply.end();
    }
    Ok(())
}

/// Runs `saslContinue`.
/// # Errors
/// `AuthenticationFailed`; `ProtocolError` without a conversation, or for another conversation id or mechanism.
pub fn continue_login(
    authority: &Authority,
    client: &mut Client,
    fields: &Fields<'_>,
    reply: &mut Writer<'_>,
) -> Result<()> {
    let protocol = |message| Failure::new(ErrorCode::PROTOCOL_ERROR, message);
    let given = required_value(fields, "conversationId")?;
    if !given.is_number() {
        return Err(fields.mismatch("conversationId", given, "type 'int'"));
    }
    let payload = payload(fields)?;
    // Each answer uses up the conversation; `go_on` puts it back if another message follows.
    let login = client.login.take().ok_or_else(|| protocol("No SASL session state found"))?;
    if number::as_i64_exact(given) != Some(CONVERSATION_ID.into()) {
        return Err(protocol("sasl: Mismatched conversation id"));
    }
    let mechanism = fields.string("mechanism")?.filter(|name| !name.is_empty());
    if mechanism.is_some_and(|name| name != login.mechanism.name()) {
        return Err(protocol("sasl: Mismatched mechanism"));
    }
    let step = go_on(authority, client, login, &payload)?;
    write_step(reply, &step, fields.body);
    Ok(())
}

/// The mechanisms that a user can log in by. For an unknown user it returns all of them, so that the reply does not
/// reveal which users exist.
pub(crate) fn offered(authority: &Authority, name: &Name) -> Result<Vec<&'static str>> {
    if authority.access.is_reserved(name) {
        return Ok(vec![KEY_MECHANISM.name()]);
    }
    let user = find_user(&authority.catalog, name)?;
    let credentials = user.as_ref().and_then(|user| user.as_ref().get("credentials")?.as_document());
    let has = |mechanism: &Mechanism| credentials.is_none_or(|kept| kept.get(mechanism.name()).is_some());
    let names = Mechanism::ALL.iter().filter(|mechanism| has(mechanism)).map(|mechanism| mechanism.name());
    Ok(names.filter(|name| authority.access.has_mechanism(name)).collect())
}

fn start(
    authority: &Authority,
    client: &mut Client,
    mechanism: Mechanism,
    database: &str,
    payload: &[u8],
    exchange: LastExchange,
) -> Result<Step> {
    let first = ClientFirst::parse(payload).map_err(|rejection| {
        log_refusal(authority, client, &Name::new("", database), mechanism.name(), rejection.reason());
        failed()
    })?;
    let user = Name::new(first.user.as_str(), database);
    // A stored user of the members' name must not become a member.
    let membership = authority.access.membership().filter(|_| authority.access.is_reserved(&user));
    let (credential, others) = match membership.map(|membership| membership.credentials(mechanism)) {
        Some([first, others @ ..]) => (Some(first.clone()), others),
        Some([]) => (None, &[][..]),
        None => {
            let document = find_user(&authority.catalog, &user)?;
            (document.as_ref().and_then(|document| credential_of(mechanism, document.as_ref())), &[][..])
        }
    };
    // This is computed for known users too, so that both cases take equally long.
    let iterations = authority.access.iterations(mechanism).load(Ordering::Relaxed) as u32;
    let pretended =
        ScramCredential::pretended(mechanism, authority.access.secret(&*authority.random), &user.id(), iterations);
    let (credential, standing) = match credential {
        Some(credential) => (credential, Standing::Known),
        None => (pretended, Standing::Pretended),
    };
    let random = || (authority.random)().to_le_bytes();
    let nonce: Vec<u8> = std::iter::repeat_with(random).flatten().take(NONCE_BYTES).collect();
    let (conversation, challenge) =
        Conversation::begin(mechanism, &first, &base64::encode(&nonce), credential, standing);
    let stage = Stage::Challenged(conversation.or_any_of(others));
    client.login = Some(Login { user, mechanism, stage, exchange });
    Ok(Step { is_done: false, payload: challenge })
}

/// The credential of a user for a mechanism; `None` if the user has none.
pub(crate) fn credential_of(mechanism: Mechanism, user: DocumentRef<'_>) -> Option<ScramCredential> {
    let credentials = user.get("credentials")?.as_document()?;
    ScramCredential::parse(mechanism, credentials.get(mechanism.name())?.as_document()?)
}

fn go_on(authority: &Authority, client: &mut Client, login: Login, payload: &[u8]) -> Result<Step> {
    let Login { user, mechanism, stage, exchange } = login;
    let (proved, answer) = match stage {
        Stage::Proved(_) if !payload.is_empty() => {
            log_refusal(authority, client, &user, mechanism.name(), Rejection::Malformed.reason());
            return Err(failed());
        }
        Stage::Proved(proved) => {
            log_in(authority, client, *proved, mechanism.name())?;
            return Ok(Step { is_done: true, payload: String::new() });
        }
        Stage::Challenged(conversation) => {
            let answer = conversation.finish(payload).map_err(|rejection| {
                log_refusal(authority, client, &user, mechanism.name(), rejection.reason());
                failed()
            })?;
            let proved = if authority.access.is_reserved(&user) {
                // The conversation proved one of the members' keys.
                admitted_member(authority)
            } else {
                admitted(authority, client, &user, mechanism.name())?
            };
            (proved, answer)
        }
    };
    match exchange {
        LastExchange::Skipped => log_in(authority, client, proved, mechanism.name())?,
        LastExchange::Empty => {
            client.login = Some(Login { user, mechanism, stage: Stage::Proved(Box::new(proved)), exchange });
        }
    }
    Ok(Step { is_done: exchange == LastExchange::Skipped, payload: answer })
}

fn unavailable(mechanism: &str) -> Failure {
    let message = format!("Received authentication for mechanism {mechanism} which is unknown or not enabled");
    Failure::new(ErrorCode::MECHANISM_UNAVAILABLE, message)
}

/// The required `payload` of a command.
/// # Errors
/// `IDLFailedToParse` if it is missing; `TypeMismatch`.
fn payload(fields: &Fields<'_>) -> Result<Vec<u8>> {
    required_value(fields, "payload")?;
    payload_of(fields.body).ok_or_else(|| {
        Failure::type_mismatch(format!("BSON field '{}.payload' must be binary, or base64 in a string", fields.command))
    })
}

/// Reads `payload` from bytes or from base64; `None` if it is missing or neither.
fn payload_of(body: DocumentRef<'_>) -> Option<Vec<u8>> {
    match body.get("payload")? {
        ValueRef::Binary { bytes, .. } => Some(bytes.to_vec()),
        ValueRef::String(text) => base64::decode(text),
        _ => None,
    }
}

fn exchange(fields: &Fields<'_>) -> Result<LastExchange> {
    let options = fields.document("options")?.unwrap_or(DocumentRef::EMPTY);
    let is_skipped = matches!(options.get("skipEmptyExchange"), Some(ValueRef::Boolean(true)));
    Ok(if is_skipped { LastExchange::Skipped } else { LastExchange::Empty })
}

/// Writes the answer as a string or as bytes, like the payload that the client sent.
fn write_step(reply: &mut Writer<'_>, step: &Step, asked: DocumentRef<'_>) {
    reply.append("conversationId", CONVERSATION_ID).append("done", step.is_done);
    if matches!(asked.get("payload"), Some(ValueRef::String(_))) {
        reply.append("payload", &base64::encode(step.payload.as_bytes()));
    } else {
        let bytes = step.payload.as_bytes();
        reply.append("payload", ValueRef::Binary { subtype: BinarySubtype::GENERIC, bytes });
    }
}
