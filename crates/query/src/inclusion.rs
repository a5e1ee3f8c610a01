//! The `$project` of a pipeline that the planner runs as the query's projection.

use crate::find_query::FindQuery;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_expression::{Dependencies, Evaluated, Projection};
use std::collections::HashMap;
use std::sync::Arc;

/// A `$project` that leaves out all fields that it does not name.
#[derive(Clone)]
pub struct Inclusion {
    /// The parsed stage.
    pub projection: Arc<Projection>,
    /// The stage's specification.
    pub sent: DocumentBuf,
}

impl Inclusion {
    /// Whether fields are computed, and not only included.
    pub fn computes(&self) -> bool {
        self.projection.computes()
    }

    /// The form that explain shows: `_id`, then the other included fields, then nested and computed ones.
    /// Source: MongoDB 8.2, `transformBy` in the explained plan of an aggregate.
    fn shown(&self) -> DocumentBuf {
        let mut level = Level::default();
        level.gather(self.sent.as_ref());
        let mut document = DocumentBuf::new();
        level.included.retain(|name| *name != "_id");
        let id = self.sent.as_ref().get("_id").filter(|id| is_sense(*id)).map(|id| Evaluated::Ref(id).is_true());
        let is_implied = !level.nested.contains_key("_id") && level.others.iter().all(|(name, _)| *name != "_id");
        if id.unwrap_or(is_implied) {
            document.append("_id", true);
        }
        level.describe(&mut document);
        if id == Some(false) {
            document.append("_id", false);
        }
        document
    }
}

/// Whether a value includes or excludes a field, and does not compute it.
fn is_sense(value: ValueRef<'_>) -> bool {
    value.is_number() || matches!(value, ValueRef::Boolean(_))
}

/// The fields of one level, in the order in which they were sent.
#[derive(Default)]
struct Level<'a> {
    included: Vec<&'a str>,
    others: Vec<(&'a str, Shown<'a>)>,
    /// Positions of the nested fields in `others`.
    nested: HashMap<&'a str, usize>,
}

enum Shown<'a> {
    Computed(ValueRef<'a>),
    Nested(Level<'a>),
}

impl<'a> Level<'a> {
    fn gather(&mut self, sent: DocumentRef<'a>) {
        for element in sent {
            let (parents, name) =
                element.name.rsplit_once('.').map_or((None, element.name), |(parents, name)| (Some(parents), name));
            let level = parents.into_iter().flat_map(|parents| parents.split('.')).fold(&mut *self, Self::below);
            match element.value {
                ValueRef::Document(inner) if inner.first().is_some_and(|first| !first.name.starts_with('$')) => {
                    level.below(name).gather(inner);
                }
                value if is_sense(value) => level.included.push(name),
                value => level.others.push((name, Shown::Computed(value))),
            }
        }
    }

    /// The level below a nested field, which is added if it is new.
    fn below(&mut self, name: &'a str) -> &mut Self {
        let position = *self.nested.entry(name).or_insert(self.others.len());
        if position == self.others.len() {
            self.others.push((name, Shown::Nested(Self::default())));
        }
        match &mut self.others[position].1 {
            Shown::Nested(level) => level,
            Shown::Computed(_) => unreachable!("only positions of nested fields are kept"),
        }
    }

    /// Adds the fields: included ones first.
    fn describe(&self, document: &mut DocumentBuf) {
        for name in &self.included {
            document.append(name, true);
        }
        for (name, shown) in &self.others {
            match shown {
                Shown::Computed(value) => {
                    document.append(name, *value);
                }
                Shown::Nested(level) => {
                    let mut inner = DocumentBuf::new();
                    level.describe(&mut inner);
                    document.append(name, &inner);
                }
            }
        }
    }
}

impl FindQuery {
    /// Sets the `$project` of a pipeline as the projection. The plan reads only the fields that it needs.
    pub fn include(&mut self, inclusion: &Inclusion) {
        let mut dependencies = Dependencies::default();
        inclusion.projection.add_dependencies(&mut dependencies);
        if let Dependencies::Fields(fields) = dependencies {
            self.needed = Some(fields.into_iter().map(String::into_boxed_str).collect());
        }
        self.projection_document = inclusion.shown();
        self.projection = Some(Arc::clone(&inclusion.projection));
    }
}
