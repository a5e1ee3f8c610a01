//! The shape of a query: the parts that decide its plan. Queries that differ only in values have one shape.

use bunko_bson::{DocumentRef, ValueRef};
use bunko_expression::Evaluated;
use std::collections::BTreeSet;

/// Distinguishes queries that may need different plans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryShape(Vec<u8>);

impl QueryShape {
    /// The shape of a query; absent parts are empty documents.
    pub fn of(
        filter: DocumentRef<'_>,
        sort: DocumentRef<'_>,
        projection: DocumentRef<'_>,
        collation: DocumentRef<'_>,
    ) -> Self {
        let mut shape = Vec::new();
        put(&mut shape, &all_of(filter));
        put(&mut shape, sort.as_bytes());
        put(&mut shape, &required(projection));
        put(&mut shape, collation.as_bytes());
        Self(shape)
    }

    /// The bytes of the shape; equal bytes mean equal shapes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Appends a part with its length, so that parts cannot run into each other.
fn put(shape: &mut Vec<u8>, part: &[u8]) {
    shape.extend_from_slice(&(part.len() as u64).to_le_bytes());
    shape.extend_from_slice(part);
}

fn named(name: &str, parts: &[&[u8]]) -> Vec<u8> {
    let mut shape = Vec::new();
    put(&mut shape, name.as_bytes());
    for part in parts {
        put(&mut shape, part);
    }
    shape
}

/// The shape of a conjunction; the order of conditions does not matter.
fn all_of(filter: DocumentRef<'_>) -> Vec<u8> {
    let mut conditions = Vec::new();
    gather(filter, &mut conditions);
    joined(conditions)
}

fn joined(mut conditions: Vec<Vec<u8>>) -> Vec<u8> {
    conditions.sort();
    let mut shape = Vec::new();
    for condition in &conditions {
        put(&mut shape, condition);
    }
    shape
}

fn gather(filter: DocumentRef<'_>, conditions: &mut Vec<Vec<u8>>) {
    for element in filter {
        match (element.name, element.value) {
            ("$and", ValueRef::Array(parts)) => {
                for part in parts.iter().filter_map(ValueRef::as_document) {
                    gather(part, conditions);
                }
            }
            ("$or" | "$nor", ValueRef::Array(parts)) => {
                let parts = parts.iter().filter_map(ValueRef::as_document).map(all_of).collect();
                conditions.push(named(element.name, &[&joined(parts)]));
            }
            ("$comment", _) => {}
            (name, value) if name.starts_with('$') => conditions.push(named(name, &[&structure(value)])),
            (path, value) => gather_of_path(path, value, conditions),
        }
    }
}

/// The conditions on one path: an equality, or one for each operator.
fn gather_of_path(path: &str, value: ValueRef<'_>, conditions: &mut Vec<Vec<u8>>) {
    let operators = value.as_document().filter(|operators| {
        operators
            .first()
            .is_some_and(|first| first.name.starts_with('$') && !matches!(first.name, "$ref" | "$id" | "$db"))
    });
    let Some(operators) = operators else {
        let operator = if matches!(value, ValueRef::Regex { .. }) { "$regex" } else { "$eq" };
        conditions.push(named(path, &[operator.as_bytes()]));
        return;
    };
    for operator in operators {
        let inner = match (operator.name, operator.value) {
            ("$options" | "$comment", _) => continue,
            ("$eq", value) if !matches!(value, ValueRef::Regex { .. }) => {
                // `{$eq: value}` has the shape of the plain value.
                conditions.push(named(path, &[b"$eq"]));
                continue;
            }
            ("$not", ValueRef::Document(negated)) => {
                let mut inner = Vec::new();
                gather_of_path(path, ValueRef::Document(negated), &mut inner);
                joined(inner)
            }
            ("$elemMatch", ValueRef::Document(element)) => {
                let mut inner = Vec::new();
                match element.first() {
                    Some(first) if first.name.starts_with('$') => {
                        gather_of_path("", ValueRef::Document(element), &mut inner);
                    }
                    _ => gather(element, &mut inner),
                }
                joined(inner)
            }
            ("$exists", value) => {
                let is_false = matches!(value, ValueRef::Boolean(false) | ValueRef::Int32(0));
                vec![u8::from(!is_false)]
            }
            _ => Vec::new(),
        };
        conditions.push(named(path, &[operator.name.as_bytes(), &inner]));
    }
}

/// The fields that a projection requires; nothing if it requires whole documents. A projection that does more than
/// naming fields is its own shape.
/// Source: MongoDB 8.2, `planCacheShapeHash` of queries whose projections differ.
fn required(projection: DocumentRef<'_>) -> Vec<u8> {
    let mut fields = Fields { included: BTreeSet::new(), excludes_id: false };
    if !fields.gather(projection, "") {
        return projection.as_bytes().to_vec();
    }
    if fields.included.is_empty() {
        return DocumentRef::EMPTY.as_bytes().to_vec();
    }
    let mut shape = Vec::new();
    if !fields.excludes_id {
        fields.included.insert("_id".to_owned());
    }
    let mut last: Option<&str> = None;
    for path in &fields.included {
        // A field contains the fields below it.
        if last.and_then(|last| path.strip_prefix(last)).is_some_and(|below| below.starts_with(BELOW)) {
            continue;
        }
        put(&mut shape, path.as_bytes());
        last = Some(path);
    }
    shape
}

/// Separates the names of a path. It sorts before all characters of names, so that a field comes right before the fields
/// below it.
const BELOW: &str = "\0";

struct Fields {
    /// Paths of the included fields.
    included: BTreeSet<String>,
    excludes_id: bool,
}

impl Fields {
    /// Adds the fields of one level; returns whether they are only included or excluded.
    fn gather(&mut self, projection: DocumentRef<'_>, prefix: &str) -> bool {
        projection.iter().all(|element| {
            let path = format!("{prefix}{}", element.name.replace('.', BELOW));
            match element.value {
                _ if element.name.contains('$') => false,
                ValueRef::Document(inner) if !inner.is_empty() => self.gather(inner, &format!("{path}{BELOW}")),
                value if value.is_number() || matches!(value, ValueRef::Boolean(_)) => {
                    if Evaluated::Ref(value).is_true() {
                        self.included.insert(path);
                    } else {
                        self.excludes_id |= path == "_id";
                    }
                    true
                }
                _ => false,
            }
        })
    }
}

/// The operators, names and paths of an expression, without constants.
fn structure(value: ValueRef<'_>) -> Vec<u8> {
    let mut shape = vec![value.kind() as u8];
    match value {
        ValueRef::Document(document) => {
            for element in document {
                put(&mut shape, element.name.as_bytes());
                put(&mut shape, &structure(element.value));
            }
        }
        // A list of constants is a constant too, whatever its length.
        ValueRef::Array(array) if array.iter().all(|member| is_constant_expression(member, &[])) => {}
        ValueRef::Array(array) => {
            for element in array.iter() {
                put(&mut shape, &structure(element));
            }
        }
        ValueRef::String(path) if path.starts_with('$') => put(&mut shape, path.as_bytes()),
        _ => {}
    }
    shape
}

/// Whether an expression, as it was sent, does not depend on the document. The operands of `literals` count as constants;
/// all other operators might depend on it.
pub fn is_constant_expression(expression: ValueRef<'_>, literals: &[&str]) -> bool {
    match expression {
        ValueRef::String(text) => !text.starts_with('$'),
        ValueRef::Array(members) => members.iter().all(|member| is_constant_expression(member, literals)),
        ValueRef::Document(fields) => fields.iter().all(|field| {
            literals.contains(&field.name)
                || !field.name.starts_with('$') && is_constant_expression(field.value, literals)
        }),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_testkit::shell;

    fn shape(filter: &str) -> QueryShape {
        let filter = shell::parse_document(filter).expect("a filter");
        QueryShape::of(filter.as_ref(), DocumentRef::EMPTY, DocumentRef::EMPTY, DocumentRef::EMPTY)
    }

    #[test]
    fn values_and_order_make_no_difference() {
        for (one, other) in [
            ("{a: 1}", "{a: 'x'}"),
            ("{a: 1}", "{a: {$eq: 2}}"),
            ("{a: 1, b: 2}", "{b: 3, a: 4}"),
            ("{a: 1, b: 2}", "{$and: [{b: 1}, {a: 2}]}"),
            ("{a: {$gt: 1, $lt: 2}}", "{a: {$lt: 7, $gt: 5}}"),
            ("{a: {$in: [1, 2]}}", "{a: {$in: [3]}}"),
            ("{$or: [{a: 1}, {b: 2}]}", "{$or: [{b: 1}, {a: 3}]}"),
            ("{a: {$elemMatch: {b: 1}}}", "{a: {$elemMatch: {b: 2}}}"),
            ("{$expr: {$eq: ['$a', 1]}}", "{$expr: {$eq: ['$a', 2]}}"),
            ("{$expr: {$in: ['$a', [1, 2]]}}", "{$expr: {$in: ['$a', [3, 4, 5]]}}"),
        ] {
            assert_eq!(shape(one), shape(other), "{one} and {other}");
        }
    }

    #[test]
    fn projections_differ_by_the_fields_that_they_require() {
        let shape = |projection: &str| {
            let projection = shell::parse_document(projection).expect("a projection");
            QueryShape::of(DocumentRef::EMPTY, DocumentRef::EMPTY, projection.as_ref(), DocumentRef::EMPTY)
        };
        for (one, other) in [
            ("{a: 1}", "{a: true}"),
            ("{a: 1, b: 1}", "{b: 1, _id: 1, a: 1}"),
            ("{'a.b': 1}", "{a: {b: 1}}"),
            ("{a: 1, 'a-b': 1, 'a.b': 1}", "{a: 1, 'a-b': 1}"),
            ("{a: 0}", "{}"),
            ("{_id: 0}", "{b: 0, _id: 0}"),
        ] {
            assert_eq!(shape(one), shape(other), "{one} and {other}");
        }
        for (one, other) in [
            ("{a: 1}", "{}"),
            ("{a: 1}", "{b: 1}"),
            ("{a: 1}", "{a: 1, _id: 0}"),
            ("{a: 1}", "{ab: 1}"),
            ("{a: '$b'}", "{a: '$c'}"),
            ("{a: {$slice: 1}}", "{a: 1}"),
        ] {
            assert_ne!(shape(one), shape(other), "{one} and {other}");
        }
    }

    #[test]
    fn paths_and_operators_do() {
        for (one, other) in [
            ("{a: 1}", "{b: 1}"),
            ("{a: 1}", "{a: {$gt: 1}}"),
            ("{a: 1}", "{a: 1, b: 1}"),
            ("{a: 1}", "{a: /x/}"),
            ("{a: {$gt: 1}}", "{a: {$not: {$gt: 1}}}"),
            ("{a: {$exists: true}}", "{a: {$exists: false}}"),
            ("{$or: [{a: 1}, {b: 2}]}", "{a: 1, b: 2}"),
            ("{$expr: {$eq: ['$a', 1]}}", "{$expr: {$eq: ['$b', 1]}}"),
            ("{$expr: {$eq: ['$a', 1]}}", "{$expr: {$gt: ['$a', 1]}}"),
        ] {
            assert_ne!(shape(one), shape(other), "{one} and {other}");
        }
    }
}
