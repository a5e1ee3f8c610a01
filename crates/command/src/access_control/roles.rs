//! Roles: the built-in ones, and the documents of `admin.system.roles`.

use super::users::{documents_where, find_document};
use super::{DATABASE, ROLES, USERS, with_field};
use crate::dispatch::Halt;
use crate::invocation::Invocation;
use crate::stored_settings;
use bunko_access::{BUILTIN_ROLES, BuiltinRole, Name, Privilege, Restrictions, names_of, privileges_of};
use bunko_bson::{ArrayBuf, DocumentBuf};
use bunko_catalog::Catalog;
use bunko_errors::{ErrorCode, Failure, Result};

/// Most roles that a user may have, including inherited ones.
const INHERITED_MAX: usize = 4096;

/// A built-in role, or one that was read from `admin.system.roles`.
pub(crate) struct Role {
    pub name: Name,
    pub privileges: Vec<Privilege>,
    /// The roles that it inherits from directly.
    pub roles: Vec<Name>,
    pub restrictions: Restrictions,
    /// The stored document; `None` for a built-in role.
    pub document: Option<DocumentBuf>,
}

impl Role {
    fn builtin(role: &BuiltinRole, database: &str) -> Self {
        Self {
            name: Name::new(role.name, database),
            privileges: role.privileges(database),
            roles: Vec::new(),
            restrictions: Restrictions::default(),
            document: None,
        }
    }

    fn stored(name: Name, document: DocumentBuf) -> Self {
        let kept = document.as_ref();
        Self {
            privileges: privileges_of(kept),
            roles: names_of(kept, "roles", "role"),
            restrictions: Restrictions::of(kept),
            name,
            document: Some(document),
        }
    }

    /// The stored document, to be changed.
    /// # Errors
    /// `InvalidRoleModification` for a built-in role.
    pub fn into_own_document(self) -> Result<DocumentBuf> {
        self.document.ok_or_else(|| {
            let message = format!("{} is a built-in role and cannot be modified", self.name);
            Failure::new(ErrorCode::INVALID_ROLE_MODIFICATION, message)
        })
    }
}

/// The role of that name.
/// # Errors
/// Errors of reading the document.
pub(crate) fn find_role(catalog: &Catalog, name: &Name) -> Result<Option<Role>> {
    if let Some(role) = BuiltinRole::find(&name.name, &name.database) {
        return Ok(Some(Role::builtin(role, &name.database)));
    }
    let document = find_document(catalog, ROLES, "role", name)?;
    Ok(document.map(|document| Role::stored(name.clone(), document)))
}

/// The given roles and all that they inherit, each once. A role that no longer exists is left out.
/// # Errors
/// Errors of reading roles; `BadValue` above [`INHERITED_MAX`] roles.
pub(crate) fn all_inherited(catalog: &Catalog, roles: &[Name]) -> Result<Vec<Role>> {
    let mut waiting: Vec<Name> = roles.iter().rev().cloned().collect();
    let mut met = std::collections::BTreeSet::new();
    let mut found = Vec::new();
    while let Some(name) = waiting.pop() {
        // The reserved role cannot be granted, so one that a restored dump grants is ignored.
        if name == reserved_role() || !met.insert(name.clone()) {
            continue;
        }
        if met.len() > INHERITED_MAX {
            return Err(Failure::bad_value(format!("more than {INHERITED_MAX} roles are inherited by one another")));
        }
        if let Some(role) = find_role(catalog, &name)? {
            waiting.extend(role.roles.iter().rev().cloned());
            found.push(role);
        }
    }
    Ok(found)
}

/// The role that allows everything. MongoDB reserves it for the members of a cluster.
pub(crate) fn reserved_role() -> Name {
    Name::new("__system", DATABASE)
}

/// The stored roles of a database, after the built-in ones if they are asked for.
/// # Errors
/// Errors of reading roles.
pub(crate) fn roles_of_database(
    invocation: &Invocation<'_>,
    database: &str,
    builtin: BuiltinShown,
) -> Result<Vec<Role>> {
    let filter = DocumentBuf::new().with("db", database);
    let mut roles = Vec::new();
    if builtin == BuiltinShown::Yes {
        let builtin = BUILTIN_ROLES.iter().filter(|role| role.is_in(database));
        roles.extend(builtin.map(|role| Role::builtin(role, database)));
    }
    for document in documents_where(invocation, ROLES, &filter)? {
        if let Some(name) = document.as_ref().get("role").and_then(bunko_bson::ValueRef::as_str).map(str::to_owned) {
            roles.push(Role::stored(Name::new(name, database), document));
        }
    }
    Ok(roles)
}

/// Whether a list of roles includes the built-in ones.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum BuiltinShown {
    Yes,
    No,
}

/// Takes roles that are about to be dropped away from all users and roles that have them.
/// # Errors
/// Errors of the updates.
pub(crate) fn take_roles_away(invocation: &mut Invocation<'_>, gone: &[Name]) -> Result<(), Halt> {
    let names: ArrayBuf = gone.iter().map(|name| name.to_document("role")).collect::<Vec<_>>().iter().collect();
    let filter = DocumentBuf::new().with("roles", &DocumentBuf::new().with("$in", &names));
    for collection in [USERS, ROLES] {
        for document in documents_where(invocation, collection, &filter)? {
            let mut left = names_of(document.as_ref(), "roles", "role");
            left.retain(|name| !gone.contains(name));
            let left = documents_of(&left);
            let changed = with_field(document.as_ref(), "roles", Some((&left).into()));
            stored_settings::keep(invocation, DATABASE, collection, &changed)?;
        }
    }
    Ok(())
}

/// Role names as documents, as they are stored and shown.
pub(crate) fn documents_of(names: &[Name]) -> ArrayBuf {
    names.iter().map(|name| name.to_document("role")).collect::<Vec<_>>().iter().collect()
}
