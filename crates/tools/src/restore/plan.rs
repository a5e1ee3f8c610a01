//! Chooses the namespaces of a dump that are restored, and their roles and names.

use super::options::{Oplog, RestoreOptions, UsersAndRoles};
use super::target::{BUCKETS_PREFIX, Role, TargetDescription};
use crate::ToolError;
use bunko_archive::metadata::Metadata;

/// Temporary collections from which the server merges users and roles.
pub(super) const USERS_WAIT: &str = "tempusers";
pub(super) const ROLES_WAIT: &str = "temproles";
/// Prefix of the names under which one database's part of `admin`'s users and roles is dumped.
const OF_DATABASE: &str = "$admin.";
/// The database of users and roles.
pub(super) const ADMIN: &str = "admin";
/// Collections that a server makes itself from other restored data, or that hold no data.
const NEVER_RESTORED: [&str; 5] =
    ["system.indexes", "system.namespaces", "system.profile", "system.views", "system.version"];

/// Database and collection of the oplog in a dump.
pub(super) const OPLOG: (&str, &str) = ("", "oplog");

/// One namespace of a dump.
pub(super) struct Entry {
    pub(super) database: String,
    pub(super) collection: String,
    pub(super) metadata: Metadata,
    pub(super) size_bytes: u64,
}

/// Whether documents of this name in a dump are needed, as far as the name tells.
pub(super) fn is_needed(options: &RestoreOptions, database: &str, collection: &str) -> bool {
    if (database, collection) == OPLOG {
        return matches!(options.oplog, Oplog::Replay { file: None, .. });
    }
    match users_or_roles(options, database, collection) {
        Some(Share::Wanted(_)) => true,
        Some(Share::Unwanted) => false,
        None => {
            let collection = collection.strip_prefix(BUCKETS_PREFIX).unwrap_or(collection);
            !NEVER_RESTORED.contains(&collection) && options.filter.takes(&format!("{database}.{collection}"))
        }
    }
}

/// The target for a namespace; `None` if it is not restored.
/// # Errors
/// `Failed` for the buckets of a time series whose metadata is missing: they would become a plain collection.
pub(super) fn found(options: &RestoreOptions, entry: Entry) -> Result<Option<TargetDescription>, ToolError> {
    let Entry { database, collection, metadata, size_bytes } = entry;
    if (database.as_str(), collection.as_str()) == OPLOG || !is_needed(options, &database, &collection) {
        return Ok(None);
    }
    // Some tools give a series the name of the collection behind it.
    let collection = match collection.strip_prefix(BUCKETS_PREFIX) {
        Some(series) if role(&metadata) == Role::TimeSeries => series.to_owned(),
        Some(series) => {
            return Err(ToolError::Failed(format!(
                "{database}.{series}: the dump has the buckets of this time series, and not the metadata that say what it \
                 is: --nsExclude '{database}.{series}' restores the rest"
            )));
        }
        None => collection,
    };
    let source = format!("{database}.{collection}");
    let (role, name) = match users_or_roles(options, &database, &collection) {
        Some(Share::Wanted(Role::Users)) => (Role::Users, format!("{ADMIN}.{USERS_WAIT}")),
        Some(Share::Wanted(_)) => (Role::Roles, format!("{ADMIN}.{ROLES_WAIT}")),
        _ => (role(&metadata), options.renames.apply(&source).into_owned()),
    };
    Ok(Some(TargetDescription { source, name, role, metadata, size_bytes }))
}

fn role(metadata: &Metadata) -> Role {
    let options = metadata.options.as_ref();
    if options.get("viewOn").is_some() {
        // Some servers show a time series through a view on the collection behind it.
        Role::View
    } else if options.get("timeseries").is_some() {
        Role::TimeSeries
    } else {
        Role::Collection
    }
}

/// A collection of users or roles.
enum Share {
    Wanted(Role),
    Unwanted,
}

/// `None` for collections that hold neither users nor roles.
fn users_or_roles(options: &RestoreOptions, database: &str, collection: &str) -> Option<Share> {
    let (of_database, name) = match collection.strip_prefix(OF_DATABASE) {
        Some(name) => (Some(database), name),
        None if database == ADMIN => (None, collection),
        None => return None,
    };
    let role = match name {
        "system.users" => Role::Users,
        "system.roles" => Role::Roles,
        // Holds only the version of the users' format.
        "system.version" => return Some(Share::Unwanted),
        _ => return None,
    };
    let is_wanted = match (&options.users_and_roles, of_database) {
        (UsersAndRoles::Skip, _) => false,
        (UsersAndRoles::IfPresent, of_database) => {
            of_database.is_none() && options.filter.takes(&format!("{database}.{collection}"))
        }
        (UsersAndRoles::Of { database }, Some(of_database)) => database == of_database,
        // A whole dump has the users of all databases; the server is told which ones are wanted.
        (UsersAndRoles::Of { .. }, None) => true,
    };
    Some(if is_wanted { Share::Wanted(role) } else { Share::Unwanted })
}

#[cfg(test)]
mod tests {
    use super::super::options::Source;
    use super::*;
    use crate::namespaces::{Filter, Renames};

    fn options() -> RestoreOptions {
        RestoreOptions::new(Source::Directory { path: "dump".into(), database: None })
    }

    fn shown(options: &RestoreOptions, namespace: &str, json: &str) -> String {
        let (database, collection) = namespace.split_once('.').expect("a dot");
        let metadata = Metadata::parse(json).expect("metadata");
        let entry = Entry { database: database.to_owned(), collection: collection.to_owned(), metadata, size_bytes: 0 };
        match found(options, entry) {
            Ok(Some(found)) => format!("{:?} {}", found.role, found.name),
            Ok(None) => "-".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn metadata_tell_what_a_namespace_is() {
        let options = options();
        assert_eq!(shown(&options, "a.b", "{}"), "Collection a.b");
        assert_eq!(shown(&options, "a.b", r#"{"options":{"viewOn":"c"}}"#), "View a.b");
        assert_eq!(shown(&options, "a.b", r#"{"options":{"timeseries":{}}}"#), "TimeSeries a.b");
        let buckets = |metadata| shown(&options, "a.system.buckets.b", metadata);
        assert_eq!(buckets(r#"{"options":{"timeseries":{}}}"#), "TimeSeries a.b");
        assert!(buckets("{}").starts_with("a.b: the dump has the buckets of this time series"));
        assert_eq!(shown(&options, "a.system.js", "{}"), "Collection a.system.js");
        assert_eq!(shown(&options, "a.system.views", "{}"), "-");
        assert_eq!(shown(&options, ".oplog", "{}"), "-");
    }

    #[test]
    fn filters_see_old_names_and_renames_give_new_ones() {
        let mut options = options();
        options.filter = Filter::new(&["a.*".to_owned()], &[]).expect("valid");
        options.renames = Renames::new(&["a.*".to_owned()], &["z.*".to_owned()]).expect("valid");
        assert_eq!(shown(&options, "a.b", "{}"), "Collection z.b");
        assert_eq!(shown(&options, "z.b", "{}"), "-");
        assert!(is_needed(&options, "a", "system.buckets.b") && !is_needed(&options, "z", "system.buckets.b"));
    }

    #[test]
    fn users_wait_for_the_server_to_merge_them() {
        let mut options = options();
        assert_eq!(shown(&options, "admin.system.users", "{}"), "Users admin.tempusers");
        assert_eq!(shown(&options, "admin.system.version", "{}"), "-");
        assert_eq!(shown(&options, "a.$admin.system.roles", "{}"), "-");
        options.users_and_roles = UsersAndRoles::Of { database: "a".to_owned() };
        assert_eq!(shown(&options, "a.$admin.system.roles", "{}"), "Roles admin.temproles");
        assert_eq!(shown(&options, "b.$admin.system.roles", "{}"), "-");
        options.users_and_roles = UsersAndRoles::Skip;
        assert_eq!(shown(&options, "admin.system.users", "{}"), "-");
        assert_eq!(shown(&options, "admin.other", "{}"), "Collection admin.other");
    }

    #[test]
    fn a_restore_of_one_database_touches_no_users() {
        let mut options = options();
        options.filter = Filter::default().with(Some("a"), None);
        assert_eq!(shown(&options, "admin.system.users", "{}"), "-");
        options.users_and_roles = UsersAndRoles::Of { database: "a".to_owned() };
        assert_eq!(shown(&options, "admin.system.users", "{}"), "Users admin.tempusers");
    }
}
