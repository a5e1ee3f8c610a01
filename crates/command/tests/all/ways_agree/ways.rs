//! The ways to ask for the documents that a filter finds.

use bunko_bson::{DocumentRef, ValueRef, number};
use bunko_testkit::shell;

/// The result of one way: the documents, in no order, or their number.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    Ids(Vec<String>),
    Count(i64),
}

impl Said {
    pub fn count(&self) -> i64 {
        match self {
            Self::Ids(ids) => ids.len() as i64,
            Self::Count(count) => *count,
        }
    }

    /// Whether both say the same, as far as both say something.
    pub fn agrees(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Ids(_), Self::Ids(_)) => self == other,
            _ => self.count() == other.count(),
        }
    }
}

/// Reads the result from a reply.
type Reading = fn(DocumentRef<'_>) -> Said;

fn batch(reply: DocumentRef<'_>) -> Vec<DocumentRef<'_>> {
    let cursor = reply.get("cursor").and_then(ValueRef::as_document).expect("a cursor");
    let batch = cursor.get("firstBatch").and_then(ValueRef::as_array).expect("a batch");
    batch.iter().filter_map(ValueRef::as_document).collect()
}

fn sorted(ids: impl Iterator<Item = String>) -> Said {
    let mut ids: Vec<_> = ids.collect();
    ids.sort();
    Said::Ids(ids)
}

fn shown_ids(reply: DocumentRef<'_>) -> Said {
    sorted(batch(reply).into_iter().map(|document| document.get("_id").map_or_else(String::new, shell::print)))
}

fn shown(reply: DocumentRef<'_>) -> Said {
    Said::Count(batch(reply).len() as i64)
}

/// The number in the reply's only document; 0 if there is no document.
fn told(reply: DocumentRef<'_>) -> Said {
    let batch = batch(reply);
    Said::Count(batch.first().and_then(|document| number::as_i64_exact(document.get("n")?)).unwrap_or(0))
}

fn n(reply: DocumentRef<'_>) -> Said {
    Said::Count(reply.get("n").and_then(number::as_i64_exact).expect("n"))
}

fn values(reply: DocumentRef<'_>) -> Said {
    sorted(reply.get("values").and_then(ValueRef::as_array).expect("values").iter().map(shell::print))
}

/// The `_id`s in their order.
fn ids_in_order(reply: DocumentRef<'_>) -> Said {
    let id = |document: DocumentRef<'_>| document.get("_id").map_or_else(String::new, shell::print);
    Said::Ids(batch(reply).into_iter().map(id).collect())
}

/// Whole documents, in no order.
fn documents(reply: DocumentRef<'_>) -> Said {
    sorted(batch(reply).into_iter().map(|document| shell::print(ValueRef::Document(document))))
}

fn explained(reply: DocumentRef<'_>) -> Said {
    let statistics = reply.get("executionStats").and_then(ValueRef::as_document).expect("statistics");
    Said::Count(statistics.get("nReturned").and_then(number::as_i64_exact).expect("nReturned"))
}

/// A command with placeholders: `FROM` for the collection, `FILTER`, and either `OPTIONS`, where a hint and a collation may
/// stand, or `COLLATED`, where only a collation may stand.
pub struct Way {
    pub command: &'static str,
    pub reads: Reading,
}

impl Way {
    /// Whether a hint, or a collation, may stand in the command.
    pub fn takes(&self, hint: &str, collation: &str) -> bool {
        // Only these commands define variables for the filter.
        let takes_variables =
            || ["{find", "{explain: {find", "{aggregate"].iter().any(|name| self.command.starts_with(name));
        self.command.contains("OPTIONS") && (!hint.contains("let: ") || takes_variables())
            || hint.is_empty() && (collation.is_empty() || self.command.contains("COLLATED"))
    }

    /// Whether a transaction takes the command.
    pub fn is_transactional(&self) -> bool {
        let is_refused = |command: &&str| self.command.starts_with(command);
        !["{count", "{explain", "{update"].iter().any(is_refused) && !self.command.contains("$unionWith")
    }

    /// Whether MongoDB accepts `$text` there: in the first stage, and not after the stages of a view.
    pub fn takes_text(&self) -> bool {
        !self.command.contains("[BEHIND") && !self.command.contains("'FROM_")
    }
}

const fn way(command: &'static str, reads: Reading) -> Way {
    Way { command, reads }
}

/// The others are compared with the first.
pub static WAYS: [Way; 27] = [
    way("{find: 'FROM', filter: FILTER, projection: {_id: 1}, batchSize: 1000 OPTIONS}", shown_ids),
    way("{find: 'FROM', filter: FILTER, batchSize: 1000 OPTIONS}", shown_ids),
    way("{find: 'FROM', filter: FILTER, sort: {_id: -1}, batchSize: 1000 OPTIONS}", shown_ids),
    way("{find: 'FROM', filter: FILTER, sort: {n: 1, _id: 1}, projection: {s: 1}, batchSize: 1000 OPTIONS}", shown_ids),
    way("{find: 'FROM', filter: FILTER, sort: {s: 1}, projection: {s: 1, _id: 0}, batchSize: 1000 OPTIONS}", shown),
    way("{find: 'FROM', filter: FILTER, projection: {n: 1, _id: 0}, batchSize: 1000 OPTIONS}", shown),
    way("{count: 'FROM', query: FILTER OPTIONS}", n),
    way("{distinct: 'FROM', key: '_id', query: FILTER OPTIONS}", values),
    way("{explain: {find: 'FROM', filter: FILTER OPTIONS}, verbosity: 'executionStats'}", explained),
    way("{update: 'FROM', updates: [{q: FILTER, u: {$unset: {nothing: 1}}, multi: true OPTIONS}]}", n),
    way("{aggregate: 'FROM', pipeline: [{$match: FILTER}, {$count: 'n'}], cursor: {} OPTIONS}", told),
    way("{aggregate: 'FROM', pipeline: [{$match: FILTER}, {$group: {_id: 1, n: {$sum: 1}}}], cursor: {} OPTIONS}", told),
    way(
        "{aggregate: 'FROM', pipeline: [{$match: FILTER}, {$group: {_id: null, n: {$count: {}}}}], cursor: {} OPTIONS}",
        told,
    ),
    way(
        "{aggregate: 'FROM', pipeline: [{$match: FILTER}, {$facet: {f: [{$count: 'n'}]}}, {$unwind: '$f'},
            {$replaceWith: '$f'}], cursor: {} OPTIONS}",
        told,
    ),
    way(
        "{aggregate: 'FROM', pipeline: [{$match: FILTER}, {$group: {_id: '$_id'}}], cursor: {batchSize: 1000} OPTIONS}",
        shown_ids,
    ),
    way(
        "{aggregate: 'FROM', pipeline: [{$match: FILTER}, {$project: {_id: 1}}], cursor: {batchSize: 1000} OPTIONS}",
        shown_ids,
    ),
    way(
        "{aggregate: 'FROM', pipeline: [{$match: FILTER}, {$sort: {n: -1}}, {$group: {_id: '$_id'}}],
            cursor: {batchSize: 1000} OPTIONS}",
        shown_ids,
    ),
    way("{aggregate: 'FROM', pipeline: [{$match: FILTER}, {$unionWith: 'none'}, {$count: 'n'}], cursor: {} OPTIONS}", told),
    way(
        "{aggregate: 'FROM', pipeline: [BEHIND, {$match: FILTER}, {$project: {_id: 1}}], cursor: {batchSize: 1000} OPTIONS}",
        shown_ids,
    ),
    way("{aggregate: 'FROM', pipeline: [BEHIND, {$match: FILTER}, {$count: 'n'}], cursor: {} OPTIONS}", told),
    way(
        "{aggregate: 'one', pipeline: [{$lookup: {from: 'FROM', pipeline: [{$match: FILTER}, {$project: {_id: 1}}], as: 'f'}},
            {$unwind: '$f'}, {$replaceWith: '$f'}], cursor: {batchSize: 1000} COLLATED}",
        shown_ids,
    ),
    way(
        "{aggregate: 'one', pipeline: [{$lookup: {from: 'FROM', let: {one: '$_id'}, pipeline: [{$match: FILTER},
            {$match: {$expr: {$ne: ['$$one', '$_id']}}}], as: 'f'}}, {$project: {n: {$size: '$f'}}}], cursor: {} COLLATED}",
        told,
    ),
    way(
        "{aggregate: 'none', pipeline: [{$unionWith: {coll: 'FROM', pipeline: [{$match: FILTER}]}}, {$project: {_id: 1}}],
            cursor: {batchSize: 1000} COLLATED}",
        shown_ids,
    ),
    way(
        "{aggregate: 'FROM', pipeline: [BEHIND, {$facet: {f: [{$match: FILTER}, {$project: {_id: 1}}]}}, {$unwind: '$f'},
            {$replaceWith: '$f'}], cursor: {batchSize: 1000} OPTIONS}",
        shown_ids,
    ),
    way("{find: 'FROM_VIEW', filter: FILTER, projection: {_id: 1}, batchSize: 1000}", shown_ids),
    way("{count: 'FROM_VIEW', query: FILTER}", n),
    way("{distinct: 'FROM_VIEW', key: '_id', query: FILTER}", values),
];

/// Ways that skip two documents and return at most three.
pub static WINDOWS: [Way; 4] = [
    way("{find: 'FROM', filter: FILTER, skip: 2, limit: 3 OPTIONS}", shown),
    way("{find: 'FROM', filter: FILTER, sort: {s: 1, n: -1}, skip: 2, limit: 3 OPTIONS}", shown),
    way("{count: 'FROM', query: FILTER, skip: 2, limit: 3 OPTIONS}", n),
    way(
        "{aggregate: 'FROM', pipeline: [{$match: FILTER}, {$skip: 2}, {$limit: 3}, {$count: 'n'}], cursor: {} OPTIONS}",
        told,
    ),
];

/// Ways that sort, skip and limit, before and after stages that keep every document. The others are compared with the
/// first, the order included. `CUT` stands for `$skip` and `$limit`, `RENAMED` for the sort after `n` was renamed.
pub static SORTED: [Way; 16] = [
    way("{find: 'FROM', filter: FILTER, sort: SORT, skip: SKIPPED, limit: LIMITED, projection: {_id: 1} OPTIONS}", ids_in_order),
    way("{find: 'FROM', filter: FILTER, sort: SORT, skip: SKIPPED, limit: LIMITED OPTIONS}", ids_in_order),
    way("{aggregate: 'FROM', pipeline: [{$match: FILTER}, {$sort: SORT}, CUT, {$project: {_id: 1}}], cursor: {} OPTIONS}", ids_in_order),
    way("{aggregate: 'FROM', pipeline: [{$sort: SORT}, {$match: FILTER}, CUT], cursor: {} OPTIONS}", ids_in_order),
    way("{aggregate: 'FROM', pipeline: [BEHIND, {$match: FILTER}, {$sort: SORT}, CUT], cursor: {} OPTIONS}", ids_in_order),
    way(
        "{aggregate: 'FROM', pipeline: [{$match: FILTER}, {$lookup: {from: 'none', localField: 'n', foreignField: 'n', as: 'zz'}},
            {$sort: SORT}, CUT, {$project: {_id: 1}}], cursor: {} OPTIONS}",
        ids_in_order,
    ),
    way(
        "{aggregate: 'FROM', pipeline: [{$match: FILTER}, {$sort: SORT},
            {$lookup: {from: 'one', pipeline: [], as: 'zz'}}, {$unwind: '$zz'}, CUT], cursor: {} OPTIONS}",
        ids_in_order,
    ),
    way(
        "{aggregate: 'FROM', pipeline: [{$match: FILTER}, {$lookup: {from: 'one', pipeline: [], as: 'zz'}}, {$unwind: '$zz'},
            {$sort: SORT}, CUT], cursor: {} OPTIONS}",
        ids_in_order,
    ),
    way("{aggregate: 'FROM', pipeline: [{$match: FILTER}, {$set: {zz: {$add: ['$_id', 1]}}}, {$sort: SORT}, CUT], cursor: {} OPTIONS}", ids_in_order),
    way(
        "{aggregate: 'FROM', pipeline: [{$match: FILTER}, {$project: {n: 1, s: 1, h: 1, x: 1, o: 1, w: 1, v: 1}}, {$sort: SORT}, CUT],
            cursor: {} OPTIONS}",
        ids_in_order,
    ),
    way(
        "{aggregate: 'FROM', pipeline: [{$match: FILTER}, {$unwind: {path: '$zz', preserveNullAndEmptyArrays: true}}, {$sort: SORT},
            CUT], cursor: {} OPTIONS}",
        ids_in_order,
    ),
    way(
        "{aggregate: 'FROM', pipeline: [{$match: FILTER}, {$group: {_id: '$_id', d: {$first: '$$ROOT'}}}, {$replaceWith: '$d'},
            {$sort: SORT}, CUT], cursor: {} OPTIONS}",
        ids_in_order,
    ),
    way("{aggregate: 'FROM', pipeline: [{$match: FILTER}, {$set: {renamed: '$n'}}, {$sort: RENAMED}, CUT], cursor: {} OPTIONS}", ids_in_order),
    way(
        "{aggregate: 'FROM', pipeline: [{$match: FILTER}, {$sort: SORT}, CUT, {$group: {_id: null, ids: {$push: '$_id'}}},
            {$unwind: '$ids'}, {$project: {_id: '$ids'}}], cursor: {} OPTIONS}",
        ids_in_order,
    ),
    way(
        "{aggregate: 'one', pipeline: [{$lookup: {from: 'FROM', pipeline: [{$match: FILTER}, {$sort: SORT}, CUT], as: 'f'}},
            {$unwind: '$f'}, {$replaceWith: '$f'}], cursor: {} COLLATED}",
        ids_in_order,
    ),
    way(
        "{aggregate: 'FROM', pipeline: [{$match: FILTER}, {$facet: {f: [{$sort: SORT}, CUT]}}, {$unwind: '$f'}, {$replaceWith: '$f'}],
            cursor: {} OPTIONS}",
        ids_in_order,
    ),
];

/// Groups that need only a few documents each. Each is compared with itself on the collection without indexes.
pub static GROUPED: [Way; 11] = [
    way(
        "{aggregate: 'FROM', pipeline: [{$match: FILTER}, {$group: {_id: '$s', f: {$topN: {n: 2, sortBy: {h: 1, _id: 1}, output: '$_id'}}}}], cursor: {} OPTIONS}",
        documents,
    ),
    way(
        "{aggregate: 'FROM', pipeline: [{$match: FILTER}, {$group: {_id: '$s', f: {$bottomN: {n: 3, sortBy: {h: 1, _id: 1}, output: '$_id'}}}}], cursor: {} OPTIONS}",
        documents,
    ),
    way(
        "{aggregate: 'FROM', pipeline: [{$match: FILTER}, {$group: {_id: '$s', f: {$bottomN: {n: 1, sortBy: {h: -1, _id: -1}, output: '$_id'}}}}], cursor: {} OPTIONS}",
        documents,
    ),
    way(
        "{aggregate: 'FROM', pipeline: [{$match: FILTER}, {$sort: {s: 1, h: 1, _id: 1}}, {$group: {_id: '$s', f: {$firstN: {n: 2, input: '$_id'}}, l: {$first: '$_id'}}}], cursor: {} OPTIONS}",
        documents,
    ),
    way(
        "{aggregate: 'FROM', pipeline: [{$match: FILTER}, {$sort: {s: -1, h: -1, _id: -1}}, {$group: {_id: '$s', f: {$firstN: {n: 3, input: '$_id'}}}}], cursor: {} OPTIONS}",
        documents,
    ),
    way(
        "{aggregate: 'FROM', pipeline: [{$match: FILTER}, {$sort: {s: 1, h: 1, _id: 1}}, {$group: {_id: '$s', f: {$lastN: {n: 1, input: '$_id'}}, l: {$last: '$_id'}}}], cursor: {} OPTIONS}",
        documents,
    ),
    way(
        "{aggregate: 'FROM', pipeline: [{$match: FILTER}, {$sort: {s: 1, h: 1, _id: 1}}, {$group: {_id: '$s', f: {$lastN: {n: 2, input: '$_id'}}}}], cursor: {} OPTIONS}",
        documents,
    ),
    way(
        "{aggregate: 'FROM', pipeline: [{$match: FILTER}, {$group: {_id: '$s', f: {$maxN: {n: 2, input: '$_id'}}, m: {$min: '$_id'}}}], cursor: {} OPTIONS}",
        documents,
    ),
    way(
        "{aggregate: 'FROM', pipeline: [{$match: FILTER}, {$group: {_id: '$s', f: {$minN: {n: 2, input: '$_id'}}}}], cursor: {} OPTIONS}",
        documents,
    ),
    // An expression may fail on documents that a group does not need.
    way(
        "{aggregate: 'FROM', pipeline: [{$match: FILTER}, {$group: {_id: '$s', f: {$topN: {n: 2, sortBy: {h: 1, _id: 1}, output: {$add: ['$x', 1]}}}}}], cursor: {} OPTIONS}",
        documents,
    ),
    way(
        "{aggregate: 'FROM', pipeline: [{$match: FILTER}, {$sort: {s: 1, h: 1, _id: 1}}, {$group: {_id: '$s', f: {$firstN: {n: 1, input: {$add: ['$x', 1]}}}}}], cursor: {} OPTIONS}",
        documents,
    ),
];

pub static DELETE: Way = way("{delete: 'FROM', deletes: [{q: FILTER, limit: 0 OPTIONS}]}", n);

/// Stages that keep every document and its fields.
pub const STAGES: [&str; 17] = [
    "{$set: {zz: 1}}",
    "{$unset: 'zz'}",
    "{$project: {zz: 0}}",
    "{$project: {n: 1, s: 1, h: 1, x: 1, o: 1, w: 1, g: 1, place: 1, t: 1, v: 1}}",
    "{$sort: {_id: -1}}",
    "{$sort: {h: 1}}",
    "{$lookup: {from: 'none', localField: 'n', foreignField: 'n', as: 'zz'}}",
    "{$graphLookup: {from: 'none', startWith: '$n', connectFromField: 'n', connectToField: 'n', as: 'zz'}}",
    "{$unwind: {path: '$zz', preserveNullAndEmptyArrays: true}}",
    "{$replaceWith: '$$ROOT'}",
    "{$replaceWith: {$mergeObjects: ['$$ROOT', {zz: 1}]}}",
    "{$redact: '$$KEEP'}",
    "{$limit: 1000}",
    "{$setWindowFields: {partitionBy: '$_id', output: {zz: {$sum: 1}}}}",
    "{$fill: {output: {zz: {value: 1}}}}",
    "{$group: {_id: '$_id', zz: {$first: '$$ROOT'}}}, {$replaceWith: '$zz'}",
    "{$unionWith: 'none'}",
];
