//! The view that an index has of a document: values by path, and embedded documents as units of their own.

use crate::schema::Types;
use crate::{FieldType, Mapping};
use bunko_bson::{DocumentRef, ValueRef};
use bunko_errors::Result;
use bunko_operation::OperationContext;
use std::collections::{HashMap, HashSet};

/// A document, or an embedded document, as an index sees it.
#[derive(Debug, Default)]
pub(crate) struct Unit<'d> {
    /// The values of all paths. An array's elements follow each other.
    pub fields: Vec<Field<'d>>,
    /// Embedded documents.
    pub children: Vec<Child<'d>>,
}

/// A value at a path.
#[derive(Debug)]
pub(crate) struct Field<'d> {
    pub path: String,
    pub types: Types<'d>,
    pub value: ValueRef<'d>,
}

/// An embedded document.
#[derive(Debug)]
pub(crate) struct Child<'d> {
    pub path: String,
    pub unit: Unit<'d>,
    pub document: DocumentRef<'d>,
}

impl<'d> Unit<'d> {
    /// The view that an index with `mapping` has of a document.
    pub fn of(document: DocumentRef<'d>, mapping: &'d Mapping) -> Self {
        let mut unit = Self::default();
        unit.add_document(document, mapping, "");
        unit
    }

    fn add_document(&mut self, document: DocumentRef<'d>, mapping: &'d Mapping, prefix: &str) {
        for field in document {
            let types = match mapping.types(field.name) {
                Some(types) => Types::Mapped(types),
                None if mapping.is_dynamic => Types::Dynamic,
                None => continue,
            };
            let path = if prefix.is_empty() { field.name.to_owned() } else { format!("{prefix}.{}", field.name) };
            self.add(&path, types, field.value);
        }
    }

    fn add(&mut self, path: &str, types: Types<'d>, value: ValueRef<'d>) {
        match value {
            ValueRef::Array(array) => array.iter().for_each(|element| self.add(path, types, element)),
            ValueRef::Document(document) => self.add_inner(path, types, document),
            _ => self.fields.push(Field { path: path.to_owned(), types, value }),
        }
    }

    fn add_inner(&mut self, path: &str, types: Types<'d>, document: DocumentRef<'d>) {
        if matches!(types, Types::Dynamic) {
            for field in document {
                self.add(&format!("{path}.{}", field.name), types, field.value);
            }
        }
        for kind in types.mapped() {
            match kind {
                FieldType::Document(mapping) => self.add_document(document, mapping, path),
                FieldType::EmbeddedDocuments { mapping, .. } => {
                    let mut unit = Self::default();
                    unit.add_document(document, mapping, path);
                    self.children.push(Child { path: path.to_owned(), unit, document });
                }
                FieldType::Geo { .. } => {
                    let value = ValueRef::Document(document);
                    self.fields.push(Field { path: path.to_owned(), types, value });
                }
                _ => {}
            }
        }
    }

    /// Iterates over the values at a path.
    pub fn values<'u>(&'u self, path: &'u str) -> impl Iterator<Item = &'u Field<'d>> + 'u {
        self.fields.iter().filter(move |field| field.path == path)
    }

    /// As [`Self::values`], for operators that may read very many paths: each call iterates over all fields.
    /// # Errors
    /// Errors of counting work.
    pub fn values_within<'u>(
        &'u self,
        path: &'u str,
        operation: &OperationContext,
    ) -> Result<impl Iterator<Item = &'u Field<'d>> + 'u> {
        operation.work(1 + self.fields.len() / 16)?;
        Ok(self.values(path))
    }

    /// The distinct paths with strings.
    pub fn text_paths(&self) -> Vec<&Field<'d>> {
        let mut known = HashSet::new();
        let strings = self.fields.iter().filter(|field| matches!(field.value, ValueRef::String(_)));
        strings.filter(|field| known.insert(field.path.as_str())).collect()
    }

    /// The distinct paths with strings, each with all its strings.
    pub fn texts(&self) -> Vec<(&Field<'d>, Vec<(&Field<'d>, &'d str)>)> {
        let mut places = HashMap::new();
        let mut found: Vec<(&Field<'d>, Vec<(&Field<'d>, &'d str)>)> = Vec::new();
        for field in &self.fields {
            let ValueRef::String(text) = field.value else { continue };
            let place = *places.entry(field.path.as_str()).or_insert(found.len());
            if place == found.len() {
                found.push((field, Vec::new()));
            }
            found[place].1.push((field, text));
        }
        found
    }

    /// Adds the embedded documents at a path, at any depth, to `found`.
    pub fn embedded<'u>(&'u self, path: &str, found: &mut Vec<&'u Child<'d>>) {
        for child in &self.children {
            if child.path == path {
                found.push(child);
            } else if path.starts_with(&child.path) && path.as_bytes().get(child.path.len()) == Some(&b'.') {
                child.unit.embedded(path, found);
            }
        }
    }
}
