//! The thread of a link: it sends the newest messages over one connection, one at a time, and reads each answer.

use crate::core::Core;
use crate::link::{Link, PAUSE, Step};
use crate::wire::{FROM_HOST, NEWS, TO_HOST, decode_news, of_stamp};
use crate::{COMMAND, PARTS, wire};
use bunko_bson::{BinarySubtype, DocumentBuf, DocumentRef, ObjectId, ValueRef, number};
use bunko_client::{ClientError, Connection};
use bunko_errors::ErrorCode;
use bunko_replica::{Body, Event, Message, Stamp};
use bunko_replica_set::set_id;
use bunko_store::{Lsn, RawReader, StorageError};
use std::sync::{Arc, Weak};
use std::time::Instant;

/// Bytes of the log in one document of the sequence [`PARTS`].
const PART_BYTES: usize = 1 << 20;
/// Maximum number of bytes of the log in one message. A longer record travels in several, between which heartbeats are sent.
const MESSAGE_BYTES_MAX: usize = 8 << 20;
/// Number of bytes that the log keeps for a member that is being read to.
const KEPT_BYTES_MAX: u64 = 1 << 30;

/// So many refused logins double the pause before the next one: up to 3.2 s.
const REFUSALS_MAX: u32 = 5;

/// Sends messages until the link is over. The work of the thread `to-HOST`.
pub(crate) fn run(link: &Link, core: &Weak<Core>) {
    let mut sender = Sender { connection: None, is_reached: false, refusals: 0, reader: None, is_invited: false };
    loop {
        let message = match link.next() {
            Step::Send(message) => Some(message),
            Step::Ping => None,
            Step::End => return,
        };
        let Some(core) = core.upgrade() else { return };
        if let Err(failure) = sender.send(link, &core, message) {
            if link.heard.note_failure(failure.clone()) {
                tracing::info!(target: "REPL", id = 300, ctx = "member", host = &*link.host, error = failure, "Another member of the set cannot be reached");
            }
            // Only a connection that was there can break. A primary that this member cannot reach may reach this member, and
            // would otherwise be lost and found again with each attempt.
            if std::mem::take(&mut sender.is_reached) {
                core.step(Event::Reset(link.peer), None);
            }
            // The other member logs each login that it refuses.
            if link.pause(PAUSE * (1_u32 << sender.refusals.min(REFUSALS_MAX))) {
                return;
            }
        }
    }
}

/// Whether a message only asks how the other member is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IsPing {
    Yes,
    No,
}

/// The connection of a link, and the place in the log up to which it has sent.
struct Sender {
    connection: Option<Connection>,
    /// Whether the other member was reached since the last failure.
    is_reached: bool,
    /// Number of logins, one after the other, that the other member has refused.
    refusals: u32,
    reader: Option<RawReader>,
    /// Whether the other member said that it belongs to no set of several members.
    is_invited: bool,
}

impl Sender {
    /// Sends one message, or asks for the other member's state.
    fn send(&mut self, link: &Link, core: &Core, message: Option<Message>) -> Result<(), String> {
        let mut body = head(core, link);
        let (mut bytes, mut at) = (Vec::new(), 0);
        let is_ping = if message.is_none() { IsPing::Yes } else { IsPing::No };
        match message {
            _ if self.is_invited => {
                let server = self.server(core, link)?;
                body.append("join", &core.invitation(link.peer, server));
            }
            Some(message) => {
                if let Body::Span { from, to, .. } = &message.body
                    && *to > from.end
                    && !self.read(core, Lsn(from.end), Lsn(*to), &mut bytes)
                {
                    // The follower asks again.
                    return Ok(());
                }
                if let Body::Span { from, .. } = &message.body {
                    at = from.end;
                }
                let message = with_end(message, bytes.len());
                body.append("message", &wire::encode(&message, |configuration| core.document_of(configuration)));
            }
            None => {}
        }
        let connection = self.connection(core, link)?;
        let began = core.clock.now();
        let (ahead, last) = bytes.split_at(bytes.len().saturating_sub(1) / MESSAGE_BYTES_MAX * MESSAGE_BYTES_MAX);
        if !ahead.is_empty() {
            body.append("piece", &piece(at, ahead.len()));
        }
        let sent = send_ahead(connection, core, link, (at, ahead));
        match sent.and_then(|()| connection.run_with_sequence("admin", body.as_ref(), PARTS, &parts(last))) {
            Ok(reply) => {
                let status = reply.as_ref().get("status").and_then(ValueRef::as_document);
                self.answered((link, core), status.unwrap_or(DocumentRef::EMPTY).to_owned(), began, is_ping)
            }
            // The member is there, and refuses.
            Err(ClientError::Command(error)) => {
                self.is_invited = error.code == ErrorCode::NOT_YET_INITIALIZED.0 && core.invites(link.peer);
                link.heard.note_failure(error.to_string());
                link.pause(PAUSE);
                Ok(())
            }
            Err(error) => {
                self.connection = None;
                Err(error.to_string())
            }
        }
    }

    /// The connection to the other member.
    fn connection(&mut self, core: &Core, link: &Link) -> Result<&mut Connection, String> {
        let Self { connection, is_reached, refusals, .. } = self;
        let connection = match connection {
            Some(connection) => connection,
            none => {
                let dialled = (core.dial)(&link.host);
                let is_refused = matches!(dialled, Err(ClientError::Authentication { .. }));
                *refusals = if is_refused { *refusals + 1 } else { 0 };
                none.insert(dialled.map_err(|error| error.to_string())?)
            }
        };
        *is_reached = true;
        Ok(connection)
    }

    /// The id of the set of one that the server at the other end has begun.
    fn server(&mut self, core: &Core, link: &Link) -> Result<ObjectId, String> {
        let asked = DocumentBuf::new().with("replSetGetConfig", 1);
        let connection = self.connection(core, link)?;
        match connection.run_command("admin", asked.as_ref()) {
            Ok(reply) => {
                let configuration = reply.as_ref().get("config").and_then(ValueRef::as_document);
                configuration.map(set_id).ok_or_else(|| "the answer has no configuration".to_owned())
            }
            Err(error) => {
                self.connection = None;
                Err(error.to_string())
            }
        }
    }

    /// Notes the answer of the other member to a message that was sent at `began`.
    fn answered(
        &mut self,
        (link, core): (&Link, &Core),
        status: DocumentBuf,
        began: Instant,
        is_ping: IsPing,
    ) -> Result<(), String> {
        if let Some(news) = status.as_ref().get(NEWS).and_then(ValueRef::as_document) {
            // The other member no longer counts this one.
            link.heard.note_failure("this member was removed".to_owned());
            let (configuration, document) = decode_news(news)?;
            if set_id(document.as_ref()) != core.set.id() || core.is_far_ahead(configuration.term) {
                return Err("the configuration in its answer is another set's".to_owned());
            }
            core.learn(link.peer, Arc::new(configuration), document);
            link.pause(PAUSE);
            return Ok(());
        }
        let stored = stored(status.as_ref());
        link.heard.note_answer(status, core.clock.now(), core.clock.since(began));
        if !std::mem::take(&mut self.is_invited) {
            core.note_joined(link.peer);
        }
        // The agreement itself looks at members that answer its messages.
        if let Some(stored) = stored.filter(|_| is_ping == IsPing::Yes) {
            core.note_stored(link.peer, stored);
        }
        Ok(())
    }

    /// Reads the log from `from` to about `to`. Returns false if there is nothing to send.
    fn read(&mut self, core: &Core, from: Lsn, to: Lsn, into: &mut Vec<u8>) -> bool {
        if self.reader.as_ref().is_none_or(|reader| reader.position() != from) {
            self.reader = match core.store.read_raw_log(from, KEPT_BYTES_MAX) {
                Ok(reader) => Some(reader),
                Err(error) => {
                    Self::note_lost(core, &error);
                    return false;
                }
            };
        }
        let Some(reader) = &mut self.reader else { return false };
        match reader.read((to.0 - from.0) as usize, into) {
            Ok(end) => end > from,
            Err(error) => {
                self.reader = None;
                Self::note_lost(core, &error);
                false
            }
        }
    }

    fn note_lost(core: &Core, error: &StorageError) {
        match error {
            StorageError::HistoryLost => core.note_log(),
            other => {
                tracing::error!(target: "REPL", id = 301, ctx = "member", error = %other, "The log cannot be read for another member");
            }
        }
    }
}

/// Sends the bytes of a span that do not fit into its message, in messages before it.
fn send_ahead(
    connection: &mut Connection,
    core: &Core,
    link: &Link,
    (at, ahead): (u64, &[u8]),
) -> Result<(), ClientError> {
    for (index, bytes) in ahead.chunks(MESSAGE_BYTES_MAX).enumerate() {
        let body = head(core, link).with("piece", &piece(at, index * MESSAGE_BYTES_MAX));
        connection.run_with_sequence("admin", body.as_ref(), PARTS, &parts(bytes))?;
        // The other member must hear this one in time.
        while let Some(message) = link.take_without_bytes() {
            let message = wire::encode(&message, |configuration| core.document_of(configuration));
            let body = head(core, link).with("message", &message);
            connection.run_with_sequence("admin", body.as_ref(), PARTS, &[])?;
        }
    }
    Ok(())
}

/// The configuration that another member has stored, as its answer says.
fn stored(status: DocumentRef<'_>) -> Option<Stamp> {
    let whole =
        |name: &str| status.get(name).and_then(number::as_i64_exact).and_then(|whole| u64::try_from(whole).ok());
    Some(Stamp { term: whole("configTerm")?, version: whole("configVersion")? })
}

/// The beginning of the command.
fn head(core: &Core, link: &Link) -> DocumentBuf {
    DocumentBuf::new()
        .with(COMMAND, 1)
        .with("set", core.set.name())
        .with("to", i64::from(link.peer.0))
        .with(TO_HOST, link.host.as_str())
        .with("from", i64::from(core.id.0))
        .with(FROM_HOST, core.own_host.as_str())
        .with("setId", core.set.id())
        .with("stamp", &of_stamp(core.configuration().stamp()))
}

/// The place of a message's bytes in the span that begins at `at`.
fn piece(at: u64, offset: usize) -> DocumentBuf {
    DocumentBuf::new().with("at", at as i64).with("offset", offset as i64)
}

/// The message; without bytes, its span is empty, whatever the agreement asked for.
fn with_end(mut message: Message, bytes: usize) -> Message {
    if let Body::Span { from, to, .. } = &mut message.body
        && bytes == 0
    {
        *to = from.end;
    }
    message
}

fn parts(bytes: &[u8]) -> Vec<DocumentBuf> {
    let part =
        |bytes: &[u8]| DocumentBuf::new().with("bytes", ValueRef::Binary { subtype: BinarySubtype::GENERIC, bytes });
    bytes.chunks(PART_BYTES).map(part).collect()
}

/// The bytes of the log in the documents of a sequence.
pub(crate) fn joined<'a>(parts: impl Iterator<Item = DocumentRef<'a>>) -> Result<Vec<u8>, String> {
    let mut joined = Vec::new();
    for part in parts {
        match part.get("bytes") {
            Some(ValueRef::Binary { bytes, .. }) => joined.extend_from_slice(bytes),
            _ => return Err("a part of the log has no bytes".to_owned()),
        }
    }
    Ok(joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_join_to_the_same_bytes() {
        let bytes: Vec<u8> = (0..PART_BYTES * 2 + 17).map(|byte| byte as u8).collect();
        let parts = parts(&bytes);
        assert_eq!(parts.len(), 3);
        assert_eq!(joined(parts.iter().map(DocumentBuf::as_ref)), Ok(bytes));
        assert!(joined([DocumentBuf::new()].iter().map(DocumentBuf::as_ref)).is_err());
    }
}
