//! Privileges for commands on the server, its databases and its operations.

use super::asker::Asker;
use super::request::{has_on, is_on};
use bunko_access::Action;
use bunko_bson::{ValueRef, number};
use bunko_request::Request;

/// Whether the client may run a command that can change any collection in any way, such as `applyOps`.
pub fn everything(asker: &Asker<'_>, _: &Request<'_>) -> bool {
    asker.may_do_everything()
}

/// `currentOp`: of all users, or only the user's own operations.
pub fn current_op(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    asker.on_cluster(Action::InProg) || asker.user().is_some() && has_on(request.body, "$ownOps")
}

/// `listCollections`: all, or the names of collections on which the user has any privilege.
pub fn list_collections(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    let asks_for_own = has_on(request.body, "nameOnly") && has_on(request.body, "authorizedCollections");
    asker.on_database(request.database, Action::ListCollections)
        || asks_for_own && asker.knows_database(request.database)
}

/// `listDatabases`: the privilege is needed only by a request that insists on all databases.
pub fn list_databases(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    let insists = request.body.get("authorizedDatabases").is_some_and(|own| !own.is_nullish() && !is_on(own));
    asker.on_cluster(Action::ListDatabases) || asker.user().is_some() && !insists
}

/// `profile`: a user who may read `system.profile` may also read the settings.
pub fn profile(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    let level = number::as_i64_exact(request.argument());
    let only_asks = level == Some(-1)
        && !["slowms", "sampleRate", "filter"].into_iter().any(|field| request.body.get(field).is_some());
    asker.on_database(request.database, Action::EnableProfiler)
        || only_asks && asker.on_collection(request.database, "system.profile", Action::Find)
}

/// `validateDBMetadata`: on the database that the request names, or else on all databases.
pub fn validate_metadata(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    match request.body.get("db") {
        Some(ValueRef::String(database)) => asker.on_database(database, Action::Validate),
        _ => asker.on_all_databases(Action::Validate),
    }
}

/// `bunkoBackup`: reading all data, with the secrets of users, as the role `backup` may.
pub fn backup(asker: &Asker<'_>, _: &Request<'_>) -> bool {
    asker.on_cluster(Action::ListDatabases)
        && asker.on_all_databases(Action::Find)
        && ["system.users", "system.roles"].into_iter().all(|name| asker.on_collection("admin", name, Action::Find))
}
