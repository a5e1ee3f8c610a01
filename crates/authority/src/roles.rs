//! Roles: the built-in ones, and the documents of `admin.system.roles`.

use crate::access_control::{DATABASE, ROLES};
use crate::users::find_document;
use bunko_access::{BUILTIN_ROLES, BuiltinRole, Name, Privilege, Restrictions, names_of, privileges_of};
use bunko_bson::{ArrayBuf, DocumentBuf};
use bunko_catalog::Catalog;
use bunko_errors::{ErrorCode, Failure, Result};

/// Maximum number of roles that a user may have, including inherited ones.
const INHERITED_MAX: usize = 4096;

/// A built-in role, or one that was read from `admin.system.roles`.
pub struct Role {
    /// The role's name and database.
    pub name: Name,
    /// The role's own privileges, without inherited ones.
    pub privileges: Vec<Privilege>,
    /// The roles from which this role inherits directly.
    pub roles: Vec<Name>,
    /// The role's authentication restrictions.
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

    /// The role that a stored document describes.
    pub fn stored(name: Name, document: DocumentBuf) -> Self {
        let kept = document.as_ref();
        Self {
            privileges: privileges_of(kept),
            roles: names_of(kept, "roles", "role"),
            restrictions: Restrictions::of(kept),
            name,
            document: Some(document),
        }
    }

    /// The built-in roles of a database.
    pub fn builtin_of(database: &str) -> impl Iterator<Item = Self> {
        BUILTIN_ROLES.iter().filter(|role| role.is_in(database)).map(|role| Self::builtin(role, database))
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

/// The role of that name; `None` if there is none.
/// # Errors
/// Errors of reading the document.
pub fn find_role(catalog: &Catalog, name: &Name) -> Result<Option<Role>> {
    if let Some(role) = BuiltinRole::find(&name.name, &name.database) {
        return Ok(Some(Role::builtin(role, &name.database)));
    }
    let document = find_document(catalog, ROLES, "role", name)?;
    Ok(document.map(|document| Role::stored(name.clone(), document)))
}

/// The given roles and all that they inherit, each once. A role that no longer exists is left out.
/// # Errors
/// Errors of reading roles; `BadValue` above `INHERITED_MAX` roles.
pub fn all_inherited(catalog: &Catalog, roles: &[Name]) -> Result<Vec<Role>> {
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

/// The role of the other members of the set.
pub(crate) fn builtin_members_role() -> Role {
    let Name { name, database, .. } = reserved_role();
    let role = BuiltinRole::find(&name, &database).expect("the table of roles has it");
    Role::builtin(role, &database)
}

/// The role that allows everything. MongoDB reserves it for the members of a cluster.
pub(crate) fn reserved_role() -> Name {
    Name::new("__system", DATABASE)
}

/// Role names as documents, as they are stored and shown.
pub fn documents_of(names: &[Name]) -> ArrayBuf {
    names.iter().map(|name| name.to_document("role")).collect::<Vec<_>>().iter().collect()
}
