//! One connection: bytes in, frames out, in order.

use crate::acknowledge::{stronger, wait};
use crate::execute::{Executed, execute, execute_apart};
use crate::input::Input;
use crate::socket::{Next, Socket, Stream};
use crate::worker::{NewConnection, Worker};
use bunko_command::{Acknowledgement, Answer, ClientConnection, Pace};
use bunko_wire::{Header, MAX_FRAME_BYTES, MessageFlags, WireError, split_frame};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::{Poll, ready};
use tokio::io::{AsyncReadExt, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// Reads that expect at least that much more of one frame bypass the shared buffer.
const DIRECT_READ_BYTES: usize = 64 * 1024;
/// Replies are sent once they reach that, even while more requests wait: a client must not fill the memory by asking
/// without reading.
const REPLY_BYTES_MAX: usize = 1 << 20;
/// Only to read a longer request takes milliseconds: it does not keep the thread's other connections waiting.
const LARGE_FRAME_BYTES: usize = 4 << 20;

/// Why a connection ended that never began.
const UNUSABLE: &str = "the socket could not be used";

/// Serves a connection to its end; why it ended.
pub(crate) async fn serve(worker: &Worker, new: NewConnection) -> &'static str {
    let NewConnection { id, stream, peer } = new;
    let client = ClientConnection::new(id, peer);
    match stream {
        Stream::Tcp(stream) => match TcpStream::from_std(stream) {
            Ok(stream) => serve_on(worker, stream, client).await,
            Err(_) => UNUSABLE,
        },
        Stream::Unix(stream) => match UnixStream::from_std(stream) {
            Ok(stream) => serve_on(worker, stream, client).await,
            Err(_) => UNUSABLE,
        },
    }
}

async fn serve_on<S: Socket>(worker: &Worker, stream: S, client: ClientConnection) -> &'static str {
    let (id, peer) = (client.id, client.peer);
    worker.service.counters.connection_opened();
    let mut session = Session { worker, stream, input: Input::default(), client: Some(client) };
    let reason = match session.run().await {
        Ok(()) => "closed by the client",
        Err(Ended::Socket) => "the socket failed",
        Err(Ended::Malformed(error)) => {
            tracing::warn!(target: "NETWORK", id = 22988, ctx = format!("conn{id}"), remote = %peer, error = %error, "Closing a connection that sent a malformed frame");
            "a malformed frame"
        }
        Err(Ended::Storage) => "the log failed",
    };
    worker.service.counters.connection_closed();
    reason
}

/// Why a connection cannot go on.
enum Ended {
    Socket,
    Malformed(WireError),
    Storage,
}

impl From<io::Error> for Ended {
    fn from(_: io::Error) -> Self {
        Self::Socket
    }
}

impl From<WireError> for Ended {
    fn from(error: WireError) -> Self {
        Self::Malformed(error)
    }
}

struct Session<'w, S> {
    worker: &'w Worker,
    stream: S,
    input: Input,
    /// Away while a long command has it.
    client: Option<ClientConnection>,
}

/// What one pass over the bytes at hand came to.
struct Pass {
    consumed: usize,
    acknowledgement: Acknowledgement,
    stop: Stop,
}

enum Stop {
    /// No whole frame is left, or enough replies wait.
    Pause,
    /// A frame whose reply, which begins at `start`, is held back and maybe repeated.
    Hold { answer: Answer, request_id: i32, start: usize },
    /// A frame that would take long.
    Long(Header, Vec<u8>),
    /// A frame that cannot be read; what came before it is answered first.
    Malformed(WireError),
}

impl<S: Socket> Session<'_, S> {
    async fn run(&mut self) -> Result<(), Ended> {
        loop {
            if self.input.has_frame() {
                let bytes = self.input.take();
                let (out, pass) = self.pass(&bytes);
                self.input.restore(bytes, pass.consumed);
                self.finish(out, pass).await?;
                continue;
            }
            if let Some(room) = self.input.room(DIRECT_READ_BYTES) {
                if self.stream.read_buf(room).await? == 0 {
                    return Ok(());
                }
                continue;
            }
            let length = self.read().await?;
            if length == 0 {
                return Ok(());
            }
            let (out, pass) = {
                let worker = self.worker;
                let bytes = &worker.read_buffer.borrow()[..length];
                if !self.input.is_empty() {
                    self.input.append(bytes);
                    continue;
                }
                // The usual way: whole frames, read and answered where they landed.
                let (out, pass) = self.pass(bytes);
                self.input.append(&bytes[pass.consumed..]);
                (out, pass)
            };
            self.finish(out, pass).await?;
        }
    }

    /// Reads into the buffer of the worker, where the bytes are until the next await; 0 is the end.
    async fn read(&mut self) -> io::Result<usize> {
        poll_fn(|context| {
            let mut bytes = self.worker.read_buffer.borrow_mut();
            let mut buffer = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
            Poll::Ready(Ok(buffer.filled().len()))
        })
        .await
    }

    /// Executes whole frames, in order, until one needs the others to wait.
    fn pass(&mut self, bytes: &[u8]) -> (Vec<u8>, Pass) {
        let mut out = self.worker.take_buffer();
        let mut pass = Pass { consumed: 0, acknowledgement: Acknowledgement::None, stop: Stop::Pause };
        let mut codec = self.worker.codec.borrow_mut();
        let client = self.client.as_mut().expect("no long command is running");
        while out.len() < REPLY_BYTES_MAX {
            let (header, length) = match split_frame(&bytes[pass.consumed..], MAX_FRAME_BYTES) {
                Ok(Some((header, _, length))) => (header, length),
                Ok(None) => break,
                Err(error) => {
                    pass.stop = Stop::Malformed(error);
                    break;
                }
            };
            let frame = &bytes[pass.consumed..pass.consumed + length];
            pass.consumed += length;
            self.worker.service.counters.note_network(length as u64, 0, 1);
            if length > LARGE_FRAME_BYTES {
                pass.stop = Stop::Long(header, frame.to_vec());
                break;
            }
            let start = out.len();
            match execute(&self.worker.service, client, &mut codec, &header, frame, Pace::Short, &mut out) {
                Ok(Executed::Done(answer)) if answer.delay.is_some() => {
                    pass.stop = Stop::Hold { answer, request_id: header.request_id, start };
                    break;
                }
                Ok(Executed::Done(answer)) => {
                    pass.acknowledgement = stronger(pass.acknowledgement, answer.acknowledgement);
                }
                Ok(Executed::TooLong) => {
                    pass.stop = Stop::Long(header, frame.to_vec());
                    break;
                }
                Err(error) => {
                    out.truncate(start);
                    pass.stop = Stop::Malformed(error);
                    break;
                }
            }
        }
        (out, pass)
    }

    /// Does what the pass left to do, then sends the replies.
    async fn finish(&mut self, mut out: Vec<u8>, mut pass: Pass) -> Result<(), Ended> {
        let mut malformed = None;
        let mut held = None;
        match std::mem::replace(&mut pass.stop, Stop::Pause) {
            Stop::Pause => {}
            Stop::Malformed(error) => malformed = Some(error),
            Stop::Hold { answer, request_id, start } => held = Some((answer, request_id, start)),
            Stop::Long(header, frame) => {
                let client = self.client.take().expect("no long command is running");
                let (client, replies, executed) = execute_apart(self.worker, client, header, frame, out).await;
                self.client = Some(client);
                out = replies;
                if let Executed::Done(answer) = executed? {
                    pass.acknowledgement = stronger(pass.acknowledgement, answer.acknowledgement);
                }
            }
        }
        let peers = self.worker.connections.load(Ordering::Relaxed);
        wait(&self.worker.service, pass.acknowledgement, peers).await.map_err(|_| Ended::Storage)?;
        if let Some((answer, request_id, start)) = held {
            return self.hold(out, answer, request_id, start).await;
        }
        self.send(&out).await?;
        self.worker.return_buffer(out);
        malformed.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Sends a heartbeat's reply once its time has come, again and again where the client listens for that.
    async fn hold(&mut self, mut out: Vec<u8>, answer: Answer, request_id: i32, start: usize) -> Result<(), Ended> {
        let mut reply = out.split_off(start);
        self.send(&out).await?;
        self.worker.return_buffer(out);
        self.pause(answer.delay.unwrap_or_default()).await?;
        let Some(repeat_after) = answer.repeat_after else { return self.send(&reply).await };
        let flags = bunko_wire::HEADER_BYTES..bunko_wire::HEADER_BYTES + 4;
        reply[flags].copy_from_slice(&MessageFlags::MORE_TO_COME.0.to_le_bytes());
        let mut number = request_id;
        loop {
            // Each reply answers the one before it.
            reply[8..12].copy_from_slice(&number.to_le_bytes());
            number = number.wrapping_add(1);
            reply[4..8].copy_from_slice(&number.to_le_bytes());
            self.send(&reply).await?;
            self.pause(repeat_after).await?;
        }
    }

    /// Waits, or ends early where the client goes away.
    async fn pause(&self, delay: std::time::Duration) -> Result<(), Ended> {
        let deadline = tokio::time::Instant::now() + delay;
        tokio::select! {
            () = tokio::time::sleep_until(deadline) => Ok(()),
            next = self.stream.next() => match next? {
                Next::End => Err(Ended::Socket),
                // The client asks on without waiting for the reply: it gets both in order.
                Next::Bytes => {
                    tokio::time::sleep_until(deadline).await;
                    Ok(())
                }
            },
        }
    }

    async fn send(&self, mut bytes: &[u8]) -> Result<(), Ended> {
        self.worker.service.counters.note_network(0, bytes.len() as u64, 0);
        while !bytes.is_empty() {
            match self.stream.try_write(bytes) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.stream.writable().await?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
