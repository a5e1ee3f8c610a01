//! Large messages: a connection reads one once there is room for it in the server's memory.
//!
//! ```text
//!            64 KiB have come                  room comes                       the last byte
//! (reading) ------------------> waiting ---------------------> receiving ------------------------> executing
//!                                 |   ^                          |
//!                   no room in    |   | bytes come               | others wait, and the client
//!                   time          v   |                          v sends nothing or little
//!                               refused            stopped <-----+
//!                                                     | nothing comes, and others wait
//!                                                     v
//!                                                   closed
//! ```
//!
//! A connection that waits does not read, so the client's own writes wait. A connection that is stopped holds room for
//! the bytes that have come and for no more.

use super::{Ended, STEPS_MAX, Session};
use crate::acknowledge::let_the_ready_run;
use crate::execute::refuse_for_memory;
use crate::message_room::{Cost, RoomTaken};
use crate::scratch;
use crate::socket::Next;
use crate::stream::Stream;
use bunko_operation::Purpose;
use bunko_wire::{HEADER_BYTES, Header};
use std::future::{pending, poll_fn};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Number of bytes of a large message that must have arrived before the server asks for memory for the whole message. A
/// client that sends only a header takes no memory from others.
pub(super) const BEGINNING_BYTES: usize = 64 * 1024;
/// How long a message waits for room before it is refused.
const ROOM_PATIENCE: Duration = Duration::from_secs(30);
/// While others wait, a client that sends nothing for this long is stopped.
const SILENCE_MAX: Duration = Duration::from_millis(200);
/// While others wait, a message may take a second, and a second more for each time that it has this many bytes.
const BYTES_PER_SECOND_MIN: usize = 16 << 20;
/// While others wait, the connection of a stopped client that sends nothing more for this long is closed.
const STOPPED_MAX: Duration = Duration::from_secs(10);

/// How the wait for room ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    Found,
    /// There was no room in time.
    Refused,
}

/// How a read ended.
enum Received {
    Whole,
    Stopped,
    End,
}

impl Session {
    /// Whether enough of a large message has come to read the rest on its own.
    pub(super) fn has_begun_large_message(&self) -> bool {
        let has_come = self.input.bytes().len() >= BEGINNING_BYTES;
        has_come && self.input.missing_bytes().is_some_and(|missing| missing >= super::DIRECT_READ_BYTES)
    }

    /// Reads the rest of a large message once there is room for it. Returns whether the client is still there.
    pub(super) async fn receive(&mut self) -> Result<bool, Ended> {
        let length = self.input.bytes().len() + self.input.missing_bytes().unwrap_or(0);
        let cost = Cost::of_start(self.input.bytes(), length);
        loop {
            if let Some(cost) = &cost
                && self.find_room(cost).await? == Room::Refused
            {
                return self.refuse_rest().await.map(|()| true);
            }
            match self.receive_rest().await? {
                Received::Whole => return Ok(true),
                Received::End => return Ok(false),
                Received::Stopped if self.wait_for_bytes().await? => {}
                Received::Stopped => return Ok(false),
            }
        }
    }

    /// Waits until there is room for a message.
    pub(super) async fn find_room(&mut self, cost: &Cost) -> Result<Room, Ended> {
        if self.place.as_ref().is_some_and(RoomTaken::is_whole) {
            return Ok(Room::Found);
        }
        let memory = &self.service.facts.memory_limits.server;
        let missing = cost.missing(self.place.as_ref());
        let draw = match memory.draw(missing, Purpose::Message) {
            Some(draw) => draw,
            None => {
                self.service.memory_counts.waited.fetch_add(1, Ordering::Relaxed);
                tokio::select! {
                    biased;
                    draw = memory.draw_in_turn(missing, Purpose::Message) => draw,
                    () = is_gone(&self.stream, self.input.missing_bytes().unwrap_or(0)) => return Err(Ended::Socket),
                    () = tokio::time::sleep(ROOM_PATIENCE) => {
                        self.service.memory_counts.refused.fetch_add(1, Ordering::Relaxed);
                        return Ok(Room::Refused);
                    }
                }
            }
        };
        match &mut self.place {
            Some(place) => place.fill(draw),
            none => *none = Some(cost.place(draw)),
        }
        Ok(Room::Found)
    }

    async fn receive_rest(&mut self) -> Result<Received, Ended> {
        let began = self.service.world.clock.now();
        let time_max = Duration::from_secs(1 + (self.input.rest().capacity() / BYTES_PER_SECOND_MIN) as u64);
        let mut steps = 0;
        loop {
            let is_silent = tokio::select! {
                biased;
                read = self.stream.read_more(self.input.rest()) => {
                    if read? == 0 {
                        return Ok(Received::End);
                    }
                    false
                }
                () = tokio::time::sleep(SILENCE_MAX) => true,
            };
            if self.input.has_frame() {
                return Ok(Received::Whole);
            }
            let is_slow = is_silent || self.service.world.clock.since(began) > time_max;
            if is_slow && self.service.facts.memory_limits.server.waiting_for(Purpose::Message) > 0 {
                self.input.shrink();
                let held = self.input.held_bytes();
                if let Some(place) = &mut self.place {
                    place.shrink(held);
                }
                return Ok(Received::Stopped);
            }
            steps = (steps + 1) % STEPS_MAX;
            if steps == 0 {
                let_the_ready_run().await;
            }
        }
    }

    /// Waits until a client that was stopped sends more. Returns false if it leaves instead.
    async fn wait_for_bytes(&mut self) -> Result<bool, Ended> {
        loop {
            tokio::select! {
                next = self.stream.next() => return Ok(matches!(next?, Next::Bytes)),
                () = tokio::time::sleep(STOPPED_MAX) => {
                    if self.service.facts.memory_limits.server.waiting_for(Purpose::Message) > 0 {
                        self.service.memory_counts.stalled.fetch_add(1, Ordering::Relaxed);
                        return Err(Ended::Stalled);
                    }
                }
            }
        }
    }

    /// Passes over the rest of a message and answers that there is no room for it.
    async fn refuse_rest(&mut self) -> Result<(), Ended> {
        let mut missing = self.input.missing_bytes().unwrap_or(0);
        let start = self.input.take();
        let (header, start) = beginning_of(&start)?;
        self.place = None;
        while missing > 0 {
            let read = poll_fn(|_| {
                scratch::with(|scratch| {
                    let room = scratch.read.len().min(missing);
                    self.stream.poll_read(&mut scratch.read[..room])
                })
            });
            match read.await? {
                0 => return Err(Ended::Socket),
                read => missing -= read,
            }
        }
        let mut out = Vec::new();
        if !refuse_for_memory(&start, &header, &mut out) {
            return Err(Ended::NoRoom);
        }
        self.send(&out).await
    }
}

/// The header, and a copy of the first bytes of a message of which more is not needed.
fn beginning_of(message: &[u8]) -> Result<(Header, Vec<u8>), Ended> {
    let header = Header::of_start(message)?;
    Ok((header, message[..message.len().min(2 * HEADER_BYTES)].to_vec()))
}

/// Returns once the client is gone, or will send no more although its message is incomplete.
async fn is_gone(stream: &Stream, missing: usize) {
    stream.ended().await;
    if stream.may_bring(missing as u64) {
        pending::<()>().await;
    }
}
