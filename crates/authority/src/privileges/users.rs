//! Privileges for commands about users and roles. A user grants only in databases where they have the privilege to
//! grant.

use super::asker::Asker;
use super::request::{argument, has_on, split};
use bunko_access::{Action, Name, Privilege, Resource};
use bunko_bson::{ArrayRef, ValueRef, number};
use bunko_request::Request;

/// The names in an array field. The command itself refuses malformed names.
fn names(request: &Request<'_>, value: Option<ValueRef<'_>>, key: &str) -> Vec<Name> {
    let values = value.and_then(ValueRef::as_array).into_iter().flat_map(ArrayRef::iter);
    values.filter_map(|name| Name::parse(name, key, request.database).ok()).collect()
}

fn on_roles(asker: &Asker<'_>, request: &Request<'_>, action: Action) -> bool {
    names(request, request.body.get("roles"), "role").iter().all(|role| asker.on_database(&role.database, action))
}

/// Granting a privilege needs the action in the privilege's database, or in `admin` if it is not for one database.
fn on_privileges(asker: &Asker<'_>, request: &Request<'_>, action: Action) -> bool {
    let privileges = request.body.get("privileges").and_then(ValueRef::as_array);
    privileges.into_iter().flat_map(ArrayRef::iter).all(|privilege| {
        let Some(Ok(privilege)) = privilege.as_document().map(Privilege::parse) else { return true };
        match &privilege.resource {
            Resource::Database(database)
            | Resource::Collection(database, _)
            | Resource::SystemBuckets(Some(database), _) => asker.on_database(database, action),
            Resource::Any
            | Resource::Cluster
            | Resource::AnyNormal
            | Resource::CollectionName(_)
            | Resource::SystemBuckets(None, _) => asker.on_database("admin", action),
        }
    })
}

fn may_restrict(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    request.body.get("authenticationRestrictions").is_none_or(ValueRef::is_nullish)
        || asker.on_database(request.database, Action::SetAuthenticationRestriction)
}

/// Whether the client may run this `createUser`.
pub fn create_user(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    asker.on_database(request.database, Action::CreateUser)
        && on_roles(asker, request, Action::GrantRole)
        && may_restrict(asker, request)
}

/// `updateUser`: setting roles also takes away the old ones. A user may change their own password or data with
/// privileges of their own.
pub fn update_user(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    let is_own = asker.is(&Name::new(argument(request), request.database));
    let sets = |field: &str| request.body.get(field).is_some_and(|value| !value.is_nullish());
    let may =
        |other, own| asker.on_database(request.database, other) || is_own && asker.on_database(request.database, own);
    let sets_password = ["pwd", "mechanisms", "digestPassword"].into_iter().any(sets);
    asker.user().is_some()
        && (!sets_password || may(Action::ChangePassword, Action::ChangeOwnPassword))
        && (!sets("customData") || may(Action::ChangeCustomData, Action::ChangeOwnCustomData))
        && (!sets("roles") || asker.on_all_databases(Action::RevokeRole) && on_roles(asker, request, Action::GrantRole))
        && may_restrict(asker, request)
}

/// Whether the client may run this `createRole`.
pub fn create_role(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    asker.on_database(request.database, Action::CreateRole)
        && on_roles(asker, request, Action::GrantRole)
        && on_privileges(asker, request, Action::GrantRole)
        && may_restrict(asker, request)
}

/// `updateRole`: setting roles or privileges also takes away the old ones.
pub fn update_role(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    asker.on_all_databases(Action::RevokeRole)
        && on_roles(asker, request, Action::GrantRole)
        && on_privileges(asker, request, Action::GrantRole)
        && may_restrict(asker, request)
}

/// Whether the client may run this `grantRolesToUser` or `grantRolesToRole`.
pub fn grant_roles(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    asker.user().is_some() && on_roles(asker, request, Action::GrantRole)
}

/// Whether the client may run this `revokeRolesFromUser` or `revokeRolesFromRole`.
pub fn revoke_roles(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    asker.user().is_some() && on_roles(asker, request, Action::RevokeRole)
}

/// Whether the client may run this `grantPrivilegesToRole`.
pub fn grant_privileges(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    asker.user().is_some() && on_privileges(asker, request, Action::GrantRole)
}

/// `_mergeAuthzCollections`: needs the privileges to create any user or role, and to read the temporary collections of
/// the dump.
pub fn merge(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    let may_read = |option: &str| {
        let named = request.body.iter().filter(|field| field.name == option).filter_map(|field| field.value.as_str());
        named.filter(|named| !named.is_empty()).all(|named| {
            let (database, collection) = split(named);
            asker.on_collection(database, collection, Action::Find)
        })
    };
    let may_all = |actions: &[Action]| actions.iter().all(|action| asker.on_all_databases(*action));
    may_all(&[Action::CreateUser, Action::CreateRole, Action::GrantRole, Action::RevokeRole])
        && (!has_on(request.body, "drop") || may_all(&[Action::DropUser, Action::DropRole]))
        && may_read("tempUsersCollection")
        && may_read("tempRolesCollection")
}

/// Whether the client may run this `revokePrivilegesFromRole`.
pub fn revoke_privileges(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    asker.user().is_some() && on_privileges(asker, request, Action::RevokeRole)
}

/// `usersInfo`: users of databases whose users the client may see, and the client's own user.
pub fn users_info(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    let is_visible = |name: &Name| asker.on_database(&name.database, Action::ViewUser) || asker.is(name);
    match request.argument() {
        ValueRef::Document(all) if all.get("forAllDBs").is_some() => asker.on_all_databases(Action::ViewUser),
        value => may_see(asker, request, value, "user", (Action::ViewUser, &is_visible)),
    }
}

/// `rolesInfo`: roles of databases whose roles the client may see, and the client's own roles.
pub fn roles_info(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    let is_visible = |name: &Name| asker.on_database(&name.database, Action::ViewRole) || asker.has_role(name);
    let value = request.argument();
    may_see(asker, request, value, "role", (Action::ViewRole, &is_visible))
}

fn may_see(
    asker: &Asker<'_>,
    request: &Request<'_>,
    asked: ValueRef<'_>,
    key: &str,
    (action, is_visible): (Action, &dyn Fn(&Name) -> bool),
) -> bool {
    if number::clamp_to_i64(asked) == Some(1) {
        return asker.on_database(request.database, action);
    }
    let names = match asked {
        ValueRef::Array(_) => names(request, Some(asked), key),
        name => Name::parse(name, key, request.database).into_iter().collect(),
    };
    asker.user().is_some() && names.iter().all(is_visible)
}
