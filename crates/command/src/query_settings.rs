//! The use of query settings by commands.
//!
//! `Invocation::scope_in` looks up the settings for the shape of the command, refuses a rejected shape, and puts the
//! settings into the `QueryScope`. There the planner finds them for each collection that the command reads. A `find` of
//! one document by its `_id` has no scope, so it never looks settings up.

use crate::scope_options::ScopeOptions;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_query::QuerySettings;
use bunko_request::facts::CommandFacts;
use bunko_settings::query_settings::{AllQuerySettings, shape_of};
use std::sync::Arc;

/// The settings for the shape of the command that runs, or that the running command explains.
/// # Errors
/// `QueryRejectedBySettings` if the settings reject the shape; such commands may still be explained.
pub(crate) fn applied(
    all: &AllQuerySettings,
    running: &CommandFacts,
    database: &str,
    options: &ScopeOptions<'_>,
) -> Result<Option<Arc<QuerySettings>>> {
    let shape = || {
        let has_shape = options.command.takes_query_settings();
        has_shape.then(|| shape_of(options.command, database, options.body))
    };
    let Some(set) = all.of_shape(shape) else { return Ok(None) };
    let is_explained = running.is_explain() || options.is_explained;
    if set.settings.rejects() && !is_explained {
        return Err(Failure::new(ErrorCode::QUERY_REJECTED_BY_SETTINGS, "Query rejected by admin query settings"));
    }
    Ok(Some(Arc::clone(&set.for_planner)))
}

#[cfg(test)]
mod tests {
    use crate::commands;
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
