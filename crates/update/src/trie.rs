//! The modifications of one update, keyed by path component.
//!
//! **Invariant:** no modification is at, above or below another's path; [`Plan::modify`] refuses conflicts.

use crate::array_filters::ArrayFilters;
use crate::dotted_path::{Component, DottedPath, Trail, compare_names};
use crate::modifier::Modifier;
use bunko_bson::StringOrder;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationContext;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Number of names up to which a linear search is fastest.
const FEW_NAMES: usize = 8;

/// The modifications at and below one path.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// Modifies the value itself.
    Leaf(Arc<dyn Modifier>),
    /// Modifies named fields, or elements by index.
    Fields(Fields),
    /// Modifies all or filtered elements of an array.
    Elements(Elements),
}

/// Modifications by name, in the order in which new fields are created.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields {
    pub named: Vec<(Arc<str>, Node)>,
    /// Position of each name in `named`, if there are more than [`FEW_NAMES`].
    places: Option<HashMap<Arc<str>, usize>>,
    /// Modifications below `$`, whose position is known only with the matched document.
    pub positional: Option<Box<Node>>,
}

/// Modifications of an array's elements.
#[derive(Clone, Debug, Default)]
pub(crate) struct Elements {
    pub every: Option<Box<Node>>,
    /// By position of the array filter.
    pub filtered: BTreeMap<usize, Node>,
}

impl Node {
    /// Makes a node without children, of the kind that can hold `component`.
    fn above(component: &Component<'_>) -> Self {
        match component {
            Component::Field(_) | Component::Positional => Self::Fields(Fields::default()),
            Component::EveryElement | Component::Filtered(_) => Self::Elements(Elements::default()),
        }
    }

    /// Merges two nodes into one that does the work of both.
    /// # Errors
    /// `ConflictingUpdateOperators` if both modify one value, which only the document decides here; errors of the
    /// operation.
    pub fn merge(&self, other: &Self, trail: &Trail<'_>, operation: &OperationContext) -> Result<Self> {
        match (self, other) {
            (Self::Fields(a), Self::Fields(b)) => a.merge(b, trail, operation).map(Self::Fields),
            (Self::Elements(a), Self::Elements(b)) => a.merge(b, trail, operation).map(Self::Elements),
            _ => {
                let message = format!("Update created a conflict at '{trail}'");
                Err(Failure::new(ErrorCode::CONFLICTING_UPDATE_OPERATORS, message))
            }
        }
    }

    /// Returns the node with the names at all levels in order.
    fn in_order(self) -> Self {
        match self {
            Self::Leaf(_) => self,
            Self::Fields(fields) => Self::Fields(fields.all_in_order()),
            Self::Elements(Elements { every, filtered }) => Self::Elements(Elements {
                every: every.map(|node| Box::new(node.in_order())),
                filtered: filtered.into_iter().map(|(filter, node)| (filter, node.in_order())).collect(),
            }),
        }
    }
}

fn merge_optional(
    a: Option<&Node>,
    b: Option<&Node>,
    trail: &Trail<'_>,
    operation: &OperationContext,
) -> Result<Option<Box<Node>>> {
    Ok(match (a, b) {
        (Some(a), Some(b)) => Some(Box::new(a.merge(b, trail, operation)?)),
        (one, other) => one.or(other).map(|node| Box::new(node.clone())),
    })
}

impl Fields {
    fn merge(&self, other: &Self, trail: &Trail<'_>, operation: &OperationContext) -> Result<Self> {
        operation.work(self.named.len() + other.named.len())?;
        let mut merged = self.clone();
        for (name, node) in &other.named {
            merged.merge_child(name, node, &Trail::below(Some(trail), name), operation)?;
        }
        let below = Trail::below(Some(trail), "$");
        merged.positional = merge_optional(self.positional.as_deref(), other.positional.as_deref(), &below, operation)?;
        Ok(merged.in_order())
    }

    /// A copy with the children below `$` moved under `name`.
    /// # Errors
    /// As [`Node::merge`].
    pub fn resolved(
        &self,
        name: &str,
        below_positional: &Node,
        trail: Option<&Trail<'_>>,
        operation: &OperationContext,
    ) -> Result<Self> {
        operation.work(self.named.len())?;
        let mut resolved = Self { positional: None, ..self.clone() };
        resolved.merge_child(&name.into(), below_positional, &Trail::below(trail, name), operation)?;
        Ok(resolved.in_order())
    }

    /// Appends a child, or merges it with the child of that name.
    fn merge_child(
        &mut self,
        name: &Arc<str>,
        node: &Node,
        trail: &Trail<'_>,
        operation: &OperationContext,
    ) -> Result<()> {
        match self.place(name) {
            Some(place) => self.named[place].1 = self.named[place].1.merge(node, trail, operation)?,
            None => self.push(Arc::clone(name), node.clone()),
        }
        Ok(())
    }

    /// Finds the position in `named` of the child with that name.
    pub fn place(&self, name: &str) -> Option<usize> {
        match &self.places {
            Some(places) => places.get(name).copied(),
            None => self.named.iter().position(|(other, _)| **other == *name),
        }
    }

    fn push(&mut self, name: Arc<str>, node: Node) {
        if let Some(places) = &mut self.places {
            places.insert(Arc::clone(&name), self.named.len());
        }
        self.named.push((name, node));
        if self.places.is_none() {
            self.note_places();
        }
    }

    fn note_places(&mut self) {
        if self.named.len() > FEW_NAMES {
            let places = self.named.iter().enumerate().map(|(place, (name, _))| (Arc::clone(name), place));
            self.places = Some(places.collect());
        }
    }

    fn in_order(mut self) -> Self {
        if !self.named.is_sorted_by(|(a, _), (b, _)| compare_names(a, b).is_lt()) {
            self.named.sort_unstable_by(|(a, _), (b, _)| compare_names(a, b));
            self.note_places();
        }
        self
    }

    fn all_in_order(mut self) -> Self {
        self.named = self.named.into_iter().map(|(name, node)| (name, node.in_order())).collect();
        self.positional = self.positional.map(|node| Box::new(node.in_order()));
        self.in_order()
    }
}

impl Elements {
    fn merge(&self, other: &Self, trail: &Trail<'_>, operation: &OperationContext) -> Result<Self> {
        operation.work(self.filtered.len() + other.filtered.len())?;
        let mut merged = self.clone();
        let below = Trail::below(Some(trail), "$[]");
        merged.every = merge_optional(self.every.as_deref(), other.every.as_deref(), &below, operation)?;
        for (filter, node) in &other.filtered {
            let both = match merged.filtered.get(filter) {
                Some(existing) => existing.merge(node, &below, operation)?,
                None => node.clone(),
            };
            merged.filtered.insert(*filter, both);
        }
        Ok(merged)
    }
}

/// A child, and whether this call created it.
enum Child<'n> {
    Existing(&'n mut Node),
    New(&'n mut Node),
}

impl Node {
    /// The child under `component`, created by `make` if missing; `None` if this kind of node cannot have it.
    fn child(&mut self, component: &Component<'_>, make: impl FnOnce() -> Self) -> Option<Child<'_>> {
        match (self, component) {
            (Self::Fields(fields), Component::Field(name)) => Some(match fields.place(name) {
                Some(place) => Child::Existing(&mut fields.named[place].1),
                None => {
                    fields.push((*name).into(), make());
                    let last = fields.named.len() - 1;
                    Child::New(&mut fields.named[last].1)
                }
            }),
            (Self::Fields(fields), Component::Positional) => Some(optional_child(&mut fields.positional, make)),
            (Self::Elements(elements), Component::EveryElement) => Some(optional_child(&mut elements.every, make)),
            (Self::Elements(elements), Component::Filtered(filter)) => Some(match elements.filtered.entry(*filter) {
                Entry::Occupied(there) => Child::Existing(there.into_mut()),
                Entry::Vacant(slot) => Child::New(slot.insert(make())),
            }),
            _ => None,
        }
    }
}

fn optional_child(slot: &mut Option<Box<Node>>, make: impl FnOnce() -> Node) -> Child<'_> {
    if slot.is_some() {
        Child::Existing(slot.get_or_insert_with(|| Box::new(make())))
    } else {
        Child::New(slot.insert(Box::new(make())))
    }
}

/// A trie under construction, into which the operators of one update are parsed.
#[derive(Debug)]
pub(crate) struct Plan {
    root: Node,
    pub filters: ArrayFilters,
    /// Other paths of the original document that modifiers read.
    pub looked_up: Vec<String>,
    strings: StringOrder,
    operation: Option<Arc<OperationContext>>,
}

/// A finished trie.
#[derive(Debug)]
pub(crate) struct Trie {
    pub root: Fields,
    pub filters: ArrayFilters,
    /// Other paths of the original document that modifiers read.
    pub looked_up: Vec<String>,
}

impl Plan {
    /// An empty plan with a string order.
    pub fn new(filters: ArrayFilters, strings: StringOrder) -> Self {
        Self { root: Node::Fields(Fields::default()), filters, looked_up: Vec::new(), strings, operation: None }
    }

    /// Makes the plan count its work for the operation, if there is one.
    pub fn counted_for(self, operation: Option<Arc<OperationContext>>) -> Self {
        Self { operation, ..self }
    }

    /// The operation that the update is parsed for, if there is one.
    pub fn operation(&self) -> Option<&OperationContext> {
        self.operation.as_deref()
    }

    /// Checks before `bytes` are allocated.
    /// # Errors
    /// As [`OperationContext::will_take`], which includes `Interrupted` if the operation is killed.
    pub fn will_take(&self, bytes: usize) -> Result<()> {
        self.operation().map_or(Ok(()), |operation| operation.will_take(bytes))
    }

    /// The string order of operators.
    pub fn strings(&self) -> &StringOrder {
        &self.strings
    }

    /// Adds a modification of the value at `path`.
    /// # Errors
    /// As [`DottedPath::parse`]; `ConflictingUpdateOperators` if the path conflicts with an earlier one.
    pub fn modify(&mut self, path: &str, modifier: impl Modifier + 'static) -> Result<()> {
        let path = DottedPath::parse(path, &mut self.filters)?;
        let mut modifier: Option<Arc<dyn Modifier>> = Some(Arc::new(modifier));
        let mut node = &mut self.root;
        for (index, component) in path.components.iter().enumerate() {
            let below = path.components.get(index + 1);
            let make = || match below {
                Some(below) => Node::above(below),
                None => Node::Leaf(modifier.take().expect("the last component comes once")),
            };
            node = match (node.child(component, make), below) {
                (None, _) => return Err(conflict(&path, index)),
                (Some(Child::Existing(_)), None) => return Err(conflict(&path, index + 1)),
                (Some(Child::Existing(child) | Child::New(child)), _) => child,
            };
        }
        Ok(())
    }

    pub fn finish(self) -> Trie {
        let root = match self.root {
            Node::Fields(fields) => fields.all_in_order(),
            Node::Leaf(_) | Node::Elements(_) => unreachable!("the root is made as fields and never replaced"),
        };
        Trie { root, filters: self.filters, looked_up: self.looked_up }
    }
}

fn conflict(path: &DottedPath<'_>, components: usize) -> Failure {
    let message = format!("Updating the path '{}' would create a conflict at '{}'", path.text, path.prefix(components));
    Failure::new(ErrorCode::CONFLICTING_UPDATE_OPERATORS, message)
}
