//! Privileges for commands that create, change and measure collections.

use super::asker::Asker;
use super::pipelines::{PipelineCheck, StageTable, Validation};
use super::request::{argument, has_on, is_on, split};
use bunko_access::Action;
use bunko_bson::{ArrayRef, ValueRef};
use bunko_request::Request;
use bunko_store::planted::{Bug, active};

/// `create`: the privilege to insert into a collection also allows creating it. A view must not show data that its
/// creator cannot read.
pub fn create(asker: &Asker<'_>, request: &Request<'_>, stages: StageTable) -> bool {
    let may_create = asker.on_named(request, Action::CreateCollection);
    // Each option needs its own privileges. None of them replaces another's.
    let is_view = request.body.get("viewOn").is_some();
    let is_capped = has_on(request.body, "capped");
    if is_view || is_capped {
        return may_create
            && (!is_view || may_show(asker, request, stages))
            && (!is_capped || asker.on_named(request, Action::ConvertToCapped));
    }
    may_create || asker.on_named(request, Action::Insert)
}

/// Whether the client may run this `collMod`.
pub fn modify(asker: &Asker<'_>, request: &Request<'_>, stages: StageTable) -> bool {
    if active(Bug::CheckLeftOut) {
        return asker.user().is_some();
    }
    let is_view = request.body.get("viewOn").is_some() || request.body.get("pipeline").is_some();
    asker.on_named(request, Action::CollMod) && (!is_view || may_show(asker, request, stages))
}

/// Whether the client may read the data that a view would show.
fn may_show(asker: &Asker<'_>, request: &Request<'_>, stages: StageTable) -> bool {
    let pipeline = request.body.get("pipeline").and_then(ValueRef::as_array).unwrap_or(ArrayRef::EMPTY);
    let on = request.body.get("viewOn").and_then(ValueRef::as_str);
    PipelineCheck { asker, database: request.database, stages, validation: Validation::Done }.may_run(on, pipeline)
}

/// Whether the client may run this `cloneCollectionAsCapped`.
pub fn clone_as_capped(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    let target = request.body.get("toCollection").and_then(ValueRef::as_str).unwrap_or_default();
    let on_target = |action| asker.on_collection(request.database, target, action);
    asker.on_named(request, Action::Find)
        && [Action::Insert, Action::CreateIndex, Action::ConvertToCapped].into_iter().all(on_target)
}

/// Whether the client may run this `dataSize`.
pub fn data_size(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    let (database, collection) = split(argument(request));
    asker.on_collection(database, collection, Action::Find)
}

/// `renameCollection`: a user who cannot read a collection must not gain access by renaming it to a name that they can
/// read.
pub fn rename(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    let (from, to) = (split(argument(request)), split(request.body.get("to").and_then(ValueRef::as_str).unwrap_or("")));
    let may = |(database, collection): (&str, &str), action| asker.on_collection(database, collection, action);
    let replaces = request.body.get("dropTarget").is_some_and(is_on);
    if replaces && !may(to, Action::DropCollection) {
        return false;
    }
    let within = from.0 == to.0
        && asker.on_database(from.0, Action::RenameCollectionSameDb)
        && !from.1.starts_with("system.")
        && !to.1.starts_with("system.")
        && (may(from, Action::Find) || !may(to, Action::Find));
    let anywhere = [Action::Find, Action::DropCollection].into_iter().all(|action| may(from, action))
        && [Action::Insert, Action::CreateIndex].into_iter().all(|action| may(to, action));
    within || anywhere
}
