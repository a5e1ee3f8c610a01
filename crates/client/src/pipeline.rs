//! One blocking connection with several requests in flight, for tools that move documents in bulk.

use crate::connection::Connection;
use crate::error::ClientError;
use crate::frame::{FrameWriter, ReplyMode, split_reply};
use bunko_bson::DocumentRef;
use bunko_wire::needed_bytes;
use std::collections::VecDeque;
use std::io::{Read, Write};

/// Bytes to read while the length of the next reply is not known yet.
const READ_BYTES: usize = 64 * 1024;

/// Sends commands without waiting for replies, and receives the replies in the order of the commands.
///
/// Nothing is read while a request is being written. A caller that keeps sending while replies of many kilobytes are
/// outstanding may therefore wait forever. Requests with short replies (writes) or one request at a time (reads) are
/// safe.
pub struct Pipeline {
    connection: Connection,
    outgoing: Vec<u8>,
    received: Vec<u8>,
    /// Bytes at the front of `received` that belong to the reply returned last.
    taken_bytes: usize,
    /// Bytes of `received` that have arrived; the rest is free space.
    filled_bytes: usize,
    in_flight: VecDeque<i32>,
    next_request_id: i32,
}

impl Pipeline {
    /// Takes over a connection that has completed its handshake.
    pub fn new(connection: Connection) -> Self {
        Self {
            connection,
            outgoing: Vec::new(),
            received: Vec::new(),
            taken_bytes: 0,
            filled_bytes: 0,
            in_flight: VecDeque::new(),
            next_request_id: 1,
        }
    }

    /// The connection, for other commands while no request is in flight.
    pub fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// Requests whose replies have not been received.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Sends a command, whose document already contains `$db`, followed by a sequence of encoded documents.
    /// # Errors
    /// `Disconnected`; `Protocol` for a request above 48,000,000 bytes, of which nothing was sent.
    pub fn send(&mut self, command: DocumentRef<'_>, sequence: Option<(&str, &[u8])>) -> Result<(), ClientError> {
        let id = self.next_request_id;
        self.outgoing.clear();
        let mut frame = FrameWriter::new(&mut self.outgoing, id, ReplyMode::Expected, command);
        if let Some((name, documents)) = sequence {
            frame.sequence(name, |out| out.extend_from_slice(documents));
        }
        frame.finish().map_err(|error| self.connection.violation(format!("the request is too long: {error}")))?;
        let stream = self.connection.stream_mut();
        let sent = stream.write_all(&self.outgoing).and_then(|()| stream.flush());
        sent.map_err(|cause| self.connection.lost(cause))?;
        self.next_request_id = id.wrapping_add(1);
        self.in_flight.push_back(id);
        Ok(())
    }

    /// Waits for the next reply and returns it even if it reports an error; its contents are not validated.
    /// # Errors
    /// `Disconnected`, or `Protocol` if anything other than that reply arrives.
    ///
    /// # Panics
    /// If no request is in flight.
    pub fn receive(&mut self) -> Result<DocumentRef<'_>, ClientError> {
        let expected = self.in_flight.pop_front().expect("a request is in flight");
        self.received.copy_within(self.taken_bytes..self.filled_bytes, 0);
        self.filled_bytes -= std::mem::take(&mut self.taken_bytes);
        loop {
            let received = &self.received[..self.filled_bytes];
            let needed = needed_bytes(received).unwrap_or(0);
            if needed > 0 && needed <= self.filled_bytes {
                break;
            }
            let end = needed.max(self.filled_bytes + READ_BYTES);
            if self.received.len() < end {
                self.received.resize(end, 0);
            }
            let room = &mut self.received[self.filled_bytes..];
            let count = self.connection.stream_mut().read(room);
            match count {
                Ok(0) => return Err(self.connection.lost(std::io::ErrorKind::UnexpectedEof.into())),
                Ok(count) => self.filled_bytes += count,
                Err(cause) if cause.kind() == std::io::ErrorKind::Interrupted => {}
                Err(cause) => return Err(self.connection.lost(cause)),
            }
            // `split_reply` reports a length that no frame can have.
            split_reply(&self.received[..self.filled_bytes]).map_err(|error| self.connection.broken(&error))?;
        }
        let reply = split_reply(&self.received[..self.filled_bytes]);
        let reply = reply.map_err(|error| self.connection.broken(&error))?.expect("the whole frame is there");
        if reply.response_to != expected {
            let detail = format!("a reply to request {}, not to {expected}", reply.response_to);
            return Err(self.connection.violation(detail));
        }
        self.taken_bytes = reply.length_bytes;
        Ok(reply.document)
    }
}
