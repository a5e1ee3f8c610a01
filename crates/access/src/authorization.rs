//! The privileges of a user, in a form for fast checks of each command.

use crate::action::{Action, ActionSet};
use crate::privilege::{Privilege, Resource};
use foldhash::{HashMap, HashMapExt};

/// Prefix of the bucket collections of time series.
const BUCKETS: &str = "system.buckets.";

/// All privileges of a user, merged by resource.
#[derive(Clone, Debug, Default)]
pub struct Authorization {
    anything: ActionSet,
    cluster: ActionSet,
    any_normal: ActionSet,
    databases: HashMap<String, OfDatabase>,
    /// By collection name, in every database.
    names: HashMap<String, ActionSet>,
    /// Buckets in every database.
    buckets: OfBuckets,
}

#[derive(Clone, Debug, Default)]
struct OfDatabase {
    whole: ActionSet,
    collections: HashMap<String, ActionSet>,
    buckets: OfBuckets,
}

#[derive(Clone, Debug, Default)]
struct OfBuckets {
    all: ActionSet,
    of: HashMap<String, ActionSet>,
}

impl OfBuckets {
    fn on(&self, series: &str) -> ActionSet {
        self.all.and(find(&self.of, series))
    }

    fn add(&mut self, series: Option<&String>, actions: ActionSet) {
        match series {
            None => self.all = self.all.and(actions),
            Some(series) => put(&mut self.of, series, actions),
        }
    }
}

fn find(map: &HashMap<String, ActionSet>, name: &str) -> ActionSet {
    // Most maps are empty; the check saves computing a hash.
    if map.is_empty() { ActionSet::NONE } else { map.get(name).copied().unwrap_or_default() }
}

fn put(map: &mut HashMap<String, ActionSet>, name: &str, actions: ActionSet) {
    let kept = map.entry(name.to_owned()).or_default();
    *kept = kept.and(actions);
}

impl Authorization {
    /// Merges privileges.
    pub fn new<'p>(privileges: impl IntoIterator<Item = &'p Privilege>) -> Self {
        let mut authorization = Self { databases: HashMap::new(), ..Self::default() };
        for privilege in privileges {
            authorization.add(privilege);
        }
        authorization
    }

    fn add(&mut self, Privilege { resource, actions }: &Privilege) {
        let actions = *actions;
        match resource {
            Resource::Any => self.anything = self.anything.and(actions),
            Resource::Cluster => self.cluster = self.cluster.and(actions),
            Resource::AnyNormal => self.any_normal = self.any_normal.and(actions),
            Resource::CollectionName(name) => put(&mut self.names, name, actions),
            Resource::Database(database) => {
                let of = self.databases.entry(database.clone()).or_default();
                of.whole = of.whole.and(actions);
            }
            Resource::Collection(database, collection) => {
                put(&mut self.databases.entry(database.clone()).or_default().collections, collection, actions);
            }
            Resource::SystemBuckets(None, series) => self.buckets.add(series.as_ref(), actions),
            Resource::SystemBuckets(Some(database), series) => {
                self.databases.entry(database.clone()).or_default().buckets.add(series.as_ref(), actions);
            }
        }
    }

    /// Whether an action on the server as a whole is allowed.
    pub fn on_cluster(&self, action: Action) -> bool {
        self.cluster.allows(action) || self.anything.allows(action)
    }

    /// Whether an action is allowed on all databases except the server's own.
    pub fn on_all_databases(&self, action: Action) -> bool {
        self.any_normal.allows(action) || self.anything.allows(action)
    }

    /// Whether every action is allowed on everything.
    pub fn allows_everything(&self) -> bool {
        self.anything.allows(Action::AnyAction)
    }

    /// Whether an action is allowed on a database.
    pub fn on_database(&self, database: &str, action: Action) -> bool {
        self.normal(database, self.databases.get(database)).and(self.anything).allows(action)
    }

    /// Whether an action is allowed on a collection.
    pub fn on_collection(&self, database: &str, collection: &str, action: Action) -> bool {
        self.actions_on(database, collection).allows(action)
    }

    /// All actions that are allowed on a collection.
    pub fn actions_on(&self, database: &str, collection: &str) -> ActionSet {
        let of = self.databases.get(database);
        let mut actions = self.anything.and(find(&self.names, collection));
        if let Some(of) = of {
            actions = actions.and(find(&of.collections, collection));
        }
        if !collection.starts_with("system.") {
            actions.and(self.normal(database, of))
        } else if let Some(series) = collection.strip_prefix(BUCKETS) {
            let of_database = of.map(|of| of.buckets.on(series)).unwrap_or_default();
            actions.and(self.buckets.on(series)).and(of_database)
        } else {
            actions
        }
    }

    /// Whether an action is allowed on a database or on any of its collections.
    pub fn somewhere_in(&self, database: &str, action: Action) -> bool {
        let some = |names: &HashMap<String, ActionSet>| names.values().any(|actions| actions.allows(action));
        self.on_database(database, action)
            || self.databases.get(database).is_some_and(|of| some(&of.collections))
            || some(&self.names)
    }

    /// Actions allowed on a database and its ordinary collections. Privileges on all databases do not apply to the
    /// server's own.
    fn normal(&self, database: &str, of: Option<&OfDatabase>) -> ActionSet {
        let any = if matches!(database, "local" | "config") { ActionSet::NONE } else { self.any_normal };
        of.map_or(any, |of| any.and(of.whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin_role::BuiltinRole;

    fn of(roles: &[(&str, &str)]) -> Authorization {
        let privileges: Vec<_> = roles
            .iter()
            .flat_map(|(role, database)| BuiltinRole::find(role, database).expect(role).privileges(database))
            .collect();
        Authorization::new(&privileges)
    }

    #[test]
    fn a_role_of_a_database_reaches_no_other() {
        let reader = of(&[("read", "d")]);
        assert!(reader.on_collection("d", "c", Action::Find) && reader.on_database("d", Action::ListCollections));
        assert!(!reader.on_collection("d", "c", Action::Insert) && !reader.on_collection("e", "c", Action::Find));
        assert!(
            !reader.on_collection("d", "system.profile", Action::Find) && !reader.on_cluster(Action::ListDatabases)
        );
        assert!(!reader.on_collection("d", "system.buckets.c", Action::Find));
    }

    #[test]
    fn all_databases_are_those_of_clients() {
        let writer = of(&[("readWriteAnyDatabase", "admin")]);
        assert!(writer.on_collection("d", "c", Action::Insert) && writer.on_collection("admin", "c", Action::Insert));
        for (database, collection) in
            [("config", "c"), ("local", "c"), ("admin", "system.users"), ("d", "system.views")]
        {
            assert!(!writer.on_collection(database, collection, Action::Insert), "{database}.{collection}");
        }
        let root = of(&[("root", "admin")]);
        assert!(root.on_collection("admin", "system.users", Action::Find) && root.on_cluster(Action::Shutdown));
        assert!(!root.on_cluster(Action::Internal));
        assert!(of(&[("__system", "admin")]).on_cluster(Action::Internal));
    }

    #[test]
    fn a_name_is_asked_for_exactly() {
        let privilege = |resource| Privilege { resource, actions: ActionSet::of(&[Action::Find]) };
        let one = Authorization::new(&[privilege(Resource::Collection("d".into(), "c".into()))]);
        assert!(one.on_collection("d", "c", Action::Find) && one.somewhere_in("d", Action::Find));
        assert!(!one.on_collection("d", "cc", Action::Find) && !one.on_database("d", Action::Find));
        assert!(!one.on_collection("e", "c", Action::Find) && !one.somewhere_in("e", Action::Find));
        let named = Authorization::new(&[privilege(Resource::CollectionName("c".into()))]);
        assert!(named.on_collection("e", "c", Action::Find) && !named.on_collection("e", "d", Action::Find));
        let buckets = Authorization::new(&[privilege(Resource::SystemBuckets(Some("d".into()), Some("c".into())))]);
        assert!(buckets.on_collection("d", "system.buckets.c", Action::Find));
        assert!(!buckets.on_collection("d", "c", Action::Find));
        assert!(!buckets.on_collection("d", "system.buckets.e", Action::Find));
    }
}
