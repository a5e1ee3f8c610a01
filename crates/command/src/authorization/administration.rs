//! Privileges for commands on the server, its databases and its operations.

use super::{Asker, has_on, is_on};
use crate::commands;
use bunko_access::{Action, Name};
use bunko_bson::{ValueRef, number};
use bunko_request::Request;

/// Commands that may change any collection in any way, such as `applyOps`.
pub(crate) fn everything(asker: &Asker<'_>, _: &Request<'_>) -> bool {
    asker.may_do_everything()
}

/// `currentOp`: of all users, or only the user's own operations.
pub(crate) fn current_op(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    asker.on_cluster(Action::InProg) || asker.user().is_some() && has_on(request.body, "$ownOps")
}

/// `killOp`: any operation, or the user's own.
pub(crate) fn kill_op(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    let operation = request.body.get("op").and_then(number::as_i64_exact).and_then(|id| u32::try_from(id).ok());
    let is_own = || {
        let user = operation.and_then(|id| asker.service.operations.user_of(id));
        user.is_some_and(|user: Name| asker.is(&user))
    };
    asker.on_cluster(Action::KillOp) || is_own()
}

/// `explain`: needs the privileges of the explained command.
pub(crate) fn explain(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    let inner = request.argument().as_document();
    let command = inner.and_then(|body| commands::find(body.first()?.name));
    match (inner, command) {
        // The command itself refuses an inner command that cannot be explained.
        (Some(_), Some(command)) if command.is_explain() => asker.user().is_some(),
        (Some(body), Some(command)) => {
            asker.user().is_some() && asker.may(command, &Request::new(request.database, body, None))
        }
        _ => asker.user().is_some(),
    }
}

/// `listCollections`: all, or the names of collections on which the user has any privilege.
pub(crate) fn list_collections(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    let asks_for_own = has_on(request.body, "nameOnly") && has_on(request.body, "authorizedCollections");
    asker.on_database(request.database, Action::ListCollections)
        || asks_for_own && asker.knows_database(request.database)
}

/// `listDatabases`: the privilege is needed only by a request that insists on all databases.
pub(crate) fn list_databases(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    let insists = request.body.get("authorizedDatabases").is_some_and(|own| !own.is_nullish() && !is_on(own));
    asker.on_cluster(Action::ListDatabases) || asker.user().is_some() && !insists
}

/// `profile`: a user who may read `system.profile` may also read the settings.
pub(crate) fn profile(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    let level = number::as_i64_exact(request.argument());
    let only_asks = level == Some(-1)
        && !["slowms", "sampleRate", "filter"].into_iter().any(|field| request.body.get(field).is_some());
    asker.on_database(request.database, Action::EnableProfiler)
        || only_asks && asker.on_collection(request.database, "system.profile", Action::Find)
}

/// `validateDBMetadata`: on the database that it names, else on all.
pub(crate) fn validate_metadata(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    match request.body.get("db") {
        Some(ValueRef::String(database)) => asker.on_database(database, Action::Validate),
        _ => asker.on_all_databases(Action::Validate),
    }
}
