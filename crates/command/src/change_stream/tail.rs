//! Streams that ask for the same read the end of the log together: whoever comes to it first makes the events for all.
//!
//! A stream reads by itself until it has come to the end, then becomes a member. What a member has made is kept until all who
//! were members then have taken it, within limits; who is too slow for these reads by itself again, from its own place on.

use super::Target;
use super::event::{Event, Events, is_of_views};
use super::options::{Beginning, Options};
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

/// Bytes of events from which on no more are made at a time, but for what the same record did.
const CHUNK_BYTES: usize = 128 << 10;
/// Those of a document's length.
const LENGTH_BYTES: usize = 4;
/// Most bytes that wait in a tail for members that are behind.
const TAIL_BYTES_MAX: usize = 1 << 20;
/// Most bytes that wait in all tails of a server.
const ALL_BYTES_MAX: usize = 64 << 20;
/// How often a stream that is about to become a member looks for what came meanwhile.
const TRIES: usize = 4;

/// What a tail tells: of which scope, whether of all kinds of events, and whether of copies.
type Key = (Box<str>, bool, bool);

/// All tails of a server.
#[derive(Clone, Default)]
pub(crate) struct Tails(Arc<Shared>);

#[derive(Default)]
struct Shared {
    by_key: Mutex<FxHashMap<Key, Arc<Tail>>>,
    waiting_bytes: AtomicUsize,
}

/// The end of the log, as some streams see it.
struct Tail {
    catalog: Arc<Catalog>,
    target: Target,
    options: Options,
    state: Mutex<State>,
}

struct State {
    feed: Feed,
    /// Cannot be read any more: what it was about to read has been given up.
    is_lost: bool,
    members: usize,
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    /// The number of the first that waits.
    first: u64,
    /// What the next chunk is thought to take.
    chunk_bytes: usize,
}

/// Events that some members have not taken.
struct Waiting {
    chunk: Arc<Chunk>,
    members: usize,
}

/// Events in a row, encoded as the batch of a reply has them.
pub(super) struct Chunk {
    /// An array, as a document.
    encoded: DocumentBuf,
    events: Vec<Placed>,
}

/// One of the events.
pub(super) struct Placed {
    /// Where it stands among the encoded.
    span: Range<usize>,
    /// A place from which on the log tells it again.
    pub place: Lsn,
    pub is_last: bool,
}

impl Chunk {
    /// One of them.
    pub fn event(&self, index: usize) -> Option<(DocumentRef<'_>, &Placed)> {
        let placed = self.events.get(index)?;
        Some((DocumentRef::trusted(&self.encoded.as_ref().as_bytes()[placed.span.clone()]), placed))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.events.len()
    }

    /// All of them, by their index.
    pub fn all(&self) -> ArrayRef<'_> {
        ArrayRef::from_document(self.encoded.as_ref())
    }

    fn bytes(&self) -> usize {
        self.encoded.len_bytes()
    }
}

/// A chunk to be.
struct Draft<'d> {
    events: Vec<Placed>,
    writer: Writer<'d>,
}

impl<'d> Draft<'d> {
    fn new(bytes: &'d mut Vec<u8>) -> Self {
        Self { events: Vec::new(), writer: Writer::new(bytes) }
    }

    /// Adds what a record did.
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

    /// Those from a number on stand in the record there.
    fn place(&mut self, from: usize, place: Lsn) {
        self.events[from..].iter_mut().for_each(|event| event.place = place);
    }
}

/// A stream that reads with others.
pub(super) struct Member {
    tails: Tails,
    key: Key,
    tail: Arc<Tail>,
    /// The number of the chunk that it takes next.
    next: u64,
}

/// What a member gets.
pub(super) enum Taken {
    Events(Arc<Chunk>),
    /// There is nothing up to that place, and that time.
    Nothing(Lsn, Timestamp),
    /// It was too slow, or the log was given up: it has to read by itself.
    Lost,
}

impl Tails {
    /// Makes a stream a member that has read to its feed's end; what it meets on the way goes into `ahead`, and is to be told
    /// first. `None` where that is so, and where others keep being faster.
    /// # Errors
    /// As reading the log.
    pub(super) fn join(
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

/// Reads on where a feed has come to.
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

    /// Makes the next events, which wait for all members but `taking`, who get them at once; `None` where there are none yet.
    fn read(&self, state: &mut State, taking: usize, tails: &Tails, reach: Reach) -> Option<Arc<Chunk>> {
        // The next chunk is about as long as the last one.
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
                    // What was made of that record comes again for whoever reads by itself.
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
        // One record may have more than a tail keeps.
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
            // Somebody may have become a member meanwhile, who goes on with this one alone.
            self.tails.forget(&self.key, &self.tail);
        }
    }
}
