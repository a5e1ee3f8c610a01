//! Chooses the databases and collections of a dump.

use super::options::DumpOptions;

/// Collections of `config` that describe how a cluster runs and mean nothing elsewhere.
const CLUSTER_RUNTIME: &[&str] = &[
    "external_validation_keys",
    "image_collection",
    "migrationCoordinators",
    "mongos",
    "rangeDeletions",
    "transaction_coordinators",
    "transactions",
];
/// Collections of `admin` that hold users, roles and the version of both.
const AUTHORISATION: &[&str] = &["system.users", "system.roles", "system.version"];
/// Prefix of the collection that holds a time series' buckets; the series' name follows.
pub(super) const BUCKETS_PREFIX: &str = "system.buckets.";

/// Whether a dump without `--db` includes the database.
/// Source: MongoDB Database Tools manual, "mongodump": `local` and `config` are left out.
pub(super) fn takes_database(name: &str) -> bool {
    !matches!(name, "local" | "config")
}

/// Whether the dump includes a collection that was not asked for by name.
pub(super) fn takes_collection(options: &DumpOptions, database: &str, collection: &str) -> bool {
    let is_excluded = options.exclude_collections.iter().any(|name| name == collection)
        || options.exclude_prefixes.iter().any(|prefix| collection.starts_with(prefix.as_str()));
    !is_excluded && !is_internal(database, collection)
}

/// Whether the server itself creates and maintains the collection. A series' buckets are read through the series.
fn is_internal(database: &str, collection: &str) -> bool {
    let is_system = collection.starts_with("system.");
    match database {
        "admin" => is_system && !AUTHORISATION.contains(&collection) && collection != "system.js",
        "config" => is_system || collection.starts_with("cache.") || CLUSTER_RUNTIME.contains(&collection),
        _ => is_system && collection != "system.js",
    }
}

#[cfg(test)]
mod tests {
    use super::super::options::Output;
    use super::*;

    #[test]
    fn internal_collections_are_not_dumped() {
        let options = DumpOptions::new(Output::Directory("dump".into()));
        let takes = |database, collection| takes_collection(&options, database, collection);
        assert!(takes("shop", "orders") && takes("shop", "system.js") && takes("shop", "systematic"));
        assert!(
            !takes("shop", "system.views") && !takes("shop", "system.profile") && !takes("shop", "system.buckets.x")
        );
        assert!(takes("admin", "system.users") && takes("admin", "system.version") && !takes("admin", "system.keys"));
        assert!(
            takes("config", "settings") && !takes("config", "transactions") && !takes("config", "cache.chunks.a.b")
        );
        assert!(takes_database("admin") && !takes_database("local") && !takes_database("config"));
    }

    #[test]
    fn exclusions_are_whole_names_or_beginnings() {
        let mut options = DumpOptions::new(Output::Directory("dump".into()));
        options.exclude_collections = vec!["log".into()];
        options.exclude_prefixes = vec!["tmp_".into()];
        let left: Vec<_> = ["log", "logs", "tmp_", "tmp_1", "x_tmp_"]
            .into_iter()
            .filter(|collection| takes_collection(&options, "shop", collection))
            .collect();
        assert_eq!(left, ["logs", "x_tmp_"]);
    }
}
