//! The table of stages, sorted by name.
//! Sources: MongoDB manual 8.2, "Aggregation Stages" and each stage's own page; "Transactions and Operations"; "Stable
//! API"; "Read Concern and Operations"; "Updates with Aggregation Pipeline".

use crate::{
    ApiUse, ConcernUse, FacetUse, FusionUse, Inner, Nesting, Place, Shape, Source, Stage, StageEngine, StreamUse,
    Subject, TransactionUse, UnstoredUse, UpdateUse,
};

/// All stages of MongoDB 8.2's mongod, also those that this server does not support.
pub static STAGES: &[Stage] = &[
    INTERNAL_UNPACK_BUCKET,
    ADD_FIELDS,
    BUCKET,
    BUCKET_AUTO,
    CHANGE_STREAM,
    CHANGE_STREAM_SPLIT_LARGE_EVENT,
    COLL_STATS,
    COUNT,
    CURRENT_OP,
    DENSIFY,
    DOCUMENTS,
    FACET,
    FILL,
    GEO_NEAR,
    GRAPH_LOOKUP,
    GROUP,
    INDEX_STATS,
    LIMIT,
    LIST_CATALOG,
    LIST_CLUSTER_CATALOG,
    LIST_LOCAL_SESSIONS,
    LIST_SAMPLED_QUERIES,
    LIST_SEARCH_INDEXES,
    LIST_SESSIONS,
    LOOKUP,
    MATCH,
    MERGE,
    OUT,
    PLAN_CACHE_STATS,
    PROJECT,
    QUERY_SETTINGS,
    QUERY_STATS,
    RANK_FUSION,
    REDACT,
    REPLACE_ROOT,
    REPLACE_WITH,
    SAMPLE,
    SCORE,
    SCORE_FUSION,
    SEARCH,
    SEARCH_BETA,
    SEARCH_META,
    SET,
    SET_WINDOW_FIELDS,
    SHARDED_DATA_DISTRIBUTION,
    SKIP,
    SORT,
    SORT_BY_COUNT,
    UNION_WITH,
    UNSET,
    UNWIND,
    VECTOR_SEARCH,
];

/// `$_internalUnpackBucket`.
pub const INTERNAL_UNPACK_BUCKET: Stage = Stage { name: "$_internalUnpackBucket", ..Stage::PLAIN };
/// `$addFields`.
pub const ADD_FIELDS: Stage = Stage {
    name: "$addFields",
    update: UpdateUse::Allowed,
    shape: Shape::Expression,
    change_stream: StreamUse::Allowed,
    ..Stage::PLAIN
};
/// `$bucket`.
pub const BUCKET: Stage = Stage {
    name: "$bucket",
    update: UpdateUse::RefusedLate,
    engine: StageEngine::Grouping,
    shape: Shape::Parts,
    ..Stage::PLAIN
};
/// `$bucketAuto`.
pub const BUCKET_AUTO: Stage =
    Stage { name: "$bucketAuto", update: UpdateUse::RefusedLate, shape: Shape::Expression, ..Stage::PLAIN };
/// `$changeStream`.
pub const CHANGE_STREAM: Stage = Stage {
    name: "$changeStream",
    source: Source::Own,
    subject: Subject::CollectionOrServer,
    facet: FacetUse::Refused,
    nesting: Nesting::Outermost,
    transaction: TransactionUse::Refused,
    read_concern: ConcernUse::OnlyMajority,
    shape: Shape::Parts,
    ..Stage::PLAIN
};
/// `$changeStreamSplitLargeEvent`.
pub const CHANGE_STREAM_SPLIT_LARGE_EVENT: Stage = Stage {
    name: "$changeStreamSplitLargeEvent",
    place: Place::InChangeStream,
    facet: FacetUse::Refused,
    nesting: Nesting::Outermost,
    change_stream: StreamUse::Allowed,
    ..Stage::PLAIN
};
/// `$collStats`.
pub const COLL_STATS: Stage = Stage {
    name: "$collStats",
    source: Source::Own,
    facet: FacetUse::Refused,
    transaction: TransactionUse::Refused,
    stable_api: ApiUse::Version1With { field: "count" },
    unstored: UnstoredUse::Oplog,
    ..Stage::PLAIN
};
/// `$count`.
pub const COUNT: Stage = Stage { name: "$count", update: UpdateUse::RefusedLate, ..Stage::PLAIN };
/// `$currentOp`.
pub const CURRENT_OP: Stage = Stage {
    name: "$currentOp",
    source: Source::Own,
    subject: Subject::Admin,
    facet: FacetUse::Refused,
    transaction: TransactionUse::Refused,
    stable_api: ApiUse::Outside,
    read_concern: ConcernUse::OnlyLocal,
    ..Stage::PLAIN
};
/// `$densify`.
pub const DENSIFY: Stage = Stage { name: "$densify", shape: Shape::Parts, ..Stage::PLAIN };
/// `$documents`.
pub const DOCUMENTS: Stage = Stage {
    name: "$documents",
    source: Source::Own,
    subject: Subject::Server,
    facet: FacetUse::Refused,
    shape: Shape::Expression,
    ..Stage::PLAIN
};
/// `$facet`.
pub const FACET: Stage =
    Stage { name: "$facet", facet: FacetUse::Refused, inner: Inner::Facets, shape: Shape::Facets, ..Stage::PLAIN };
/// `$fill`.
pub const FILL: Stage = Stage { name: "$fill", shape: Shape::Parts, ..Stage::PLAIN };
/// `$geoNear`.
pub const GEO_NEAR: Stage = Stage {
    name: "$geoNear",
    source: Source::Own,
    facet: FacetUse::Refused,
    fusion: FusionUse::Searches,
    shape: Shape::Parts,
    ..Stage::PLAIN
};
/// `$graphLookup`.
pub const GRAPH_LOOKUP: Stage = Stage {
    name: "$graphLookup",
    inner: Inner::Collection { collection: "from" },
    shape: Shape::Parts,
    ..Stage::PLAIN
};
/// `$group`.
pub const GROUP: Stage = Stage {
    name: "$group",
    update: UpdateUse::RefusedLate,
    engine: StageEngine::SlotBasedWithHandover,
    shape: Shape::Expression,
    ..Stage::PLAIN
};
/// `$indexStats`.
pub const INDEX_STATS: Stage = Stage {
    name: "$indexStats",
    source: Source::Own,
    facet: FacetUse::Refused,
    transaction: TransactionUse::Refused,
    stable_api: ApiUse::Outside,
    unstored: UnstoredUse::Oplog,
    ..Stage::PLAIN
};
/// `$limit`.
pub const LIMIT: Stage = Stage {
    name: "$limit",
    update: UpdateUse::RefusedLate,
    fusion: FusionUse::Selects,
    engine: StageEngine::SlotBased,
    shape: Shape::Value,
    ..Stage::PLAIN
};
/// `$listCatalog`.
pub const LIST_CATALOG: Stage = Stage {
    name: "$listCatalog",
    source: Source::Own,
    subject: Subject::CollectionOrServer,
    facet: FacetUse::Refused,
    transaction: TransactionUse::Refused,
    stable_api: ApiUse::Outside,
    unstored: UnstoredUse::Oplog,
    ..Stage::PLAIN
};
/// `$listClusterCatalog`.
pub const LIST_CLUSTER_CATALOG: Stage = Stage {
    name: "$listClusterCatalog",
    source: Source::Own,
    subject: Subject::Server,
    facet: FacetUse::Refused,
    transaction: TransactionUse::Refused,
    stable_api: ApiUse::Outside,
    read_concern: ConcernUse::NoPastStates,
    ..Stage::PLAIN
};
/// `$listLocalSessions`.
pub const LIST_LOCAL_SESSIONS: Stage = Stage {
    name: "$listLocalSessions",
    source: Source::Own,
    subject: Subject::Server,
    facet: FacetUse::Refused,
    transaction: TransactionUse::Refused,
    stable_api: ApiUse::Outside,
    read_concern: ConcernUse::OnlyLocal,
    ..Stage::PLAIN
};
/// `$listSampledQueries`.
pub const LIST_SAMPLED_QUERIES: Stage = Stage {
    name: "$listSampledQueries",
    source: Source::Own,
    subject: Subject::Server,
    facet: FacetUse::Refused,
    transaction: TransactionUse::Refused,
    stable_api: ApiUse::Outside,
    ..Stage::PLAIN
};
/// `$listSearchIndexes`.
pub const LIST_SEARCH_INDEXES: Stage = Stage {
    name: "$listSearchIndexes",
    source: Source::Own,
    facet: FacetUse::Refused,
    transaction: TransactionUse::Refused,
    stable_api: ApiUse::Outside,
    ..Stage::PLAIN
};
/// `$listSessions`.
pub const LIST_SESSIONS: Stage = Stage {
    name: "$listSessions",
    source: Source::Own,
    subject: Subject::Sessions,
    facet: FacetUse::Refused,
    transaction: TransactionUse::Refused,
    stable_api: ApiUse::Outside,
    unstored: UnstoredUse::Sessions,
    ..Stage::PLAIN
};
/// `$lookup`.
pub const LOOKUP: Stage = Stage {
    name: "$lookup",
    inner: Inner::Joined {
        collection: "from",
        fields: &["from", "let", "pipeline", "localField", "foreignField", "as"],
    },
    engine: StageEngine::SlotBasedWithHandover,
    shape: Shape::Parts,
    ..Stage::PLAIN
};
/// `$match`.
pub const MATCH: Stage = Stage {
    name: "$match",
    update: UpdateUse::RefusedLate,
    fusion: FusionUse::Selects,
    engine: StageEngine::SlotBased,
    shape: Shape::Filter,
    change_stream: StreamUse::Allowed,
    ..Stage::PLAIN
};
/// `$merge`.
pub const MERGE: Stage = Stage {
    name: "$merge",
    place: Place::Last,
    facet: FacetUse::Refused,
    nesting: Nesting::Outermost,
    transaction: TransactionUse::Refused,
    read_concern: ConcernUse::NotLinearizable,
    shape: Shape::Parts,
    ..Stage::PLAIN
};
/// `$out`.
pub const OUT: Stage = Stage {
    name: "$out",
    place: Place::Last,
    facet: FacetUse::Refused,
    nesting: Nesting::Outermost,
    transaction: TransactionUse::Refused,
    read_concern: ConcernUse::NotLinearizable,
    ..Stage::PLAIN
};
/// `$planCacheStats`.
pub const PLAN_CACHE_STATS: Stage = Stage {
    name: "$planCacheStats",
    source: Source::Own,
    facet: FacetUse::Refused,
    transaction: TransactionUse::Refused,
    stable_api: ApiUse::Outside,
    read_concern: ConcernUse::OnlyLocal,
    unstored: UnstoredUse::Oplog,
    ..Stage::PLAIN
};
/// `$project`.
pub const PROJECT: Stage = Stage {
    name: "$project",
    update: UpdateUse::Allowed,
    shape: Shape::Projection,
    change_stream: StreamUse::Allowed,
    ..Stage::PLAIN
};
/// `$querySettings`.
pub const QUERY_SETTINGS: Stage = Stage {
    name: "$querySettings",
    source: Source::Own,
    subject: Subject::Server,
    facet: FacetUse::Refused,
    transaction: TransactionUse::Refused,
    stable_api: ApiUse::Outside,
    ..Stage::PLAIN
};
/// `$queryStats`.
pub const QUERY_STATS: Stage = Stage {
    name: "$queryStats",
    source: Source::Own,
    subject: Subject::Admin,
    facet: FacetUse::Refused,
    transaction: TransactionUse::Refused,
    stable_api: ApiUse::Outside,
    shape: Shape::Value,
    ..Stage::PLAIN
};
/// `$rankFusion`.
pub const RANK_FUSION: Stage = Stage {
    name: "$rankFusion",
    source: Source::Fusion,
    facet: FacetUse::Refused,
    stable_api: ApiUse::Outside,
    shape: Shape::Value,
    ..Stage::PLAIN
};
/// `$redact`.
pub const REDACT: Stage = Stage {
    name: "$redact",
    update: UpdateUse::RefusedLate,
    shape: Shape::Expression,
    change_stream: StreamUse::Allowed,
    ..Stage::PLAIN
};
/// `$replaceRoot`.
pub const REPLACE_ROOT: Stage = Stage {
    name: "$replaceRoot",
    update: UpdateUse::Allowed,
    shape: Shape::Expression,
    change_stream: StreamUse::Allowed,
    ..Stage::PLAIN
};
/// `$replaceWith`.
pub const REPLACE_WITH: Stage = Stage {
    name: "$replaceWith",
    update: UpdateUse::Allowed,
    shape: Shape::Expression,
    change_stream: StreamUse::Allowed,
    ..Stage::PLAIN
};
/// `$sample`.
pub const SAMPLE: Stage = Stage {
    name: "$sample",
    update: UpdateUse::RefusedLate,
    fusion: FusionUse::Selects,
    shape: Shape::Parts,
    ..Stage::PLAIN
};
/// `$score`.
pub const SCORE: Stage = Stage { name: "$score", shape: Shape::Expression, ..Stage::PLAIN };
/// `$scoreFusion`.
pub const SCORE_FUSION: Stage = Stage {
    name: "$scoreFusion",
    source: Source::Fusion,
    facet: FacetUse::Refused,
    stable_api: ApiUse::Outside,
    shape: Shape::Value,
    ..Stage::PLAIN
};
/// `$search`.
pub const SEARCH: Stage = Stage {
    name: "$search",
    source: Source::Search,
    facet: FacetUse::Refused,
    transaction: TransactionUse::Refused,
    stable_api: ApiUse::Outside,
    fusion: FusionUse::Searches,
    shape: Shape::Value,
    ..Stage::PLAIN
};
/// `$searchBeta`.
pub const SEARCH_BETA: Stage = Stage {
    name: "$searchBeta",
    source: Source::Search,
    facet: FacetUse::Refused,
    transaction: TransactionUse::Refused,
    stable_api: ApiUse::Outside,
    shape: Shape::Value,
    ..Stage::PLAIN
};
/// `$searchMeta`.
pub const SEARCH_META: Stage = Stage {
    name: "$searchMeta",
    source: Source::Search,
    facet: FacetUse::Refused,
    transaction: TransactionUse::Refused,
    stable_api: ApiUse::Outside,
    shape: Shape::Value,
    ..Stage::PLAIN
};
/// `$set`.
pub const SET: Stage = Stage {
    name: "$set",
    update: UpdateUse::Allowed,
    shape: Shape::Expression,
    change_stream: StreamUse::Allowed,
    ..Stage::PLAIN
};
/// `$setWindowFields`.
pub const SET_WINDOW_FIELDS: Stage = Stage { name: "$setWindowFields", shape: Shape::Parts, ..Stage::PLAIN };
/// `$shardedDataDistribution`.
pub const SHARDED_DATA_DISTRIBUTION: Stage = Stage {
    name: "$shardedDataDistribution",
    source: Source::Own,
    transaction: TransactionUse::Refused,
    stable_api: ApiUse::Outside,
    ..Stage::PLAIN
};
/// `$skip`.
pub const SKIP: Stage = Stage {
    name: "$skip",
    update: UpdateUse::RefusedLate,
    fusion: FusionUse::Selects,
    engine: StageEngine::SlotBased,
    shape: Shape::Value,
    ..Stage::PLAIN
};
/// `$sort`.
pub const SORT: Stage = Stage {
    name: "$sort",
    update: UpdateUse::RefusedLate,
    fusion: FusionUse::Selects,
    engine: StageEngine::SlotBased,
    ..Stage::PLAIN
};
/// `$sortByCount`.
pub const SORT_BY_COUNT: Stage = Stage {
    name: "$sortByCount",
    update: UpdateUse::RefusedLate,
    engine: StageEngine::Grouping,
    shape: Shape::Expression,
    ..Stage::PLAIN
};
/// `$unionWith`.
pub const UNION_WITH: Stage = Stage {
    name: "$unionWith",
    inner: Inner::Joined { collection: "coll", fields: &["coll", "pipeline"] },
    transaction: TransactionUse::Refused,
    shape: Shape::Parts,
    ..Stage::PLAIN
};
/// `$unset`.
pub const UNSET: Stage =
    Stage { name: "$unset", update: UpdateUse::Allowed, change_stream: StreamUse::Allowed, ..Stage::PLAIN };
/// `$unwind`.
pub const UNWIND: Stage = Stage { name: "$unwind", update: UpdateUse::RefusedLate, ..Stage::PLAIN };
/// `$vectorSearch`.
pub const VECTOR_SEARCH: Stage = Stage {
    name: "$vectorSearch",
    source: Source::VectorSearch,
    facet: FacetUse::Refused,
    nesting: Nesting::NotInLookup,
    transaction: TransactionUse::Refused,
    stable_api: ApiUse::Outside,
    fusion: FusionUse::Searches,
    shape: Shape::Value,
    ..Stage::PLAIN
};
