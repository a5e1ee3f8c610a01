//! Effects of stages on their documents, as far as rules need to know.

use bunko_expression::{Expression, PathChanges};

/// The effect of a stage on its documents.
pub enum Effect {
    /// Unknown: no rule moves anything past the stage.
    Opaque,
    /// Passes on some of its documents, unchanged, whatever the other documents are.
    Filters,
    /// Passes on some of its documents, unchanged, by their position.
    Cuts,
    /// Passes on all documents, unchanged, in another order.
    Orders,
    /// Makes one document of each.
    Reshapes(PathChanges),
    /// Puts the document at this dotted path in each document's place; fails if there is none.
    ReplacesBy(String),
    /// Makes any number of documents of each. Whether it drops a document depends only on fields that it changes.
    Unwinds(PathChanges),
    /// Adds documents of another collection to each, and may unwind them.
    Joins(Joined),
    /// Adds to each the documents that it reaches in another collection.
    Searches(PathChanges),
    /// Removes documents, and documents inside documents, and changes no other value.
    Prunes,
    /// Makes one document of all documents that have equal values at paths.
    Groups {
        /// Pairs of an output path and the dotted input path whose value it has.
        keys: Vec<(String, String)>,
    },
    /// Makes one document of each, by the documents with equal values at paths.
    Windows {
        /// The dotted paths whose values are equal in a partition.
        by: Vec<String>,
        /// How each document changes.
        changes: PathChanges,
    },
    /// Passes on all documents, and makes more of the documents with equal values at paths.
    Densifies {
        /// The dotted paths whose values are equal in a partition.
        by: Vec<String>,
        /// How documents that are made differ from those of their partition.
        changes: PathChanges,
    },
    /// Passes on all documents, unchanged, and then those of another pipeline.
    Unites,
}

/// Number of a stage's paths that are compared with one path in one step of a rewrite.
const PATHS_PER_STEP: usize = 16;

impl Effect {
    /// Number of rewrite steps that finding the origin of one path takes.
    pub(crate) fn steps_of_path(&self) -> usize {
        1 + self.paths() / PATHS_PER_STEP
    }

    /// Number of paths that the effect names.
    fn paths(&self) -> usize {
        match self {
            Self::Reshapes(changes) | Self::Unwinds(changes) | Self::Searches(changes) => changes.named.len(),
            Self::Joins(joined) => joined.changes.named.len(),
            Self::Groups { keys } => keys.len(),
            Self::Windows { by, changes } | Self::Densifies { by, changes } => by.len() + changes.named.len(),
            Self::Opaque
            | Self::Filters
            | Self::Cuts
            | Self::Orders
            | Self::ReplacesBy(_)
            | Self::Prunes
            | Self::Unites => 0,
        }
    }
}

/// The effect of a `$lookup`, with or without the `$unwind` of its array.
pub struct Joined {
    /// How documents of the input change.
    pub changes: PathChanges,
    /// The joined documents, if they are unwound and a condition on them may be applied in their collection.
    pub side: Option<JoinedSide>,
}

/// The documents that a join unwinds.
pub struct JoinedSide {
    /// The top-level field that holds the joined documents.
    pub field: String,
    /// Whether input documents without joined documents are kept (`preserveNullAndEmptyArrays`).
    pub keeps_unmatched: bool,
}

/// Paths whose values are equal in all documents for which the expression (a path, or a document of paths) has an equal
/// value.
pub(crate) fn partition_paths(expression: &Expression) -> Vec<String> {
    match (expression.as_field(), expression.as_document()) {
        (Some(path), _) => vec![path],
        // Different arrays on the way to a path give the same value, so conditions on the path may differ.
        (None, Some(fields)) => {
            fields.into_iter().filter_map(|(_, path)| path.filter(|path| !path.contains('.'))).collect()
        }
        (None, None) => Vec::new(),
    }
}

/// The top-level field of a dotted path.
pub(crate) fn top(path: &str) -> &str {
    path.split_once('.').map_or(path, |(top, _)| top)
}
