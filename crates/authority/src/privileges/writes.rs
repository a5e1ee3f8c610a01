//! Privileges for commands that write documents.

use super::asker::Asker;
use super::request::{argument, entries, has_on, split};
use bunko_access::Action;
use bunko_bson::{ValueRef, number};
use bunko_request::Request;

/// Whether the request respects validators, or the user may bypass them.
pub(super) fn may_bypass(asker: &Asker<'_>, request: &Request<'_>, database: &str, collection: &str) -> bool {
    // The privilege is checked first, because reading the option takes a walk over the request.
    asker.on_collection(database, collection, Action::BypassDocumentValidation)
        || !has_on(request.body, "bypassDocumentValidation")
}

/// Whether the client may run this `insert`.
pub fn insert(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    asker.on_named(request, Action::Insert) && may_bypass_on_named(asker, request)
}

/// `update`: an upsert also inserts.
pub fn update(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    let upserts = || entries(request, "updates").into_iter().any(|update| has_on(update, "upsert"));
    // The privilege to insert is checked first, because a client who has it needs no search for upserts.
    asker.on_named(request, Action::Update)
        && (asker.on_named(request, Action::Insert) || !upserts())
        && may_bypass_on_named(asker, request)
}

fn may_bypass_on_named(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    may_bypass(asker, request, request.database, argument(request))
}

/// Whether the client may run this `delete`.
pub fn delete(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    asker.on_named(request, Action::Remove)
}

/// Whether the client may run this `findAndModify`.
pub fn find_and_modify(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    let removes = has_on(request.body, "remove");
    let may = |is_needed: bool, action| !is_needed || asker.on_named(request, action);
    asker.on_named(request, Action::Find)
        && may(removes, Action::Remove)
        && may(!removes || request.body.get("update").is_some(), Action::Update)
        && may(has_on(request.body, "upsert"), Action::Insert)
        && may_bypass_on_named(asker, request)
}

/// `bulkWrite`: checks each operation on the namespace that it names.
pub fn bulk_write(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    let namespaces: Vec<_> = entries(request, "nsInfo")
        .into_iter()
        .map(|info| split(info.get("ns").and_then(ValueRef::as_str).unwrap_or_default()))
        .collect();
    let may = |place: Option<usize>, action| {
        // The command itself refuses an index that has no namespace in `nsInfo`.
        let Some(&(database, collection)) = place.and_then(|place| namespaces.get(place)) else { return true };
        asker.on_collection(database, collection, action)
    };
    let is_allowed = entries(request, "ops").into_iter().all(|operation| {
        let upserts = has_on(operation, "upsert");
        operation.iter().all(|field| {
            let place = number::as_i64_exact(field.value).and_then(|place| usize::try_from(place).ok());
            match field.name {
                "insert" => may(place, Action::Insert),
                "update" => may(place, Action::Update) && (!upserts || may(place, Action::Insert)),
                "delete" => may(place, Action::Remove),
                _ => true,
            }
        })
    });
    is_allowed
        && asker.user().is_some()
        && namespaces.iter().all(|(database, collection)| may_bypass(asker, request, database, collection))
}
