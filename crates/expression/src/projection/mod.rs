//! Projections of `find`, `$project`, `$addFields` and `$unset`: a tree of paths, applied in one walk over a document.

mod apply;
mod array_operator;
mod parse;

use crate::{Dependencies, Expression, PathSlots};
use array_operator::ArrayOperator;
use bunko_bson::{DocumentRef, ValueRef};
use bunko_errors::Result;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Whose projection it is.
#[derive(Clone, Copy)]
pub enum ProjectionKind<'c> {
    /// `$project`.
    Aggregate,
    /// `find`: `$slice`, `$elemMatch` (compiled by this function) and `a.$` too; an empty projection is none.
    Find(&'c ElementCompiler),
}

/// Compiles the condition of `$elemMatch`, which this crate cannot read.
pub type ElementCompiler = dyn Fn(DocumentRef<'_>) -> Result<Arc<dyn ElementPredicate>>;

/// A condition on an array's element.
pub trait ElementPredicate: Send + Sync {
    /// Whether the element satisfies it.
    fn matches(&self, element: ValueRef<'_>) -> bool;
}

/// What happens to fields that no path names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// They are left out; computed fields stand behind the included ones.
    Inclusion,
    /// They stay.
    Exclusion,
    /// They stay; a computed field takes the place of the one it replaces.
    Addition,
}

/// A parsed projection.
pub struct Projection {
    mode: Mode,
    root: Node,
    positional: Option<String>,
    /// The paths that computed fields are made of.
    slots: PathSlots,
}

/// So many fields are found faster by looking at each.
const FEW_CHILDREN: usize = 8;

/// Fields of one level.
#[derive(Default)]
struct Node {
    children: Vec<(Box<str>, Child)>,
    /// Where each name is, where there are more than a few.
    positions: BTreeMap<Box<str>, usize>,
    /// How many of them are not computed: where a document has had them, an inclusion reads no more of it.
    fields: usize,
    /// Whether something below is computed, so that it appears even where the document has no such field.
    computes: bool,
    /// Whether `a.$` leads through it, so that an array in its place is cut.
    is_cut: bool,
}

/// What happens to one field.
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

    /// Whether [`apply`](Self::apply) needs the position of the array element that the filter matched, and of which
    /// path.
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

    /// The dotted paths at which it shows the values that documents were sorted by.
    pub fn sort_key_paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.root.add_sort_key_paths("", &mut paths);
        paths
    }

    /// Whether the result holds nothing beyond the named fields, so that what they depend on is all that is needed.
    pub fn is_inclusion(&self) -> bool {
        self.mode == Mode::Inclusion
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
                    // What stands around a nested field decides whether it is a document or an array.
                    if node.computes {
                        dependencies.add(path);
                    }
                }
            }
        }
    }
}
