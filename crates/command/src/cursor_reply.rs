//! Fills a batch and keeps the rest for `getMore`.

use crate::invocation::Invocation;
use crate::reply_room::{ReplyRoom, check_reply_bytes};
use bunko_bson::{DocumentBuf, DocumentRef, MAX_USER_DOCUMENT_BYTES, ValueRef, Writer};
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::Examined;
use bunko_request::truncated_command::shortened;
use bunko_session::Halt;
use bunko_session::awaiting::{Await, FollowUp, ParkedCursor};
use bunko_session::cursors::{BatchLimits, CursorOrigin, CursorProgress, CursorSource, OpenCursor};
use bunko_session::error_labels;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Documents of a first batch whose size the command does not set.
/// Source: MongoDB manual, "Cursor Batches".
pub const FIRST_BATCH_DOCUMENTS: u64 = 101;
/// After a batch that took longer than this, the next one runs on a thread of its own.
const LONG_BATCH: Duration = Duration::from_millis(1);
/// A batch ends before the document that would exceed this many bytes.
const BATCH_BYTES_MAX: usize = MAX_USER_DOCUMENT_BYTES;

/// How the first batch is made.
pub struct FirstBatch {
    /// Maximum number of documents in the batch.
    pub documents: u64,
    /// Whether the cursor is closed after the batch.
    pub is_only: bool,
    /// Whether later batches may take long to fill.
    pub is_long: bool,
    /// Whether the cursor is exempt from the idle timeout.
    pub has_no_timeout: bool,
}

/// Whether a source may have more documents.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Reached,
    NotYet,
}

/// How long a `getMore` waits for documents if it sets no time.
/// Source: MongoDB manual, "Tailable Cursors", `awaitData`.
const WAIT: Duration = Duration::from_secs(1);

/// Writes `cursor: {firstBatch, id, ns}` and keeps the cursor if there may be more documents.
pub fn write_first_batch(
    invocation: &mut Invocation<'_>,
    reply: &mut Writer<'_>,
    namespace: &Namespace,
    mut source: Box<dyn CursorSource>,
    batch: &FirstBatch,
) -> Result<()> {
    reply.begin_document("cursor").begin_array("firstBatch");
    let mut pending = None;
    let mut room = ReplyRoom::new(invocation, batch.is_only);
    room.begin(namespace)?;
    let filled = fill(&mut room, reply, source.as_mut(), &mut pending, batch.documents);
    let drawn = if filled.is_ok() { room.into_draw(reply.len_bytes()) } else { None };
    if let Some(draw) = drawn {
        invocation.connection.keep_reply_draw(draw);
    }
    note_examined(invocation, source.as_ref(), None);
    invocation.note_plan(|| source.report());
    let Filled { end, resume_token, documents } = filled?;
    invocation.observation.returned = Some(documents);
    reply.end();
    write_resume_token(reply, resume_token);
    let is_exhausted = end == End::Reached && !source.stays_open();
    invocation.observation.is_cursor_exhausted = is_exhausted;
    let id = if batch.is_only || is_exhausted {
        0
    } else {
        // For a cursor that awaits data, the limit applies to the first batch only: each `getMore` has its own.
        let deadline = invocation.deadline().filter(|_| source.bell().is_none());
        let time_left = deadline.map(|deadline| deadline.saturating_duration_since(invocation.now()));
        let origin = CursorOrigin {
            command: originating_command(invocation),
            created_ms: invocation.service.world.now_ms(),
            has_no_timeout: batch.has_no_timeout,
            is_tailable: source.stays_open(),
            awaits_data: source.bell().is_some(),
        };
        let cursor = OpenCursor {
            namespace: namespace.clone(),
            source,
            pending,
            session: invocation.options.session,
            transaction: invocation.transaction_number(),
            peer: invocation.connection.peer,
            is_long: batch.is_long || invocation.running_for() > LONG_BATCH,
            has_no_timeout: batch.has_no_timeout,
            time_left,
            batch_bytes: 0,
            last_use: invocation.now(),
            context: invocation.context(),
            progress: CursorProgress { documents, batches: 1 },
            tally: None,
            origin: Arc::new(origin),
        };
        let owner = invocation.service.authority.owner(invocation.connection);
        let id = invocation.service.cursors.insert(cursor, owner, &*invocation.service.world.random)?;
        invocation.cursor_left = Some(id);
        invocation.cursor_open = Some(id);
        invocation.observation.cursor = Some(id);
        id
    };
    reply.append("id", id).append("ns", namespace.as_str());
    invocation.write_state_time(reply);
    reply.end();
    Ok(())
}

/// As [`write_first_batch`], for a source that computes. A failure names the command that was running and its
/// collection.
pub fn write_running(
    invocation: &mut Invocation<'_>,
    reply: &mut Writer<'_>,
    namespace: &Namespace,
    source: Box<dyn CursorSource>,
    batch: &FirstBatch,
    command: &str,
) -> Result<()> {
    write_first_batch(invocation, reply, namespace, source, batch)
        .map_err(|failure| while_running(failure, command, namespace))
}

/// A failure of a command that had begun to run, in MongoDB's words. `command` is MongoDB's name for the command.
pub fn while_running(failure: Failure, command: &str, namespace: &Namespace) -> Failure {
    failure.with_prefix(&format!("Executor error during {command}: {namespace} :: caused by :: "))
}

/// Approximate size limit for the copy of a larger command, in bytes.
const ORIGINATING_COMMAND_BYTES_MAX: usize = 4096;

fn originating_command(invocation: &Invocation<'_>) -> DocumentBuf {
    shortened(invocation.shown().as_ref(), ORIGINATING_COMMAND_BYTES_MAX)
}

/// Writes `cursor: {nextBatch, id, ns}`. If a cursor that awaits data finds none, it waits for `wait`.
/// # Errors
/// [`Halt::Awaits`] while it waits; `BadValue` for a `wait` on a cursor that does not await data.
pub fn write_next_batch(
    invocation: &mut Invocation<'_>,
    reply: &mut Writer<'_>,
    id: i64,
    namespace: &Namespace,
    documents: u64,
    wait: Option<Duration>,
) -> Result<(), Halt> {
    let (mut cursor, until) = take_for_batch(invocation, id, namespace, wait)?;
    let cursors = &invocation.service.cursors;
    // Counted before the search for documents and the check for interruption, so that no ring is missed.
    let heard = cursor.source.bell().map(|bell| (Arc::clone(bell), bell.rings()));
    let stop = Arc::clone(invocation.stop_bell());
    let stop_heard = stop.rings();
    cursor.source.resume().inspect_err(|_| cursors.finish(id))?;
    let began = invocation.now();
    if let Err(failure) = invocation.take_over(&cursor.context, cursor.time_left) {
        // Nothing of the cursor has been read: the client can ask again once there is memory.
        if failure.code() == ErrorCode::EXCEEDED_MEMORY_LIMIT && cursors.put_back(id, cursor, invocation.now()) {
            invocation.cursor_left = Some(id);
        } else {
            cursors.finish(id);
        }
        return Err(failure.into());
    }
    reply.begin_document("cursor").begin_array("nextBatch");
    let before = reply.len_bytes();
    let Filled { end, documents, resume_token } = fill_next(invocation, reply, (id, &mut cursor), documents)?;
    let end = if cursor.source.stays_open() { End::NotYet } else { end };
    if let Some((bell, heard)) = heard
        && documents == 0
        && end == End::NotYet
        && invocation.now() < until
    {
        invocation.parked = Some(ParkedCursor { id, cursor, until });
        let (news, stop) = (bell.after(heard), stop.after(stop_heard));
        return Err(Halt::Awaits(Box::new(Await { news, stop, until, turn: None })));
    }
    reply.end();
    write_resume_token(reply, resume_token);
    cursor.batch_bytes = reply.len_bytes() - before;
    cursor.progress.documents += documents;
    cursor.progress.batches += 1;
    invocation.observation.returned = Some(documents);
    invocation.observation.is_cursor_exhausted = end == End::Reached;
    let now = invocation.now();
    cursor.is_long = now - began > LONG_BATCH;
    cursor.time_left = cursor.time_left.map(|left| left.saturating_sub(now - began));
    invocation.tally = cursor.tally.take();
    let is_open = end == End::NotYet && cursors.put_back(id, cursor, now);
    if end == End::Reached {
        cursors.finish(id);
    }
    invocation.cursor_left = is_open.then_some(id);
    invocation.cursor_open = invocation.cursor_left;
    invocation.follow_up = is_open.then_some(FollowUp::Batch(id));
    reply.append("id", if is_open { id } else { 0 }).append("ns", namespace.as_str()).end();
    Ok(())
}

/// Takes the cursor whose next batch a command fills, and the time until which the command waits for documents: from
/// its first attempt, if it has waited before.
fn take_for_batch(
    invocation: &mut Invocation<'_>,
    id: i64,
    namespace: &Namespace,
    wait: Option<Duration>,
) -> Result<(Box<OpenCursor>, Instant), Halt> {
    let cursors = &invocation.service.cursors;
    let (cursor, until) = match invocation.parked.take() {
        Some(parked) => (parked.cursor, parked.until),
        None => {
            let cursor = cursors.take(id, namespace, invocation.options.session, invocation.transaction_number())?;
            (cursor, invocation.started() + wait.unwrap_or(WAIT))
        }
    };
    if wait.is_some() && cursor.source.bell().is_none() {
        cursors.put_back(id, cursor, invocation.now());
        return Err(Failure::bad_value("cannot set maxTimeMS on getMore command for a non-awaitData cursor").into());
    }
    if invocation.service.fail_points.is_any_on() {
        let met = invocation.meet_failpoints_of_get_more(cursor.time_left.is_some());
        met.map_err(|halt| failed(cursor.source.as_ref(), halt)).inspect_err(|_| cursors.finish(id))?;
    }
    Ok((cursor, until))
}

/// Labels the failure of a change stream, so that the client may resume it.
fn failed(source: &dyn CursorSource, halt: Halt) -> Halt {
    match halt {
        Halt::Failed(failure) if source.resume_token().is_some() && source.bell().is_some() => {
            Halt::Failed(error_labels::of_stream(failure))
        }
        other => other,
    }
}

fn write_resume_token(reply: &mut Writer<'_>, token: Option<DocumentBuf>) {
    if let Some(token) = token {
        reply.append("postBatchResumeToken", &token);
    }
}

/// Notes the keys and documents that a source examined since its count was `before`.
fn note_examined(invocation: &mut Invocation<'_>, source: &dyn CursorSource, before: Option<Examined>) {
    let before = before.unwrap_or_default();
    if let Some(Examined { keys, documents }) = source.examined() {
        let documents = documents - before.documents;
        invocation.note_examined(Examined { keys: keys - before.keys, documents });
    }
}

/// Outcome of filling a batch.
struct Filled {
    end: End,
    documents: u64,
    /// The token with which a client resumes after the batch.
    resume_token: Option<DocumentBuf>,
}

/// Fills a later batch of a cursor. A failure closes the cursor.
fn fill_next(
    invocation: &mut Invocation<'_>,
    reply: &mut Writer<'_>,
    (id, cursor): (i64, &mut OpenCursor),
    documents: u64,
) -> Result<Filled, Halt> {
    let mut room = ReplyRoom::new(invocation, false);
    // Most batches are about as long as the one before. A buffer that grew step by step would be copied several times.
    let likely_bytes = cursor.batch_bytes + cursor.batch_bytes / 16;
    if room.grow(likely_bytes, documents).is_ok_and(|is_free| is_free) {
        reply.reserve(likely_bytes);
    }
    let OpenCursor { source, pending, .. } = cursor;
    let examined = source.examined();
    let filled = fill(&mut room, reply, source.as_mut(), pending, documents);
    let drawn = if filled.is_ok() { room.into_draw(reply.len_bytes()) } else { None };
    if let Some(draw) = drawn {
        invocation.connection.keep_reply_draw(draw);
    }
    note_examined(invocation, source.as_ref(), examined);
    invocation.note_plan(|| source.report());
    invocation.observation.cursor = Some(id);
    if invocation.is_noted_after(invocation.running_for()) {
        invocation.observation.originating_command = Some(cursor.origin.command.clone());
    }
    filled.map_err(|failure| {
        invocation.service.cursors.finish(id);
        let failure = failure.with_prefix("Executor error during getMore :: caused by :: ");
        failed(cursor.source.as_ref(), failure.into())
    })
}

fn fill(
    room: &mut ReplyRoom<'_, '_>,
    reply: &mut Writer<'_>,
    source: &mut dyn CursorSource,
    pending: &mut Option<DocumentBuf>,
    documents: u64,
) -> Result<Filled> {
    let before = reply.len_bytes();
    let mut index = 0;
    let source_is_resumable = source.resume_token().is_some();
    // One buffer for the `_id`s of all documents: most batches never need it.
    let mut last_id = Vec::new();
    if pending.is_none() {
        // Only change streams have whole batches ready.
        let is_short = source_is_resumable && room.is_short();
        let limits = BatchLimits { documents, bytes: if is_short { room.bytes() } else { BATCH_BYTES_MAX } };
        if let Some((batch, count)) = source.next_batch(limits)? {
            room.grow(batch.as_document().len_bytes(), 0)?;
            reply.extend(batch.as_document());
            check_reply_bytes(reply.len_bytes())?;
            index = count;
            last_id.extend(source.resume_token().into_iter().flat_map(DocumentBuf::into_bytes));
        }
    }
    let mut note_id = |document: DocumentRef<'_>| {
        last_id.clear();
        if source_is_resumable && let Some(id) = document.get("_id").and_then(ValueRef::as_document) {
            last_id.extend_from_slice(id.as_bytes());
        }
    };
    let end = loop {
        if index == documents {
            break if pending.is_none() && source.is_over() { End::Reached } else { End::NotYet };
        }
        if let Some(document) = pending.as_ref() {
            room.grow(document.len_bytes(), 0)?;
        }
        if let Some(document) = pending.take() {
            note_id(document.as_ref());
            reply.push(index as usize, &document);
            index += 1;
            continue;
        }
        let Some(document) = source.next()? else { break End::Reached };
        let bytes = reply.len_bytes() - before + document.len_bytes();
        if index > 0 && bytes > BATCH_BYTES_MAX || bytes > room.bytes() && !room.grow(bytes, index)? {
            *pending = Some(document.to_owned());
            break End::NotYet;
        }
        note_id(document);
        reply.push(index as usize, document);
        check_reply_bytes(reply.len_bytes())?;
        index += 1;
    };
    room.note_returned(index);
    // The pending document has been read from the source already, so its token is too late for this batch.
    let resume_token = match pending {
        Some(_) => {
            let of_documents = || (!last_id.is_empty()).then(|| DocumentBuf::from_trusted(last_id));
            source.resume_token_before().or_else(of_documents)
        }
        None => source.resume_token(),
    };
    Ok(Filled { end, documents: index, resume_token: resume_token.filter(|_| source_is_resumable) })
}
