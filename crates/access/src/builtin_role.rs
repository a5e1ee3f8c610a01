//! Built-in roles.
//! Source: MongoDB manual 8.2, "Built-In Roles".

#[allow(clippy::enum_glob_use, reason = "the table below names nearly all of them")]
use crate::action::Action::{self, *};
use crate::action::ActionSet;
use crate::privilege::{Privilege, Resource, add};

/// A built-in role.
pub struct BuiltinRole {
    /// The role's name.
    pub name: &'static str,
    /// Whether the role exists in each database or only in `admin`.
    pub scope: Scope,
    privileges: fn(&str, &mut Vec<Privilege>),
}

/// The databases of a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Each database.
    EachDatabase,
    /// `admin` only.
    Admin,
}

const READ: &[Action] = &[
    ChangeStream,
    CollStats,
    DbHash,
    DbStats,
    Find,
    KillCursors,
    ListCollections,
    ListIndexes,
    ListSearchIndexes,
    PlanCacheRead,
];
const WRITE: &[Action] = &[
    CleanupStructuredEncryptionData,
    CompactStructuredEncryptionData,
    ConvertToCapped,
    CreateCollection,
    CreateIndex,
    CreateSearchIndexes,
    DropCollection,
    DropIndex,
    DropSearchIndex,
    Insert,
    Remove,
    RenameCollectionSameDb,
    Update,
    UpdateSearchIndex,
];
const ADMINISTER: &[Action] = &[
    AnalyzeShardKey,
    BypassDocumentValidation,
    CollMod,
    CollStats,
    Compact,
    ConvertToCapped,
    CreateCollection,
    CreateIndex,
    CreateSearchIndexes,
    DbStats,
    DropCollection,
    DropDatabase,
    DropIndex,
    DropSearchIndex,
    EnableProfiler,
    IndexStats,
    ListCollections,
    ListIndexes,
    ListSearchIndexes,
    PlanCacheIndexFilter,
    PlanCacheRead,
    PlanCacheWrite,
    ReIndex,
    RenameCollectionSameDb,
    StorageDetails,
    UpdateSearchIndex,
    Validate,
];
const PROFILE: &[Action] = &[
    ChangeStream,
    CollStats,
    ConvertToCapped,
    CreateCollection,
    DbHash,
    DbStats,
    DropCollection,
    Find,
    KillCursors,
    ListCollections,
    ListIndexes,
    PlanCacheRead,
];
const ADMINISTER_USERS: &[Action] = &[
    ChangeCustomData,
    ChangePassword,
    CreateRole,
    CreateUser,
    DropRole,
    DropUser,
    GrantRole,
    RevokeRole,
    SetAuthenticationRestriction,
    ViewRole,
    ViewUser,
];
const MONITOR: &[Action] = &[
    ConnPoolStats,
    GetClusterParameter,
    GetCmdLineOpts,
    GetDefaultRwConcern,
    GetLog,
    GetParameter,
    GetShardMap,
    HostInfo,
    InProg,
    ListDatabases,
    ListSessions,
    ListShards,
    Netstat,
    OperationMetrics,
    QueryStatsRead,
    QueryStatsReadTransformed,
    ReplSetGetConfig,
    ReplSetGetStatus,
    ServerStatus,
    ShardingState,
    Top,
];
const MANAGE_CLUSTER: &[Action] = &[
    AddShard,
    AppendOplogNote,
    ApplicationMessage,
    CheckMetadataConsistency,
    CleanupOrphaned,
    FlushRouterConfig,
    GetClusterParameter,
    GetDefaultRwConcern,
    ListSessions,
    ListShards,
    QuerySettings,
    RemoveShard,
    ReplSetConfigure,
    ReplSetGetConfig,
    ReplSetGetStatus,
    ReplSetResizeOplog,
    ReplSetStateChange,
    Resync,
    SetClusterParameter,
    SetDefaultRwConcern,
    SetFeatureCompatibilityVersion,
    TransitionFromDedicatedConfigServer,
    TransitionToDedicatedConfigServer,
];
const MANAGE_SHARDS: &[Action] = &[
    AnalyzeShardKey,
    ClearJumboFlag,
    EnableSharding,
    MoveChunk,
    MoveCollection,
    RefineCollectionShardKey,
    ReshardCollection,
    SplitChunk,
    SplitVector,
    UnshardCollection,
];
const MANAGE_HOST: &[Action] = &[
    ApplicationMessage,
    AuditConfigure,
    CloseAllDatabases,
    Compact,
    ConnPoolSync,
    CpuProfiler,
    DropConnections,
    FlushRouterConfig,
    Fsync,
    InvalidateUserCache,
    KillAnyCursor,
    KillAnySession,
    KillOp,
    LogRotate,
    OidReset,
    OidcListKeys,
    OidcRefreshKeys,
    Resync,
    RotateCertificates,
    SetParameter,
    SetUserWriteBlockMode,
    Shutdown,
    Touch,
    TrafficRecord,
    UnlockAction,
];
/// Actions needed to copy a collection.
const COPY: &[Action] = &[CollStats, DbHash, DbStats, Find, KillCursors, ListCollections, ListIndexes, PlanCacheRead];
const KEEP: &[Action] = &[Insert, Remove, Update];

/// All built-in roles, by name.
pub const BUILTIN_ROLES: &[BuiltinRole] = &[
    BuiltinRole { name: "__system", scope: Scope::Admin, privileges: system },
    BuiltinRole { name: "backup", scope: Scope::Admin, privileges: backup },
    BuiltinRole { name: "clusterAdmin", scope: Scope::Admin, privileges: cluster_admin },
    BuiltinRole { name: "clusterManager", scope: Scope::Admin, privileges: cluster_manager },
    BuiltinRole { name: "clusterMonitor", scope: Scope::Admin, privileges: cluster_monitor },
    BuiltinRole { name: "dbAdmin", scope: Scope::EachDatabase, privileges: db_admin },
    BuiltinRole { name: "dbAdminAnyDatabase", scope: Scope::Admin, privileges: db_admin_any },
    BuiltinRole { name: "dbOwner", scope: Scope::EachDatabase, privileges: db_owner },
    BuiltinRole { name: "directShardOperations", scope: Scope::Admin, privileges: direct_shard_operations },
    BuiltinRole { name: "enableSharding", scope: Scope::Admin, privileges: enable_sharding },
    BuiltinRole { name: "hostManager", scope: Scope::Admin, privileges: host_manager },
    BuiltinRole { name: "read", scope: Scope::EachDatabase, privileges: read },
    BuiltinRole { name: "readAnyDatabase", scope: Scope::Admin, privileges: read_any },
    BuiltinRole { name: "readWrite", scope: Scope::EachDatabase, privileges: read_write },
    BuiltinRole { name: "readWriteAnyDatabase", scope: Scope::Admin, privileges: read_write_any },
    BuiltinRole { name: "restore", scope: Scope::Admin, privileges: restore },
    BuiltinRole { name: "root", scope: Scope::Admin, privileges: root },
    BuiltinRole { name: "userAdmin", scope: Scope::EachDatabase, privileges: user_admin },
    BuiltinRole { name: "userAdminAnyDatabase", scope: Scope::Admin, privileges: user_admin_any },
];

impl BuiltinRole {
    /// Finds a role by name in a database; `None` if the database has no such built-in role.
    pub fn find(name: &str, database: &str) -> Option<&'static Self> {
        BUILTIN_ROLES.iter().find(|role| role.name == name && role.is_in(database))
    }

    /// Whether a database has the role.
    pub fn is_in(&self, database: &str) -> bool {
        self.scope == Scope::EachDatabase || database == "admin"
    }

    /// The privileges of the role in that database.
    pub fn privileges(&self, database: &str) -> Vec<Privilege> {
        let mut privileges = Vec::new();
        (self.privileges)(database, &mut privileges);
        privileges
    }
}

fn grant(privileges: &mut Vec<Privilege>, resource: Resource, actions: &[Action]) {
    add(privileges, Privilege { resource, actions: ActionSet::of(actions) });
}

fn grant_on(privileges: &mut Vec<Privilege>, database: &str, collection: &str, actions: &[Action]) {
    let resource = match (database, collection) {
        ("", "") => Resource::AnyNormal,
        ("", name) => Resource::CollectionName(name.to_owned()),
        (database, "") => Resource::Database(database.to_owned()),
        (database, name) => Resource::Collection(database.to_owned(), name.to_owned()),
    };
    grant(privileges, resource, actions);
}

/// Grants actions on buckets. In the roles of each database, an empty database name means all databases.
fn buckets(privileges: &mut Vec<Privilege>, database: &str, actions: &[Action]) {
    let database = Some(database.to_owned()).filter(|database| !database.is_empty());
    grant(privileges, Resource::SystemBuckets(database, None), actions);
}

fn read(database: &str, privileges: &mut Vec<Privilege>) {
    grant_on(privileges, database, "", READ);
    grant_on(privileges, database, "system.js", READ);
}

fn read_write(database: &str, privileges: &mut Vec<Privilege>) {
    read(database, privileges);
    grant_on(privileges, database, "", WRITE);
    grant_on(privileges, database, "system.js", WRITE);
}

fn db_admin(database: &str, privileges: &mut Vec<Privilege>) {
    grant_on(privileges, database, "", ADMINISTER);
    grant_on(privileges, database, "system.profile", PROFILE);
    buckets(privileges, database, ADMINISTER);
}

fn user_admin(database: &str, privileges: &mut Vec<Privilege>) {
    grant_on(privileges, database, "", ADMINISTER_USERS);
}

fn db_owner(database: &str, privileges: &mut Vec<Privilege>) {
    read_write(database, privileges);
    db_admin(database, privileges);
    user_admin(database, privileges);
}

fn enable_sharding(_: &str, privileges: &mut Vec<Privilege>) {
    grant(
        privileges,
        Resource::AnyNormal,
        &[AnalyzeShardKey, EnableSharding, RefineCollectionShardKey, ReshardCollection],
    );
}

fn direct_shard_operations(_: &str, privileges: &mut Vec<Privilege>) {
    grant(privileges, Resource::Cluster, &[IssueDirectShardOperations]);
}

fn read_any(_: &str, privileges: &mut Vec<Privilege>) {
    read("", privileges);
    grant(privileges, Resource::Cluster, &[ListDatabases]);
}

fn read_write_any(_: &str, privileges: &mut Vec<Privilege>) {
    read_write("", privileges);
    grant(privileges, Resource::Cluster, &[ListDatabases]);
}

fn db_admin_any(_: &str, privileges: &mut Vec<Privilege>) {
    db_admin("", privileges);
    grant(privileges, Resource::Cluster, &[ListDatabases]);
}

fn user_admin_any(_: &str, privileges: &mut Vec<Privilege>) {
    user_admin("", privileges);
    for database in ["local", "config"] {
        user_admin(database, privileges);
    }
    grant(privileges, Resource::Cluster, &[AuthSchemaUpgrade, InvalidateUserCache, ListDatabases]);
    for collection in ["system.users", "system.roles"] {
        grant_on(privileges, "admin", collection, COPY);
        grant_on(privileges, "admin", collection, &[CreateIndex, DropIndex]);
    }
    grant_on(privileges, "admin", "system.version", COPY);
    grant_on(privileges, "admin", "system.new_users", COPY);
}

fn cluster_monitor(_: &str, privileges: &mut Vec<Privilege>) {
    grant(privileges, Resource::Cluster, MONITOR);
    grant(privileges, Resource::AnyNormal, &[CollStats, DbStats, GetDatabaseVersion, IndexStats, UseUuid]);
    grant(privileges, Resource::CollectionName("system.profile".into()), &[Find]);
    for database in ["config", "local"] {
        grant_on(privileges, database, "", COPY);
        grant_on(privileges, database, "", &[GetShardVersion, IndexStats]);
        grant_on(privileges, database, "system.js", COPY);
    }
}

fn cluster_manager(_: &str, privileges: &mut Vec<Privilege>) {
    grant(privileges, Resource::Cluster, MANAGE_CLUSTER);
    grant(privileges, Resource::AnyNormal, MANAGE_SHARDS);
    for database in ["config", "local"] {
        grant_on(privileges, database, "", COPY);
        grant_on(privileges, database, "", KEEP);
        grant_on(privileges, database, "", &[EnableSharding, MoveChunk, SplitChunk, SplitVector]);
    }
}

fn host_manager(_: &str, privileges: &mut Vec<Privilege>) {
    grant(privileges, Resource::Cluster, MANAGE_HOST);
    grant(privileges, Resource::AnyNormal, &[KillCursors]);
}

fn cluster_admin(database: &str, privileges: &mut Vec<Privilege>) {
    cluster_monitor(database, privileges);
    cluster_manager(database, privileges);
    host_manager(database, privileges);
    grant(privileges, Resource::AnyNormal, &[DropDatabase]);
}

fn backup(_: &str, privileges: &mut Vec<Privilege>) {
    grant(
        privileges,
        Resource::Cluster,
        &[AppendOplogNote, GetParameter, ListDatabases, ServerStatus, SetUserWriteBlockMode],
    );
    grant(privileges, Resource::Any, &[CollStats, ListCollections, ListIndexes, ListSearchIndexes]);
    grant(privileges, Resource::AnyNormal, &[Find]);
    buckets(privileges, "", &[Find]);
    for collection in ["system.js", "system.profile", "system.views"] {
        grant(privileges, Resource::CollectionName(collection.into()), &[Find]);
    }
    for database in ["config", "local"] {
        grant_on(privileges, database, "", &[Find]);
    }
    grant_on(privileges, "config", "settings", &[Insert, Update]);
    for collection in ["system.users", "system.roles", "system.version", "system.new_users", "system.backup_users"] {
        grant_on(privileges, "admin", collection, &[Find]);
    }
    grant_on(privileges, "config", "system.preimages", &[Find]);
}

fn restore(_: &str, privileges: &mut Vec<Privilege>) {
    const RESTORE: &[Action] = &[
        BypassDocumentValidation,
        CollMod,
        ConvertToCapped,
        CreateCollection,
        CreateIndex,
        CreateSearchIndexes,
        DropCollection,
        Insert,
    ];
    grant(privileges, Resource::Cluster, &[BypassWriteBlockingMode, ForceUuid, GetParameter, UseUuid]);
    grant(privileges, Resource::Any, &[ListCollections]);
    grant(privileges, Resource::AnyNormal, RESTORE);
    grant(privileges, Resource::AnyNormal, ADMINISTER_USERS);
    buckets(privileges, "", RESTORE);
    grant(privileges, Resource::CollectionName("system.js".into()), RESTORE);
    grant(privileges, Resource::CollectionName("system.views".into()), RESTORE);
    for database in ["config", "local"] {
        grant_on(privileges, database, "", RESTORE);
        grant_on(privileges, database, "", ADMINISTER_USERS);
    }
    for collection in ["system.users", "system.roles", "system.version", "tempusers", "temproles"] {
        grant_on(privileges, "admin", collection, RESTORE);
        grant_on(privileges, "admin", collection, &[Find, Remove, Update]);
    }
}

fn root(database: &str, privileges: &mut Vec<Privilege>) {
    read_write_any(database, privileges);
    db_admin_any(database, privileges);
    user_admin_any(database, privileges);
    cluster_admin(database, privileges);
    restore(database, privileges);
    backup(database, privileges);
    grant(privileges, Resource::Any, &[Validate]);
}

fn system(_: &str, privileges: &mut Vec<Privilege>) {
    grant(privileges, Resource::Any, &[AnyAction]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_sorted_and_allow_something() {
        assert!(BUILTIN_ROLES.is_sorted_by(|one, next| one.name < next.name));
        for role in BUILTIN_ROLES {
            assert!(!role.privileges("admin").is_empty(), "{}", role.name);
        }
        assert!(BuiltinRole::find("root", "admin").is_some() && BuiltinRole::find("root", "test").is_none());
    }

    #[test]
    fn roles_of_a_database_stay_in_it() {
        for role in BUILTIN_ROLES.iter().filter(|role| role.scope == Scope::EachDatabase) {
            let privileges = role.privileges("d");
            assert!(privileges.iter().all(|privilege| privilege.resource.is_within("d")), "{}", role.name);
        }
    }
}
