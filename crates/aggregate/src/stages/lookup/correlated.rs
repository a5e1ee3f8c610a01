//! Joins by an equality inside `$expr`: `{$match: {$expr: {$eq: ["$field", "$$variable"]}}}` at the start of the pipeline.
//!
//! With an index on the field, each opening of the pipeline plans by it. Otherwise the documents are put into a table by
//! the field's value. The table gives candidates, and the whole pipeline runs over them.

use crate::join_table::JoinTable;
use crate::{Environment, SourceName};
use bunko_bson::key_string::Direction;
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, ValueRef};
use bunko_errors::Result;
use bunko_expression::{Expression, FieldComparison, FieldPath, ImpliedComparison};
use bunko_operation::Gatherer;
use bunko_scratch::Spilled;

/// An equality between a field of the other collection and a value that the joining document decides.
pub(super) struct Correlation {
    path: FieldPath,
    /// The `$expr` that implies the equality.
    condition: Expression,
    /// The position of the equality among the comparisons that the condition implies.
    position: usize,
    /// Stages that only drop documents that the pipeline drops too, whatever the variables are.
    shared: ArrayBuf,
}

impl Correlation {
    /// The correlation of a pipeline that was checked in this environment.
    pub fn of_pipeline(stages: ArrayRef<'_>, inside: &Environment) -> Option<Self> {
        let first = stages.iter().next()?.as_document()?.first()?;
        let filter =
            first.value.as_document().filter(|filter| first.name == bunko_stages::MATCH.name && is_plain(*filter))?;
        let mut conditions = Vec::new();
        add_conditions(filter, &mut conditions);
        let (path, condition, position) = conditions.into_iter().find_map(|condition| {
            let condition = Expression::parse(condition, &inside.scope.parse_scope()).ok()?;
            let found = condition.implied_comparisons().into_iter().enumerate().find_map(|(position, implied)| {
                is_correlated(&implied).then(|| Some((FieldPath::parse(&implied.path).ok()?, position)))?
            });
            found.map(|(path, position)| (path, condition, position))
        })?;
        let mut by_fields = DocumentBuf::new();
        for field in filter.iter().filter(|field| !field.name.starts_with('$')) {
            by_fields.append(field.name, field.value);
        }
        let stage = DocumentBuf::new().with(bunko_stages::MATCH.name, &by_fields);
        let shared = Some(&stage).filter(|_| !by_fields.as_ref().is_empty()).into_iter().collect();
        Some(Self { path, condition, position, shared })
    }

    /// Appends the key of the value that the joining document decides; returns false if the value fails to evaluate.
    fn append_key(&self, key: &mut Vec<u8>, world: &Environment) -> bool {
        let context = world.context(DocumentRef::EMPTY);
        let Some(implied) = self.condition.implied_comparisons().into_iter().nth(self.position) else { return false };
        let Ok(value) = implied.constant.evaluate(&context) else { return false };
        append_key(key, value.get(), world);
        true
    }
}

fn is_correlated(implied: &ImpliedComparison<'_>) -> bool {
    implied.op == FieldComparison::Eq && implied.constant.as_literal().is_none()
}

/// Appends the key of a value. A missing value has the key of undefined, which it equals in `$expr`.
fn append_key(key: &mut Vec<u8>, value: Option<ValueRef<'_>>, world: &Environment) {
    world.strings().append_key(key, value.unwrap_or(ValueRef::Undefined), Direction::Ascending);
}

/// Whether a filter has only conditions on fields, `$expr`, and `$and`, `$or` or `$nor` of them: any document can be
/// tested alone.
fn is_plain(filter: DocumentRef<'_>) -> bool {
    filter.iter().all(|element| match (element.name, element.value) {
        ("$and" | "$or" | "$nor", ValueRef::Array(clauses)) => {
            clauses.iter().all(|clause| clause.as_document().is_some_and(is_plain))
        }
        ("$expr" | "$comment", _) => true,
        (name, _) => !name.starts_with('$'),
    })
}

/// Adds each `$expr` that every document of the filter satisfies.
fn add_conditions<'f>(filter: DocumentRef<'f>, conditions: &mut Vec<ValueRef<'f>>) {
    for element in filter {
        match (element.name, element.value) {
            ("$expr", condition) => conditions.push(condition),
            ("$and", ValueRef::Array(clauses)) => {
                clauses.iter().filter_map(ValueRef::as_document).for_each(|clause| add_conditions(clause, conditions));
            }
            _ => {}
        }
    }
}

/// The join while it runs.
#[derive(Default)]
pub(super) struct CorrelatedJoin {
    method: Method,
}

/// How candidates are found.
#[derive(Default)]
enum Method {
    /// No document was joined yet. A table pays from the second on.
    #[default]
    NotAsked,
    /// One document was joined, and no index serves.
    AskedOnce,
    Table(Box<JoinTable>),
    /// By one plan for each joining document: an index serves, or a table is too large.
    Plans,
}

impl CorrelatedJoin {
    /// Candidates for the join with one document, in the order of the collection; `None` if a plan has to find them.
    /// # Errors
    /// As [`crate::Sources::open`].
    pub fn find(
        &mut self,
        correlation: &Correlation,
        source: &SourceName,
        world: &Environment,
    ) -> Result<Option<Vec<DocumentBuf>>> {
        match &mut self.method {
            Method::NotAsked => {
                let path = correlation.path.dotted();
                let is_served = world.sources.finds_whole_values(source, &path, world.strings());
                self.method = if is_served { Method::Plans } else { Method::AskedOnce };
            }
            Method::AskedOnce => {
                self.method =
                    build(correlation, source, world)?.map_or(Method::Plans, |table| Method::Table(Box::new(table)));
            }
            Method::Table(_) | Method::Plans => {}
        }
        let Method::Table(table) = &mut self.method else { return Ok(None) };
        let mut key = Vec::new();
        if !correlation.append_key(&mut key, world) {
            return Ok(None);
        }
        let mut found = Vec::new();
        table.add_positions(&key, &mut found);
        table.documents(found, world.operation()).map(Some)
    }

    /// Documents of the table that were put on disk.
    pub fn spilled(&self) -> Spilled {
        match &self.method {
            Method::Table(table) => table.spilled(),
            _ => Spilled::default(),
        }
    }
}

fn build(correlation: &Correlation, source: &SourceName, world: &Environment) -> Result<Option<JoinTable>> {
    let input = world.sources.open(source, correlation.shared.as_ref(), world)?;
    let mut key = Vec::new();
    JoinTable::build(input, Gatherer::Lookup, world.operation(), &mut |document, keys| {
        key.clear();
        append_key(&mut key, correlation.path.follow(ValueRef::Document(document)).get(), world);
        keys.add(&key)
    })
}
