//! Tails of the log that change streams share: the first stream that reads a record makes its events for all members.
//!
//! A stream reads the log itself until it reaches the end, then becomes a member of a tail. Events that one member made
//! are kept, within limits, until all members of that moment have taken them. A member that falls too far behind reads
//! the log itself again, from its own position.
//!
//! Streams share a tail if they have the same scope and options, look up no documents and show no images, because those
//! depend on the time of reading. The first member makes events from the bytes of the log (`Feed::read`), encoded for a
//! reply's batch; the others copy the encoded events.

use crate::event::{Event, Events, is_of_views};
use crate::options::{Beginning, Options};
use crate::target::Target;
use bunko_bson::{ArrayRef, DocumentBuf, DocumentRef, Timestamp, Writer};
use bunko_catalog::Catalog;
use bunko_errors::Result;
use bunko_oplog::{Feed, Happening, Reach};
use bunko_store::Lsn;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::cmp::Ordering as Order;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A chunk takes no further record once its events have this many bytes.
const CHUNK_BYTES: usize = 128 << 10;
/// Bytes of a document's length field.
const LENGTH_BYTES: usize = 4;
/// Maximum number of bytes of events that wait in one tail for slow members.
const TAIL_BYTES_MAX: usize = 1 << 20;
/// Maximum number of bytes of events that wait in all tails of a server.
const ALL_BYTES_MAX: usize = 64 << 20;
/// How often a stream that joins a tail tries to reach its position.
const TRIES: usize = 4;

/// A tail's scope, whether it shows expanded events, and whether it shows copies.
type Key = (Box<str>, bool, bool);

/// All tails of a server.
#[derive(Clone, Default)]
pub struct Tails(Arc<Shared>);

#[derive(Default)]
struct Shared {
    by_key: Mutex<FxHashMap<Key, Arc<Tail>>>,
    waiting_bytes: AtomicUsize,
}

/// The end of the log, for streams with one [`Key`].
struct Tail {
    catalog: Arc<Catalog>,
    target: Target,
    options: Options,
    state: Mutex<State>,
}

struct State {
    feed: Feed,
    /// Whether reading failed: the feed cannot return to the record that it was about to read, so members read the log
    /// alone.
    is_lost: bool,
    members: usize,
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    /// The number of the first waiting chunk.
    first: u64,
    /// Expected length of the next chunk, in bytes.
    chunk_bytes: usize,
}

/// A chunk of events that some members have not taken.
struct Waiting {
    chunk: Arc<Chunk>,
    members: usize,
}

/// Consecutive events, encoded as an array for a reply's batch.
pub(crate) struct Chunk {
    /// A BSON array, as a document.
    encoded: DocumentBuf,
    events: Vec<Placed>,
}

/// The position of an event, in the chunk and in the log.
pub(crate) struct Placed {
    /// Byte range within `encoded`.
    span: Range<usize>,
    /// A log position from which the event is read again.
    pub place: Lsn,
    pub is_last: bool,
}

impl Chunk {
    /// The event with that index; `None` after the last.
    pub fn event(&self, index: usize) -> Option<(DocumentRef<'_>, &Placed)> {
        let placed = self.events.get(index)?;
        Some((DocumentRef::trusted(&self.encoded.as_ref().as_bytes()[placed.span.clone()]), placed))
    }

    /// Number of events.
    pub fn count(&self) -> usize {
        self.events.len()
    }

    /// All events, as an array.
    pub fn all(&self) -> ArrayRef<'_> {
        ArrayRef::from_document(self.encoded.as_ref())
    }

    fn bytes(&self) -> usize {
        self.encoded.len_bytes()
    }
}

/// A chunk under construction.
struct Draft<'d> {
    events: Vec<Placed>,
    writer: Writer<'d>,
}

impl<'d> Draft<'d> {
    fn new(bytes: &'d mut Vec<u8>) -> Self {
        Self { events: Vec::new(), writer: Writer::new(bytes) }
    }

    /// Adds the events of one change.
    fn add(&mut self, by: &Events<'_>, happening: Happening<'_>) -> Result<()> {
        match happening {
            Happening::Change(change) if change.is_copy && !by.options.shows_copies => Ok(()),
            Happening::Change(change) if !is_of_views(change.namespace) => {
                self.put(false, |event| by.put_change(&change, event))
            }
            other => {
                let mut made = Vec::new();
                by.of(&other.into_entry(), &mut made)?;
                made.iter().try_for_each(|Event { document, is_last }| {
                    self.put(*is_last, |event| {
                        event.extend(document.as_ref());
                        Ok(())
                    })
                })
            }
        }
    }

    fn put(&mut self, is_last: bool, write: impl FnOnce(&mut Writer<'d>) -> Result<()>) -> Result<()> {
        self.writer.begin_document_at(self.events.len());
        let start = self.writer.len_bytes() - LENGTH_BYTES;
        write(&mut self.writer)?;
        self.writer.end();
        self.events.push(Placed { span: start..self.writer.len_bytes(), place: Lsn(0), is_last });
        Ok(())
    }

    /// Sets the log position of the events from index `from` on.
    fn place(&mut self, from: usize, place: Lsn) {
        self.events[from..].iter_mut().for_each(|event| event.place = place);
    }
}

/// A stream that shares a tail.
pub(crate) struct Member {
    tails: Tails,
    key: Key,
    tail: Arc<Tail>,
    /// The number of the chunk that the member takes next.
    next: u64,
}

/// Outcome of taking events.
pub(crate) enum Taken {
    Events(Arc<Chunk>),
    /// There are no events up to this log position and this time.
    Nothing(Lsn, Timestamp),
    /// The member was too slow, or reading the log failed: the stream must read the log itself.
    Lost,
}

impl Tails {
    /// Makes a stream a member of the tail for its options. On the way to the tail's position, events that `feed` meets
    /// go into `ahead`; the stream returns those first. `None` if there are such events, if the tail was lost, or if
    /// the positions did not meet within [`TRIES`].
    /// # Errors
    /// As reading the log.
    pub(crate) fn join(
        &self,
        catalog: &Arc<Catalog>,
        target: &Target,
        options: &Options,
        feed: &mut Feed,
        ahead: &mut VecDeque<Event>,
    ) -> Result<Option<Member>> {
        let key: Key = (target.scope().into(), options.is_expanded, options.shows_copies);
        let tail = {
            let mut by_key = self.0.by_key.lock();
            let begin = || Arc::new(Tail::new(catalog, target, options, beginning(catalog, target, feed)));
            Arc::clone(by_key.entry(key.clone()).or_insert_with(begin))
        };
        let mut state = tail.state.lock();
        for _ in 0..TRIES {
            if state.is_lost {
                self.forget(&key, &tail);
                break;
            }
            match feed.position().cmp(&state.feed.position()) {
                Order::Equal => {
                    state.members += 1;
                    let next = state.end();
                    drop(state);
                    return Ok(Some(Member { tails: self.clone(), key, tail, next }));
                }
                Order::Greater if state.members == 0 => {
                    state.feed = beginning(catalog, target, feed);
                }
                Order::Greater => while tail.read(&mut state, 0, self, Reach::All).is_some() {},
                Order::Less => {
                    if let Some(entry) = feed.next(&|namespace| target.wants(namespace), Reach::All)? {
                        Events { catalog, target, options }.of(&entry, ahead)?;
                        if !ahead.is_empty() {
                            break;
                        }
                    }
                }
            }
        }
        Ok(None)
    }

    fn forget(&self, key: &Key, tail: &Arc<Tail>) {
        let mut by_key = self.0.by_key.lock();
        if by_key.get(key).is_some_and(|present| Arc::ptr_eq(present, tail)) {
            by_key.remove(key);
        }
    }
}

/// A feed that continues at another feed's position.
fn beginning(catalog: &Catalog, target: &Target, feed: &Feed) -> Feed {
    let store = catalog.store();
    Feed::from_place(store, feed.position(), feed.seen()).following(store.follow_names(target.scope()))
}

impl Tail {
    fn new(catalog: &Arc<Catalog>, target: &Target, options: &Options, feed: Feed) -> Self {
        let state = State {
            feed,
            is_lost: false,
            members: 0,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            first: 0,
            chunk_bytes: 0,
        };
        let options = Options { beginning: Beginning::Now, ..options.clone() };
        Self { catalog: Arc::clone(catalog), target: target.clone(), options, state: Mutex::new(state) }
    }

    /// Makes the next chunk, which waits for all members except the `taking` ones that get it at once. `None` if there
    /// are no events yet, or if reading failed.
    fn read(&self, state: &mut State, taking: usize, tails: &Tails, reach: Reach) -> Option<Arc<Chunk>> {
        // The next chunk is usually about as long as the last.
        let mut bytes = Vec::with_capacity(state.chunk_bytes);
        let mut draft = Draft::new(&mut bytes);
        let by = Events { catalog: &self.catalog, target: &self.target, options: &self.options };
        while draft.writer.len_bytes() < CHUNK_BYTES {
            let before = draft.events.len();
            let mut add = |happening: Happening<'_>| draft.add(&by, happening);
            match state.feed.read(&|namespace| self.target.wants(namespace), reach, &mut add) {
                Ok(true) => draft.place(before, state.feed.place_of_last()),
                Ok(false) => break,
                Err(_) => {
                    // A member that reads the log itself reads this record's events again.
                    state.is_lost = true;
                    return None;
                }
            }
        }
        let Draft { events, mut writer } = draft;
        if events.is_empty() {
            return None;
        }
        writer.end();
        let chunk = Arc::new(Chunk { encoded: DocumentBuf::from_trusted(bytes), events });
        let bytes = chunk.bytes();
        state.chunk_bytes = bytes + bytes / 8;
        let members = state.members - taking;
        state.waiting.push_back(Waiting { chunk: Arc::clone(&chunk), members });
        state.waiting_bytes += bytes;
        let all = tails.0.waiting_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        // The events of one record may exceed the limit of a tail.
        while state.waiting_bytes > TAIL_BYTES_MAX && state.waiting.len() > 1
            || all > ALL_BYTES_MAX && !state.waiting.is_empty()
        {
            state.give_up_first(tails);
        }
        state.give_up_taken(tails);
        Some(chunk)
    }
}

impl State {
    /// The number that the next chunk will have.
    fn end(&self) -> u64 {
        self.first + self.waiting.len() as u64
    }

    fn give_up_first(&mut self, tails: &Tails) {
        if let Some(Waiting { chunk, .. }) = self.waiting.pop_front() {
            self.first += 1;
            self.waiting_bytes -= chunk.bytes();
            tails.0.waiting_bytes.fetch_sub(chunk.bytes(), Ordering::Relaxed);
        }
    }

    fn give_up_taken(&mut self, tails: &Tails) {
        while self.waiting.front().is_some_and(|first| first.members == 0) {
            self.give_up_first(tails);
        }
    }
}

impl Member {
    /// The next events.
    pub fn take(&mut self) -> Taken {
        let mut state = self.tail.state.lock();
        let Some(place) = self.next.checked_sub(state.first) else { return Taken::Lost };
        if let Some(waiting) = state.waiting.get_mut(place as usize) {
            waiting.members -= 1;
            let chunk = Arc::clone(&waiting.chunk);
            self.next += 1;
            state.give_up_taken(&self.tails);
            return Taken::Events(chunk);
        }
        if state.is_lost {
            return Taken::Lost;
        }
        match self.tail.read(&mut state, 1, &self.tails, Reach::Needed) {
            Some(chunk) => {
                self.next += 1;
                Taken::Events(chunk)
            }
            None if state.is_lost => Taken::Lost,
            None => Taken::Nothing(state.feed.position(), state.feed.seen()),
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut state = self.tail.state.lock();
        state.members -= 1;
        let taken = self.next.saturating_sub(state.first) as usize;
        state.waiting.iter_mut().skip(taken).for_each(|waiting| waiting.members -= 1);
        state.give_up_taken(&self.tails);
        let is_last = state.members == 0;
        drop(state);
        if is_last {
            // If another stream became a member since the lock was released, it goes on with this tail, and later
            // streams make a new one.
            self.tails.forget(&self.key, &self.tail);
        }
    }
}
