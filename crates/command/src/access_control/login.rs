//! Login by SCRAM: `saslStart`, `saslContinue`, and the first message that `hello` may carry.
//!
//! A refused client learns only that authentication failed. The log says why.
//!
//! A conversation with an unknown user goes on as with any other: its salt follows from a secret of the process and the
//! user's name (`ScramCredential::pretended`), so that replies do not tell which users exist.

use super::logged_in::LoggedIn;
use super::users::find_user;
use super::x509::authenticate_in_hello;
use crate::audit::note_login;
use crate::commands::sasl_start::{AUTHENTICATE, COMMAND as SASL_START};
use crate::connection::ClientConnection;
use crate::invocation::Invocation;
use crate::service::Service;
use bunko_access::{ClientFirst, Conversation, Mechanism, Name, Rejection, ScramCredential, Standing};
use bunko_bson::{ArrayBuf, BinarySubtype, DocumentRef, ValueRef, Writer, base64, number};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::fields::Fields;
use bunko_request::statement::required_value;
use std::fmt;
use std::sync::atomic::Ordering;

/// Id of a connection's conversation: a connection has one at a time.
const CONVERSATION_ID: i32 = 1;
/// Key in `credentials` of a user who is known by a certificate.
pub(crate) const EXTERNAL: &str = "external";
/// Random bytes of a nonce.
const NONCE_BYTES: usize = 24;

/// A conversation that has begun.
pub(crate) struct Login {
    user: Name,
    mechanism: Mechanism,
    stage: Stage,
    exchange: LastExchange,
}

enum Stage {
    /// The client's proof comes next.
    Challenged(Conversation),
    /// The client has proved who it is; an empty message from it ends the conversation.
    Proved(Box<LoggedIn>),
}

/// Whether the client asked for an empty exchange at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastExchange {
    Empty,
    Skipped,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

/// The reply to one message of a conversation.
struct Step {
    is_done: bool,
    payload: String,
}

pub(super) fn failed() -> Failure {
    Failure::new(ErrorCode::AUTHENTICATION_FAILED, "Authentication failed.")
}

/// Runs `saslStart`.
/// # Errors
/// `AuthenticationFailed`; `MechanismUnavailable`; errors of malformed fields.
pub(crate) fn start_login(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<()> {
    let (body, database) = (invocation.request.body, invocation.request.database);
    let exchange = exchange(invocation)?;
    let name = invocation.string("mechanism")?.unwrap_or_default();
    required_value(invocation, "mechanism")?;
    let payload = payload(invocation)?;
    invocation.connection.login = None;
    let mechanism =
        Mechanism::named(name).filter(|_| invocation.service.access.has_mechanism(name)).ok_or_else(|| {
            log_unavailable(invocation.service, invocation.connection, database, name);
            unavailable(name)
        })?;
    let step = start(invocation.service, invocation.connection, mechanism, database, &payload, exchange)?;
    write_step(reply, &step, body);
    Ok(())
}

/// Runs `saslContinue`.
/// # Errors
/// `AuthenticationFailed`; `ProtocolError` without a conversation, or for another conversation id or mechanism.
pub(crate) fn continue_login(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<()> {
    let protocol = |message| Failure::new(ErrorCode::PROTOCOL_ERROR, message);
    let given = required_value(invocation, "conversationId")?;
    if !given.is_number() {
        return Err(invocation.mismatch("conversationId", given, "type 'int'"));
    }
    let payload = payload(invocation)?;
    // Each answer uses up the conversation; `go_on` puts it back if another message follows.
    let login = invocation.connection.login.take().ok_or_else(|| protocol("No SASL session state found"))?;
    let body = invocation.request.body;
    if number::as_i64_exact(given) != Some(CONVERSATION_ID.into()) {
        return Err(protocol("sasl: Mismatched conversation id"));
    }
    let mechanism = invocation.string("mechanism")?.filter(|name| !name.is_empty());
    if mechanism.is_some_and(|name| name != login.mechanism.name()) {
        return Err(protocol("sasl: Mismatched mechanism"));
    }
    let step = go_on(invocation.service, invocation.connection, login, &payload)?;
    write_step(reply, &step, body);
    Ok(())
}

/// The user whose mechanisms the client asks for, given as a string or as a document.
fn asked_about(invocation: &Invocation<'_>) -> Result<Option<Name>> {
    const FIELD: &str = "saslSupportedMechs";
    match invocation.field(FIELD) {
        None => Ok(None),
        Some(ValueRef::String(text)) => match text.split_once('.') {
            Some((database, user)) => Ok(Some(Name::new(user, database))),
            None => Err(Failure::bad_value(format!("'{FIELD}' must be <database>.<user>, but has no dot"))),
        },
        Some(value @ ValueRef::Document(_)) => {
            let name = Name::parse(value, "user", invocation.request.database);
            name.map(Some).map_err(|error| Failure::bad_value(format!("'{FIELD}': {error}")))
        }
        Some(other) => Err(invocation.mismatch(FIELD, other, "types '[string, object]'")),
    }
}

/// Appends a user's mechanisms and the answer to a speculative first message to the reply of `hello`.
/// # Errors
/// Errors of malformed fields. A refused login is no error of the handshake: the client then logs in by a command.
pub(crate) fn offer_in_hello(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<()> {
    if let Some(user) = asked_about(invocation)? {
        let names: ArrayBuf = offered(invocation.service, &user)?.into_iter().collect();
        reply.append("saslSupportedMechs", &names);
    }
    let Some(first) = invocation.document("speculativeAuthenticate")? else { return Ok(()) };
    invocation.connection.login = None;
    let text = |field| first.get(field).and_then(ValueRef::as_str);
    let command = first.first().map_or("", |first| first.name);
    if command == AUTHENTICATE.name {
        authenticate_in_hello(invocation.service, invocation.connection, first, reply);
        return Ok(());
    }
    let is_sasl = command == SASL_START.name;
    let is_enabled = |name: &&str| invocation.service.access.has_mechanism(name);
    let (true, Some(mechanism), Some(database), Some(payload)) =
        (is_sasl, text("mechanism").filter(is_enabled).and_then(Mechanism::named), text("db"), payload_of(first))
    else {
        return Ok(());
    };
    let exchange = exchange(&Fields::new(SASL_START.name, first))?;
    // If the server does not answer here, the client chooses a mechanism that the user has.
    if let Ok(message) = ClientFirst::parse(&payload)
        && !offered(invocation.service, &Name::new(message.user, database))?.contains(&mechanism.name())
    {
        return Ok(());
    }
    if let Ok(step) = start(invocation.service, invocation.connection, mechanism, database, &payload, exchange) {
        reply.begin_document("speculativeAuthenticate");
        write_step(reply, &step, first);
        reply.end();
    }
    Ok(())
}

/// The mechanisms that a user can log in by. For an unknown user it returns all of them, so that the reply does not
/// reveal which users exist.
fn offered(service: &Service, name: &Name) -> Result<Vec<&'static str>> {
    let user = find_user(&service.catalog, name)?;
    let credentials = user.as_ref().and_then(|user| user.as_ref().get("credentials")?.as_document());
    let has = |mechanism: &Mechanism| credentials.is_none_or(|kept| kept.get(mechanism.name()).is_some());
    let names = Mechanism::ALL.iter().filter(|mechanism| has(mechanism)).map(|mechanism| mechanism.name());
    Ok(names.filter(|name| service.access.has_mechanism(name)).collect())
}

fn start(
    service: &Service,
    connection: &mut ClientConnection,
    mechanism: Mechanism,
    database: &str,
    payload: &[u8],
    exchange: LastExchange,
) -> Result<Step> {
    let first = ClientFirst::parse(payload).map_err(|rejection| {
        log_refusal(service, connection, &Name::new("", database), mechanism.name(), rejection.reason());
        failed()
    })?;
    let user = Name::new(first.user.as_str(), database);
    let document = find_user(&service.catalog, &user)?;
    let credential = document.as_ref().and_then(|document| credential_of(mechanism, document.as_ref()));
    // This is computed for known users too, so that both cases take equally long.
    let iterations = service.access.iterations(mechanism).load(Ordering::Relaxed) as u32;
    let pretended =
        ScramCredential::pretended(mechanism, service.access.secret(&service.world), &user.id(), iterations);
    let (credential, standing) = match credential {
        Some(credential) => (credential, Standing::Known),
        None => (pretended, Standing::Pretended),
    };
    let random = || (service.world.random)().to_le_bytes();
    let nonce: Vec<u8> = std::iter::repeat_with(random).flatten().take(NONCE_BYTES).collect();
    let (conversation, challenge) =
        Conversation::begin(mechanism, &first, &base64::encode(&nonce), credential, standing);
    connection.login = Some(Login { user, mechanism, stage: Stage::Challenged(conversation), exchange });
    Ok(Step { is_done: false, payload: challenge })
}

fn credential_of(mechanism: Mechanism, user: DocumentRef<'_>) -> Option<ScramCredential> {
    let credentials = user.get("credentials")?.as_document()?;
    ScramCredential::parse(mechanism, credentials.get(mechanism.name())?.as_document()?)
}

fn go_on(service: &Service, connection: &mut ClientConnection, login: Login, payload: &[u8]) -> Result<Step> {
    let Login { user, mechanism, stage, exchange } = login;
    let (proved, answer) = match stage {
        Stage::Proved(_) if !payload.is_empty() => {
            log_refusal(service, connection, &user, mechanism.name(), Rejection::Malformed.reason());
            return Err(failed());
        }
        Stage::Proved(proved) => {
            log_in(service, connection, *proved, mechanism.name())?;
            return Ok(Step { is_done: true, payload: String::new() });
        }
        Stage::Challenged(conversation) => {
            let answer = conversation.finish(payload).map_err(|rejection| {
                log_refusal(service, connection, &user, mechanism.name(), rejection.reason());
                failed()
            })?;
            (admitted(service, connection, &user, mechanism.name())?, answer)
        }
    };
    match exchange {
        LastExchange::Skipped => log_in(service, connection, proved, mechanism.name())?,
        LastExchange::Empty => {
            connection.login = Some(Login { user, mechanism, stage: Stage::Proved(Box::new(proved)), exchange });
        }
    }
    Ok(Step { is_done: exchange == LastExchange::Skipped, payload: answer })
}

/// Reads the rights of a user who has proved their identity, and checks that they may log in from this address.
pub(super) fn admitted(
    service: &Service,
    connection: &ClientConnection,
    user: &Name,
    mechanism: &str,
) -> Result<LoggedIn> {
    let generation = service.access.generation();
    let refuse = |reason| {
        log_refusal(service, connection, user, mechanism, reason);
        failed()
    };
    let document = find_user(&service.catalog, user)?.ok_or_else(|| refuse(Rejection::UnknownUser.reason()))?;
    let proved = LoggedIn::read(service, user, document.as_ref(), generation)?;
    if !proved.may_come_from(connection.peer.ip()) {
        return Err(refuse("authentication restrictions are not met"));
    }
    Ok(proved)
}

/// Makes `proved` the connection's user. Logging in again as that user renews their rights; another user must wait for
/// a `logout`.
pub(super) fn log_in(
    service: &Service,
    connection: &mut ClientConnection,
    proved: LoggedIn,
    mechanism: &str,
) -> Result<()> {
    if let Some(other) = connection.user.as_ref().filter(|other| other.name != proved.name) {
        let message = format!("the connection is authenticated as {} already: log out first", other.name);
        return Err(Failure::new(ErrorCode::PROTOCOL_ERROR, message));
    }
    let (client, user) = (format!("conn{}", connection.id), &proved.name);
    tracing::info!(target: "ACCESS", id = 5_286_306, ctx = client, remote = %connection.peer, user = user.name, db = user.database, mechanism, "Successfully authenticated");
    let name = proved.name.clone();
    connection.set_user(Some(proved));
    note_login(service, connection, &name, mechanism, None);
    Ok(())
}

pub(super) fn log_refusal(
    service: &Service,
    connection: &ClientConnection,
    user: &Name,
    mechanism: &str,
    reason: &str,
) {
    let client = format!("conn{}", connection.id);
    tracing::info!(target: "ACCESS", id = 5_286_307, ctx = client, remote = %connection.peer, user = user.name, db = user.database, mechanism, reason, "Failed to authenticate");
    note_login(service, connection, user, mechanism, Some(ErrorCode::AUTHENTICATION_FAILED));
}

/// Logs a login by a mechanism that this server does not have. The user is not known at that point.
pub(super) fn log_unavailable(service: &Service, connection: &ClientConnection, database: &str, mechanism: &str) {
    let reason = "the mechanism is unknown or not enabled: there are SCRAM-SHA-256, SCRAM-SHA-1 and MONGODB-X509";
    log_refusal(service, connection, &Name::new("", database), mechanism, reason);
}

fn unavailable(mechanism: &str) -> Failure {
    let message = format!("Received authentication for mechanism {mechanism} which is unknown or not enabled");
    Failure::new(ErrorCode::MECHANISM_UNAVAILABLE, message)
}

/// The required `payload` of a command.
/// # Errors
/// `IDLFailedToParse` if it is missing; `TypeMismatch`.
fn payload(invocation: &Invocation<'_>) -> Result<Vec<u8>> {
    required_value(invocation, "payload")?;
    payload_of(invocation.request.body).ok_or_else(|| {
        Failure::type_mismatch(format!(
            "BSON field '{}.payload' must be binary, or base64 in a string",
            invocation.command.name
        ))
    })
}

/// Reads `payload` from bytes or from base64.
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

/// The names of a user's mechanisms, as `usersInfo` shows them.
pub(crate) fn mechanisms_of(user: DocumentRef<'_>) -> Vec<&'static str> {
    let credentials = user.get("credentials").and_then(ValueRef::as_document);
    let has = |mechanism: &Mechanism| credentials.is_some_and(|kept| kept.get(mechanism.name()).is_some());
    let all = [Mechanism::ScramSha1, Mechanism::ScramSha256];
    let is_external = credentials.is_some_and(|kept| kept.get(EXTERNAL).is_some());
    let scram = all.iter().filter(|mechanism| has(mechanism)).map(|mechanism| mechanism.name());
    scram.chain(is_external.then_some(EXTERNAL)).collect()
}
