//! Time spent on each collection, for `top`.

use crate::counters::Latency;
use crate::operation_class::OperationClass;
use foldhash::HashMap;
use std::collections::BTreeMap;

/// Most namespaces that one shard tells apart; what comes after them is not counted.
const NAMESPACES_MAX: usize = 10_000;

/// The kinds of use that `top` lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UsageKind {
    Query,
    GetMore,
    Insert,
    Update,
    Remove,
    Command,
}

impl UsageKind {
    /// With the names that `top` gives them, in its order.
    pub(crate) const ALL: [(Self, &'static str); 6] = [
        (Self::Query, "queries"),
        (Self::GetMore, "getmore"),
        (Self::Insert, "insert"),
        (Self::Update, "update"),
        (Self::Remove, "remove"),
        (Self::Command, "commands"),
    ];
}

/// The use of one namespace.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    by_kind: [Latency; UsageKind::ALL.len()],
    by_class: [Latency; OperationClass::COUNT],
}

impl Usage {
    /// The kind that a command counts as.
    pub(crate) fn of_command(name: &str) -> UsageKind {
        match name {
            "find" => UsageKind::Query,
            "getMore" => UsageKind::GetMore,
            "insert" => UsageKind::Insert,
            "update" => UsageKind::Update,
            "delete" => UsageKind::Remove,
            _ => UsageKind::Command,
        }
    }

    /// Time and operations of one kind.
    pub(crate) fn kind(&self, kind: UsageKind) -> Latency {
        self.by_kind[kind as usize]
    }

    /// Time and operations of one class.
    pub(crate) fn class(&self, class: OperationClass) -> Latency {
        self.by_class[class.index()]
    }

    /// Time and operations of all kinds.
    pub(crate) fn total(&self) -> Latency {
        let mut total = Latency::default();
        self.by_kind.iter().for_each(|latency| total.add(*latency));
        total
    }

    fn count(&mut self, kind: UsageKind, class: OperationClass, latency: Latency) {
        self.by_kind[kind as usize].add(latency);
        self.by_class[class.index()].add(latency);
    }

    fn add(&mut self, other: &Self) {
        for (sum, more) in self.by_kind.iter_mut().zip(other.by_kind) {
            sum.add(more);
        }
        for (sum, more) in self.by_class.iter_mut().zip(other.by_class) {
            sum.add(more);
        }
    }
}

/// Use by database and collection. Two levels rather than one map by full name, so that looking up the two parts of
/// a request needs no joined string.
#[derive(Debug, Default)]
pub(crate) struct NamespaceUsage {
    databases: HashMap<Box<str>, HashMap<Box<str>, Usage>>,
    count: usize,
}

impl NamespaceUsage {
    /// Counts one operation.
    pub(crate) fn note(
        &mut self,
        database: &str,
        collection: &str,
        kind: UsageKind,
        class: OperationClass,
        latency: Latency,
    ) {
        let known = self.databases.get_mut(database).and_then(|collections| collections.get_mut(collection));
        if let Some(usage) = known {
            usage.count(kind, class, latency);
        } else if self.count < NAMESPACES_MAX {
            self.count += 1;
            let collections = self.databases.entry(database.into()).or_default();
            collections.entry(collection.into()).or_default().count(kind, class, latency);
        }
    }

    /// Adds everything to `sum`, by full name.
    pub(crate) fn add_to(&self, sum: &mut BTreeMap<String, Usage>) {
        for (database, collections) in &self.databases {
            for (collection, usage) in collections {
                sum.entry(format!("{database}.{collection}")).or_default().add(usage);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_beyond_the_limit_are_not_counted() {
        let mut usage = NamespaceUsage::default();
        let latency = Latency { micros: 1, operations: 1 };
        for number in 0..NAMESPACES_MAX + 10 {
            usage.note("test", &format!("c{number}"), UsageKind::Query, OperationClass::Read, latency);
        }
        usage.note("other", "c", UsageKind::Query, OperationClass::Read, latency);
        usage.note("test", "c0", UsageKind::Insert, OperationClass::Write, latency);
        let mut sum = BTreeMap::new();
        usage.add_to(&mut sum);
        assert_eq!(sum.len(), NAMESPACES_MAX);
        assert_eq!(sum["test.c0"].total().operations, 2);
        assert_eq!(sum["test.c0"].class(OperationClass::Write).operations, 1);
    }
}
