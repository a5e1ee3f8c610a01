//! Commands about the server, its databases and its operations.

use super::{Asker, has_on, is_on};
use crate::commands;
use crate::dispatch::Request;
use bunko_access::{Action, Name};
use bunko_bson::{ValueRef, number};

/// What may do anything to any collection, such as `applyOps`.
pub(crate) fn everything(asker: &Asker<'_>, _: &Request<'_>) -> bool {
    asker.may_do_everything()
}

/// `currentOp`: those of all, or one's own.
pub(crate) fn current_op(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    asker.on_cluster(Action::InProg) || asker.user().is_some() && has_on(request.body, "$ownOps")
}

/// `killOp`: any, or one's own.
pub(crate) fn kill_op(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    let operation = request.body.get("op").and_then(number::as_i64_exact).and_then(|id| u32::try_from(id).ok());
    let is_own = || {
        let user = operation.and_then(|id| asker.service.operations.user_of(id));
        user.is_some_and(|user: Name| asker.is(&user))
    };
    asker.on_cluster(Action::KillOp) || is_own()
}

/// `explain`: what the command inside needs.
pub(crate) fn explain(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    let inner = request.argument().as_document();
    let command = inner.and_then(|body| commands::find(body.first()?.name));
    match (inner, command) {
        // What cannot be explained is refused by the command.
        (Some(_), Some(command)) if command.name == "explain" => asker.user().is_some(),
        (Some(body), Some(command)) => {
            asker.user().is_some() && asker.may(command, &Request::new(request.database, body, None))
        }
        _ => asker.user().is_some(),
    }
}

/// `listCollections`: all, or the names of those that one may do something with.
pub(crate) fn list_collections(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    let asks_for_own = has_on(request.body, "nameOnly") && has_on(request.body, "authorizedCollections");
    asker.on_database(request.database, Action::ListCollections)
        || asks_for_own && asker.knows_database(request.database)
}

/// `listDatabases`: only who insists on all of them needs to be allowed to see all.
pub(crate) fn list_databases(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    let insists = request.body.get("authorizedDatabases").is_some_and(|own| !own.is_nullish() && !is_on(own));
    asker.on_cluster(Action::ListDatabases) || asker.user().is_some() && !insists
}

/// `profile`: whoever may read what it writes may ask how it is set.
pub(crate) fn profile(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    let level = number::as_i64_exact(request.argument());
    let only_asks = level == Some(-1)
        && !["slowms", "sampleRate", "filter"].into_iter().any(|field| request.body.get(field).is_some());
    asker.on_database(request.database, Action::EnableProfiler)
        || only_asks && asker.on_collection(request.database, "system.profile", Action::Find)
}

/// `validateDBMetadata`: the database that it names, else all.
pub(crate) fn validate_metadata(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    match request.body.get("db") {
        Some(ValueRef::String(database)) => asker.on_database(database, Action::Validate),
        _ => asker.on_all_databases(Action::Validate),
    }
}
