//! Executing a frame: from its bytes to the bytes of the reply.
//!
//! ```text
//! SharedThread ── TooLong ──┬── a turn is free ──────────────────────────────► OwnThread
//!                           └── all are taken ──► SpareThread ── TooLong ──┐       ▲
//!                                                                          └ waits ┘
//! ```
//! A frame that is not very long runs first on the thread that read it. A command that would keep others waiting
//! refuses itself with `Halt::TooLong` before it has changed anything, and the same frame runs again on a thread of
//! lower priority. While all [`APART_MAX`] turns are taken, it is first tried on a spare thread: it may be short, and
//! have been delayed only because other threads had the processor. If it computes for long there too, it waits for a
//! turn, without a thread. Commands that run [`Queueing::AtOnce`] need no turn. The connection executes no other frame
//! meanwhile, so replies stay in order.
//!
//! A command that only reads stops soon after its client has gone away (`Absence`). A batch of a cursor cannot run
//! again from its beginning: if one took long, the cursor's next batch begins on a thread of its own.

use crate::executed::Executed;
use crate::legacy;
use crate::message_room::{LARGE_BYTES, count_copy};
use crate::newcomer::frame_bytes_max;
use bunko_bson::{BsonError, ValueRef};
use bunko_command::{
    Answer, ClientConnection, Command, Compression, Queueing, Request, RunOn, Service, THREAD_STACK_BYTES,
    find_command, write_failure,
};
use bunko_errors::{ErrorCode, Failure};
use bunko_operation::Purpose;
use bunko_wire::{
    Codec, HEADER_BYTES, Header, MAX_SEQUENCES, Message, MessageFlags, OpCode, WireError, begin_message, write_message,
};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};

/// The number of the reply. Clients ignore it.
fn reply_id(header: &Header) -> i32 {
    header.request_id.wrapping_add(1)
}

/// Runs one whole frame and appends its reply, in the same form, to `out`.
/// # Errors
/// An unreadable frame, after which the connection must be closed.
pub(crate) fn execute(
    service: &Service,
    connection: &mut ClientConnection,
    codec: &mut Codec,
    header: &Header,
    frame: &[u8],
    run_on: RunOn,
    out: &mut Vec<u8>,
) -> Result<Executed, WireError> {
    match header.op_code {
        OpCode::Message => message(service, connection, frame, run_on, out),
        OpCode::Compressed => compressed(service, connection, codec, frame, run_on, out),
        OpCode::Query => legacy::query(service, connection, frame, run_on, out),
        OpCode::GetMore => legacy::get_more(service, connection, frame, run_on, out),
        OpCode::KillCursors => legacy::kill_cursors(service, connection, frame),
        OpCode::Reply | OpCode::Update | OpCode::Insert | OpCode::Delete => {
            Err(WireError::UnknownOpCode(header.op_code.code()))
        }
    }
}

fn message(
    service: &Service,
    connection: &mut ClientConnection,
    frame: &[u8],
    run_on: RunOn,
    out: &mut Vec<u8>,
) -> Result<Executed, WireError> {
    let message = match Message::parse(frame) {
        Ok(message) => message,
        Err(error) => return refuse(frame, &from_wire(error)?, out),
    };
    let Some(database) = message.body.get("$db").and_then(ValueRef::as_str) else {
        return refuse(frame, &Failure::new(ErrorCode(40571), "OP_MSG requests require a $db argument"), out);
    };
    let request = Request::new(database, message.body, Some(&message));
    let is_streaming_allowed = message.flags.contains(MessageFlags::EXHAUST_ALLOWED);
    let begin = out.len();
    let start = begin_message(out, reply_id(&message.header), message.header.request_id, MessageFlags::NONE);
    let answer = service.run(connection, request, run_on, out);
    let mut answer = match answer {
        Ok(answer) => answer,
        Err(halt) => {
            start.discard(out);
            return Ok(Executed::of(halt));
        }
    };
    answer.follow_up = answer.follow_up.filter(|_| is_streaming_allowed);
    if message.flags.contains(MessageFlags::MORE_TO_COME) {
        // The client expects no reply.
        start.discard(out);
        return Ok(Executed::Done(Answer { acknowledgement: answer.acknowledgement, ..Answer::default() }));
    }
    start.finish(out)?;
    if answer.follow_up.is_some() {
        let flags = begin + HEADER_BYTES..begin + HEADER_BYTES + 4;
        out[flags].copy_from_slice(&MessageFlags::MORE_TO_COME.0.to_le_bytes());
    }
    Ok(Executed::Done(answer))
}

/// Turns a request with `exhaustAllowed` into the request of the next reply: each reply answers the previous one.
/// Source: MongoDB wire protocol, "OP_MSG", "Flag Bits".
pub(crate) fn ask_for_next(header: &mut Header, frame: &mut [u8]) {
    header.request_id = reply_id(header);
    // Behind the length.
    frame[4..8].copy_from_slice(&header.request_id.to_le_bytes());
}

/// The failure to send for a frame that is complete but has a wrong content: the connection may go on.
/// # Errors
/// `error` itself, where the connection must be closed.
/// Source: MongoDB answers all errors except unknown flags and a wrong checksum, and does not limit sequences. Here,
/// frames with false lengths are not answered either.
fn from_wire(error: WireError) -> Result<Failure, WireError> {
    let (code, message) = match error {
        WireError::Document(error) => return Ok(from_bson(error)),
        WireError::SecondBody => (40430, "Multiple body sections in message".to_owned()),
        WireError::DuplicateSequence { identifier } => (40431, format!("Duplicate document sequence: {identifier}")),
        WireError::UnknownSection(kind) => (40432, format!("Unknown section kind {kind}")),
        WireError::SequenceInBody { identifier } => {
            (40433, format!("Duplicate field between body and document sequence {identifier}"))
        }
        WireError::TooManySequences => {
            let message = format!("a message with more than {MAX_SEQUENCES} document sequences is not supported yet");
            return Ok(Failure::new(ErrorCode::COMMAND_NOT_SUPPORTED, message));
        }
        WireError::MissingBody => (40587, "OP_MSG messages must have a body".to_owned()),
        other => return Err(other),
    };
    Ok(Failure::new(ErrorCode(code), message))
}

fn from_bson(error: BsonError) -> Failure {
    let code = match error {
        BsonError::TooDeep => ErrorCode::OVERFLOW,
        BsonError::TooLarge { .. } => ErrorCode::BSON_OBJECT_TOO_LARGE,
        _ => ErrorCode::INVALID_BSON,
    };
    Failure::new(code, error.to_string())
}

/// Answers an OP_MSG that is not a valid command, unless the client expects no reply.
fn refuse(frame: &[u8], failure: &Failure, out: &mut Vec<u8>) -> Result<Executed, WireError> {
    let (header, content) = Header::of_whole(frame)?;
    let flags = content.first_chunk().map_or(MessageFlags::NONE, |&flags| MessageFlags(u32::from_le_bytes(flags)));
    if !flags.contains(MessageFlags::MORE_TO_COME) {
        write_message(out, reply_id(&header), header.request_id, MessageFlags::NONE, |out| {
            write_failure(out, failure);
        })?;
    }
    Ok(Executed::Done(Answer::default()))
}

/// Answers a large message that had no room, and of which only the first bytes arrived. Returns `false` if there can be
/// no answer, because it is unknown whether the client expects a reply.
pub(crate) fn refuse_for_memory(start: &[u8], header: &Header, out: &mut Vec<u8>) -> bool {
    let flags = start.get(HEADER_BYTES..).and_then(|content| content.first_chunk()).copied().map(u32::from_le_bytes);
    let Some(flags) = flags.filter(|_| header.op_code == OpCode::Message).map(MessageFlags) else { return false };
    if flags.contains(MessageFlags::MORE_TO_COME) {
        return true;
    }
    let message = format!("the server's memory had no room for a message of {} bytes; try again later", header.length);
    let failure = Failure::new(ErrorCode::EXCEEDED_MEMORY_LIMIT, message);
    let start = out.len();
    let written = write_message(out, reply_id(header), header.request_id, MessageFlags::NONE, |out| {
        write_failure(out, &failure);
    });
    if written.is_err() {
        out.truncate(start);
    }
    written.is_ok()
}

fn compressed(
    service: &Service,
    connection: &mut ClientConnection,
    codec: &mut Codec,
    frame: &[u8],
    run_on: RunOn,
    out: &mut Vec<u8>,
) -> Result<Executed, WireError> {
    let mut inner = Vec::new();
    codec.decompress(frame, frame_bytes_max(service, connection), &mut inner)?;
    let (header, _) = Header::of_whole(&inner)?;
    let mut reply = Vec::new();
    let executed = execute(service, connection, codec, &header, &inner, run_on, &mut reply)?;
    if reply.is_empty() {
        return Ok(executed);
    }
    let _copy = count_copy(&service.facts.memory_limits.server, reply.len());
    // The client reads the compressor that it used.
    match Codec::compressor_of(frame).filter(|_| !is_never_compressed(&inner)) {
        Some(compressor) => drop(codec.compress(&reply, compressor, out)?),
        None => out.extend_from_slice(&reply),
    }
    Ok(executed)
}

/// Long commands that run at a time, not counting those that run at once. Further ones wait for their turn.
const APART_MAX: usize = 256;
/// Spare threads for commands that may turn out to be short while all `APART_MAX` turns are taken.
const SPARE_MAX: usize = 32;
/// Niceness of the threads for long commands. A thread woken for a small command then runs at once, however many long
/// commands there are. The threads still get a third of a fair share: they share locks with other threads, which would
/// wait long for a thread that gets no processor.
const NICENESS: i32 = 5;
/// Lowers the priority of this thread, which is for long commands. Only a privileged process can raise it again.
pub(crate) fn lower_priority() {
    bunko_host::use_long_slices();
    let own = rustix::process::getpriority_process(None).unwrap_or(0);
    // If the system refuses, the thread works all the same, and small commands wait longer.
    let _ = rustix::process::setpriority_process(None, own + NICENESS);
}

/// Whether an OP_MSG's command has a reply that is never compressed, even if the request was.
fn is_never_compressed(frame: &[u8]) -> bool {
    command_of(frame).is_some_and(|command| command.compression == Compression::Never)
}

/// The command of an OP_MSG that begins with a body; `None` if the frame is too short, or no command has this name.
fn command_of(frame: &[u8]) -> Option<&'static Command> {
    // Skips the flags, the section's kind, the body's length and the first field's type.
    let name = frame.get(HEADER_BYTES + 4 + 1 + 4 + 1..)?;
    let end = name.iter().position(|&byte| byte == 0)?;
    find_command(std::str::from_utf8(&name[..end]).ok()?)
}

/// The state that a command on its own thread returns, and its outcome.
pub(crate) struct Returned {
    pub connection: ClientConnection,
    pub frame: Vec<u8>,
    pub out: Vec<u8>,
    pub executed: Result<Executed, WireError>,
}

/// Turns of long commands on their own threads.
pub(crate) struct Apart {
    turns: Semaphore,
    spare: Semaphore,
    begun: AtomicU64,
}

impl Default for Apart {
    fn default() -> Self {
        Self { turns: Semaphore::new(APART_MAX), spare: Semaphore::new(SPARE_MAX), begun: AtomicU64::new(0) }
    }
}

impl Apart {
    /// Long commands that run now, not counting those that run at once.
    pub fn running(&self) -> usize {
        APART_MAX - self.turns.available_permits()
    }

    /// Long commands begun so far.
    pub fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }
}

/// A command to execute, with the state of its connection.
struct Run {
    service: Arc<Service>,
    connection: ClientConnection,
    header: Header,
    frame: Vec<u8>,
    out: Vec<u8>,
}

impl Run {
    fn execute(mut self, run_on: RunOn) -> (Self, Result<Executed, WireError>) {
        let Self { service, connection, header, frame, out } = &mut self;
        let executed = execute(service, connection, &mut Codec::new(), header, frame, run_on, out);
        if out.len() > LARGE_BYTES {
            // The operation's draw has ended. The reply counts until the connection's thread has sent it, which may
            // take a while.
            let drawn = connection.take_reply_draw();
            let mut drawn = drawn.unwrap_or_else(|| service.facts.memory_limits.server.count(0, Purpose::Reply));
            drawn.set(out.len() as u64);
            connection.keep_reply_draw(drawn);
        }
        (self, executed)
    }

    fn returned(self, executed: Result<Executed, WireError>) -> Returned {
        Returned { connection: self.connection, frame: self.frame, out: self.out, executed }
    }
}

/// Runs a long command on its own thread.
///
/// If all turns are taken, the command may be a short one that was only delayed for lack of a processor. So it first
/// runs on a spare thread, which has ordinary priority and stops commands that compute for long.
pub(crate) async fn execute_apart(
    service: &Arc<Service>,
    apart: &Apart,
    connection: ClientConnection,
    header: Header,
    frame: Vec<u8>,
    out: Vec<u8>,
) -> Returned {
    let is_queued = !(header.op_code == OpCode::Message
        && command_of(&frame).is_some_and(|command| command.queueing == Queueing::AtOnce));
    let mut run = Run { service: Arc::clone(service), connection, header, frame, out };
    let mut turn = None;
    if is_queued {
        turn = apart.turns.try_acquire().ok();
        if turn.is_none() {
            let (tried, executed) = try_briefly(apart, run).await;
            if !matches!(executed, Ok(Executed::TooLong)) {
                return tried.returned(executed);
            }
            run = tried;
            // The semaphore is never closed.
            turn = apart.turns.acquire().await.ok();
        }
        apart.begun.fetch_add(1, Ordering::Relaxed);
    }
    let task = tokio::task::spawn_blocking(move || run.execute(RunOn::OwnThread));
    let (run, executed) = task.await.expect("a command does not panic");
    drop(turn);
    run.returned(executed)
}

/// Runs a command on a spare thread. [`Executed::TooLong`] if it is really long, or if the system has no thread.
async fn try_briefly(apart: &Apart, run: Run) -> (Run, Result<Executed, WireError>) {
    let _turn = apart.spare.acquire().await;
    let (done, finished) = oneshot::channel();
    let run = Arc::new(Mutex::new(Some(run)));
    let taken = Arc::clone(&run);
    let runtime = Handle::current();
    // The thread is not one of the runtime, which would have a lower priority.
    let thread = std::thread::Builder::new().name("spare".to_owned()).stack_size(THREAD_STACK_BYTES);
    let begun = thread.spawn(move || {
        let _entered = runtime.enter();
        let run = taken.lock().take();
        if let Some(run) = run {
            // The receiver may be gone if the server stopped.
            let _ = done.send(run.execute(RunOn::SpareThread));
        }
    });
    match begun {
        Ok(_) => finished.await.expect("a command does not panic"),
        Err(_) => (run.lock().take().expect("no thread has taken it"), Ok(Executed::TooLong)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::Writer;

    fn insert(flags: MessageFlags) -> Vec<u8> {
        let mut frame = Vec::new();
        let written = write_message(&mut frame, 7, 0, flags, |out| {
            Writer::new(out).append("insert", "c").append("$db", "test").end();
        });
        written.expect("short");
        frame
    }

    /// Whether a message is answered when only its first bytes are known, and with which error.
    fn refused(frame: &[u8]) -> (bool, Option<ErrorCode>) {
        let (header, _) = Header::of_whole(frame).expect("a whole frame");
        let mut out = Vec::new();
        let is_answered = refuse_for_memory(&frame[..32], &header, &mut out);
        let code = (!out.is_empty()).then(|| {
            let reply = Message::parse(&out).expect("well-formed");
            assert_eq!(reply.header.response_to, 7);
            let Some(ValueRef::Int32(code)) = reply.body.get("code") else { panic!("{:?}", reply.body) };
            ErrorCode(code)
        });
        (is_answered, code)
    }

    #[test]
    fn a_message_without_room_is_answered_where_the_client_listens() {
        let plain = insert(MessageFlags::NONE);
        assert_eq!(refused(&plain), (true, Some(ErrorCode::EXCEEDED_MEMORY_LIMIT)));
        assert_eq!(refused(&insert(MessageFlags::MORE_TO_COME)), (true, None));
        let mut wrapped = Vec::new();
        Codec::new().compress(&plain, bunko_wire::Compressor::Snappy, &mut wrapped).expect("compresses");
        assert_eq!(refused(&wrapped), (false, None), "whether its client listens stands inside");
    }
}
