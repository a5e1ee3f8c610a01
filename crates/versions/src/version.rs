//! The versions of one key.

use crate::Views;

/// Maximum number of older versions that a write examines.
const LOOKED_AT_MAX: usize = 4;

/// A value, or a deletion, and the versions before it.
#[derive(Debug)]
pub struct Version<V> {
    lsn: u64,
    value: Option<V>,
    older: Option<Box<Version<V>>>,
}

impl<V> Version<V> {
    /// The first version of a key; `None` for a deletion.
    pub fn new(lsn: u64, value: Option<V>) -> Self {
        Self { lsn, value, older: None }
    }

    /// The LSN of the write that made the version.
    pub fn lsn(&self) -> u64 {
        self.lsn
    }

    /// The value; `None` for a deletion.
    pub fn value(&self) -> Option<&V> {
        self.value.as_ref()
    }

    /// This version and all older ones, newest first.
    pub fn all(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |version| version.older.as_deref())
    }

    /// The newest version below `before`; `None` if there is none.
    pub fn seen(&self, before: u64) -> Option<&Self> {
        let mut version = self;
        while version.lsn >= before {
            version = version.older.as_deref()?;
        }
        Some(version)
    }

    /// Whether the key has something to drop later: older versions, or a deletion.
    pub fn is_waiting(&self) -> bool {
        self.older.is_some() || self.value.is_none()
    }

    /// Puts a newer version in front of this one. Older versions that no view sees are dropped, and their memory is
    /// reused.
    pub fn supersede(&mut self, version: Self, views: Views<'_>) -> Superseded<V> {
        let mut superseded = std::mem::replace(self, version);
        let Some(mut place) = superseded.take_unseen(views) else {
            self.older = Some(Box::new(superseded));
            return Superseded::Kept;
        };
        let forgotten = std::mem::replace(&mut *place, superseded);
        self.older = Some(place);
        Superseded::Forgot(Forgotten(forgotten))
    }

    /// Removes versions older than this one that no view sees: all of them if no view is older than this version,
    /// otherwise those found among the next few. Each write adds one version and examines several, so versions left by
    /// closed views are removed over time.
    fn take_unseen(&mut self, views: Views<'_>) -> Option<Box<Self>> {
        if self.lsn < views.oldest() {
            return self.older.take();
        }
        let mut unseen: Option<Box<Self>> = None;
        let mut version = self;
        for _ in 0..LOOKED_AT_MAX {
            let Some(mut older) = version.older.take() else { break };
            if views.may_see(older.lsn, version.lsn) {
                version = version.older.insert(older);
            } else {
                version.older = older.older.take();
                older.older = unseen.take();
                unseen = Some(older);
            }
        }
        unseen
    }

    /// Drops versions that no view from `oldest_view` on sees. Deletions are dropped too, so this must not be used for
    /// a map that hides another one beneath it.
    pub fn forget(&mut self, oldest_view: u64) -> (Option<Forgotten<V>>, Rest) {
        let mut version = &mut *self;
        // Stops at the newest version that all views see, because no view sees the versions before it.
        while version.lsn >= oldest_view {
            let Some(older) = &mut version.older else { return (None, self.rest()) };
            if older.lsn < oldest_view && older.value.is_none() {
                break;
            }
            version = version.older.as_mut().expect("looked at just now");
        }
        let forgotten = version.older.take().map(|older| Forgotten(*older));
        if self.value.is_none() && self.lsn < oldest_view {
            return (forgotten, Rest::Nothing);
        }
        (forgotten, self.rest())
    }

    fn rest(&self) -> Rest {
        if !self.is_waiting() {
            return Rest::Value;
        }
        // Once no view is older than the middle version, about half of the versions can be dropped: as many as the walk
        // to it passes.
        let count = self.all().count();
        let middle = self.all().nth((count - 1) / 2).unwrap_or(self);
        Rest::Waiting { lsn: middle.lsn }
    }
}

impl<V> Drop for Version<V> {
    /// Drops the versions one by one: recursion through a long chain, with a version for each write since a view was
    /// opened, would overflow the stack.
    fn drop(&mut self) {
        let mut older = self.older.take();
        while let Some(mut version) = older {
            older = version.older.take();
        }
    }
}

/// The result of superseding a version.
#[derive(Debug)]
pub enum Superseded<V> {
    /// The superseded version and all older ones are kept.
    Kept,
    /// The superseded version is kept, in the memory of a dropped one.
    Forgot(Forgotten<V>),
}

/// Versions that no view sees any more. The caller counts them and drops them outside its locks.
#[derive(Debug)]
pub struct Forgotten<V>(Version<V>);

impl<V> Forgotten<V> {
    /// The values of the versions; `None` for deletions.
    pub fn values(&self) -> impl Iterator<Item = Option<&V>> {
        self.0.all().map(Version::value)
    }
}

/// The state of a key after [`Version::forget`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// The key should be removed.
    Nothing,
    /// A single value.
    Value,
    /// More versions can be dropped later: about half of them once no view is older than `lsn`.
    Waiting {
        /// The LSN of the middle version.
        lsn: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key with these versions; even LSNs are deletions.
    fn versions(lsns: &[u64]) -> Version<u64> {
        let mut newest = version(lsns[0]);
        for lsn in &lsns[1..] {
            newest.supersede(version(*lsn), Views::from(0));
        }
        newest
    }

    fn version(lsn: u64) -> Version<u64> {
        Version::new(lsn, (lsn % 2 == 1).then_some(lsn))
    }

    fn lsns(version: &Version<u64>) -> Vec<u64> {
        version.all().map(Version::lsn).collect()
    }

    fn forgotten(forgotten: Option<&Forgotten<u64>>) -> Vec<Option<u64>> {
        forgotten.map(|forgotten| forgotten.values().map(Option::<&u64>::copied).collect()).unwrap_or_default()
    }

    #[test]
    fn only_versions_that_no_view_sees_are_forgotten() {
        let mut key = versions(&[1, 3, 5, 7]);
        let Superseded::Forgot(gone) = key.supersede(version(9), Views::from(7)) else {
            panic!("5 hides what is behind it")
        };
        assert_eq!(forgotten(Some(&gone)), [Some(1), Some(3)]);
        let Superseded::Forgot(gone) = key.supersede(version(11), Views::from(10)) else {
            panic!("7 hides what is behind it")
        };
        assert_eq!(forgotten(Some(&gone)), [Some(7), Some(5)]);
        assert_eq!(lsns(&key), [11, 9]);
    }

    #[test]
    fn a_key_forgets_up_to_what_the_oldest_view_sees() {
        let mut key = versions(&[1, 3, 5, 7]);
        let (gone, rest) = key.forget(1);
        assert_eq!((forgotten(gone.as_ref()), rest), (vec![], Rest::Waiting { lsn: 5 }));
        let (gone, rest) = key.forget(4);
        assert_eq!((forgotten(gone.as_ref()), rest), (vec![Some(1)], Rest::Waiting { lsn: 5 }));
        let (gone, rest) = key.forget(7);
        assert_eq!((forgotten(gone.as_ref()), rest), (vec![Some(3)], Rest::Waiting { lsn: 7 }));
        let (gone, rest) = key.forget(8);
        assert_eq!((forgotten(gone.as_ref()), rest), (vec![Some(5)], Rest::Value));
        assert_eq!(lsns(&key), [7]);
    }

    #[test]
    fn a_deletion_goes_once_all_views_see_it() {
        let mut key = versions(&[1, 2]);
        assert!(key.is_waiting());
        let (gone, rest) = key.forget(2);
        assert_eq!((forgotten(gone.as_ref()), rest), (vec![], Rest::Waiting { lsn: 2 }));
        let (gone, rest) = key.forget(3);
        assert_eq!((forgotten(gone.as_ref()), rest), (vec![Some(1)], Rest::Nothing));
        // An older deletion is dropped as well: without it, the key is missing too.
        let mut key = versions(&[1, 2, 5]);
        let (gone, rest) = key.forget(4);
        assert_eq!((forgotten(gone.as_ref()), rest), (vec![None, Some(1)], Rest::Value));
    }

    #[test]
    fn versions_between_two_views_go() {
        let open = crate::OpenViews::default();
        let mut key = version(1);
        let write = |key: &mut Version<u64>, lsn| drop(key.supersede(version(lsn), open.now(|| lsn)));
        write(&mut key, 3);
        open.open(|| 4);
        for lsn in 5..100 {
            write(&mut key, lsn);
        }
        open.open(|| 100);
        for lsn in 100..200 {
            write(&mut key, lsn);
        }
        assert_eq!(lsns(&key), [199, 198, 99, 3]);
        assert_eq!([4, 100].map(|before| key.seen(before).map(Version::lsn)), [Some(3), Some(99)]);
        open.close(4);
        write(&mut key, 200);
        assert_eq!(lsns(&key), [200, 199, 99], "what a view leaves that was closed");
        let many: Vec<_> = (201..300)
            .map(|lsn| {
                write(&mut key, lsn);
                open.open(|| lsn + 1)
            })
            .collect();
        assert!(lsns(&key).len() > 99);
        for before in many {
            open.close(before);
        }
        for lsn in 300..340 {
            write(&mut key, lsn);
        }
        assert_eq!(lsns(&key), [339, 338, 99]);
    }

    #[test]
    fn a_million_versions_are_dropped_without_a_stack_for_them() {
        let mut key = Version::new(0, Some(0));
        for lsn in 1..1_000_000 {
            key.supersede(Version::new(lsn, None), Views::from(0));
        }
    }
}
