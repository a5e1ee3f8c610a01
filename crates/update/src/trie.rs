//! All modifications of one update, keyed by path component.
//!
//! **Invariant:** no modification lies at, above or below another's path; [`Plan::modify`] refuses conflicts.

use crate::array_filters::ArrayFilters;
use crate::dotted_path::{Component, DottedPath, Trail, compare_names};
use crate::operators::Modifier;
use bunko_errors::{ErrorCode, Failure, Result};
use std::sync::Arc;

/// What an update does at and below one path.
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
    pub named: Vec<(String, Node)>,
    /// Below `$`, a name that only the matched document tells.
    pub positional: Option<Box<Node>>,
}

/// Modifications of an array's elements.
#[derive(Clone, Debug, Default)]
pub(crate) struct Elements {
    pub every: Option<Box<Node>>,
    /// By the array filter's position.
    pub filtered: Vec<(usize, Node)>,
}

impl Node {
    /// A node without children, of the kind that can hold `component`.
    fn above(component: &Component<'_>) -> Self {
        match component {
            Component::Field(_) | Component::Positional => Self::Fields(Fields::default()),
            Component::EveryElement | Component::Filtered(_) => Self::Elements(Elements::default()),
        }
    }

    /// One node that does what both do.
    /// # Errors
    /// `ConflictingUpdateOperators` where both modify one value, known only now that the document is there.
    pub fn merge(&self, other: &Self, trail: &Trail<'_>) -> Result<Self> {
        match (self, other) {
            (Self::Fields(a), Self::Fields(b)) => a.merge(b, trail).map(Self::Fields),
            (Self::Elements(a), Self::Elements(b)) => a.merge(b, trail).map(Self::Elements),
            _ => {
                let message = format!("Update created a conflict at '{trail}'");
                Err(Failure::new(ErrorCode::CONFLICTING_UPDATE_OPERATORS, message))
            }
        }
    }
}

fn merge_optional(a: Option<&Node>, b: Option<&Node>, trail: &Trail<'_>) -> Result<Option<Box<Node>>> {
    Ok(match (a, b) {
        (Some(a), Some(b)) => Some(Box::new(a.merge(b, trail)?)),
        (one, other) => one.or(other).map(|node| Box::new(node.clone())),
    })
}

impl Fields {
    fn merge(&self, other: &Self, trail: &Trail<'_>) -> Result<Self> {
        let mut merged = self.clone();
        for (name, node) in &other.named {
            merged.merge_child(name, node, &Trail::below(Some(trail), name))?;
        }
        let below = Trail::below(Some(trail), "$");
        merged.positional = merge_optional(self.positional.as_deref(), other.positional.as_deref(), &below)?;
        Ok(merged)
    }

    /// Adds a child, or merges it with the one of that name.
    pub fn merge_child(&mut self, name: &str, node: &Node, trail: &Trail<'_>) -> Result<()> {
        match self.find(name) {
            Ok(position) => self.named[position].1 = self.named[position].1.merge(node, trail)?,
            Err(position) => self.named.insert(position, (name.to_owned(), node.clone())),
        }
        Ok(())
    }

    fn find(&self, name: &str) -> Result<usize, usize> {
        self.named.binary_search_by(|(other, _)| compare_names(other, name))
    }
}

impl Elements {
    fn merge(&self, other: &Self, trail: &Trail<'_>) -> Result<Self> {
        let mut merged = self.clone();
        let below = Trail::below(Some(trail), "$[]");
        merged.every = merge_optional(self.every.as_deref(), other.every.as_deref(), &below)?;
        for (filter, node) in &other.filtered {
            match merged.filtered.iter_mut().find(|(existing, _)| existing == filter) {
                Some((_, existing)) => *existing = existing.merge(node, &below)?,
                None => merged.filtered.push((*filter, node.clone())),
            }
        }
        Ok(merged)
    }
}

/// Where a child stands, and whether this call put it there.
enum Child<'n> {
    Existing(&'n mut Node),
    New(&'n mut Node),
}

impl Node {
    /// The child under `component`, made by `make` where there is none; `None` where this kind of node has no such
    /// children.
    fn child(&mut self, component: &Component<'_>, make: impl FnOnce() -> Self) -> Option<Child<'_>> {
        match (self, component) {
            (Self::Fields(fields), Component::Field(name)) => Some(match fields.find(name) {
                Ok(position) => Child::Existing(&mut fields.named[position].1),
                Err(position) => {
                    fields.named.insert(position, ((*name).to_owned(), make()));
                    Child::New(&mut fields.named[position].1)
                }
            }),
            (Self::Fields(fields), Component::Positional) => Some(optional_child(&mut fields.positional, make)),
            (Self::Elements(elements), Component::EveryElement) => Some(optional_child(&mut elements.every, make)),
            (Self::Elements(elements), Component::Filtered(filter)) => {
                let position = elements.filtered.iter().position(|(existing, _)| existing == filter);
                Some(if let Some(position) = position {
                    Child::Existing(&mut elements.filtered[position].1)
                } else {
                    elements.filtered.push((*filter, make()));
                    let last = elements.filtered.len() - 1;
                    Child::New(&mut elements.filtered[last].1)
                })
            }
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

/// A trie under construction: what the operators of one update parse into.
#[derive(Debug)]
pub(crate) struct Plan {
    root: Node,
    pub filters: ArrayFilters,
    touched: Vec<String>,
}

/// A finished trie.
#[derive(Debug)]
pub(crate) struct Trie {
    pub root: Fields,
    pub filters: ArrayFilters,
    /// Every path with a modification, as written.
    pub touched: Vec<String>,
}

impl Plan {
    pub fn new(filters: ArrayFilters) -> Self {
        Self { root: Node::Fields(Fields::default()), filters, touched: Vec::new() }
    }

    /// Adds a modification of the value at `path`.
    /// # Errors
    /// As [`DottedPath::parse`]; `ConflictingUpdateOperators` where the path meets an earlier one.
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
        self.touched.push(path.text.to_owned());
        Ok(())
    }

    pub fn finish(self) -> Trie {
        let root = match self.root {
            Node::Fields(fields) => fields,
            Node::Leaf(_) | Node::Elements(_) => unreachable!("the root is made as fields and never replaced"),
        };
        Trie { root, filters: self.filters, touched: self.touched }
    }
}

fn conflict(path: &DottedPath<'_>, components: usize) -> Failure {
    let message = format!("Updating the path '{}' would create a conflict at '{}'", path.text, path.prefix(components));
    Failure::new(ErrorCode::CONFLICTING_UPDATE_OPERATORS, message)
}
