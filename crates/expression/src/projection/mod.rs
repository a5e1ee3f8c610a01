//! Projections of `find`, `$project`, `$addFields` and `$unset`: a tree of paths, applied in one walk over a document.

mod apply;
mod array_operator;
mod parse;
mod path_changes;

use crate::{Dependencies, Expression, PathSlots, check_depth};
use array_operator::ArrayOperator;
use bunko_bson::{DocumentRef, ValueRef};
use bunko_errors::Result;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

pub use path_changes::{OtherFields, PathChange, PathChanges};

/// The command or stage of a projection.
#[derive(Clone, Copy)]
pub enum ProjectionKind<'c> {
    /// `$project`.
    Aggregate,
    /// `find`: also allows `$slice`, `$elemMatch` (compiled by this function) and `a.$`. An empty projection keeps all
    /// fields.
    Find(&'c ElementCompiler),
}

/// Compiles the condition of `$elemMatch`, which this crate cannot read.
pub type ElementCompiler = dyn Fn(DocumentRef<'_>) -> Result<Arc<dyn ElementPredicate>>;

/// A condition on an array element.
pub trait ElementPredicate: Send + Sync {
    /// Whether the element satisfies the condition.
    fn matches(&self, element: ValueRef<'_>) -> bool;
}

/// Treatment of fields that no path names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// Other fields are left out; computed fields come after the included ones.
    Inclusion,
    /// Other fields stay.
    Exclusion,
    /// Other fields stay; a computed field keeps the position of the field that it replaces.
    Addition,
}

/// A parsed projection.
pub struct Projection {
    mode: Mode,
    root: Node,
    positional: Option<String>,
    /// The paths that the computed fields read.
    slots: PathSlots,
}

/// Up to this many fields, a linear search is fastest.
const FEW_CHILDREN: usize = 8;

/// Fields of one level.
#[derive(Default)]
struct Node {
    children: Vec<(Box<str>, Child)>,
    /// The position of each name, if there are more than `FEW_CHILDREN`.
    positions: BTreeMap<Box<str>, usize>,
    /// Number of fields that are not computed. Once a document has had all of them, an inclusion stops reading it.
    fields: usize,
    /// Whether a field below is computed, so that this one appears even if the document lacks it.
    computes: bool,
    /// Whether the path of `a.$` leads through this field, so that an array there is cut.
    is_cut: bool,
}

/// Treatment of one field.
enum Child {
    Include,
    Exclude,
    Computed(Expression),
    Nested(Node),
    Array(ArrayOperator),
}

impl Projection {
    fn new(mode: Mode, mut root: Node, positional: Option<String>) -> Self {
        let mut computed = Vec::new();
        root.add_computed(&mut computed);
        let slots = PathSlots::of(computed);
        Self { mode, root, positional, slots }
    }

    /// The path of `a.$`, if [`apply`](Self::apply) needs the position of the array element that the filter matched.
    pub fn positional_path(&self) -> Option<&str> {
        self.positional.as_deref()
    }

    /// Adds the fields that the result depends on.
    pub fn add_dependencies(&self, dependencies: &mut Dependencies) {
        match self.mode {
            Mode::Inclusion => self.root.add_dependencies("", dependencies),
            Mode::Exclusion | Mode::Addition => dependencies.add_all(),
        }
    }

    /// The dotted paths of fields that show `{$meta: "sortKey"}`.
    pub fn sort_key_paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.root.add_sort_key_paths("", &mut paths);
        paths
    }

    /// Whether fields are computed, and not only included or excluded.
    pub fn computes(&self) -> bool {
        self.root.computes
    }

    /// Whether the projection fails for no document, whatever is in it: it only keeps or drops fields, or sets
    /// top-level fields to the value of a path or a constant, which makes no value deeper. The limit on a document's
    /// bytes between stages is left aside: it protects memory, and a dropped stage makes no document.
    pub fn cannot_fail(&self) -> bool {
        self.positional.is_none()
            && self.root.children.iter().all(|(_, child)| match child {
                Child::Computed(expression) => {
                    let fits = |value| check_depth(value, 1).is_ok();
                    expression.as_field().is_some() || expression.as_literal().is_some_and(fits)
                }
                child => child.keeps_or_drops(),
            })
    }

    /// Whether the result has only the named fields, so that nothing else of the document is needed.
    pub fn is_inclusion(&self) -> bool {
        self.mode == Mode::Inclusion
    }
}

impl Child {
    /// Whether fields are only kept or left out.
    fn keeps_or_drops(&self) -> bool {
        match self {
            Self::Include | Self::Exclude => true,
            Self::Nested(node) => !node.computes && node.children.iter().all(|(_, child)| child.keeps_or_drops()),
            Self::Computed(_) | Self::Array(_) => false,
        }
    }
}

impl Node {
    fn position(&self, name: &[u8]) -> Option<usize> {
        if self.positions.is_empty() {
            return self.children.iter().position(|(known, _)| *known.as_bytes() == *name);
        }
        self.positions.get(std::str::from_utf8(name).ok()?).copied()
    }

    fn add(&mut self, name: &str, child: Child) {
        self.fields += usize::from(!matches!(child, Child::Computed(_)));
        self.children.push((name.into(), child));
        let last = self.children.len() - 1;
        match last.cmp(&FEW_CHILDREN) {
            Ordering::Less => {}
            Ordering::Equal => {
                let names = self.children.iter().map(|(name, _)| name.clone());
                self.positions = names.enumerate().map(|(position, name)| (name, position)).collect();
            }
            Ordering::Greater => {
                self.positions.insert(name.into(), last);
            }
        }
    }

    fn add_computed<'n>(&'n mut self, computed: &mut Vec<&'n mut Expression>) {
        for (_, child) in &mut self.children {
            match child {
                Child::Computed(expression) => computed.push(expression),
                Child::Nested(node) => node.add_computed(computed),
                Child::Include | Child::Exclude | Child::Array(_) => {}
            }
        }
    }

    fn add_sort_key_paths(&self, prefix: &str, paths: &mut Vec<String>) {
        for (name, child) in &self.children {
            let path = if prefix.is_empty() { name.to_string() } else { format!("{prefix}.{name}") };
            match child {
                Child::Computed(expression) if expression.is_sort_key() => paths.push(path),
                Child::Nested(node) => node.add_sort_key_paths(&path, paths),
                _ => {}
            }
        }
    }

    fn add_dependencies(&self, prefix: &str, dependencies: &mut Dependencies) {
        for (name, child) in &self.children {
            let path = if prefix.is_empty() { name.to_string() } else { format!("{prefix}.{name}") };
            match child {
                Child::Exclude => {}
                Child::Include | Child::Array(_) => dependencies.add(path),
                Child::Computed(expression) => expression.add_dependencies(dependencies),
                Child::Nested(node) => {
                    node.add_dependencies(&path, dependencies);
                    // A nested field is a document or an array depending on the value that contains it.
                    if node.computes {
                        dependencies.add(path);
                    }
                }
            }
        }
    }
}
