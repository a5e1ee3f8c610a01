//! The cursor of a change stream.

use crate::options::{Beginning, Options, Specification};
use crate::reading::{ImageExpiry, Reading, Told, token_of};
use crate::split::{self, fragments};
use crate::stage::STAGE;
use crate::tail::Chunk;
use crate::tail::Tails;
use crate::target::Target;
use crate::token::{Token, high_water};
use bunko_aggregate::{DocumentStream, Environment, Pipeline};
use bunko_bson::text::ValueText;
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, Element, Timestamp, ValueRef};
use bunko_catalog::{Catalog, Namespace};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::check_document_bytes;
use bunko_operation::OperationContext;
use bunko_oplog::check_streams;
use bunko_query::QueryScope;
use bunko_session::cursors::{BatchLimits, CursorSource};
use bunko_stages::{FILL, StreamUse};
use bunko_store::{Bell, Following};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

/// The parts of the server that a stream uses, and the operation that opens it.
pub struct StreamContext<'a> {
    /// Where the stream finds the log, and the documents that it looks up.
    pub catalog: &'a Arc<Catalog>,
    /// The tails that the server's streams share.
    pub tails: &'a Tails,
    /// When documents before a change are no longer shown.
    pub images: ImageExpiry,
    /// The operation that reads.
    pub operation: &'a Arc<OperationContext>,
}

/// A pipeline that begins with `$changeStream`.
pub struct StreamRequest<'a> {
    /// The collection, or the database with any collection.
    pub namespace: &'a Namespace,
    /// All stages.
    pub stages: ArrayRef<'a>,
    /// Whether the command names a collection.
    pub is_over_collection: bool,
    /// Whether the command has a `collectionUUID`.
    pub has_uuid: bool,
    /// Makes the scope of the stages' expressions. Called after all checks of `$changeStream` itself.
    pub scope: &'a dyn Fn() -> Result<Arc<QueryScope>>,
}

/// A parsed request, checked as far as possible without reading.
pub(crate) struct Asked {
    pub target: Target,
    pub options: Options,
    /// The stages after `$changeStream`, without the one that splits large events.
    pub pipeline: Pipeline,
    /// Whether large events are returned in fragments.
    pub splits: bool,
}

impl Asked {
    /// Parses the pipeline and checks it against the server.
    /// # Errors
    /// 40573 on a server without history; errors of the options, stages, token and namespace.
    pub fn parse(context: &StreamContext<'_>, request: &StreamRequest<'_>) -> Result<Self> {
        let &StreamRequest { namespace, stages, is_over_collection, has_uuid, scope } = request;
        let first = stages.iter().next().and_then(ValueRef::as_document).and_then(DocumentRef::first);
        let specification = first.map_or(ValueRef::Null, |first| first.value);
        if has_uuid {
            let message = "collectionUUID is not supported for a change stream";
            return Err(Failure::new(ErrorCode(4_928_900), message));
        }
        if is_over_collection && context.catalog.collection_for(namespace, &**context.operation).is_none() {
            context.catalog.refuse_view(namespace)?;
        }
        let specification = Specification::parse(specification)?;
        check_streams(context.catalog.store())?;
        let target = Target::of(namespace, !is_over_collection, specification.all_changes)?;
        let options = specification.into_options()?;
        let splits = split::ends_with_it(stages)?;
        check_stages(stages)?;
        check_fragment(&options.beginning, splits)?;
        let scope = scope()?;
        let rest: ArrayBuf = stages.iter().take(stages.iter().count() - usize::from(splits)).skip(1).collect();
        let pipeline = Pipeline::parse(rest.as_ref(), Environment::new(scope))?;
        if pipeline.searches_text() {
            let message = "$match with $text is only allowed as the first pipeline stage";
            return Err(Failure::new(ErrorCode(17313), message));
        }
        Ok(Self { target, options, pipeline, splits })
    }

    /// Begins reading. A stream that begins in the past leaves a shared thread.
    /// # Errors
    /// `ChangeStreamHistoryLost` if the log no longer has the beginning; as
    /// [`OperationContext::leave_shared_thread`].
    pub fn begin(&self, context: &StreamContext<'_>) -> Result<Reading> {
        if !matches!(self.options.beginning, Beginning::Now) {
            context.operation.leave_shared_thread()?;
        }
        let (target, options) = (self.target.clone(), self.options.clone());
        Reading::begin(context.catalog, target, options, context.images.clone(), Arc::clone(context.operation))
    }
}

/// Opens a stream for `aggregate`.
/// # Errors
/// Errors of the options, stages, token and namespace; `ChangeStreamHistoryLost` if the log no longer has the
/// beginning. That a token has no event here is found only by reading. [`Failure::too_long`] on a shared thread, for a
/// stream that begins in the past.
pub fn open(context: &StreamContext<'_>, request: &StreamRequest<'_>) -> Result<Box<dyn CursorSource>> {
    let asked = Asked::parse(context, request)?;
    // Registered before anything is read, so that no event is missed in between.
    let following = context.catalog.store().follow_names(asked.target.scope());
    let mut reading = asked.begin(context)?;
    reading.read_with_others(context.tails);
    let Asked { options, pipeline, splits, .. } = asked;
    let behind = match options.beginning {
        Beginning::After(token) => Some(token),
        _ => None,
    };
    let told = (reading.token().to_owned(), reading.looked_at());
    let reading = Arc::new(Mutex::new(reading));
    let source = Box::new(Stream(Arc::clone(&reading)));
    let stream = match (splits, pipeline.is_empty()) {
        (true, _) => Some(pipeline.open_large(source)),
        (false, false) => Some(pipeline.open(source)),
        (false, true) => None,
    };
    let behind = behind.filter(|token| token.fragment.is_some());
    let splitting = splits.then(|| Splitting { behind, ..Splitting::default() });
    Ok(Box::new(Watching { stream, reading, following, splitting, told, current: None, chunk: None }))
}

/// Refuses to resume inside an event if events must come whole.
fn check_fragment(beginning: &Beginning, splits: bool) -> Result<()> {
    match beginning {
        Beginning::After(token) if token.fragment.is_some() && !splits => {
            let message = format!("To resume from a split event, the pipeline must end with {}", split::STAGE);
            Err(Failure::new(ErrorCode::CHANGE_STREAM_FATAL_ERROR, message))
        }
        _ => Ok(()),
    }
}

fn check_stages(stages: ArrayRef<'_>) -> Result<()> {
    for stage in stages.iter().skip(1) {
        let Some(Element { name, value }) = stage.as_document().and_then(DocumentRef::first) else { continue };
        // A later parse of the pipeline refuses an unknown stage.
        let Some(entry) = bunko_stages::find(name) else { continue };
        let is_permitted = entry.change_stream == StreamUse::Allowed || name == FILL.name && fills_alone(value);
        if !is_permitted {
            let message = format!("{name} is not permitted in a {STAGE} pipeline");
            return Err(Failure::new(ErrorCode::ILLEGAL_OPERATION, message));
        }
    }
    Ok(())
}

/// Whether a `$fill` works as `$addFields`, without other documents; every `method` looks at other documents.
fn fills_alone(specification: ValueRef<'_>) -> bool {
    let output = specification.as_document().and_then(|fields| fields.get("output")).and_then(ValueRef::as_document);
    output.is_none_or(|output| {
        output.iter().all(|field| field.value.as_document().is_none_or(|filling| filling.get("method").is_none()))
    })
}

/// The events that enter the other stages.
pub(crate) struct Stream(pub Arc<Mutex<Reading>>);

impl DocumentStream for Stream {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        Ok(self.0.lock().next()?.and_then(Told::into_document))
    }
}

/// The cursor's source: the events after the last stage.
struct Watching {
    /// The stages, if there are any.
    stream: Option<Box<dyn DocumentStream>>,
    /// Shared with `stream`. The lock is never contended, since one thread at a time uses a cursor.
    reading: Arc<Mutex<Reading>>,
    following: Option<Following>,
    splitting: Option<Splitting>,
    /// With stages: the token and time of their last result.
    told: (DocumentBuf, Timestamp),
    current: Option<Told>,
    /// The chunk that was lent last.
    chunk: Option<Arc<Chunk>>,
}

/// State of a stream that splits large events.
#[derive(Default)]
struct Splitting {
    /// Fragments that have not been returned.
    ahead: VecDeque<DocumentBuf>,
    /// The token of the fragment after which the stream resumes, until its event has been read.
    behind: Option<Token>,
}

impl Splitting {
    /// Takes an event and returns it or its first fragment that is due; `None` if all fragments were returned before.
    /// # Errors
    /// `ChangeStreamFatalError` if the stream resumes after a fragment that this event does not have; as
    /// [`fragments`].
    fn take(&mut self, event: DocumentBuf) -> Result<Option<DocumentBuf>> {
        let Some(behind) = self.behind.take() else {
            self.ahead = fragments(event.as_ref())?;
            return Ok(self.ahead.pop_front().or(Some(event)));
        };
        let of_event = token_of(event.as_ref()).is_some_and(|own| behind.is(own));
        let all = if of_event { fragments(event.as_ref())? } else { VecDeque::new() };
        let told = behind.fragment.map_or(0, |last| usize::from(last) + 1);
        if told > all.len() {
            return Err(split_otherwise(&behind));
        }
        self.ahead = all.into_iter().skip(told).collect();
        Ok(self.ahead.pop_front())
    }
}

/// The error of resuming after a fragment that the event does not have here.
/// Source: MongoDB manual 8.2, `$changeStreamSplitLargeEvent`, "Resume After Split Event".
fn split_otherwise(token: &Token) -> Failure {
    let message = format!(
        "Attempted to resume from a split event, but the resumed stream produced a different split point. Ensure that the \
         pipeline is exactly the same as the original: {}",
        ValueText(ValueRef::from(&token.to_document()))
    );
    Failure::new(ErrorCode::CHANGE_STREAM_FATAL_ERROR, message)
}

impl Watching {
    fn next_told(&mut self) -> Result<Option<Told>> {
        if self.stream.is_some() {
            let event = self.next_event()?;
            if let Some(event) = &event {
                self.note_told(event);
            }
            return Ok(event.map(Told::Own));
        }
        let told = self.reading.lock().next()?;
        check_document_bytes(told.as_ref().and_then(Told::document).map_or(0, DocumentRef::len_bytes))?;
        Ok(told)
    }

    fn next_event(&mut self) -> Result<Option<DocumentBuf>> {
        loop {
            let rest = self.splitting.as_mut().and_then(|splitting| splitting.ahead.pop_front());
            if rest.is_some() {
                return Ok(rest);
            }
            let Some(stream) = &mut self.stream else { return Ok(None) };
            let Some(event) = stream.next()? else { return Ok(None) };
            self.check_token(&event)?;
            let Some(splitting) = &mut self.splitting else { return Ok(Some(event)) };
            if let Some(told) = splitting.take(event)? {
                return Ok(Some(told));
            }
        }
    }

    fn note_told(&mut self, event: &DocumentBuf) {
        if let Some(token) = token_of(event.as_ref()) {
            self.told = (token.to_owned(), self.reading.lock().looked_at());
        }
    }

    fn check_token(&self, event: &DocumentBuf) -> Result<()> {
        if token_of(event.as_ref()).map(DocumentRef::as_bytes) == Some(self.reading.lock().token().as_bytes()) {
            return Ok(());
        }
        let message = "Encountered an event whose _id field, which contains the resume token, was modified by the \
                       pipeline. Modifying the _id field of an event makes it impossible to resume the stream from that \
                       point. Only transformations that retain the unmodified _id field are allowed.";
        Err(Failure::new(ErrorCode::CHANGE_STREAM_FATAL_ERROR, message))
    }
}

impl CursorSource for Watching {
    fn next(&mut self) -> Result<Option<DocumentRef<'_>>> {
        self.current = self.next_told()?;
        Ok(self.current.as_ref().and_then(Told::document))
    }

    fn next_batch(&mut self, limits: BatchLimits) -> Result<Option<(ArrayRef<'_>, u64)>> {
        if self.stream.is_some() {
            return Ok(None);
        }
        self.chunk = self.reading.lock().next_chunk(limits)?;
        Ok(self.chunk.as_ref().map(|chunk| (chunk.all(), chunk.count() as u64)))
    }

    fn stays_open(&self) -> bool {
        !self.reading.lock().is_over()
    }

    fn bell(&self) -> Option<&Arc<Bell>> {
        self.following.as_ref().map(Following::bell)
    }

    fn resume_token(&self) -> Option<DocumentBuf> {
        let reading = self.reading.lock();
        if self.stream.is_none() {
            return Some(reading.token().to_owned());
        }
        // Later events that the stages dropped need not be read again.
        let (token, at) = &self.told;
        let looked_at = reading.looked_at();
        Some(if looked_at > *at { high_water(looked_at) } else { token.clone() })
    }
}
