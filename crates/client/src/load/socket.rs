//! One connection of a load: its unsent bytes, its half-received reply, its requests in flight.

use super::Request;
use crate::connection::Connection;
use crate::error::ClientError;
use crate::frame::{self, ReplyFrame};
use crate::stream::Stream;
use bunko_bson::DocumentBuf;
use std::collections::VecDeque;
use std::io::{self, Read, Write};

/// With this many unsent bytes or more, no further request is made.
const UNSENT_BYTES_MAX: usize = 64 * 1024;

pub(super) struct Socket {
    connection: Connection,
    outgoing: Vec<u8>,
    /// Bytes at the front of `outgoing` that the kernel has taken.
    sent_bytes: usize,
    /// The beginning of a reply that has not arrived completely.
    partial: Vec<u8>,
    in_flight: VecDeque<InFlight>,
    /// Requests that could be made if `outgoing` had room.
    pub deferred_slots: usize,
    /// Whether `outgoing` grew since the last flush.
    pub dirty: bool,
    /// Whether epoll reports when the socket accepts bytes again.
    pub awaits_room: bool,
    /// Whether a request without a reply was made since the last [`Self::drain_silent`].
    silent_requests: bool,
}

struct InFlight {
    request_id: i32,
    request: Request,
}

/// Outcome of [`Socket::flush`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flushed {
    All,
    /// The kernel's buffer is full.
    Partly,
}

impl Socket {
    pub fn new<E: From<io::Error>>(connection: Connection) -> Result<Self, E> {
        connection.stream().set_nonblocking(true)?;
        Ok(Self {
            connection,
            outgoing: Vec::new(),
            sent_bytes: 0,
            partial: Vec::new(),
            in_flight: VecDeque::new(),
            deferred_slots: 0,
            dirty: false,
            awaits_room: false,
            silent_requests: false,
        })
    }

    pub fn stream(&self) -> &Stream {
        self.connection.stream()
    }

    pub fn has_room(&self) -> bool {
        self.outgoing.len() - self.sent_bytes < UNSENT_BYTES_MAX
    }

    /// The buffer to which the next request is appended.
    pub fn outgoing(&mut self) -> &mut Vec<u8> {
        &mut self.outgoing
    }

    /// Records the request that was just appended at `start`; true if it will be answered.
    pub fn track(&mut self, start: usize, request_id: i32, request: Request) -> bool {
        let answered = frame::expects_reply(&self.outgoing[start..]);
        if answered {
            self.in_flight.push_back(InFlight { request_id, request });
        } else {
            self.silent_requests = true;
        }
        answered
    }

    /// Writes as much as the kernel takes.
    pub fn flush(&mut self) -> Result<Flushed, ClientError> {
        self.dirty = false;
        while self.sent_bytes < self.outgoing.len() {
            match self.connection.stream_mut().write(&self.outgoing[self.sent_bytes..]) {
                Ok(0) => return Err(self.connection.lost(io::ErrorKind::WriteZero.into())),
                Ok(written) => self.sent_bytes += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // Without this, bytes that were sent would be kept until the buffer is empty.
                    self.outgoing.drain(..self.sent_bytes);
                    self.sent_bytes = 0;
                    return Ok(Flushed::Partly);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.connection.lost(error)),
            }
        }
        self.outgoing.clear();
        self.sent_bytes = 0;
        // Only a TLS stream buffers bytes.
        match self.connection.stream_mut().flush() {
            Ok(()) => Ok(Flushed::All),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Flushed::Partly),
            Err(error) => Err(self.connection.lost(error)),
        }
    }

    /// Reads once and passes every complete reply to `on_reply` with its request; returns their number.
    ///
    /// All sockets of a thread share `scratch`; only an incomplete reply is copied out of it.
    pub fn receive(
        &mut self,
        scratch: &mut [u8],
        mut on_reply: impl FnMut(ReplyFrame<'_>, Request),
    ) -> Result<usize, ClientError> {
        let received = match self.connection.stream_mut().read(scratch) {
            Ok(0) => return Err(self.connection.lost(io::ErrorKind::UnexpectedEof.into())),
            Ok(received) => received,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => 0,
            Err(error) => return Err(self.connection.lost(error)),
        };
        let mut joined = std::mem::take(&mut self.partial);
        let bytes = if joined.is_empty() {
            &scratch[..received]
        } else {
            joined.extend_from_slice(&scratch[..received]);
            &joined
        };
        let (mut at, mut replies) = (0, 0);
        while let Some(reply) = frame::split_reply(&bytes[at..]).map_err(|error| self.connection.broken(&error))? {
            let request = self.take_in_flight(reply.response_to)?;
            on_reply(reply, request);
            at += reply.length_bytes;
            replies += 1;
        }
        if at == bytes.len() {
            joined.clear();
        } else if joined.is_empty() {
            joined.extend_from_slice(&scratch[at..received]);
        } else {
            joined.drain(..at);
        }
        self.partial = joined;
        Ok(replies)
    }

    /// Waits until the server has executed every request that it does not answer: a server handles a connection's
    /// requests in order.
    pub fn drain_silent(&mut self) -> Result<(), ClientError> {
        if std::mem::take(&mut self.silent_requests) {
            self.connection.stream().set_nonblocking(false).map_err(|error| self.connection.lost(error))?;
            self.connection.run_command("admin", DocumentBuf::new().with("ping", 1_i32).as_ref())?;
            self.connection.stream().set_nonblocking(true).map_err(|error| self.connection.lost(error))?;
        }
        Ok(())
    }

    /// Removes the request that a reply answers. Servers answer in order, so it is normally the first entry; any other
    /// is found by a search.
    fn take_in_flight(&mut self, request_id: i32) -> Result<Request, ClientError> {
        let position = self.in_flight.iter().position(|request| request.request_id == request_id);
        let request = position.and_then(|position| self.in_flight.remove(position));
        let found = request.ok_or_else(|| {
            self.connection.violation(format!("a reply to request {request_id}, which is not in flight"))
        })?;
        Ok(found.request)
    }
}
