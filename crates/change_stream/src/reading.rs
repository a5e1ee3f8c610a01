//! How a stream reads the log: alone up to its end, and from there together with streams that have its options.

use crate::event::{Event, Events};
use crate::options::{Beginning, Image, Options};
use crate::tail::{Chunk, Member, Placed, Tails, Taken};
use crate::target::Target;
use crate::token::{GivenToken, Token, high_water};
use crate::token_key::cut;
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentBuf, DocumentRef, Timestamp, ValueRef};
use bunko_catalog::Catalog;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationContext;
use bunko_oplog::{Feed, Reach};
use bunko_session::cursors::BatchLimits;
use bunko_store::{Clock, Lsn};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Work units for making an event.
const WORK_PER_EVENT: usize = 32;

/// When documents before a change are no longer shown: `preAndPostImages` of the cluster parameter
/// `changeStreamOptions`. They stay in the log as long as their oplog entry.
#[derive(Clone)]
pub struct ImageExpiry {
    /// How long these documents are shown, in seconds; 0 if always.
    pub seconds: Arc<AtomicI64>,
    /// The server's clock.
    pub clock: Clock,
}

impl ImageExpiry {
    fn is_over(&self, at: Timestamp) -> bool {
        let seconds = self.seconds.load(Ordering::Relaxed);
        seconds > 0 && i64::from(at.seconds).saturating_add(seconds) < (self.clock.now_ms() / 1000) as i64
    }
}

/// How the log is read.
enum Course {
    /// By the stream alone.
    Own(Feed),
    /// With other streams, at the end of the log.
    Together(Member),
}

/// The position from which a stream would continue alone.
#[derive(Clone, Copy)]
struct Place {
    lsn: Lsn,
    seen: Timestamp,
    /// Whether reading from this position returns the last returned event again.
    is_before_last: bool,
}

/// An event to return.
pub(crate) enum Told {
    Own(DocumentBuf),
    Shared(Arc<Chunk>, usize),
}

impl Told {
    pub fn document(&self) -> Option<DocumentRef<'_>> {
        match self {
            Self::Own(document) => Some(document.as_ref()),
            Self::Shared(chunk, index) => chunk.event(*index).map(|(event, _)| event),
        }
    }

    pub fn into_document(self) -> Option<DocumentBuf> {
        match self {
            Self::Own(document) => Some(document),
            shared @ Self::Shared(..) => shared.document().map(DocumentRef::to_owned),
        }
    }
}

/// A stream's position in the log, and the events it has read ahead.
pub(crate) struct Reading {
    course: Course,
    /// While reading together: the position from which the stream would continue alone.
    place: Option<Place>,
    /// Events from the tail, and the index of the next one.
    chunk: Option<(Arc<Chunk>, usize)>,
    /// Tails that the stream may share; `None` if its events depend on when they are read.
    tails: Option<Tails>,
    catalog: Arc<Catalog>,
    target: Target,
    options: Options,
    images: ImageExpiry,
    /// Events before this time were returned already, or are not wanted.
    from: Timestamp,
    ahead: VecDeque<Event>,
    /// The token of the last event, or a high-water mark after it. While `chunk` is set, the token before the chunk.
    token: DocumentBuf,
    /// The time of the event or mark of `token`.
    token_at: Timestamp,
    is_over: bool,
    /// The token after whose event the stream resumes, until that event has been found.
    sought: Option<Token>,
    /// Number of entries that the stream has read alone.
    entries: u64,
    operation: Arc<OperationContext>,
}

impl Reading {
    /// Begins to read at the position that the options name.
    /// # Errors
    /// `ChangeStreamHistoryLost` if the log no longer has the beginning; errors of syncing the log.
    pub fn begin(
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
                // The first batch must have all writes that were acknowledged before the stream was opened again.
                store.sync_history().map_err(bunko_catalog::from_storage)?;
                Feed::from_time(store, time).map_err(lost)?
            }
        };
        let feed = feed.ok_or_else(history_lost)?.following(store.follow_names(target.scope()));
        let from = from.unwrap_or_else(|| feed.seen());
        let token = sought.as_ref().map_or_else(|| high_water(from), Token::to_document);
        Ok(Self {
            course: Course::Own(feed),
            place: None,
            chunk: None,
            tails: None,
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
            entries: 0,
            operation,
        })
    }

    /// Lets the stream read with others, if its events do not depend on when they are read.
    pub fn read_with_others(&mut self, tails: &Tails) {
        if (self.options.full_document, self.options.before) == (Image::None, Image::None) {
            self.tails = Some(tails.clone());
        }
    }

    /// The token of the last event, or a high-water mark after it.
    pub fn token(&self) -> DocumentRef<'_> {
        let last = self.chunk.as_ref().and_then(|(chunk, next)| chunk.event(next.checked_sub(1)?));
        last.and_then(|(event, _)| token_of(event)).unwrap_or(self.token.as_ref())
    }

    /// The time of the event or record that was examined last.
    pub fn looked_at(&self) -> Timestamp {
        let last = self.chunk.as_ref().and_then(|(chunk, next)| chunk.event(next.checked_sub(1)?));
        last.and_then(|(event, _)| time_of(event)).unwrap_or(self.token_at)
    }

    /// Events before this time were returned already, or are not wanted.
    pub fn from(&self) -> Timestamp {
        self.from
    }

    /// Number of entries that the stream has read alone.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Whether the stream has ended, because the collection or database that it watches is gone.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Reads up to the event of a token. Returns false if that event has not been found yet.
    ///
    /// # Errors
    /// `ChangeStreamFatalError` if a later event comes first, `Overflow` for a token that ends within its event.
    fn pass(&mut self, token: &Token) -> Result<bool> {
        let mut options = self.options.clone();
        if token.fragment.is_none() {
            // A token does not depend on images, which may have expired, so none is looked for here.
            (options.full_document, options.before) = (Image::None, Image::None);
        }
        loop {
            self.operation.work(WORK_PER_EVENT)?;
            let Self { course: Course::Own(feed), target, .. } = self else { return Ok(true) };
            let entry = feed.next(&|namespace| target.wants(namespace), Reach::Needed).map_err(lost)?;
            let Some(entry) = entry else { return Ok(false) };
            self.entries += 1;
            if entry.at < token.at {
                continue;
            }
            // All events of a transaction have one time.
            let mut events = Vec::new();
            Events { catalog: &self.catalog, target: &self.target, options: &options }.of(&entry, &mut events)?;
            if entry.at > token.at && !events.is_empty() {
                return Err(unknown_token(token));
            }
            let place_of = |is_it: &dyn Fn(DocumentRef<'_>) -> bool| {
                events.iter().position(|event| token_of(event.document.as_ref()).is_some_and(is_it))
            };
            let Some(place) = place_of(&|own| token.is(own)) else {
                if place_of(&|own| token.is_cut_from(own)).is_some() {
                    return Err(cut());
                }
                continue;
            };
            if let Some(own) = token_of(events[place].document.as_ref()) {
                self.token = own.to_owned();
            }
            // A following invalidation and the other fragments of the event must still be returned.
            if !token.is_invalidate {
                self.ahead.extend(events.into_iter().skip(place + usize::from(token.fragment.is_none())));
            }
            return Ok(true);
        }
    }

    /// The next event; `None` if there is none yet.
    /// # Errors
    /// `ChangeStreamHistoryLost`; errors of making events and of finding the event of a token.
    pub fn next(&mut self) -> Result<Option<Told>> {
        loop {
            if self.is_over {
                return Ok(None);
            }
            if let Some(Event { document, is_last }) = self.ahead.pop_front() {
                self.note_told(&document, is_last);
                return Ok(Some(Told::Own(document)));
            }
            if let Some(told) = self.next_shared() {
                return Ok(Some(told));
            }
            self.operation.work(WORK_PER_EVENT)?;
            let goes_on = match self.course {
                Course::Own(_) => self.read_alone()?,
                Course::Together(_) => self.read_together()?,
            };
            if !goes_on {
                return Ok(None);
            }
        }
    }

    fn note_told(&mut self, document: &DocumentBuf, is_last: bool) {
        self.is_over = is_last;
        self.set_token_of(document.as_ref());
    }

    fn set_token_of(&mut self, event: DocumentRef<'_>) {
        if let Some(token) = token_of(event) {
            self.token = token.to_owned();
        }
        self.token_at = time_of(event).unwrap_or(self.token_at);
    }

    /// The next event of the chunk; `None` if all were returned.
    fn next_shared(&mut self) -> Option<Told> {
        let (chunk, index) = self.chunk.as_mut()?;
        let Some((_, &Placed { place: lsn, is_last, .. })) = chunk.event(*index) else {
            self.leave_chunk();
            return None;
        };
        let told = Told::Shared(Arc::clone(chunk), *index);
        *index += 1;
        // The value of `seen` does not matter while an event follows this position.
        self.place = Some(Place { lsn, seen: self.token_at, is_before_last: true });
        self.is_over = is_last;
        Some(told)
    }

    /// A whole chunk of events from the tail, all returned with this call. `None` if there is none or it exceeds
    /// `limits`; the caller then asks for single events.
    /// # Errors
    /// As [`Self::next`].
    pub fn next_chunk(&mut self, limits: BatchLimits) -> Result<Option<Arc<Chunk>>> {
        if self.is_over || !self.ahead.is_empty() || !matches!(self.course, Course::Together(_)) {
            return Ok(None);
        }
        if self.chunk.as_ref().is_none_or(|(chunk, next)| *next == chunk.count()) {
            self.operation.work(WORK_PER_EVENT)?;
            self.leave_chunk();
            if !self.read_together()? {
                return Ok(None);
            }
        }
        let Some((chunk, next @ 0)) = &mut self.chunk else { return Ok(None) };
        if chunk.count() as u64 > limits.documents || chunk.all().as_document().len_bytes() > limits.bytes {
            return Ok(None);
        }
        let Some((_, &Placed { place: lsn, is_last, .. })) = chunk.event(chunk.count() - 1) else { return Ok(None) };
        *next = chunk.count();
        self.place = Some(Place { lsn, seen: self.token_at, is_before_last: true });
        self.is_over = is_last;
        Ok(Some(Arc::clone(chunk)))
    }

    /// Drops the chunk, all of whose events have been returned.
    fn leave_chunk(&mut self) {
        let Some((chunk, next)) = self.chunk.take() else { return };
        if let Some((event, _)) = next.checked_sub(1).and_then(|last| chunk.event(last)) {
            self.set_token_of(event);
        }
    }

    /// Reads the next entry alone. Returns false if nothing more can be read now.
    fn read_alone(&mut self) -> Result<bool> {
        if let Some(token) = self.sought.take()
            && !self.pass(&token)?
        {
            self.sought = Some(token);
            return Ok(false);
        }
        if !self.ahead.is_empty() {
            return Ok(true);
        }
        let Self { course: Course::Own(feed), target, .. } = self else { return Ok(true) };
        let entry = feed.next(&|namespace| target.wants(namespace), Reach::Needed).map_err(lost)?;
        let Some(mut entry) = entry else {
            let seen = feed.seen();
            if self.join(seen)? {
                return Ok(true);
            }
            self.note_seen(seen);
            return Ok(false);
        };
        self.entries += 1;
        if entry.at >= self.from {
            if entry.before.is_some() && self.images.is_over(entry.at) {
                entry.before = None;
            }
            let events = Events { catalog: &self.catalog, target: &self.target, options: &self.options };
            events.of(&entry, &mut self.ahead)?;
        }
        Ok(true)
    }

    /// Notes that everything up to that time was returned. If the last event has that time, its own token says so
    /// already.
    fn note_seen(&mut self, seen: Timestamp) {
        if seen > self.token_at {
            self.token = high_water(seen);
            self.token_at = seen;
        }
    }

    /// At the end of the log, joins a tail. Returns whether it joined one, or met events on the way that the stream
    /// returns first.
    fn join(&mut self, seen: Timestamp) -> Result<bool> {
        let Self { course: Course::Own(feed), tails: Some(tails), .. } = self else { return Ok(false) };
        if self.from > seen {
            return Ok(false);
        }
        let member = tails.join(&self.catalog, &self.target, &self.options, feed, &mut self.ahead).map_err(lost)?;
        let Some(member) = member else { return Ok(!self.ahead.is_empty()) };
        self.place = Some(Place { lsn: feed.position(), seen: feed.seen(), is_before_last: false });
        self.course = Course::Together(member);
        Ok(true)
    }

    /// Takes events from the tail, or makes them for its members. Returns false if there are none now.
    fn read_together(&mut self) -> Result<bool> {
        let Course::Together(member) = &mut self.course else { return Ok(true) };
        match member.take() {
            Taken::Events(chunk) => self.chunk = Some((chunk, 0)),
            Taken::Nothing(lsn, seen) => {
                self.place = Some(Place { lsn, seen, is_before_last: false });
                self.note_seen(seen);
                return Ok(false);
            }
            Taken::Lost => {
                let place = self.place.take().ok_or_else(history_lost)?;
                if place.is_before_last {
                    self.sought = Some(GivenToken::parse(self.token.as_ref())?.read()?);
                }
                let store = self.catalog.store();
                let feed = Feed::from_place(store, place.lsn, place.seen);
                self.course = Course::Own(feed.following(store.follow_names(self.target.scope())));
            }
        }
        Ok(true)
    }
}

/// The token of an event, if no stage has removed it.
pub(crate) fn token_of(event: DocumentRef<'_>) -> Option<DocumentRef<'_>> {
    event.get("_id").and_then(ValueRef::as_document)
}

/// The time of an event; `None` if a stage has removed it.
fn time_of(event: DocumentRef<'_>) -> Option<Timestamp> {
    match event.get("clusterTime") {
        Some(ValueRef::Timestamp(at)) => Some(at),
        _ => None,
    }
}

fn check_history(catalog: &Catalog, time: Timestamp) -> Result<()> {
    // The log is complete since the set was created, so no event is missing.
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

/// Turns the error of a log position that no longer exists into `ChangeStreamHistoryLost`.
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
