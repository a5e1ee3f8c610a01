//! Authentication: the SASL conversation around the mechanisms.
//!
//! The handshake already carries the first message of SCRAM-SHA-256 (`speculativeAuthenticate`). A server that accepts
//! it saves a round trip; a server that knows the user only by SCRAM-SHA-1 says so in `saslSupportedMechs`.

mod key_cache;
mod plain;
mod scram;
mod scram_sha_1;
mod scram_sha_256;
mod x509;

pub(crate) use key_cache::KeyCache;

use crate::connection::Connection;
use crate::error::ClientError;
use crate::uri::{Credential, Mechanism};
use bunko_bson::{BinarySubtype, DocumentBuf, DocumentRef, ValueRef, base64};
use scram::{ScramClient, ScramProof, Variant};

/// Random bytes in a nonce. Source: MongoDB authentication specification (at least 24).
const NONCE_BYTES: usize = 24;
/// Maximum number of replies without progress in a conversation: MongoDB sends one.
const EMPTY_EXCHANGES_MAX: usize = 2;

fn variant(mechanism: Mechanism) -> Option<&'static Variant> {
    match mechanism {
        Mechanism::ScramSha1 => Some(&scram_sha_1::VARIANT),
        Mechanism::ScramSha256 => Some(&scram_sha_256::VARIANT),
        Mechanism::Plain | Mechanism::X509 => None,
    }
}

/// A conversation that the handshake begins.
pub(crate) struct Speculation {
    mechanism: Mechanism,
    client: ScramClient,
}

impl Speculation {
    /// Begins with SCRAM-SHA-256 if the caller named no mechanism; `None` if there is nothing to begin.
    pub fn begin(credential: &Credential) -> Option<Self> {
        let mechanism = credential.mechanism.unwrap_or(Mechanism::ScramSha256);
        Some(Self { mechanism, client: ScramClient::new(variant(mechanism)?, &credential.user, nonce()) })
    }

    /// Adds to the handshake the fields with which the server can continue the conversation.
    pub fn extend_hello(&self, credential: &Credential, hello: &mut DocumentBuf) {
        let start = sasl_start(self.mechanism, self.client.first_message().as_bytes());
        hello.append("speculativeAuthenticate", &start.with("db", &credential.source));
        if credential.mechanism.is_none() {
            let user = format!("{}.{}", credential.source, credential.user);
            hello.append("saslSupportedMechs", &user);
        }
    }
}

fn nonce() -> String {
    base64::encode(&rand::random::<[u8; NONCE_BYTES]>())
}

fn sasl_start(mechanism: Mechanism, payload: &[u8]) -> DocumentBuf {
    let options = DocumentBuf::new().with("skipEmptyExchange", true);
    let start = DocumentBuf::new().with("saslStart", 1_i32).with("mechanism", mechanism.name());
    start.with("payload", binary(payload)).with("options", &options)
}

/// Authenticates a connection that has completed its handshake.
/// # Errors
/// `Authentication`, which contains everything except the password.
pub(crate) fn authenticate(
    connection: &mut Connection,
    credential: &Credential,
    speculation: Option<Speculation>,
    keys: &KeyCache,
) -> Result<(), ClientError> {
    let begun = connection.hello().get("speculativeAuthenticate").and_then(ValueRef::as_document);
    if let (Some(speculation), Some(first_reply)) = (speculation, begun) {
        let (mechanism, first_reply) = (speculation.mechanism, first_reply.to_owned());
        return Conversation { connection, credential, mechanism }.continue_scram(
            speculation.client,
            &first_reply,
            keys,
        );
    }
    let mechanism = credential.mechanism.unwrap_or_else(|| negotiated(connection.hello()));
    if mechanism == Mechanism::X509 {
        let command = x509::command(credential);
        return Conversation { connection, credential, mechanism }.exchange(&command).map(|_| ());
    }
    let mut conversation = Conversation { connection, credential, mechanism };
    match variant(mechanism) {
        None => conversation.start(&plain::message(credential)).map(|_| ()),
        Some(variant) => {
            let client = ScramClient::new(variant, &credential.user, nonce());
            let reply = conversation.start(client.first_message().as_bytes())?;
            conversation.continue_scram(client, &reply, keys)
        }
    }
}

/// The strongest mechanism that the server has for the user. Servers before 4.0 have only the older one and do not list
/// mechanisms.
fn negotiated(hello: DocumentRef<'_>) -> Mechanism {
    let offered = hello.get("saslSupportedMechs").and_then(ValueRef::as_array);
    let strong = offered.is_some_and(|offered| {
        offered.iter().any(|mechanism| mechanism.as_str() == Some(Mechanism::ScramSha256.name()))
    });
    if strong { Mechanism::ScramSha256 } else { Mechanism::ScramSha1 }
}

struct Conversation<'c> {
    connection: &'c mut Connection,
    credential: &'c Credential,
    mechanism: Mechanism,
}

impl Conversation<'_> {
    fn start(&mut self, payload: &[u8]) -> Result<DocumentBuf, ClientError> {
        self.exchange(&sasl_start(self.mechanism, payload))
    }

    /// The rest of SCRAM after the server's first message.
    fn continue_scram(
        mut self,
        client: ScramClient,
        first_reply: &DocumentBuf,
        keys: &KeyCache,
    ) -> Result<(), ClientError> {
        let known = keys.get(self.mechanism);
        let Credential { user, password, .. } = self.credential;
        let proof = client.prove(&payload(first_reply), user, password, known.as_ref());
        let proof = proof.map_err(|detail| self.failure(detail))?;
        let mut reply = self.next(first_reply, proof.message.as_bytes())?;
        self.verify(&proof, &reply)?;
        // Servers before 4.4 do not know skipEmptyExchange and wait for one more, empty message.
        for _ in 0..EMPTY_EXCHANGES_MAX {
            if matches!(reply.as_ref().get("done"), Some(ValueRef::Boolean(true))) {
                keys.keep(self.mechanism, proof.salted_password);
                return Ok(());
            }
            reply = self.next(&reply, b"")?;
        }
        Err(self.failure("the server does not come to an end".into()))
    }

    fn verify(&self, proof: &ScramProof, reply: &DocumentBuf) -> Result<(), ClientError> {
        proof.verify(&payload(reply)).map_err(|detail| self.failure(detail))
    }

    fn next(&mut self, previous: &DocumentBuf, payload: &[u8]) -> Result<DocumentBuf, ClientError> {
        let id = previous.as_ref().get("conversationId").unwrap_or(ValueRef::Int32(1));
        let command = DocumentBuf::new().with("saslContinue", 1_i32).with("conversationId", id);
        self.exchange(&command.with("payload", binary(payload)))
    }

    fn exchange(&mut self, command: &DocumentBuf) -> Result<DocumentBuf, ClientError> {
        match self.connection.run_command(&self.credential.source, command.as_ref()) {
            // Some servers explain on several lines.
            Err(ClientError::Command(error)) => Err(self.failure(error.to_string().replace('\n', " "))),
            other => other,
        }
    }

    fn failure(&self, detail: String) -> ClientError {
        ClientError::Authentication {
            address: self.connection.address().to_owned(),
            user: self.credential.user.clone(),
            source: self.credential.source.clone(),
            mechanism: self.mechanism,
            detail,
        }
    }
}

fn binary(bytes: &[u8]) -> ValueRef<'_> {
    ValueRef::Binary { subtype: BinarySubtype::GENERIC, bytes }
}

/// A reply's payload as text, as in SCRAM; empty if there is none.
fn payload(reply: &DocumentBuf) -> String {
    match reply.as_ref().get("payload") {
        Some(ValueRef::Binary { bytes, .. }) => String::from_utf8_lossy(bytes).into_owned(),
        Some(ValueRef::String(text)) => text.to_owned(),
        _ => String::new(),
    }
}
