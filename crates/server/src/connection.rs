//! One connection: reads bytes, and executes frames in order.
//!
//! `Session::run` repeats three steps: `poll_arrive` reads into a buffer of the thread, `pass` executes whole frames
//! until one of them must stop the connection (`Stop`), and `finish` handles that frame and sends all replies.

mod ended;
mod receiving;
mod sending;
mod waiting;

use crate::acknowledge::{let_the_ready_run, stronger, wait};
use crate::admission::Admitted;
use crate::execute::{execute, execute_apart, refuse_for_memory};
use crate::executed::Executed;
use crate::executor::Executor;
use crate::first_bytes::{self, Foreign, HTTP_ANSWER};
use crate::input::Input;
use crate::message_room::{Cost, RoomTaken};
use crate::newcomer::{FRAME_BYTES_MAX, Newcomer, frame_bytes_max};
use crate::scratch;
use crate::socket::{Next, Socket};
use crate::stream::Stream;
use crate::tls::{HANDSHAKE_TIME_MAX, HandshakeError, PlainClients, Tls, shake_hands};
use bunko_command::{Acknowledgement, Answer, Await, ClientConnection, FollowUp, RunOn, Service};
use bunko_wire::{Codec, HEADER_BYTES, Header, WireError, split_frame};
use ended::Ended;
use receiving::Room;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, ready};
use waiting::More;

/// A frame that lacks at least this many bytes is read without the shared buffer.
const DIRECT_READ_BYTES: usize = 64 * 1024;
/// Replies are sent once they reach this size, even if more requests wait: otherwise a client could fill the memory by
/// sending requests without reading.
const REPLY_BYTES_MAX: usize = 1 << 20;
/// Parsing a longer request takes milliseconds, so it does not run on the thread that serves other connections.
const LARGE_FRAME_BYTES: usize = 4 << 20;
/// Reads in a row from a client that never stops sending, before the thread's other connections have their turn.
const STEPS_MAX: u32 = 16;

/// Serves a connection until it ends.
pub(crate) async fn serve(
    service: Arc<Service>,
    executor: Arc<Executor>,
    socket: Arc<Socket>,
    tls: Option<Arc<Tls>>,
    client: ClientConnection,
    admitted: Admitted,
) {
    let (id, peer) = (client.id, client.peer);
    service.counters.connection_opened();
    let open = Open(Arc::clone(&service));
    let mut session = Session {
        service,
        executor,
        stream: Stream::plain(socket),
        tls,
        input: Input::default(),
        has_spoken: false,
        client: Some(client),
        admitted,
        newcomer: None,
        place: None,
    };
    let reason = match session.run().await {
        Ok(()) => "closed by the client",
        Err(ended) => ended.tell(id, peer, session.newcomer.as_ref()),
    };
    let is_quiet = open.0.parameters.is_quiet();
    drop(open);
    if !is_quiet {
        tracing::info!(target: "NETWORK", id = 22944, ctx = format!("conn{id}"), remote = %peer, connectionId = id, reason, "Connection ended");
    }
}

/// Counts a connection down even when a command panics.
struct Open(Arc<Service>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.counters.connection_closed();
    }
}

struct Session {
    service: Arc<Service>,
    executor: Arc<Executor>,
    stream: Stream,
    /// The server's TLS, if it is on.
    tls: Option<Arc<Tls>>,
    input: Input,
    /// Whether the client has sent bytes that may be a frame.
    has_spoken: bool,
    /// `None` while a long command has it.
    client: Option<ClientConnection>,
    /// The connection's admission.
    admitted: Admitted,
    /// Limits of a client that is not logged in; `None` after the login, or where none is required.
    newcomer: Option<Newcomer>,
    /// Memory for a large message that is received or executed.
    place: Option<RoomTaken>,
}

/// The result of a read.
enum Arrived {
    /// Frames, already executed.
    Frames(Vec<u8>, Pass),
    /// Part of a frame.
    Part,
    End,
}

/// The result of one pass over the available bytes.
struct Pass {
    consumed: usize,
    acknowledgement: Acknowledgement,
    /// `None` if no whole frame is left, or enough replies wait. Boxed, because it is rare and a pass is moved with
    /// each frame.
    stop: Option<Box<Stop>>,
}

impl Pass {
    /// A pass that ends at a frame for which the connection must stop.
    fn stopped(stop: Stop) -> Self {
        Self { consumed: 0, acknowledgement: Acknowledgement::None, stop: Some(Box::new(stop)) }
    }
}

enum Stop {
    /// A frame whose reply, which begins at `start`, is sent later.
    Hold { answer: Answer, start: usize },
    /// A frame whose reply is followed by others.
    Stream(Header, Vec<u8>, FollowUp),
    /// A frame whose command may take long.
    Long(Header, Vec<u8>),
    /// A frame whose command has no reply yet.
    Await(Header, Vec<u8>, Box<Await>),
    /// An unreadable frame; the frames before it are answered first.
    Malformed(WireError),
    /// A frame whose command closes the connection.
    Close,
    /// Bytes of another protocol.
    Foreign(Foreign),
}

impl Session {
    async fn run(&mut self) -> Result<(), Ended> {
        if self.plain_clients() == PlainClients::Refused && !self.begins().await? {
            return Ok(());
        }
        let mut steps = 0;
        loop {
            steps = (steps + 1) % STEPS_MAX;
            if steps == 0 {
                let_the_ready_run().await;
            }
            self.mind_newcomer()?;
            if let Some((header, frame)) = self.input.take_long_frame(LARGE_FRAME_BYTES) {
                self.service.counters.note_network(frame.len() as u64, 0, 1);
                let pass = Pass::stopped(Stop::Long(header, frame));
                self.finish(scratch::with(|scratch| scratch.replies.take()), pass).await?;
                continue;
            }
            if self.input.has_frame() {
                let bytes = self.input.take();
                let (out, pass) =
                    scratch::with(|scratch| self.pass(&bytes, &mut scratch.codec, scratch.replies.take()));
                self.input.restore(bytes, pass.consumed);
                self.finish(out, pass).await?;
                continue;
            }
            // The first bytes of a TLS handshake could be read as the length of a long frame.
            if self.has_spoken && self.has_begun_large_message() {
                if !self.receive().await? {
                    return Ok(());
                }
                continue;
            }
            let arrived = match self.newcomer.as_ref().and_then(Newcomer::deadline) {
                None => poll_fn(|_| self.poll_arrive()).await?,
                Some(deadline) => tokio::select! {
                    arrived = poll_fn(|_| self.poll_arrive()) => arrived?,
                    () = tokio::time::sleep_until(deadline) => return Err(Ended::Late),
                },
            };
            match arrived {
                Arrived::Frames(out, pass) => self.finish(out, pass).await?,
                Arrived::Part => {}
                Arrived::End => return Ok(()),
            }
        }
    }

    /// Applies the limits of a client that is not logged in.
    fn mind_newcomer(&mut self) -> Result<(), Ended> {
        let client = self.client.as_ref().expect("no long command is running");
        if !self.service.authority.asks_for_login(client) {
            self.newcomer = None;
            return Ok(());
        }
        // A frame that is too long is refused by its header, before the rest arrives.
        if self.has_spoken || !first_bytes::is_undecided(self.input.bytes()) {
            split_frame(self.input.bytes(), FRAME_BYTES_MAX)?;
        }
        let is_at_something = !self.has_spoken || !self.input.is_empty() || client.is_logging_in();
        let newcomer = self.newcomer.get_or_insert_with(|| Newcomer::new(&self.admitted));
        newcomer.note(is_at_something);
        Ok(newcomer.hold(self.input.held_bytes())?)
    }

    fn plain_clients(&self) -> PlainClients {
        self.tls.as_ref().map_or(PlainClients::Served, |tls| tls.plain_clients())
    }

    /// Waits for the first byte, for at most the time of a handshake. Returns whether it came.
    async fn begins(&mut self) -> Result<bool, Ended> {
        match tokio::time::timeout(HANDSHAKE_TIME_MAX, self.stream.next()).await {
            Ok(next) => Ok(matches!(next?, Next::Bytes)),
            Err(_) => Err(Ended::Handshake(HandshakeError::TooSlow)),
        }
    }

    /// Performs the handshake with a client whose first bytes are in the input.
    async fn encrypt(&mut self, tls: &Tls) -> Result<(), Ended> {
        let session = shake_hands(self.stream.socket(), tls, self.input.take()).await.map_err(Ended::Handshake)?;
        self.service.counters.note_tls(session.version());
        let client = self.client.as_mut().expect("no command is running");
        client.set_certificate_subject(session.client_subject());
        client.server_name = session.server_name();
        self.stream.encrypt(session);
        Ok(())
    }

    /// Reads into the thread's buffer. Usually these are whole frames, which are executed in place.
    fn poll_arrive(&mut self) -> Poll<io::Result<Arrived>> {
        scratch::with(|scratch| {
            let room = if self.newcomer.is_some() { FRAME_BYTES_MAX } else { scratch.read.len() };
            let length = ready!(self.stream.poll_read(&mut scratch.read[..room]))?;
            let bytes = &scratch.read[..length];
            Poll::Ready(Ok(if length == 0 {
                Arrived::End
            } else if self.input.is_empty() {
                let (out, pass) = self.pass(bytes, &mut scratch.codec, scratch.replies.take());
                self.input.append(&bytes[pass.consumed..]);
                Arrived::Frames(out, pass)
            } else {
                self.input.append(bytes);
                if self.has_spoken {
                    return Poll::Ready(Ok(Arrived::Part));
                }
                let bytes = self.input.take();
                let (out, pass) = self.pass(&bytes, &mut scratch.codec, scratch.replies.take());
                self.input.restore(bytes, pass.consumed);
                Arrived::Frames(out, pass)
            }))
        })
    }

    /// Executes whole frames in order, until the connection must stop at one.
    fn pass(&mut self, bytes: &[u8], codec: &mut Codec, mut out: Vec<u8>) -> (Vec<u8>, Pass) {
        let mut pass = Pass { consumed: 0, acknowledgement: Acknowledgement::None, stop: None };
        if !self.has_spoken && !self.stream.is_encrypted() {
            if let Some(foreign) = first_bytes::recognise(bytes, self.plain_clients()) {
                pass.stop = Some(Box::new(Stop::Foreign(foreign)));
                return (out, pass);
            }
            if first_bytes::is_undecided(bytes) {
                return (out, pass);
            }
        }
        self.has_spoken |= bytes.len() >= HEADER_BYTES;
        let client = self.client.as_mut().expect("no long command is running");
        loop {
            let frame_max = frame_bytes_max(&self.service, client);
            if out.len() >= REPLY_BYTES_MAX.min(frame_max) {
                break;
            }
            let (header, length) = match split_frame(&bytes[pass.consumed..], frame_max) {
                Ok(Some((header, _, length))) => (header, length),
                Ok(None) => break,
                Err(error) => {
                    pass.stop = Some(Box::new(Stop::Malformed(error)));
                    break;
                }
            };
            let frame = &bytes[pass.consumed..pass.consumed + length];
            pass.consumed += length;
            self.service.counters.note_network(length as u64, 0, 1);
            let cost = Cost::of(&header, frame);
            if let Some(cost) = &cost {
                // A message received on its own has its memory already.
                self.place = self.place.take().or_else(|| cost.draw(&self.service.facts.memory_limits.server));
                if self.place.is_none() || cost.content_bytes() > LARGE_FRAME_BYTES {
                    pass.stop = Some(Box::new(Stop::Long(header, frame.to_vec())));
                    break;
                }
                client.prepaid_bytes = self.place.as_ref().map_or(0, RoomTaken::execution);
            }
            let start = out.len();
            let executed = execute(&self.service, client, codec, &header, frame, RunOn::SharedThread, &mut out);
            if cost.is_some() {
                client.prepaid_bytes = 0;
                if matches!(&executed, Ok(Executed::Done(Answer { follow_up: None, .. }))) {
                    self.place = None;
                }
            }
            let stop = match executed {
                Ok(Executed::Done(answer)) if answer.delay.is_some() || answer.is_held => Stop::Hold { answer, start },
                Ok(Executed::Done(answer)) => {
                    pass.acknowledgement = stronger(pass.acknowledgement, answer.acknowledgement);
                    let Some(follow_up) = answer.follow_up else { continue };
                    Stop::Stream(header, frame.to_vec(), follow_up)
                }
                Ok(Executed::TooLong) => Stop::Long(header, frame.to_vec()),
                Ok(Executed::Awaits(wait)) => Stop::Await(header, frame.to_vec(), wait),
                Ok(Executed::ClosesConnection) => Stop::Close,
                Err(error) => {
                    out.truncate(start);
                    Stop::Malformed(error)
                }
            };
            pass.stop = Some(Box::new(stop));
            break;
        }
        (out, pass)
    }

    /// Handles the frame at which the pass stopped, then sends the replies.
    async fn finish(&mut self, mut out: Vec<u8>, mut pass: Pass) -> Result<(), Ended> {
        let mut ended = None;
        let mut held = None;
        let mut more = None;
        match pass.stop.take().map(|stop| *stop) {
            None => {}
            Some(Stop::Malformed(error)) => ended = Some(error.into()),
            Some(Stop::Close) => ended = Some(Ended::FailPoint),
            Some(Stop::Foreign(foreign)) => {
                if let (Foreign::Tls, Some(tls)) = (foreign, self.tls.clone()) {
                    return self.encrypt(&tls).await;
                }
                if foreign == Foreign::Http {
                    self.send(HTTP_ANSWER).await?;
                }
                return Err(Ended::Foreign(foreign));
            }
            Some(Stop::Hold { answer, start }) => held = Some((answer, start)),
            Some(Stop::Stream(header, frame, follow_up)) => more = Some((header, frame, More::Next(follow_up))),
            Some(Stop::Long(header, frame)) => {
                let start = out.len();
                let (frame, replies, executed) = self.apart(header, frame, out).await?;
                out = replies;
                match executed {
                    Executed::Done(answer) => {
                        pass.acknowledgement = stronger(pass.acknowledgement, answer.acknowledgement);
                        held = (answer.delay.is_some() || answer.is_held).then_some((answer, start));
                        more = answer.follow_up.map(|follow_up| (header, frame, More::Next(follow_up)));
                    }
                    Executed::Awaits(wait) => more = Some((header, frame, More::Later(wait))),
                    Executed::ClosesConnection => ended = Some(Ended::FailPoint),
                    Executed::TooLong => {}
                }
            }
            Some(Stop::Await(header, frame, wait)) => more = Some((header, frame, More::Later(wait))),
        }
        if more.is_none() {
            self.place = None;
        }
        let peers = self.executor.connections();
        wait(&self.service, pass.acknowledgement, peers).await.map_err(|_| Ended::Storage)?;
        if let Some((answer, start)) = held {
            let reply = out.split_off(start);
            self.send(&out).await?;
            scratch::with(|scratch| scratch.replies.give(out));
            self.hold(answer).await?;
            return self.send(&reply).await;
        }
        if let Some((header, frame, More::Next(follow_up))) = more {
            self.send_followed(&out, follow_up).await?;
            scratch::with(|scratch| scratch.replies.give(out));
            return self.go_on(header, frame, More::Next(follow_up)).await;
        }
        self.send(&out).await?;
        scratch::with(|scratch| scratch.replies.give(out));
        if let Some((header, frame, later)) = more {
            return self.go_on(header, frame, later).await;
        }
        ended.map_or(Ok(()), Err)
    }

    /// Runs a command on its own thread, once there is memory for its message. Returns its frame, the replies, and the
    /// outcome.
    async fn apart(
        &mut self,
        header: Header,
        frame: Vec<u8>,
        mut out: Vec<u8>,
    ) -> Result<(Vec<u8>, Vec<u8>, Executed), Ended> {
        if let Some(cost) = Cost::of(&header, &frame)
            && self.find_room(&cost).await? == Room::Refused
        {
            let is_answered = refuse_for_memory(&frame, &header, &mut out);
            return if is_answered { Ok((frame, out, Executed::Done(Answer::default()))) } else { Err(Ended::NoRoom) };
        }
        let mut client = self.client.take().expect("no long command is running");
        client.prepaid_bytes = self.place.as_ref().map_or(0, RoomTaken::execution);
        let absence = client.absence();
        let mut apart = pin!(execute_apart(&self.service, self.executor.apart(), client, header, frame, out));
        let mut returned = tokio::select! {
            finished = &mut apart => finished,
            () = self.stream.ended() => {
                if let Some(absence) = absence {
                    absence.note();
                }
                apart.await
            }
        };
        returned.connection.prepaid_bytes = 0;
        self.client = Some(returned.connection);
        Ok((returned.frame, returned.out, returned.executed?))
    }
}
