//! The cursor of a change stream.

use super::event::{Event, Events};
use super::options::{Beginning, Image, Options};
use super::split::{self, fragments};
use super::token::{self, Token, high_water};
use super::{STAGE, Target, check_server};
use crate::cursor_store::CursorSource;
use crate::dispatch::Halt;
use crate::invocation::Invocation;
use crate::let_variables::scope_with_let;
use bunko_aggregate::{DocumentStream, Environment, Pipeline};
use bunko_bson::text::ValueText;
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, Element, Timestamp, ValueRef};
use bunko_catalog::{Catalog, Namespace};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationContext;
use bunko_oplog::Feed;
use bunko_store::{Bell, Following};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// How much work it is to make an event.
const WORK_PER_EVENT: usize = 32;
/// Stages that may stand behind it. Source: MongoDB manual 8.2, "Modify Change Stream Output".
const STAGES_AFTER: [&str; 8] =
    ["$addFields", "$match", "$project", "$redact", "$replaceRoot", "$replaceWith", "$set", "$unset"];

/// Opens a stream for `aggregate`.
/// # Errors
/// 40573 on a server without history; what is wrong with options, stages, token and namespace; `ChangeStreamHistoryLost`
/// where the beginning has been given up. That a token is of no event here is found out by reading.
pub(crate) fn open(
    invocation: &Invocation<'_>,
    namespace: &Namespace,
    stages: ArrayRef<'_>,
) -> Result<Box<dyn CursorSource>, Halt> {
    let first = stages.iter().next().and_then(ValueRef::as_document).and_then(DocumentRef::first);
    let options = Options::parse(first.map_or(ValueRef::Null, |first| first.value))?;
    check_server(invocation)?;
    let is_whole = invocation.argument().as_str().is_none();
    let target = Target::of(namespace, is_whole, options.all_changes)?;
    if !is_whole {
        invocation.collection_not_view(namespace)?;
    }
    let splits = split::ends_with_it(stages)?;
    check_stages(stages)?;
    check_fragment(&options.beginning, splits)?;
    invocation.refuse_if_long(!matches!(options.beginning, Beginning::Now))?;
    let scope = scope_with_let(invocation, invocation.scope_in(invocation, namespace)?)?;
    let rest: ArrayBuf = stages.iter().take(stages.iter().count() - usize::from(splits)).skip(1).collect();
    let pipeline = Pipeline::parse(rest.as_ref(), Environment::new(scope))?;
    let catalog = Arc::clone(&invocation.service.catalog);
    let behind = match &options.beginning {
        Beginning::After(token) => Some(token.clone()),
        _ => None,
    };
    let images = ImageExpiry {
        seconds: Arc::clone(&invocation.service.parameters.image_expiry_s),
        clock: Arc::clone(&invocation.service.world.clock),
    };
    // Before anything is read, so that no event is missed in between.
    let following = catalog.store().follow_names(target.scope());
    let reading = Reading::begin(&catalog, target, options, images, Arc::clone(invocation.operation()))?;
    let reading = Arc::new(Mutex::new(reading));
    let source = Box::new(Stream(Arc::clone(&reading)));
    let stream = if splits { pipeline.open_large(source) } else { pipeline.open(source) };
    let splitting = splits.then(|| Splitting { behind, ..Splitting::default() });
    Ok(Box::new(Watching { stream, reading, following, splitting, current: None }))
}

/// Refuses to go on in the middle of an event that is to come whole.
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
        let is_permitted =
            STAGES_AFTER.contains(&name) || name == split::STAGE || name == "$fill" && fills_alone(value);
        // What is no stage at all is refused with the pipeline.
        if !is_permitted && bunko_aggregate::is_known_stage(name) {
            let message = format!("{name} is not permitted in a {STAGE} pipeline");
            return Err(Failure::new(ErrorCode::ILLEGAL_OPERATION, message));
        }
    }
    Ok(())
}

/// Whether a `$fill` fills each document by itself, so that it is an `$addFields`: no method of it looks at other documents.
fn fills_alone(specification: ValueRef<'_>) -> bool {
    let output = specification.as_document().and_then(|fields| fields.get("output")).and_then(ValueRef::as_document);
    output.is_none_or(|output| {
        output.iter().all(|field| field.value.as_document().is_none_or(|filling| filling.get("method").is_none()))
    })
}

/// When documents before a change are shown no more: `preAndPostImages` of the cluster parameter `changeStreamOptions`. They
/// stay in the log as long as it does.
struct ImageExpiry {
    /// 0 where all are shown.
    seconds: Arc<AtomicI64>,
    clock: Arc<dyn Fn() -> u64 + Send + Sync>,
}

impl ImageExpiry {
    fn is_over(&self, at: Timestamp) -> bool {
        let seconds = self.seconds.load(Ordering::Relaxed);
        seconds > 0 && i64::from(at.seconds).saturating_add(seconds) < ((self.clock)() / 1000) as i64
    }
}

/// What is read of the log, and how far.
struct Reading {
    feed: Feed,
    catalog: Arc<Catalog>,
    target: Target,
    options: Options,
    images: ImageExpiry,
    /// What happened earlier has been told, or was not asked for.
    from: Timestamp,
    ahead: VecDeque<Event>,
    /// That of the last event, or a mark behind it.
    token: DocumentBuf,
    token_at: Timestamp,
    is_over: bool,
    /// That of the event behind which the stream goes on, as long as this has not come by.
    sought: Option<Token>,
    operation: Arc<OperationContext>,
}

impl Reading {
    fn begin(
        catalog: &Arc<Catalog>,
        target: Target,
        options: Options,
        images: ImageExpiry,
        operation: Arc<OperationContext>,
    ) -> Result<Self> {
        let store = catalog.store();
        let (from, sought) = match &options.beginning {
            Beginning::Now => (None, None),
            Beginning::At(time) => (Some(*time), None),
            Beginning::After(token) if token.is_high_water => (Some(token.at), None),
            Beginning::After(token) => (Some(token.at), Some(token.clone())),
        };
        let feed = match from {
            None => Feed::from_now(store),
            Some(time) => {
                check_history(catalog, time)?;
                // What was acknowledged before the stream is opened again is in its first batch.
                store.sync_history().map_err(bunko_catalog::from_storage)?;
                Feed::from_time(store, time).map_err(lost)?
            }
        };
        let feed = feed.ok_or_else(history_lost)?;
        let from = from.unwrap_or_else(|| feed.seen());
        let token = sought.as_ref().map_or_else(|| high_water(from), Token::to_document);
        Ok(Self {
            feed,
            catalog: Arc::clone(catalog),
            target,
            options,
            images,
            from,
            ahead: VecDeque::new(),
            token,
            token_at: from,
            is_over: false,
            sought,
            operation,
        })
    }

    /// Reads up to the event of a token; false where it has not come by yet.
    ///
    /// # Errors
    /// `ChangeStreamFatalError` where a later event comes first, `Overflow` for a token that ends within its event.
    fn pass(&mut self, token: &Token) -> Result<bool> {
        let mut options = self.options.clone();
        if token.fragment.is_none() {
            // Images are not part of a token, and may be gone.
            (options.full_document, options.before) = (Image::None, Image::None);
        }
        loop {
            self.operation.work(WORK_PER_EVENT)?;
            let Self { feed, target, .. } = self;
            let Some(entry) = feed.next(&|namespace| target.wants(namespace)).map_err(lost)? else { return Ok(false) };
            if entry.at < token.at {
                continue;
            }
            // All events of a transaction are of one time.
            let mut events = Vec::new();
            Events { catalog: &self.catalog, target: &self.target, options: &options }.of(&entry, &mut events)?;
            if entry.at > token.at && !events.is_empty() {
                return Err(unknown_token(token));
            }
            let place_of = |is_it: &dyn Fn(DocumentRef<'_>) -> bool| {
                events.iter().position(|event| token_of(&event.document).is_some_and(is_it))
            };
            let Some(place) = place_of(&|own| token.is(own)) else {
                if place_of(&|own| token.is_cut_from(own)).is_some() {
                    return Err(token::cut());
                }
                continue;
            };
            if let Some(own) = token_of(&events[place].document) {
                self.token = own.to_owned();
            }
            // An invalidation that follows is still to be told, and so is what is left of an event in fragments.
            if !token.is_invalidate {
                self.ahead.extend(events.into_iter().skip(place + usize::from(token.fragment.is_none())));
            }
            return Ok(true);
        }
    }

    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        if let Some(token) = self.sought.take()
            && !self.pass(&token)?
        {
            self.sought = Some(token);
            return Ok(None);
        }
        loop {
            if self.is_over {
                return Ok(None);
            }
            if let Some(Event { document, is_last }) = self.ahead.pop_front() {
                self.is_over = is_last;
                if let Some(token) = token_of(&document) {
                    self.token = token.to_owned();
                }
                return Ok(Some(document));
            }
            self.operation.work(WORK_PER_EVENT)?;
            let Self { feed, target, .. } = self;
            let Some(mut entry) = feed.next(&|namespace| target.wants(namespace)).map_err(lost)? else {
                let seen = self.feed.seen();
                if seen > self.token_at {
                    self.token = high_water(seen);
                    self.token_at = seen;
                }
                return Ok(None);
            };
            if entry.at >= self.from {
                if entry.before.is_some() && self.images.is_over(entry.at) {
                    entry.before = None;
                }
                let events = Events { catalog: &self.catalog, target: &self.target, options: &self.options };
                events.of(&entry, &mut self.ahead)?;
            }
        }
    }
}

fn token_of(event: &DocumentBuf) -> Option<DocumentRef<'_>> {
    event.as_ref().get("_id").and_then(ValueRef::as_document)
}

fn check_history(catalog: &Catalog, time: Timestamp) -> Result<()> {
    // Nothing has happened before the set began.
    if catalog.store().history_is_whole() {
        return Ok(());
    }
    let oldest = catalog.store().oldest_moment().map_err(bunko_catalog::from_storage).map_err(lost)?;
    if oldest.is_some_and(|oldest| time < oldest.timestamp(0)) {
        return Err(history_lost());
    }
    Ok(())
}

fn history_lost() -> Failure {
    let message = "Resume of change stream was not possible, as the resume point may no longer be in the oplog.";
    Failure::new(ErrorCode::CHANGE_STREAM_HISTORY_LOST, message)
}

/// A log that was given up before it was read is what a stream calls lost history.
fn lost(failure: Failure) -> Failure {
    if failure.code() == ErrorCode::CAPPED_POSITION_LOST { history_lost() } else { failure }
}

fn unknown_token(token: &Token) -> Failure {
    let message = format!(
        "cannot resume stream; the resume token was not found. {}",
        ValueText(ValueRef::from(&token.to_document()))
    );
    Failure::new(ErrorCode::CHANGE_STREAM_FATAL_ERROR, message)
}

/// The events below the other stages.
struct Stream(Arc<Mutex<Reading>>);

impl DocumentStream for Stream {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        self.0.lock().next()
    }
}

/// What comes out of the last stage.
struct Watching {
    stream: Box<dyn DocumentStream>,
    /// Shared with the stream's beginning; never contended, since a cursor is in one hand.
    reading: Arc<Mutex<Reading>>,
    following: Option<Following>,
    splitting: Option<Splitting>,
    current: Option<DocumentBuf>,
}

/// Where large events come in fragments.
#[derive(Default)]
struct Splitting {
    /// Those that are yet to be told.
    ahead: VecDeque<DocumentBuf>,
    /// That of what was told before, which may have been a fragment of the first event.
    behind: Option<Token>,
    /// That of the last fragment, while its event has not been told to the end.
    token: Option<DocumentBuf>,
}

impl Splitting {
    /// The next fragment of the event at hand.
    fn next(&mut self) -> Option<DocumentBuf> {
        let fragment = self.ahead.pop_front()?;
        let is_last = self.ahead.is_empty();
        self.token = token_of(&fragment).filter(|_| !is_last).map(DocumentRef::to_owned);
        Some(fragment)
    }

    /// Takes an event, of which nothing is left where all has been told before.
    fn take(&mut self, event: DocumentBuf) -> Result<Option<DocumentBuf>> {
        let is_of_it = |token: &Token| token_of(&event).is_some_and(|own| token.is(own));
        let behind = self.behind.take().filter(is_of_it).and_then(|token| token.fragment);
        self.ahead = fragments(event.as_ref(), behind)?;
        Ok(self.next().or(behind.is_none().then_some(event)))
    }
}

impl Watching {
    fn next_event(&mut self) -> Result<Option<DocumentBuf>> {
        loop {
            if let Some(fragment) = self.splitting.as_mut().and_then(Splitting::next) {
                return Ok(Some(fragment));
            }
            let Some(event) = self.stream.next()? else { return Ok(None) };
            self.check_token(&event)?;
            let Some(splitting) = &mut self.splitting else { return Ok(Some(event)) };
            if let Some(told) = splitting.take(event)? {
                return Ok(Some(told));
            }
        }
    }

    fn check_token(&self, event: &DocumentBuf) -> Result<()> {
        if token_of(event).map(DocumentRef::as_bytes) == Some(self.reading.lock().token.as_ref().as_bytes()) {
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
        self.current = self.next_event()?;
        Ok(self.current.as_ref().map(DocumentBuf::as_ref))
    }

    fn stays_open(&self) -> bool {
        !self.reading.lock().is_over
    }

    fn bell(&self) -> Option<&Arc<Bell>> {
        self.following.as_ref().map(Following::bell)
    }

    fn resume_token(&self) -> Option<DocumentBuf> {
        let of_fragment = self.splitting.as_ref().and_then(|splitting| splitting.token.clone());
        Some(of_fragment.unwrap_or_else(|| self.reading.lock().token.clone()))
    }
}
