//! From a frame to its reply's bytes.

use crate::legacy;
use crate::worker::Worker;
use bunko_command::{Answer, ClientConnection, Halt, Pace, Request, Service};
use bunko_wire::{
    Codec, Header, MAX_FRAME_BYTES, Message, MessageFlags, OpCode, WireError, begin_message,
};
use std::sync::Arc;

/// What came of a frame.
pub(crate) enum Executed {
    /// The reply, if there is one, stands in the buffer.
    Done(Answer),
    /// It would take long: run the frame again off the connections' thread. Nothing has been done.
    TooLong,
}

/// Numbers replies; clients do not look at it.
fn reply_id(header: &Header) -> i32 {
    header.request_id.wrapping_add(1)
}

/// Runs one whole frame and appends its reply, in the same form, to `out`.
/// # Errors
/// What makes a frame unreadable; the connection cannot go on.
pub(crate) fn execute(
    service: &Service,
    connection: &mut ClientConnection,
    codec: &mut Codec,
    header: &Header,
    frame: &[u8],
    pace: Pace,
    out: &mut Vec<u8>,
) -> Result<Executed, WireError> {
    match header.op_code {
        OpCode::Message => message(service, connection, frame, pace, out),
        OpCode::Compressed => compressed(service, connection, codec, frame, pace, out),
        OpCode::Query => legacy::query(service, connection, frame, pace, out),
        OpCode::GetMore => legacy::get_more(service, connection, frame, pace, out),
        OpCode::KillCursors => legacy::kill_cursors(service, frame),
        OpCode::Reply | OpCode::Update | OpCode::Insert | OpCode::Delete => {
            Err(WireError::UnknownOpCode(header.op_code.code()))
        }
    }
}

fn message(
    service: &Service,
    connection: &mut ClientConnection,
    frame: &[u8],
    pace: Pace,
    out: &mut Vec<u8>,
) -> Result<Executed, WireError> {
    let message = Message::parse(frame)?;
    let database = message.body.get("$db").and_then(bunko_bson::ValueRef::as_str).unwrap_or_default();
    let request = Request { database, body: message.body, message: Some(&message) };
    let is_streaming_allowed = message.flags.contains(MessageFlags::EXHAUST_ALLOWED);
    let start = begin_message(out, reply_id(&message.header), message.header.request_id, MessageFlags::NONE);
    let answer = service.run(connection, request, pace, out);
    let mut answer = match answer {
        Ok(answer) => answer,
        Err(Halt::TooLong | Halt::Failed(_)) => {
            start.discard(out);
            return Ok(Executed::TooLong);
        }
    };
    answer.is_streamable &= is_streaming_allowed;
    if message.flags.contains(MessageFlags::MORE_TO_COME) {
        // The client does not listen.
        start.discard(out);
        return Ok(Executed::Done(Answer { acknowledgement: answer.acknowledgement, ..Answer::default() }));
    }
    start.finish(out)?;
    Ok(Executed::Done(answer))
}

fn compressed(
    service: &Service,
    connection: &mut ClientConnection,
    codec: &mut Codec,
    frame: &[u8],
    pace: Pace,
    out: &mut Vec<u8>,
) -> Result<Executed, WireError> {
    let mut inner = Vec::new();
    codec.decompress(frame, MAX_FRAME_BYTES, &mut inner)?;
    let (header, _) = Header::of_whole(&inner)?;
    let mut reply = Vec::new();
    let executed = execute(service, connection, codec, &header, &inner, pace, &mut reply)?;
    if reply.is_empty() {
        return Ok(executed);
    }
    // As the client compressed, so it can read.
    match Codec::compressor_of(frame).filter(|_| !reply.is_empty()) {
        Some(compressor) => drop(codec.compress(&reply, compressor, out)?),
        None => out.extend_from_slice(&reply),
    }
    Ok(executed)
}

/// Runs a long command on a thread of its own; the connection's state goes along.
pub(crate) async fn execute_apart(
    worker: &Worker,
    mut connection: ClientConnection,
    header: Header,
    frame: Vec<u8>,
    mut out: Vec<u8>,
) -> (ClientConnection, Vec<u8>, Result<Executed, WireError>) {
    let service = Arc::clone(&worker.service);
    let task = tokio::task::spawn_blocking(move || {
        let mut codec = Codec::new();
        let executed =
            execute(&service, &mut connection, &mut codec, &header, &frame, Pace::Long, &mut out);
        (connection, out, executed)
    });
    task.await.expect("a command does not panic")
}

