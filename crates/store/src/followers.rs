//! Followers of the log: a write wakes only the followers that it concerns.
//!
//! A follower names a collection (`db.coll`), a database (`db.`), or everything (the empty name). Once readers see its
//! record, a commit finds the names that the record touches and asks for a sync; after the sync the bells of these
//! names ring. Records that come soon after a ring are gathered, because a sync and a wake for each record would cost
//! more than writing it. Without followers, a commit pays for two fences and loads.
//!
//! A follower need not read records of other collections: as long as no record that concerns it has been noted, its
//! place moves on with the log (`Followers::quiet`).

use crate::log::Log;
use crate::{Bell, Lsn, Noted};
use bunko_bson::Timestamp;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Finds the names of the collections in a record's notes; `db.$cmd` stands for a whole database.
pub type NamesOf = fn(Noted<'_>, &mut dyn FnMut(&str));

/// Ending of a name that stands for a whole database.
const COMMANDS: &str = ".$cmd";
/// Minimum time between rings. The first record after a longer silence rings at once.
const GATHERING: Duration = Duration::from_micros(1500);

/// All followers of a log.
#[derive(Default)]
pub(crate) struct Followers {
    count: AtomicUsize,
    /// Number of commits whose record readers may see before its names have been noted.
    untold: AtomicUsize,
    names_of: OnceLock<NamesOf>,
    state: Mutex<FollowedScopes>,
}

#[derive(Default)]
struct FollowedScopes {
    scopes: BTreeMap<Box<str>, Scope>,
    /// Scopes whose bell is to ring, with the positions of the first and the last record that concern them.
    due: BTreeMap<Box<str>, (Lsn, Lsn)>,
    /// Whether a sync was requested that will ring the due bells.
    is_asked: bool,
    rung_at: Option<Instant>,
    /// The place to which followers move on if no record before it concerns them, with the time of the record before
    /// it. `mark` is on disk; `next_mark` may not be yet.
    mark: Option<Mark>,
    next_mark: Option<Mark>,
}

/// An end of the log that readers saw, and the time of the last record before it, which no later record shares.
pub(crate) type Mark = (Lsn, Timestamp);

struct Scope {
    bell: Arc<Bell>,
    followers: usize,
    /// LSN of the last record that concerns the scope.
    touched: Lsn,
}

/// One follower of a scope, until it is dropped.
pub struct Following {
    followers: Arc<Followers>,
    scope: Box<str>,
    bell: Arc<Bell>,
    /// From here on, every record that concerns the scope has been noted.
    pub(crate) noted_from: Lsn,
}

/// Whether there is anything new for a follower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quiet {
    /// There may be something new for the follower.
    No,
    /// No record that concerns the follower has been noted. Contains the durable place to which the follower may move
    /// on, if there is one, with the time of the last record before it.
    Yes(Option<(Lsn, Timestamp)>),
}

/// Stands for a commit that is about to show its record, until the record's names have been noted.
pub(crate) struct Telling<'f>(&'f AtomicUsize);

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Following {
    /// Rung when more records that concern the scope are on disk.
    pub fn bell(&self) -> &Arc<Bell> {
        &self.bell
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let mut state = self.followers.state.lock();
        if let Some(scope) = state.scopes.get_mut(&self.scope) {
            scope.followers -= 1;
            if scope.followers == 0 {
                state.scopes.remove(&self.scope);
            }
        }
        self.followers.count.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Followers {
    /// Sets the function that finds names in a batch. Before that call none are found.
    pub fn set_names_of(&self, names_of: NamesOf) {
        let _ = self.names_of.set(names_of);
    }

    /// Must be called before readers see an appended record. `None` if there is no follower.
    pub fn begin_telling(&self) -> Option<Telling<'_>> {
        // Either this load sees the follower, or the follower reads the log's end after the record was appended and so
        // finds it before its start.
        fence(Ordering::SeqCst);
        (self.count.load(Ordering::Relaxed) > 0).then(|| {
            self.untold.fetch_add(1, Ordering::SeqCst);
            Telling(&self.untold)
        })
    }

    /// Whether all records that readers see have been noted.
    pub fn all_are_told(&self) -> bool {
        fence(Ordering::SeqCst);
        self.untold.load(Ordering::SeqCst) == 0
    }

    /// Whether no record that concerns the follower has been noted from `from` on, up to which it has read. `now` is an
    /// end of the log up to which all records have been noted; `synced` is the end of the durable part.
    pub fn quiet(&self, following: &Following, from: Lsn, now: Option<Mark>, synced: Lsn) -> Quiet {
        if from < following.noted_from {
            return Quiet::No;
        }
        let mut state = self.state.lock();
        if state.scopes.get(&following.scope).is_none_or(|scope| scope.touched >= from) {
            return Quiet::No;
        }
        let is_on_disk = |mark: &Mark| mark.0 <= synced;
        if state.next_mark.is_some_and(|mark| is_on_disk(&mark)) {
            state.mark = state.next_mark.take();
        }
        match now {
            Some(mark) if is_on_disk(&mark) => (state.mark, state.next_mark) = (Some(mark), None),
            now => state.next_mark = state.next_mark.or(now),
        }
        Quiet::Yes(state.mark.filter(|(end, _)| *end > from))
    }

    /// Follows a scope, from the records that readers do not see yet. `log_end` returns the end of the appended log.
    pub fn follow(self: &Arc<Self>, scope: &str, log_end: impl FnOnce() -> Lsn) -> Following {
        self.count.fetch_add(1, Ordering::Relaxed);
        let bell = {
            let mut state = self.state.lock();
            let present = state.scopes.entry(scope.into()).or_insert_with(|| Scope {
                bell: Arc::default(),
                followers: 0,
                touched: Lsn(0),
            });
            present.followers += 1;
            Arc::clone(&present.bell)
        };
        // Either the commit sees the follower, or the follower reads a log end after the commit's record.
        fence(Ordering::SeqCst);
        Following { followers: Arc::clone(self), scope: scope.into(), bell, noted_from: log_end() }
    }

    /// Marks as due the scopes that the record at `lsn` concerns; readers see that record already. Returns whether the
    /// caller must ask for a sync.
    fn touch<'b>(&self, said: impl Iterator<Item = Noted<'b>>, lsn: Lsn) -> bool {
        let Some(names_of) = self.names_of.get() else { return false };
        let mut state = self.state.lock();
        let FollowedScopes { scopes, due, is_asked, .. } = &mut *state;
        let mut note = |name: &str, scope: &mut Scope| {
            scope.touched = lsn.max(scope.touched);
            match due.get_mut(name) {
                Some((_, last)) => *last = lsn.max(*last),
                None => drop(due.insert(name.into(), (lsn, lsn))),
            }
        };
        for said in said {
            names_of(said, &mut |name| {
                let database = name.find('.').map_or(name, |dot| &name[..=dot]);
                for name in ["", database, name] {
                    if let Some(scope) = scopes.get_mut(name) {
                        note(name, scope);
                    }
                }
                if name.strip_suffix(COMMANDS).is_some_and(|prefix| prefix.len() + 1 == database.len()) {
                    let within = scopes.range_mut::<str, _>((Bound::Excluded(database), Bound::Unbounded));
                    within
                        .take_while(|(name, _)| name.starts_with(database))
                        .for_each(|(name, scope)| note(name, scope));
                }
            });
        }
        !due.is_empty() && !std::mem::replace(is_asked, true)
    }

    /// Rings the bells of due records before `synced`, the end of the durable part. Returns the position of a due
    /// record that is still to be synced, `None` if all are.
    fn ring(&self, synced: Lsn, now: Instant) -> Option<Lsn> {
        let mut rung = Vec::new();
        let mut state = self.state.lock();
        let FollowedScopes { scopes, due, is_asked, rung_at, .. } = &mut *state;
        due.retain(|scope, (first, last)| {
            if *first < synced {
                rung.extend(scopes.get(scope).map(|scope| Arc::clone(&scope.bell)));
                *first = *last;
            }
            *last >= synced
        });
        let next = due.values().map(|(first, _)| *first).min();
        *is_asked = next.is_some();
        if !rung.is_empty() {
            *rung_at = Some(now);
        }
        drop(state);
        for bell in rung {
            bell.ring();
        }
        next
    }

    /// Rings the bells of the scopes that records from `from` on concern, because the commit point has moved on from
    /// there. These bells rang when the records were on disk, and the followers found them uncommitted.
    pub fn ring_from(&self, from: Lsn) {
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let state = self.state.lock();
        let concerned = state.scopes.values().filter(|scope| scope.touched >= from);
        let rung: Vec<_> = concerned.map(|scope| Arc::clone(&scope.bell)).collect();
        drop(state);
        for bell in rung {
            bell.ring();
        }
    }

    /// Time until which no bell may ring again; `None` if bells may ring now.
    fn gathers_until(&self, now: Instant) -> Option<Instant> {
        let until = self.state.lock().rung_at? + GATHERING;
        (until > now).then_some(until)
    }
}

/// Tells the followers whose scope the record at `lsn` concerns; readers see that record already. The followers' bells
/// ring once the record is on disk.
pub(crate) fn tell<'b>(log: &Arc<Log>, said: impl Iterator<Item = Noted<'b>>, lsn: Lsn) {
    fence(Ordering::SeqCst);
    let followers = log.followers();
    if followers.count.load(Ordering::Relaxed) > 0 && followers.touch(said, lsn) {
        ring_when_durable(log, lsn);
    }
}

fn ring_when_durable(log: &Arc<Log>, lsn: Lsn) {
    // A strong reference in the callback would keep the log alive.
    let weak = Arc::downgrade(log);
    let ring = move |outcome: crate::Result<()>| {
        if let (Ok(()), Some(log)) = (outcome, weak.upgrade())
            && let Some(next) = log.followers().ring(log.synced_lsn(), log.clock().now())
        {
            ring_when_durable(&log, next);
        }
    };
    match log.followers().gathers_until(log.clock().now()) {
        Some(until) => log.on_durable_from(until, Box::new(ring)),
        None => log.on_durable(lsn, Box::new(ring)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Batch;
    use bunko_host::Clock;

    fn names(said: Noted<'_>, tell: &mut dyn FnMut(&str)) {
        for statement in said {
            if let crate::Statement::Note(name) = statement {
                tell(std::str::from_utf8(name).expect("a name"));
            }
        }
    }

    fn touch(followers: &Followers, name: &str, lsn: Lsn) -> bool {
        let mut batch = Batch::new();
        batch.note(name.as_bytes());
        followers.touch(std::iter::once(batch.noted()), lsn)
    }

    #[test]
    fn a_record_wakes_its_followers_once_it_is_on_disk() {
        let (followers, now) = (Arc::new(Followers::default()), Clock::standing(0).now());
        followers.set_names_of(names);
        let scopes = ["", "a.", "a.x", "a.y", "ab.x"];
        let following = scopes.map(|scope| followers.follow(scope, || Lsn(0)));
        let rings = || following.each_ref().map(|following| following.bell().rings());
        assert!(touch(&followers, "a.x", Lsn(10)));
        assert!(!touch(&followers, "a.x", Lsn(20)), "a sync was asked for");
        assert_eq!(followers.ring(Lsn(10), now), Some(Lsn(10)));
        assert_eq!(rings(), [0, 0, 0, 0, 0]);
        assert_eq!(followers.ring(Lsn(15), now), Some(Lsn(20)));
        assert_eq!(rings(), [1, 1, 1, 0, 0]);
        assert_eq!(followers.ring(Lsn(21), now), None);
        assert_eq!(rings(), [2, 2, 2, 0, 0]);
        assert!(touch(&followers, "a.$cmd", Lsn(30)));
        assert_eq!(followers.ring(Lsn(31), now), None);
        assert_eq!(rings(), [3, 3, 3, 1, 0]);
        assert!(touch(&followers, "b.x", Lsn(40)));
        drop(following);
        assert_eq!(followers.ring(Lsn(41), now), None);
        assert!(followers.state.lock().scopes.is_empty());
        assert!(!touch(&followers, "a.x", Lsn(50)));
    }

    #[test]
    fn a_commit_rings_for_the_records_that_it_covers() {
        let followers = Arc::new(Followers::default());
        followers.set_names_of(names);
        let following = ["a.x", "a.y"].map(|scope| followers.follow(scope, || Lsn(0)));
        touch(&followers, "a.x", Lsn(40));
        touch(&followers, "a.y", Lsn(20));
        followers.ring_from(Lsn(30));
        assert_eq!(following.each_ref().map(|following| following.bell().rings()), [1, 0]);
    }

    #[test]
    fn records_soon_after_a_ring_are_gathered() {
        let (followers, now) = (Arc::new(Followers::default()), Clock::standing(0).now());
        followers.set_names_of(names);
        let following = followers.follow("a.x", || Lsn(0));
        assert!(touch(&followers, "a.x", Lsn(10)));
        assert_eq!(followers.gathers_until(now), None, "the first is told at once");
        assert_eq!(followers.ring(Lsn(5), now), Some(Lsn(10)));
        assert_eq!(followers.gathers_until(now), None, "nothing has rung");
        assert_eq!(followers.ring(Lsn(11), now), None);
        assert_eq!(following.bell().rings(), 1);
        assert_eq!(followers.gathers_until(now + GATHERING / 2), Some(now + GATHERING));
        assert_eq!(followers.gathers_until(now + GATHERING), None, "after a silence the next is told at once");
    }

    #[test]
    fn other_followers_continue_at_the_durable_end_of_the_log() {
        let followers = Arc::new(Followers::default());
        followers.set_names_of(names);
        let following = followers.follow("a.x", || Lsn(8));
        let at = |seconds| Timestamp { seconds, increment: 1 };
        let quiet = |from, now, synced| followers.quiet(&following, Lsn(from), now, Lsn(synced));
        assert_eq!(quiet(5, None, 50), Quiet::No, "nothing was noted before it followed");
        assert_eq!(quiet(10, Some((Lsn(30), at(3))), 20), Quiet::Yes(None), "that is not on disk");
        assert_eq!(quiet(10, Some((Lsn(40), at(4))), 35), Quiet::Yes(Some((Lsn(30), at(3)))));
        assert_eq!(quiet(30, None, 36), Quiet::Yes(None), "there it is already");
        assert_eq!(quiet(30, Some((Lsn(50), at(5))), 50), Quiet::Yes(Some((Lsn(50), at(5)))));
        assert!(!touch(&followers, "a.y", Lsn(60)));
        assert_eq!(quiet(50, None, 70), Quiet::Yes(None));
        assert!(touch(&followers, "a.x", Lsn(70)));
        assert_eq!(quiet(70, Some((Lsn(80), at(8))), 90), Quiet::No, "that concerns it");
        assert_eq!(quiet(71, Some((Lsn(80), at(8))), 90), Quiet::Yes(Some((Lsn(80), at(8)))));
    }

    #[test]
    fn a_commit_rings_no_bell_before_it_has_noted_its_followers() {
        let followers = Arc::new(Followers::default());
        assert!(followers.begin_telling().is_none(), "nobody follows");
        let _following = followers.follow("a.x", || Lsn(0));
        let (one, other) = (followers.begin_telling(), followers.begin_telling());
        drop(one);
        assert!(!followers.all_are_told());
        drop(other);
        assert!(followers.all_are_told());
    }
}
