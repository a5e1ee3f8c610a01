//! How a change of documents treats their paths, for rewrites of pipelines.

use super::{Child, Mode, Node, Projection};

/// How each document's paths are treated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathChanges {
    /// Dotted paths that the change names. No path is named twice or lies below another.
    pub named: Vec<(String, PathChange)>,
    /// Top-level fields that no path names or begins with.
    pub others: OtherFields,
}

/// The treatment of one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathChange {
    /// Its value stays.
    Kept,
    /// Its value is left out.
    Dropped,
    /// The path gets the value of this dotted path of the input, as an expression finds it.
    CopyOf(String),
    /// The path gets any other value.
    Computed,
}

/// The treatment of fields that are not named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum OtherFields {
    Kept,
    Dropped,
}

impl PathChanges {
    /// All fields stay.
    pub fn none() -> Self {
        Self { named: Vec::new(), others: OtherFields::Kept }
    }

    /// The fields `names` at the top level get any value, and all others stay.
    pub fn computing<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        let named = names.into_iter().map(|name| (name.to_owned(), PathChange::Computed)).collect();
        Self { named, others: OtherFields::Kept }
    }
}

impl Projection {
    /// Returns how the projection treats each path of a document.
    pub fn path_changes(&self) -> PathChanges {
        let others = match self.mode {
            Mode::Inclusion => OtherFields::Dropped,
            Mode::Exclusion | Mode::Addition => OtherFields::Kept,
        };
        let mut named = Vec::new();
        self.root.add_changes("", &mut named);
        PathChanges { named, others }
    }
}

impl Node {
    fn add_changes(&self, prefix: &str, named: &mut Vec<(String, PathChange)>) {
        for (name, child) in &self.children {
            let path = if prefix.is_empty() { name.to_string() } else { format!("{prefix}.{name}") };
            let change = match child {
                Child::Include => PathChange::Kept,
                Child::Exclude => PathChange::Dropped,
                Child::Computed(expression) => expression.as_field().map_or(PathChange::Computed, PathChange::CopyOf),
                Child::Array(_) => PathChange::Computed,
                Child::Nested(node) => {
                    node.add_changes(&path, named);
                    continue;
                }
            };
            named.push((path, change));
        }
    }
}
