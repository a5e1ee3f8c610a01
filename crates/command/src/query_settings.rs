//! The use of query settings by commands.
//!
//! `Invocation::scope_in` looks up the settings for the shape of the command, refuses a rejected shape, and puts the
//! settings into the `QueryScope`. There the planner finds them for each collection that the command reads. A `find` of
//! one document by its `_id` has no scope, so it never looks settings up.

use crate::commands;
use crate::dispatch::Halt;
use crate::invocation::Invocation;
use crate::stored_settings;
use bunko_catalog::stored_document::Stamps;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_query::QuerySettings;
use bunko_request::fields::Fields;
use bunko_settings::cluster_parameters::{COLLECTION, DATABASE};
use bunko_settings::query_settings::{Set, ShapeHash, shape_of};
use std::sync::Arc;

/// The settings for the shape of the command that runs or is explained.
/// # Errors
/// `QueryRejectedBySettings` if the settings reject the shape; such commands may still be explained.
pub(crate) fn applied(invocation: &Invocation<'_>, fields: &Fields<'_>) -> Result<Option<Arc<QuerySettings>>> {
    let shape = || {
        let command = commands::find(fields.command).filter(|command| command.has_query_shape())?;
        Some(shape_of(command, invocation.request.database, fields.body))
    };
    let Some(set) = invocation.service.query_settings.of_shape(shape) else { return Ok(None) };
    let is_explained = invocation.command.is_explain() || fields.truth("explain");
    if set.settings.rejects() && !is_explained {
        return Err(Failure::new(ErrorCode::QUERY_REJECTED_BY_SETTINGS, "Query rejected by admin query settings"));
    }
    Ok(Some(Arc::clone(&set.for_planner)))
}

/// Changes the settings of a shape durably, and returns the new ones.
/// # Errors
/// Errors of `change`; `BSONObjectTooLarge` if all settings do not fit into one document; errors of the write.
pub(crate) fn change(
    invocation: &mut Invocation<'_>,
    hash: ShapeHash,
    change: &dyn Fn(Option<&Set>) -> Result<Option<Set>>,
) -> Result<Option<Arc<Set>>, Halt> {
    let service = invocation.service;
    let mut changing = service.query_settings.change();
    let [before, after] = changing.replace(hash, change)?;
    if before.is_none() && after.is_none() {
        return Ok(None);
    }
    let kept = changing.to_document(service.world.timestamp())?;
    stored_settings::keep(invocation, DATABASE, COLLECTION, &kept)?;
    changing.publish();
    Ok(after)
}

#[cfg(test)]
mod tests {
    use super::commands;
    use bunko_bson::ValueRef;
    use bunko_settings::query_settings::shape_of;
    use bunko_testkit::shell;

    fn shape(command: &str) -> String {
        let body = shell::parse_document(command).expect("a command");
        let name = body.as_ref().first().expect("a name").name.to_owned();
        shell::print(ValueRef::Document(
            shape_of(commands::find(&name).expect("a command"), "d", body.as_ref()).as_ref(),
        ))
    }

    #[test]
    fn values_hints_and_batches_do_not_count() {
        for (one, other) in [
            ("{find: 'c', filter: {a: 1}}", "{find: 'c', filter: {a: 2.5}, hint: 'a_1', batchSize: 3}"),
            ("{find: 'c'}", "{find: 'c', filter: {}, sort: {}, limit: null}"),
            ("{find: 'c', filter: {a: 1}}", "{find: 'c', filter: {a: {$eq: 7}}}"),
            ("{find: 'c', filter: {a: {$in: [1]}}}", "{find: 'c', filter: {a: {$in: [2, 3]}}}"),
            ("{find: 'c', limit: 1}", "{find: 'c', limit: 2}"),
            ("{find: 'c', projection: {a: 1}}", "{find: 'c', projection: {a: true}}"),
            ("{find: 'c', filter: {$expr: {$gt: ['$a', 1]}}}", "{find: 'c', filter: {$expr: {$gt: ['$a', 2]}}}"),
            (
                "{aggregate: 'c', pipeline: [{$match: {a: 1}}]}",
                "{aggregate: 'c', pipeline: [{$match: {a: 2}}], cursor: {}}",
            ),
            ("{distinct: 'c', key: 'a', query: {b: 'x'}}", "{distinct: 'c', key: 'a', query: {b: 'y'}}"),
            (
                "{find: 'c', filter: {$expr: {$in: ['$a', [1, 2]]}}}",
                "{find: 'c', filter: {$expr: {$in: ['$a', [3, 4, 5]]}}}",
            ),
            (
                "{aggregate: 'c', pipeline: [{$bucket: {groupBy: '$a', boundaries: [0, 5], default: 1}}]}",
                "{aggregate: 'c', pipeline: [{$bucket: {groupBy: '$a', boundaries: [1, 9], default: 2}}]}",
            ),
            (
                "{aggregate: 'c', pipeline: [{$densify: {field: 'a', range: {step: 1, bounds: [0, 9]}}}]}",
                "{aggregate: 'c', pipeline: [{$densify: {field: 'a', range: {step: 2, bounds: [3, 4]}}}]}",
            ),
            (
                "{aggregate: 'c', pipeline: [{$fill: {output: {a: {value: 1}}}}]}",
                "{aggregate: 'c', pipeline: [{$fill: {output: {a: {value: 2}}}}]}",
            ),
            (
                "{aggregate: 'c', pipeline: [{$setWindowFields: {output: {b: {$sum: 1, window: {documents: [-1, 0]}}}}}]}",
                "{aggregate: 'c', pipeline: [{$setWindowFields: {output: {b: {$sum: 2, window: {documents: [-3, 4]}}}}}]}",
            ),
        ] {
            assert_eq!(shape(one), shape(other));
        }
    }

    #[test]
    fn paths_operators_types_and_orders_do() {
        for (one, other) in [
            ("{find: 'c', filter: {a: 1}}", "{find: 'd', filter: {a: 1}}"),
            ("{find: 'c', filter: {a: 1}}", "{find: 'c', filter: {b: 1}}"),
            ("{find: 'c', filter: {a: 1}}", "{find: 'c', filter: {a: 'x'}}"),
            ("{find: 'c', filter: {a: 1}}", "{find: 'c', filter: {a: {$gt: 1}}}"),
            ("{find: 'c', filter: {a: {$gt: 1}}}", "{find: 'c', filter: {a: {$not: {$gt: 1}}}}"),
            ("{find: 'c', sort: {a: 1}}", "{find: 'c', sort: {a: -1}}"),
            ("{find: 'c', projection: {a: 1}}", "{find: 'c', projection: {a: 0}}"),
            ("{find: 'c'}", "{find: 'c', limit: 2}"),
            ("{aggregate: 'c', pipeline: []}", "{aggregate: 'c', pipeline: [{$sort: {a: 1}}]}"),
            ("{distinct: 'c', key: 'a'}", "{distinct: 'c', key: 'b'}"),
            (
                "{find: 'c', filter: {$expr: {$in: ['$a', ['$b']]}}}",
                "{find: 'c', filter: {$expr: {$in: ['$a', ['$b', '$c']]}}}",
            ),
            ("{find: 'c', filter: {a: {$all: [1]}}}", "{find: 'c', filter: {a: {$all: [1, 2]}}}"),
            (
                "{aggregate: 'c', pipeline: [{$bucket: {groupBy: '$a', boundaries: [0, 5]}}]}",
                "{aggregate: 'c', pipeline: [{$bucket: {groupBy: '$a', boundaries: [0, 5, 9]}}]}",
            ),
            (
                "{aggregate: 'c', pipeline: [{$fill: {output: {a: {method: 'linear'}}}}]}",
                "{aggregate: 'c', pipeline: [{$fill: {output: {a: {method: 'locf'}}}}]}",
            ),
            (
                "{aggregate: 'c', pipeline: [{$setWindowFields: {output: {b: {$sum: 1, window: {documents: [-1, 0]}}}}}]}",
                "{aggregate: 'c', pipeline: [{$setWindowFields: {output: {b: {$sum: 1, window: {range: [-1, 0]}}}}}]}",
            ),
            (
                "{aggregate: 'c', pipeline: [{$setWindowFields: {output: {b: {$sum: 1, window: {documents: ['unbounded', 0]}}}}}]}",
                "{aggregate: 'c', pipeline: [{$setWindowFields: {output: {b: {$sum: 1, window: {documents: ['current', 0]}}}}}]}",
            ),
        ] {
            assert_ne!(shape(one), shape(other));
        }
    }
}
