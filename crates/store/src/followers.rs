//! Who follows what is written, by what of it: a write wakes those whom it concerns, and nobody else.
//!
//! A follower names a collection (`db.coll`), a database (`db.`), or everything (the empty name). A commit looks, once readers
//! see its record, whose names it touches; their bells ring when the record is on disk, for which a sync is asked then. Where
//! nobody follows, a commit pays for one load.

use crate::log::Log;
use crate::{Batch, Bell, Lsn};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::sync::{Arc, OnceLock};

/// Tells the names of the collections that a batch's notes are about; `db.$cmd` stands for all of a database.
pub type NamesOf = fn(&Batch<'_>, &mut dyn FnMut(&str));

/// The ending of a name that stands for all of a database.
const COMMANDS: &str = ".$cmd";

/// All followers of a log.
#[derive(Default)]
pub(crate) struct Followers {
    count: AtomicUsize,
    names_of: OnceLock<NamesOf>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    scopes: BTreeMap<Box<str>, Scope>,
    /// Scopes whose bell is to ring: the places of the first and of the last record that concern them.
    due: BTreeMap<Box<str>, (Lsn, Lsn)>,
    /// Whether a sync was asked for whose end rings what is due.
    is_asked: bool,
}

struct Scope {
    bell: Arc<Bell>,
    followers: usize,
}

/// Somebody who follows a scope, as long as this lives.
pub struct Following {
    followers: Arc<Followers>,
    scope: Box<str>,
    bell: Arc<Bell>,
}

impl Following {
    /// Rung when more that concerns the scope is on disk.
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
    /// Says how names are found in a batch; until then none are.
    pub fn set_names_of(&self, names_of: NamesOf) {
        let _ = self.names_of.set(names_of);
    }

    /// Follows a scope: of all that readers do not see yet.
    pub fn follow(self: &Arc<Self>, scope: &str) -> Following {
        self.count.fetch_add(1, Ordering::Relaxed);
        let bell = {
            let mut state = self.state.lock();
            let present =
                state.scopes.entry(scope.into()).or_insert_with(|| Scope { bell: Arc::default(), followers: 0 });
            present.followers += 1;
            Arc::clone(&present.bell)
        };
        // Either the commit sees the follower, or the follower, who looks now, sees the record.
        fence(Ordering::SeqCst);
        Following { followers: Arc::clone(self), scope: scope.into(), bell }
    }

    /// Notes whom the record at `lsn`, which readers see, concerns. Whether a sync is to be asked for.
    fn touch(&self, batches: &[Batch<'_>], lsn: Lsn) -> bool {
        let Some(names_of) = self.names_of.get() else { return false };
        let mut state = self.state.lock();
        let State { scopes, due, is_asked } = &mut *state;
        let mut note = |scope: &str| {
            due.entry(scope.into()).and_modify(|(_, last)| *last = lsn.max(*last)).or_insert((lsn, lsn));
        };
        for batch in batches {
            names_of(batch, &mut |name| {
                let database = name.find('.').map_or(name, |dot| &name[..=dot]);
                for scope in ["", database, name] {
                    if scopes.contains_key(scope) {
                        note(scope);
                    }
                }
                if name.strip_suffix(COMMANDS).is_some_and(|prefix| prefix.len() + 1 == database.len()) {
                    let within = scopes.range::<str, _>((Bound::Excluded(database), Bound::Unbounded));
                    within
                        .map(|(scope, _)| scope)
                        .take_while(|scope| scope.starts_with(database))
                        .for_each(|scope| note(scope));
                }
            });
        }
        !due.is_empty() && !std::mem::replace(is_asked, true)
    }

    /// Rings for what is on disk, which ends at `synced`; the place of a record that is still to be synced.
    fn ring(&self, synced: Lsn) -> Option<Lsn> {
        let mut rung = Vec::new();
        let mut state = self.state.lock();
        let State { scopes, due, is_asked } = &mut *state;
        due.retain(|scope, (first, last)| {
            if *first < synced {
                rung.extend(scopes.get(scope).map(|scope| Arc::clone(&scope.bell)));
                *first = *last;
            }
            *last >= synced
        });
        let next = due.values().map(|(first, _)| *first).min();
        *is_asked = next.is_some();
        drop(state);
        for bell in rung {
            bell.ring();
        }
        next
    }
}

/// Tells those whom a record concerns that readers see, once it is on disk.
pub(crate) fn tell(log: &Arc<Log>, batches: &[Batch<'_>], lsn: Lsn) {
    fence(Ordering::SeqCst);
    let followers = log.followers();
    if followers.count.load(Ordering::Relaxed) > 0 && followers.touch(batches, lsn) {
        ring_when_durable(log, lsn);
    }
}

fn ring_when_durable(log: &Arc<Log>, lsn: Lsn) {
    // The log's own thread would keep it from going otherwise.
    let weak = Arc::downgrade(log);
    let ring = move |outcome: crate::Result<()>| {
        if let (Ok(()), Some(log)) = (outcome, weak.upgrade())
            && let Some(next) = log.followers().ring(log.synced_lsn())
        {
            ring_when_durable(&log, next);
        }
    };
    log.on_durable(lsn, Box::new(ring));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(batch: &Batch<'_>, tell: &mut dyn FnMut(&str)) {
        for statement in batch.noted() {
            if let crate::Statement::Note(name) = statement {
                tell(std::str::from_utf8(name).expect("a name"));
            }
        }
    }

    fn batch(name: &str) -> [Batch<'static>; 1] {
        let mut batch = Batch::new();
        batch.note(name.as_bytes());
        [batch]
    }

    #[test]
    fn a_record_wakes_those_whom_it_concerns_once_it_is_on_disk() {
        let followers = Arc::new(Followers::default());
        followers.set_names_of(names);
        let scopes = ["", "a.", "a.x", "a.y", "ab.x"];
        let following = scopes.map(|scope| followers.follow(scope));
        let rings = || following.each_ref().map(|following| following.bell().rings());
        assert!(followers.touch(&batch("a.x"), Lsn(10)));
        assert!(!followers.touch(&batch("a.x"), Lsn(20)), "a sync was asked for");
        assert_eq!(followers.ring(Lsn(10)), Some(Lsn(10)));
        assert_eq!(rings(), [0, 0, 0, 0, 0]);
        assert_eq!(followers.ring(Lsn(15)), Some(Lsn(20)));
        assert_eq!(rings(), [1, 1, 1, 0, 0]);
        assert_eq!(followers.ring(Lsn(21)), None);
        assert_eq!(rings(), [2, 2, 2, 0, 0]);
        assert!(followers.touch(&batch("a.$cmd"), Lsn(30)));
        assert_eq!(followers.ring(Lsn(31)), None);
        assert_eq!(rings(), [3, 3, 3, 1, 0]);
        assert!(followers.touch(&batch("b.x"), Lsn(40)));
        drop(following);
        assert_eq!(followers.ring(Lsn(41)), None);
        assert!(followers.state.lock().scopes.is_empty());
        assert!(!followers.touch(&batch("a.x"), Lsn(50)));
    }
}
