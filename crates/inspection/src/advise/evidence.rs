//! Operations as evidence: which fields each kind of operation compares and sorts by, and how many documents it read.

use crate::operations::operation;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, number};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Maximum number of kinds of operations that are remembered.
const KINDS_MAX: usize = 10_000;

/// Operators of conditions that one value satisfies; an index is best begun with their fields.
const EQUALITIES: [&str; 2] = ["$eq", "$in"];
/// Operators of conditions that a range of values satisfies.
const RANGES: [&str; 4] = ["$gt", "$gte", "$lt", "$lte"];

/// The fields that an operation compares and sorts by.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Fields {
    pub equal: Vec<String>,
    /// Fields to sort by, each with its direction, 1 or -1.
    pub sort: Vec<(String, i32)>,
    pub range: Vec<String>,
}

/// A kind of operation: the fields that it needs, and its counts.
#[derive(Clone, Debug)]
pub(super) struct Needed {
    pub fields: Fields,
    /// The filter of one operation of this kind.
    pub filter: DocumentBuf,
    pub count: u64,
    pub millis: u64,
    pub examined: u64,
    pub returned: u64,
    /// Number of operations that sorted documents in memory.
    pub sorts: u64,
    /// Whether `filter` is a shape, with the type of each value in the value's place.
    pub is_shape: bool,
}

/// All kinds of operations.
#[derive(Default)]
pub(super) struct Evidence {
    /// Number of operations that were read.
    pub operations: u64,
    kinds: BTreeMap<(String, Fields), Needed>,
}

impl Evidence {
    /// Adds an entry of a profile or a log.
    pub fn note(&mut self, entry: DocumentRef<'_>) {
        let Some((database, command)) = operation(entry) else { return };
        self.operations += 1;
        let command = command.as_ref();
        if has_collation(command) {
            return;
        }
        let Some(first) = command.first() else { return };
        let Some(collection) = first.value.as_str() else { return };
        let (filter, sort) = filter_and_sort(first.name, command);
        let filter = filter.unwrap_or(DocumentRef::EMPTY);
        let Some(fields) = fields(filter, sort.unwrap_or(DocumentRef::EMPTY)) else { return };
        let key = (format!("{database}.{collection}"), fields);
        if self.kinds.len() >= KINDS_MAX && !self.kinds.contains_key(&key) {
            return;
        }
        let read = |name: &str| entry.get(name).and_then(number::truncate_to_i64).unwrap_or(0).max(0) as u64;
        let needed = self.kinds.entry(key.clone()).or_insert_with(|| Needed {
            fields: key.1,
            filter: filter.to_owned(),
            count: 0,
            millis: 0,
            examined: 0,
            returned: 0,
            sorts: 0,
            is_shape: false,
        });
        needed.count += 1;
        needed.millis += read("millis").max(read("durationMillis"));
        needed.examined += read("docsExamined").max(read("keysExamined"));
        needed.returned += read("nreturned").max(read("nMatched")).max(read("ndeleted"));
        needed.sorts += u64::from(matches!(entry.get("hasSortStage"), Some(ValueRef::Boolean(true))));
    }

    /// Adds an entry of `$queryStats`. An operation may be in the profile or the log too: the larger count holds.
    pub fn note_statistics(&mut self, entry: DocumentRef<'_>) {
        let part = |document: DocumentRef<'_>, name| {
            document.get(name).and_then(ValueRef::as_document).map(DocumentRef::to_owned)
        };
        let Some(shape) = part(entry, "key").and_then(|key| part(key.as_ref(), "queryShape")) else { return };
        let Some(metrics) = part(entry, "metrics") else { return };
        let (shape, metrics) = (shape.as_ref(), metrics.as_ref());
        let number = |value: Option<ValueRef<'_>>| value.and_then(number::truncate_to_i64).unwrap_or(0).max(0) as u64;
        let inside = |name, field| number(part(metrics, name).as_ref().and_then(|sum| sum.as_ref().get(field)));
        let count = number(metrics.get("execCount"));
        self.operations += count;
        let Some(names) = part(shape, "cmdNs") else { return };
        let name = |field| names.as_ref().get(field).and_then(ValueRef::as_str);
        let (Some(database), Some(collection)) = (name("db"), name("coll")) else { return };
        if has_collation(shape) || collection.starts_with("system.") {
            return;
        }
        let command = shape.get("command").and_then(ValueRef::as_str).unwrap_or_default();
        let (filter, sort) = filter_and_sort(command, shape);
        let filter = filter.unwrap_or(DocumentRef::EMPTY);
        let Some(fields) = fields(filter, sort.unwrap_or(DocumentRef::EMPTY)) else { return };
        let key = (format!("{database}.{collection}"), fields);
        if self.kinds.len() >= KINDS_MAX && !self.kinds.contains_key(&key) {
            return;
        }
        let counted = Needed {
            fields: key.1.clone(),
            filter: filter.to_owned(),
            count,
            millis: inside("totalExecMicros", "sum") / 1000,
            examined: inside("docsExamined", "sum").max(inside("keysExamined", "sum")),
            returned: inside("docsReturned", "sum"),
            sorts: inside("hasSortStage", "true"),
            is_shape: true,
        };
        match self.kinds.entry(key) {
            Entry::Vacant(vacant) => _ = vacant.insert(counted),
            Entry::Occupied(mut known) if known.get().is_shape => {
                let known = known.get_mut();
                known.count += counted.count;
                known.millis += counted.millis;
                known.examined += counted.examined;
                known.returned += counted.returned;
                known.sorts += counted.sorts;
            }
            Entry::Occupied(mut known) if known.get().count < counted.count => {
                let Needed { filter, is_shape, .. } = known.get().clone();
                known.insert(Needed { filter, is_shape, ..counted });
            }
            Entry::Occupied(_) => {}
        }
    }

    /// The kinds of operations on a collection.
    pub fn of(&self, namespace: &str) -> impl Iterator<Item = &Needed> {
        let kinds = self.kinds.iter().filter(move |((of, _), _)| of == namespace);
        kinds.map(|(_, needed)| needed)
    }
}

/// Whether the command compares by a collation of its own, which an index would have to share.
fn has_collation(command: DocumentRef<'_>) -> bool {
    let statement = |list: &str| command.get(list)?.as_array()?.get(0)?.as_document();
    let parts = [Some(command), statement("updates"), statement("deletes")];
    parts.into_iter().flatten().any(|part| part.get("collation").is_some())
}

/// The filter and the sort of a command.
fn filter_and_sort<'d>(name: &str, command: DocumentRef<'d>) -> (Option<DocumentRef<'d>>, Option<DocumentRef<'d>>) {
    let field = |name| command.get(name).and_then(ValueRef::as_document);
    let first = |name| command.get(name).and_then(ValueRef::as_array).and_then(|list| list.get(0)?.as_document());
    match name {
        "find" => (field("filter"), field("sort")),
        "aggregate" => {
            let stages = command.get("pipeline").and_then(ValueRef::as_array);
            let stage = |index: usize, name: &str| stages?.get(index)?.as_document()?.get(name)?.as_document();
            match stage(0, "$match") {
                Some(filter) => (Some(filter), stage(1, "$sort")),
                None => (None, stage(0, "$sort")),
            }
        }
        "update" => (first("updates").and_then(|statement| statement.get("q")?.as_document()), None),
        "delete" => (first("deletes").and_then(|statement| statement.get("q")?.as_document()), None),
        _ => (field("query"), field("sort")),
    }
}

/// The fields of a filter and a sort; `None` if an index of plain fields serves none of them.
fn fields(filter: DocumentRef<'_>, sort: DocumentRef<'_>) -> Option<Fields> {
    let mut fields = Fields::default();
    collect(filter, &mut fields)?;
    fields.equal.sort();
    fields.equal.dedup();
    fields.range.sort();
    fields.range.dedup();
    for element in sort {
        // `$natural` is the order of the collection itself.
        if element.name.starts_with('$') {
            return None;
        }
        let direction = number::as_i64_exact(element.value)?;
        if !fields.equal.iter().any(|name| name == element.name) {
            fields.sort.push((element.name.to_owned(), direction.signum() as i32));
        }
    }
    let range = std::mem::take(&mut fields.range);
    let is_known = |name: &String| fields.equal.contains(name) || fields.sort.iter().any(|(sorted, _)| sorted == name);
    fields.range = range.into_iter().filter(|name| !is_known(name)).collect();
    let is_empty = fields.equal.is_empty() && fields.sort.is_empty() && fields.range.is_empty();
    (!is_empty).then_some(fields)
}

/// Adds the fields that a filter compares. Other conditions are checked on the documents that the index finds. `None`
/// if a further index of plain fields would not serve the filter.
fn collect(filter: DocumentRef<'_>, fields: &mut Fields) -> Option<()> {
    for element in filter {
        match (element.name, element.value) {
            ("$and", ValueRef::Array(parts)) => {
                parts.iter().filter_map(ValueRef::as_document).try_for_each(|part| collect(part, fields))?;
            }
            // `$text` has indexes of another kind, and no index serves `$where`.
            ("$text" | "$where", _) => return None,
            (name, _) if name.starts_with('$') => {}
            // The index on `_id` is always there.
            ("_id", _) => return None,
            (name, ValueRef::Document(condition)) => condition_of(name, condition, fields)?,
            // A pattern may match anywhere in a text.
            (_, ValueRef::Regex { .. }) => {}
            (name, _) => fields.equal.push(name.to_owned()),
        }
    }
    Some(())
}

fn condition_of(name: &str, condition: DocumentRef<'_>, fields: &mut Fields) -> Option<()> {
    let Some(operator) = condition.first_name().filter(|operator| operator.starts_with('$')) else {
        fields.equal.push(name.to_owned());
        return Some(());
    };
    if operator.starts_with("$geo") || operator.starts_with("$near") {
        return None;
    }
    if condition.iter().any(|element| EQUALITIES.contains(&element.name)) {
        fields.equal.push(name.to_owned());
    } else if condition.iter().any(|element| RANGES.contains(&element.name)) {
        fields.range.push(name.to_owned());
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::extended_json::parse_document;

    fn of(filter: &str, sort: &str) -> Option<String> {
        let parse = |json: &str| parse_document(json).expect("JSON");
        let fields = fields(parse(filter).as_ref(), parse(sort).as_ref())?;
        Some(format!("{:?} {:?} {:?}", fields.equal, fields.sort, fields.range))
    }

    #[test]
    fn filters_and_sorts_name_fields() {
        let found =
            of(r#"{"b": 1, "a": {"$in": [1]}, "c": {"$gt": 1}, "d": {"$exists": true}}"#, r#"{"e": -1, "c": 1}"#);
        assert_eq!(found.as_deref(), Some(r#"["a", "b"] [("e", -1), ("c", 1)] []"#));
        let found = of(r#"{"$and": [{"a": 1}, {"f": {"$lt": 3, "$gte": 1}}], "$or": [{"g": 1}]}"#, "{}");
        assert_eq!(found.as_deref(), Some(r#"["a"] [] ["f"]"#));
        assert_eq!(of(r#"{"a": 1}"#, r#"{"$natural": -1}"#), None);
        let found = of(r#"{"a": 1, "b": {"$regularExpression": {"pattern": "x", "options": "i"}}}"#, "{}");
        assert_eq!(found.as_deref(), Some(r#"["a"] [] []"#));
        for filter in ["{}", r#"{"_id": 1, "a": 1}"#, r#"{"$text": {"$search": "a"}}"#, r#"{"a": {"$near": [1, 2]}}"#] {
            assert_eq!(of(filter, "{}"), None, "{filter}");
        }
    }

    #[test]
    fn operations_of_one_kind_are_added() {
        let mut evidence = Evidence::default();
        for value in [1, 2] {
            let entry = format!(
                r#"{{"ns": "d.c", "command": {{"find": "c", "filter": {{"a": {value}}}}}, "docsExamined": 10, "nreturned": 1, "millis": 5}}"#
            );
            evidence.note(parse_document(&entry).expect("JSON").as_ref());
        }
        let needed: Vec<_> = evidence.of("d.c").collect();
        assert_eq!((needed.len(), needed[0].count, needed[0].examined, needed[0].millis), (1, 2, 20, 10));
        assert_eq!(evidence.of("d.other").count(), 0);
        let with_collation =
            r#"{"ns": "d.other", "command": {"find": "other", "filter": {"a": "x"}, "collation": {"locale": "de"}}}"#;
        evidence.note(parse_document(with_collation).expect("JSON").as_ref());
        assert_eq!((evidence.operations, evidence.of("d.other").count()), (3, 0));
    }
}
