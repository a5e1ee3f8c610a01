//! The actions that privileges allow.
//! Source: MongoDB manual 8.2, "Privilege Actions".

macro_rules! actions {
    ($($action:ident $name:literal,)*) => {
        /// An action.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[allow(missing_docs)]
        pub enum Action { $($action,)* }

        impl Action {
            /// All actions.
            pub const ALL: &[Self] = &[$(Self::$action,)*];

            /// The action's name in privileges.
            pub fn name(self) -> &'static str {
                match self { $(Self::$action => $name,)* }
            }
        }
    };
}

actions! {
    AddShard "addShard",
    AdvanceClusterTime "advanceClusterTime",
    AnalyzeShardKey "analyzeShardKey",
    AnyAction "anyAction",
    AppendOplogNote "appendOplogNote",
    ApplicationMessage "applicationMessage",
    AuditConfigure "auditConfigure",
    AuthSchemaUpgrade "authSchemaUpgrade",
    BypassDocumentValidation "bypassDocumentValidation",
    BypassWriteBlockingMode "bypassWriteBlockingMode",
    ChangeCustomData "changeCustomData",
    ChangeOwnCustomData "changeOwnCustomData",
    ChangeOwnPassword "changeOwnPassword",
    ChangePassword "changePassword",
    ChangeStream "changeStream",
    CheckMetadataConsistency "checkMetadataConsistency",
    CleanupOrphaned "cleanupOrphaned",
    CleanupStructuredEncryptionData "cleanupStructuredEncryptionData",
    ClearJumboFlag "clearJumboFlag",
    CloseAllDatabases "closeAllDatabases",
    CollMod "collMod",
    CollStats "collStats",
    Compact "compact",
    CompactStructuredEncryptionData "compactStructuredEncryptionData",
    ConnPoolStats "connPoolStats",
    ConnPoolSync "connPoolSync",
    ConvertToCapped "convertToCapped",
    CpuProfiler "cpuProfiler",
    CreateCollection "createCollection",
    CreateDatabase "createDatabase",
    CreateIndex "createIndex",
    CreateRole "createRole",
    CreateSearchIndexes "createSearchIndexes",
    CreateUser "createUser",
    DbHash "dbHash",
    DbStats "dbStats",
    DropCollection "dropCollection",
    DropConnections "dropConnections",
    DropDatabase "dropDatabase",
    DropIndex "dropIndex",
    DropRole "dropRole",
    DropSearchIndex "dropSearchIndex",
    DropUser "dropUser",
    EnableProfiler "enableProfiler",
    EnableSharding "enableSharding",
    Find "find",
    FlushRouterConfig "flushRouterConfig",
    ForceUuid "forceUUID",
    Fsync "fsync",
    GetClusterParameter "getClusterParameter",
    GetCmdLineOpts "getCmdLineOpts",
    GetDatabaseVersion "getDatabaseVersion",
    GetDefaultRwConcern "getDefaultRWConcern",
    GetLog "getLog",
    GetParameter "getParameter",
    GetShardMap "getShardMap",
    GetShardVersion "getShardVersion",
    GrantPrivilegesToRole "grantPrivilegesToRole",
    GrantRole "grantRole",
    GrantRolesToRole "grantRolesToRole",
    HostInfo "hostInfo",
    Impersonate "impersonate",
    IndexStats "indexStats",
    InProg "inprog",
    Insert "insert",
    Internal "internal",
    InvalidateUserCache "invalidateUserCache",
    IssueDirectShardOperations "issueDirectShardOperations",
    KillAnyCursor "killAnyCursor",
    KillAnySession "killAnySession",
    KillCursors "killCursors",
    KillOp "killop",
    ListCachedAndActiveUsers "listCachedAndActiveUsers",
    ListClusterCatalog "listClusterCatalog",
    ListCollections "listCollections",
    ListDatabases "listDatabases",
    ListIndexes "listIndexes",
    ListSampledQueries "listSampledQueries",
    ListSearchIndexes "listSearchIndexes",
    ListSessions "listSessions",
    ListShards "listShards",
    LogRotate "logRotate",
    MoveChunk "moveChunk",
    MoveCollection "moveCollection",
    Netstat "netstat",
    OidReset "oidReset",
    OidcListKeys "oidcListKeys",
    OidcRefreshKeys "oidcRefreshKeys",
    OperationMetrics "operationMetrics",
    PlanCacheIndexFilter "planCacheIndexFilter",
    PlanCacheRead "planCacheRead",
    PlanCacheWrite "planCacheWrite",
    QuerySettings "querySettings",
    QueryStatsRead "queryStatsRead",
    QueryStatsReadTransformed "queryStatsReadTransformed",
    RefineCollectionShardKey "refineCollectionShardKey",
    ReIndex "reIndex",
    Remove "remove",
    RemoveShard "removeShard",
    RenameCollection "renameCollection",
    RenameCollectionSameDb "renameCollectionSameDB",
    ReplSetConfigure "replSetConfigure",
    ReplSetGetConfig "replSetGetConfig",
    ReplSetGetStatus "replSetGetStatus",
    ReplSetHeartbeat "replSetHeartbeat",
    ReplSetReconfig "replSetReconfig",
    ReplSetResizeOplog "replSetResizeOplog",
    ReplSetStateChange "replSetStateChange",
    ReshardCollection "reshardCollection",
    Resync "resync",
    RevokePrivilegesFromRole "revokePrivilegesFromRole",
    RevokeRole "revokeRole",
    RevokeRolesFromRole "revokeRolesFromRole",
    RotateCertificates "rotateCertificates",
    ServerStatus "serverStatus",
    SetAuthenticationRestriction "setAuthenticationRestriction",
    SetClusterParameter "setClusterParameter",
    SetDefaultRwConcern "setDefaultRWConcern",
    SetFeatureCompatibilityVersion "setFeatureCompatibilityVersion",
    SetParameter "setParameter",
    SetUserWriteBlockMode "setUserWriteBlockMode",
    ShardedDataDistribution "shardedDataDistribution",
    ShardingState "shardingState",
    Shutdown "shutdown",
    SplitChunk "splitChunk",
    SplitVector "splitVector",
    StorageDetails "storageDetails",
    Top "top",
    Touch "touch",
    TrafficRecord "trafficRecord",
    TransitionFromDedicatedConfigServer "transitionFromDedicatedConfigServer",
    TransitionToDedicatedConfigServer "transitionToDedicatedConfigServer",
    UnlockAction "unlock",
    UnshardCollection "unshardCollection",
    Update "update",
    UpdateRole "updateRole",
    UpdateSearchIndex "updateSearchIndex",
    UpdateUser "updateUser",
    UseUuid "useUUID",
    Validate "validate",
    ViewRole "viewRole",
    ViewUser "viewUser",
}

impl Action {
    /// The action of that name; `None` if there is none.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|action| action.name() == name)
    }
}

/// A set of actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActionSet([u64; 3]);

impl ActionSet {
    /// The empty set.
    pub const NONE: Self = Self([0; 3]);

    /// The set of these actions.
    pub const fn of(actions: &[Action]) -> Self {
        let mut bits = [0; 3];
        let mut at = 0;
        while at < actions.len() {
            let action = actions[at] as usize;
            bits[action / 64] |= 1 << (action % 64);
            at += 1;
        }
        Self(bits)
    }

    /// The union of both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self([self.0[0] | other.0[0], self.0[1] | other.0[1], self.0[2] | other.0[2]])
    }

    /// The actions that are not in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self([self.0[0] & !other.0[0], self.0[1] & !other.0[1], self.0[2] & !other.0[2]])
    }

    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self == Self::NONE
    }

    /// Whether the set allows the action: by its name, or by `anyAction`.
    pub fn allows(self, action: Action) -> bool {
        self.has(action) || self.has(Action::AnyAction)
    }

    fn has(self, action: Action) -> bool {
        self.0[action as usize / 64] & (1 << (action as usize % 64)) != 0
    }

    /// The set's actions, ordered by name.
    pub fn iter(self) -> impl Iterator<Item = Action> {
        Action::ALL.iter().copied().filter(move |action| self.has(*action))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_have_what_was_put_into_them() {
        for &action in Action::ALL {
            let set = ActionSet::of(&[action]);
            assert_eq!(set.iter().collect::<Vec<_>>(), [action]);
            assert_eq!(Action::named(action.name()), Some(action));
            assert_eq!(set.allows(Action::Find), matches!(action, Action::Find | Action::AnyAction));
            assert!(set.without(set).is_empty());
        }
    }
}
