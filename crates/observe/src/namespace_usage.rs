//! Time spent on each collection, for `top`.

use crate::class_latency::{ClassLatency, Latency};
use bunko_request::counted_as::{OperationClass, UsageKind};
use foldhash::HashMap;
use std::collections::BTreeMap;

/// Maximum number of namespaces of a generation in a shard. A shard has two generations, so it keeps at least this many
/// namespaces and at most twice as many.
const GENERATION_MAX: usize = 5_000;
/// The use of one namespace.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    by_kind: [Latency; UsageKind::ALL.len()],
    by_class: [ClassLatency; OperationClass::COUNT],
}

impl Usage {
    /// Time and operations of one kind.
    pub fn kind(&self, kind: UsageKind) -> Latency {
        self.by_kind[kind as usize]
    }

    /// The operations of one class.
    pub fn class(&self, class: OperationClass) -> &ClassLatency {
        &self.by_class[class.index()]
    }

    /// Time and operations of all kinds.
    pub fn total(&self) -> Latency {
        let mut total = Latency::default();
        self.by_kind.iter().for_each(|latency| total.add(*latency));
        total
    }

    fn count(&mut self, kind: UsageKind, class: OperationClass, latency: Latency) {
        self.by_kind[kind as usize].add(latency);
        self.by_class[class.index()].note(latency);
    }

    fn add(&mut self, other: &Self) {
        for (sum, more) in self.by_kind.iter_mut().zip(other.by_kind) {
            sum.add(more);
        }
        for (sum, more) in self.by_class.iter_mut().zip(&other.by_class) {
            sum.add(more);
        }
    }
}

/// Use by database and collection. A namespace that is used moves to the young generation. When that is full, it
/// becomes the old generation, and namespaces left in the former old generation are dropped. A stream of names that are
/// used only once, such as names of missing collections, therefore takes bounded room and does not keep new names out.
#[derive(Debug, Default)]
pub struct NamespaceUsage {
    young: Generation,
    old: Generation,
}

/// Two levels instead of one map by full name, so that a lookup needs no joined string.
#[derive(Debug, Default)]
struct Generation {
    databases: HashMap<Box<str>, HashMap<Box<str>, Usage>>,
    count: usize,
}

impl Generation {
    fn get_mut(&mut self, database: &str, collection: &str) -> Option<&mut Usage> {
        self.databases.get_mut(database)?.get_mut(collection)
    }

    fn insert(&mut self, database: &str, collection: &str, usage: Usage) {
        let collections = self.databases.entry(database.into()).or_default();
        self.count += usize::from(collections.insert(collection.into(), usage).is_none());
    }

    fn remove(&mut self, database: &str, collection: &str) -> Option<Usage> {
        let collections = self.databases.get_mut(database)?;
        let usage = collections.remove(collection)?;
        if collections.is_empty() {
            self.databases.remove(database);
        }
        self.count -= 1;
        Some(usage)
    }

    fn remove_database(&mut self, database: &str) {
        self.count -= self.databases.remove(database).map_or(0, |collections| collections.len());
    }
}

impl NamespaceUsage {
    /// Counts one operation.
    pub fn note(&mut self, database: &str, collection: &str, kind: UsageKind, class: OperationClass, latency: Latency) {
        if let Some(usage) = self.young.get_mut(database, collection) {
            usage.count(kind, class, latency);
            return;
        }
        let mut usage = self.old.remove(database, collection).unwrap_or_default();
        usage.count(kind, class, latency);
        if self.young.count >= GENERATION_MAX {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(database, collection, usage);
    }

    /// Drops the use of a collection, or of a whole database.
    pub fn forget(&mut self, database: &str, collection: Option<&str>) {
        for generation in [&mut self.young, &mut self.old] {
            match collection {
                Some(collection) => drop(generation.remove(database, collection)),
                None => generation.remove_database(database),
            }
        }
    }

    /// Adds all use to `sum`, by full name.
    pub fn add_to(&self, sum: &mut BTreeMap<String, Usage>) {
        for (database, collections) in self.young.databases.iter().chain(&self.old.databases) {
            for (collection, usage) in collections {
                sum.entry(format!("{database}.{collection}")).or_default().add(usage);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATENCY: Latency = Latency { micros: 1, operations: 1 };

    fn note(usage: &mut NamespaceUsage, database: &str, collection: &str) {
        usage.note(database, collection, UsageKind::Query, OperationClass::Read, LATENCY);
    }

    fn sum(usage: &NamespaceUsage) -> BTreeMap<String, Usage> {
        let mut sum = BTreeMap::new();
        usage.add_to(&mut sum);
        sum
    }

    #[test]
    fn used_names_stay_and_new_names_find_room() {
        let mut usage = NamespaceUsage::default();
        for number in 0..4 * GENERATION_MAX {
            note(&mut usage, "test", &format!("c{number}"));
            note(&mut usage, "test", "often");
        }
        note(&mut usage, "other", "c");
        let sum = sum(&usage);
        assert!(sum.len() <= 2 * GENERATION_MAX && sum.len() >= GENERATION_MAX, "{}", sum.len());
        assert_eq!(sum["test.often"].total().operations, 4 * GENERATION_MAX as u64);
        assert_eq!(sum["other.c"].class(OperationClass::Read).sum().operations, 1);
        assert!(!sum.contains_key("test.c0"));
    }

    #[test]
    fn dropped_names_are_forgotten_in_both_generations() {
        let mut usage = NamespaceUsage::default();
        for number in 0..=GENERATION_MAX {
            note(&mut usage, "test", &format!("c{number}"));
        }
        let (old, young) = ("c0", format!("c{GENERATION_MAX}"));
        usage.forget("test", Some(old));
        usage.forget("test", Some(&young));
        assert_eq!(sum(&usage).len(), GENERATION_MAX - 1);
        usage.forget("test", None);
        assert!(sum(&usage).is_empty());
        assert_eq!((usage.young.count, usage.old.count), (0, 0));
    }
}
