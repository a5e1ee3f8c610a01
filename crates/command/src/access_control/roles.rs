//! Roles: those that every server has, and the documents of `admin.system.roles`.

use super::users::{documents_where, find_document};
use super::{DATABASE, ROLES, USERS, with_field};
use crate::dispatch::Halt;
use crate::invocation::Invocation;
use crate::stored_settings;
use bunko_access::{BUILTIN_ROLES, BuiltinRole, Name, Privilege, Restrictions, names_of, privileges_of};
use bunko_bson::{ArrayBuf, DocumentBuf};
use bunko_catalog::Catalog;
use bunko_errors::{ErrorCode, Failure, Result};

/// Most roles that somebody may have, with those that they inherit.
const INHERITED_MAX: usize = 4096;

/// A role as it is read.
pub(crate) struct Role {
    pub name: Name,
    pub privileges: Vec<Privilege>,
    /// Those that it inherits from.
    pub roles: Vec<Name>,
    pub restrictions: Restrictions,
    /// As it is kept; none for those that every server has.
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

    /// Refuses to change a role that every server has.
    /// # Errors
    /// `InvalidRoleModification`.
    pub fn into_own_document(self) -> Result<DocumentBuf> {
        self.document.ok_or_else(|| {
            let message = format!("{} is a built-in role and cannot be modified", self.name);
            Failure::new(ErrorCode::INVALID_ROLE_MODIFICATION, message)
        })
    }
}

/// The role of that name.
/// # Errors
/// Where it cannot be read.
pub(crate) fn find_role(catalog: &Catalog, name: &Name) -> Result<Option<Role>> {
    if let Some(role) = BuiltinRole::find(&name.name, &name.database) {
        return Ok(Some(Role::builtin(role, &name.database)));
    }
    let document = find_document(catalog, ROLES, "role", name)?;
    Ok(document.map(|document| Role::stored(name.clone(), document)))
}

/// Those roles and all that they inherit from, each once. A role that is not there any more allows nothing.
/// # Errors
/// Where they cannot be read; `BadValue` where there are too many.
pub(crate) fn all_inherited(catalog: &Catalog, roles: &[Name]) -> Result<Vec<Role>> {
    let mut waiting: Vec<Name> = roles.iter().rev().cloned().collect();
    let mut met = std::collections::BTreeSet::new();
    let mut found = Vec::new();
    while let Some(name) = waiting.pop() {
        // What nobody may be given nobody has, whatever a dump brought.
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

/// The role that allows everything. It is for members of a cluster among themselves.
pub(crate) fn reserved_role() -> Name {
    Name::new("__system", DATABASE)
}

/// The roles of a database: those that are kept, and where it is asked for those that every server has.
/// # Errors
/// Where they cannot be read.
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

/// Whether a list of roles has those that every server has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum BuiltinShown {
    Yes,
    No,
}

/// Takes roles away from all users and roles that have them, which are about to go.
/// # Errors
/// Those of updates.
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

/// Names as they are kept and shown.
pub(crate) fn documents_of(names: &[Name]) -> ArrayBuf {
    names.iter().map(|name| name.to_document("role")).collect::<Vec<_>>().iter().collect()
}
