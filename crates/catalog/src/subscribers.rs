//! Hooks by which settings above the catalog learn that another member has changed their documents.

use crate::Namespace;
use parking_lot::RwLock;
use std::collections::BTreeSet;

/// Called after views see a change of a collection's documents that another member made.
pub type AbsorbHook = Box<dyn Fn() + Send + Sync>;

/// Hooks by the collection whose documents they follow. There are few: one for each family of settings.
#[derive(Default)]
pub(crate) struct Subscribers(RwLock<Vec<(Namespace, AbsorbHook)>>);

impl Subscribers {
    pub fn add(&self, namespace: Namespace, hook: AbsorbHook) {
        self.0.write().push((namespace, hook));
    }

    pub fn are_any(&self) -> bool {
        !self.0.read().is_empty()
    }

    /// Calls the hooks of these collections.
    pub fn tell(&self, changed: &BTreeSet<Namespace>) {
        self.0.read().iter().filter(|(name, _)| changed.contains(name)).for_each(|(_, hook)| hook());
    }
}
