//! The namespaces that a copy takes.

use crate::namespaces::Filter;
use xxhash_rust::xxh3::xxh3_64;

/// The database of the copy's record, in the target.
pub(super) const OWN_DATABASE: &str = "bunko_copy";
/// Databases of the servers themselves, and of copies.
const LEFT_OUT: [&str; 4] = ["admin", "config", "local", OWN_DATABASE];

/// Chooses databases and collections.
pub(super) struct Scope {
    filter: Filter,
}

impl Scope {
    pub(super) fn new(filter: Filter) -> Self {
        Self { filter }
    }

    pub(super) fn takes_database(database: &str) -> bool {
        !LEFT_OUT.contains(&database)
    }

    /// Whether the copy takes a collection, a view or a time series.
    pub(super) fn takes(&self, database: &str, collection: &str) -> bool {
        Self::takes_database(database)
            && (!collection.starts_with("system.") || collection == "system.js")
            && self.filter.takes(&format!("{database}.{collection}"))
    }

    /// The same choice as a filter, for the dump and the restore.
    pub(super) fn filter(&self) -> Filter {
        LEFT_OUT.iter().fold(self.filter.clone(), |filter, database| filter.without_database(database))
    }

    /// A hash of the choice, by which a resumed copy is compared with the earlier one.
    pub(super) fn fingerprint(&self) -> String {
        format!("{:016x}", xxh3_64(format!("{:?}", self.filter).as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_servers_and_copies_keep_for_themselves_stays_behind() {
        let scope = Scope::new(Filter::default());
        assert!(scope.takes("shop", "orders") && scope.takes("shop", "system.js"));
        for (database, collection) in
            [("shop", "system.views"), ("admin", "x"), ("config", "x"), ("local", "x"), (OWN_DATABASE, "progress")]
        {
            assert!(!scope.takes(database, collection), "{database}.{collection}");
            assert!(collection == "system.views" || !scope.filter().takes(&format!("{database}.{collection}")));
        }
        let some = Scope::new(Filter::new(&["shop.*".to_owned()], &["shop.log".to_owned()]).expect("valid"));
        assert!(some.takes("shop", "orders") && !some.takes("shop", "log") && !some.takes("blog", "orders"));
        assert_ne!(some.fingerprint(), scope.fingerprint());
    }
}
