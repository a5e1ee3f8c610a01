//! The facts about every stage of a pipeline: where it may stand, and what may use it.
//!
//! The implementations are in `aggregate`; stages that read the server's state are in
//! `crates/pipelines/src/source_stages`. The facts stand below both, because the catalog, updates, queries and commands
//! all ask for them.
//!
//! **Invariant:** code outside a stage's file never compares names of stages. It asks the entry.

mod table;

pub use table::*;

/// One entry of the table of stages.
#[derive(Debug)]
pub struct Stage {
    /// The name with its `$`.
    pub name: &'static str,
    /// Where its input comes from.
    pub source: Source,
    /// The collection, or none, that a pipeline beginning with it is about.
    pub subject: Subject,
    /// Where in a pipeline it may stand, besides the rule that [`Source`] implies.
    pub place: Place,
    /// Whether a facet may contain it.
    pub facet: FacetUse,
    /// Whether pipelines inside other stages may contain it.
    pub nesting: Nesting,
    /// The pipelines and collections in its own specification.
    pub inner: Inner,
    /// Whether updates may contain it.
    pub update: UpdateUse,
    /// Whether it may follow a change stream.
    pub change_stream: StreamUse,
    /// Whether transactions may run it.
    pub transaction: TransactionUse,
    /// Its place in the Stable API.
    pub stable_api: ApiUse,
    /// The read concerns that it allows.
    pub read_concern: ConcernUse,
    /// Whether it may report on collections that are not stored.
    pub unstored: UnstoredUse,
    /// Whether the pipelines of a fusion may contain it.
    pub fusion: FusionUse,
    /// The engine of MongoDB that runs it at the start of a pipeline. It shows in results that depend on the engine.
    pub engine: StageEngine,
    /// How its specification contributes to a query shape.
    pub shape: Shape,
}

impl Stage {
    /// A stage that turns its input into its output, and that all but updates may use. Entries take their remaining
    /// facts from here.
    const PLAIN: Self = Self {
        name: "",
        source: Source::Input,
        subject: Subject::Collection,
        place: Place::Anywhere,
        facet: FacetUse::Allowed,
        nesting: Nesting::Anywhere,
        inner: Inner::None,
        update: UpdateUse::Refused,
        change_stream: StreamUse::Refused,
        transaction: TransactionUse::Allowed,
        stable_api: ApiUse::Version1,
        read_concern: ConcernUse::Any,
        unstored: UnstoredUse::Refused,
        fusion: FusionUse::Refused,
        engine: StageEngine::Classic,
        shape: Shape::Exact,
    };

    /// Whether it writes its input into a collection.
    pub fn writes(&self) -> bool {
        self.place == Place::Last
    }

    /// Whether it finds its documents itself, so that no stage can come before it.
    pub fn finds_documents(&self) -> bool {
        self.source != Source::Input
    }
}

/// The stage of that name; `None` if MongoDB has none.
pub fn find(name: &str) -> Option<&'static Stage> {
    STAGES.binary_search_by(|stage| stage.name.cmp(name)).ok().map(|place| &STAGES[place])
}

/// Whether a stage writes its input into a collection.
pub fn is_writing(name: &str) -> bool {
    find(name).is_some_and(Stage::writes)
}

/// Where a stage's input comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// From the stage before it, or from the pipeline's collection.
    Input,
    /// From documents that it finds itself, so it must be the first.
    Own,
    /// From a search of the collection. On a view, the search comes before the view's pipeline.
    Search,
    /// From a vector search of the collection, which it resolves itself.
    VectorSearch,
    /// From pipelines in its specification, which read the collection themselves. It must be the first.
    Fusion,
}

impl Source {
    /// Whether the stage, or a pipeline inside it, resolves the collection itself.
    pub fn resolves_collection(self) -> bool {
        matches!(self, Self::VectorSearch | Self::Fusion)
    }
}

/// The collection, or none, that a pipeline beginning with a stage is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The collection that `aggregate` names.
    Collection,
    /// `config.system.sessions`, which `aggregate` has to name.
    Sessions,
    /// The collection that `aggregate` names, or with `{aggregate: 1}` the database or the server.
    CollectionOrServer,
    /// The server or the database, with `{aggregate: 1}`.
    Server,
    /// The server, with `{aggregate: 1}` on `admin`.
    Admin,
}

impl Subject {
    /// Whether `aggregate` has to name a collection.
    pub fn needs_collection(self) -> bool {
        matches!(self, Self::Collection | Self::Sessions)
    }

    /// Whether `aggregate` may name a collection, which then is the subject.
    pub fn is_collection(self) -> bool {
        matches!(self, Self::Collection | Self::Sessions | Self::CollectionOrServer)
    }
}

/// Where in a pipeline a stage may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Anywhere that its source allows.
    Anywhere,
    /// At the end: it writes.
    Last,
    /// Only after a change stream.
    InChangeStream,
}

/// Whether a facet may contain a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FacetUse {
    /// A facet may contain the stage.
    Allowed,
    /// Neither a facet nor a pipeline inside its stages may contain the stage.
    Refused,
}

/// Whether pipelines inside other stages may contain a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nesting {
    /// All such pipelines may contain the stage.
    Anywhere,
    /// The pipeline of a `$lookup` may not contain the stage; all others may.
    NotInLookup,
    /// Only the pipeline that the client sent may contain the stage.
    Outermost,
}

/// The pipelines and collections in a stage's specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inner {
    /// The specification has neither.
    None,
    /// Each field is a pipeline over the stage's input.
    Facets,
    /// `pipeline`, over another collection.
    Joined {
        /// The field that names the collection.
        collection: &'static str,
        /// All fields of the stage.
        fields: &'static [&'static str],
    },
    /// No pipeline, but another collection.
    Collection {
        /// The field that names the collection.
        collection: &'static str,
    },
}

/// Whether updates may contain a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateUse {
    /// Updates may contain the stage.
    Allowed,
    /// Updates may not contain the stage.
    Refused,
    /// Updates may not contain the stage, and MongoDB reports errors in its specification before that. Such errors do
    /// not depend on other stages or collections.
    RefusedLate,
}

/// Whether a stage may follow a change stream.
/// Source: MongoDB manual 8.2, "Modify Change Stream Output".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamUse {
    /// The stage may not follow a change stream.
    Refused,
    /// The stage may follow a change stream.
    Allowed,
}

/// Whether transactions may run a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionUse {
    /// Transactions may run the stage.
    Allowed,
    /// Transactions may not run the stage.
    Refused,
}

/// The place of a stage in the Stable API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiUse {
    /// In version 1.
    Version1,
    /// In version 1 if its specification has no other field than one.
    Version1With {
        /// That field.
        field: &'static str,
    },
    /// In no version.
    Outside,
}

/// The read concerns that a stage allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConcernUse {
    /// The stage allows every read concern.
    Any,
    /// `local`: it is about the state of the process.
    OnlyLocal,
    /// `majority`: it is about durable changes.
    OnlyMajority,
    /// All but `snapshot` and `linearizable`: the stage reads the catalog, which keeps no past states.
    NoPastStates,
    /// All but `linearizable`: it writes.
    NotLinearizable,
}

/// Whether a stage may report on collections that are not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnstoredUse {
    /// The stage is refused on such collections.
    Refused,
    /// On the oplog.
    Oplog,
    /// On the collections of sessions.
    Sessions,
}

/// Whether the pipelines of a fusion may contain a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FusionUse {
    /// A fusion refuses the stage: it changes documents, or neither selects nor orders them.
    Refused,
    /// A fusion may contain the stage, which selects or orders documents.
    Selects,
    /// A fusion may contain the stage, which finds documents in an order, or with a score, of its own.
    Searches,
}

/// The engine of MongoDB that runs a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageEngine {
    /// The classic engine.
    Classic,
    /// At the start of a pipeline the slot-based engine, or the planner before it.
    SlotBased,
    /// As `SlotBased`. The last of these stages hands its documents to the classic engine.
    SlotBasedWithHandover,
    /// The stage expands to a `$group`, with a `$sort` after it.
    Grouping,
}

/// How a stage's specification contributes to a query shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// With all its values.
    Exact,
    /// As a filter.
    Filter,
    /// As a projection.
    Projection,
    /// As one value.
    Value,
    /// As an expression.
    Expression,
    /// As pipelines.
    Facets,
    /// Each of its fields by its name.
    Parts,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_found_by_halves() {
        assert!(STAGES.is_sorted_by(|one, next| one.name < next.name));
        assert!(STAGES.iter().all(|stage| find(stage.name).is_some_and(|found| found.name == stage.name)));
        assert!(find("$lookdown").is_none());
    }

    /// Facts that follow from each other, as MongoDB's stages have them.
    #[test]
    fn facts_of_an_entry_agree() {
        for stage in STAGES {
            let name = stage.name;
            assert!(name.starts_with('$') && name.len() > 1, "{name}");
            if stage.writes() {
                assert_eq!(stage.nesting, Nesting::Outermost, "{name}: only the client's pipeline writes");
                assert_eq!(stage.facet, FacetUse::Refused, "{name}: a facet does not write");
                assert_eq!(
                    stage.transaction,
                    TransactionUse::Refused,
                    "{name}: a transaction's pipeline does not write"
                );
                assert_eq!(stage.read_concern, ConcernUse::NotLinearizable, "{name}: a write is not linearizable");
            }
            if stage.finds_documents() && stage.name != SHARDED_DATA_DISTRIBUTION.name {
                assert_eq!(stage.facet, FacetUse::Refused, "{name}: a facet reads its input");
            }
            if stage.finds_documents() {
                assert_eq!(stage.update, UpdateUse::Refused, "{name}: an update reads one document");
                assert_eq!(stage.engine, StageEngine::Classic, "{name}: no engine takes documents from elsewhere");
            }
            if stage.fusion == FusionUse::Searches {
                assert!(stage.finds_documents(), "{name}: a search finds documents");
            }
            if stage.inner == Inner::Facets {
                assert_eq!(stage.shape, Shape::Facets, "{name}: the shape shows the pipelines");
            }
        }
    }
}
