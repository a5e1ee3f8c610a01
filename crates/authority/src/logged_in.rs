//! The user that a connection is logged in as, and the rights of that user.

use crate::authority::Authority;
use crate::known_rights::KnownRights;
use crate::membership::member_name;
use crate::roles::{all_inherited, builtin_members_role};
use crate::users::find_user;
use bunko_access::{ActionSet, Authorization, Name, Owner, Privilege, Restrictions, add, names_of};
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef};
use bunko_errors::Result;
use std::iter;
use std::net::IpAddr;
use std::sync::Arc;

/// A user who has proved their identity.
#[derive(Debug)]
pub struct LoggedIn {
    /// The user's name and database.
    pub name: Name,
    /// SHA-256 digest of the name, by which the user's sessions are found.
    pub digest: [u8; 32],
    /// The `userId` of the user's document. A user who is dropped and created again gets another `userId`.
    pub id: Option<Arc<[u8]>>,
    /// Privileges as of `generation`.
    pub privileges: Arc<[Privilege]>,
    /// The privileges in the form that commands are checked against.
    pub authorization: Authorization,
    known: KnownRights,
    /// All roles, including inherited ones.
    pub roles: Vec<Name>,
    /// All roles as documents, for `$$USER_ROLES`.
    pub role_documents: Arc<ArrayBuf>,
    /// Authentication restrictions of the user and of each role that has any.
    restrictions: Vec<Restrictions>,
    generation: u64,
}

impl LoggedIn {
    /// Reads the rights of the user whose document is `user`.
    /// # Errors
    /// Errors of reading roles.
    pub fn read(authority: &Authority, name: &Name, user: DocumentRef<'_>, generation: u64) -> Result<Self> {
        let roles = all_inherited(&authority.catalog, &names_of(user, "roles", "role"))?;
        let mut privileges = Vec::new();
        for privilege in roles.iter().flat_map(|role| &role.privileges) {
            add(&mut privileges, privilege.clone());
        }
        let of_roles = roles.iter().map(|role| role.restrictions.clone());
        let restrictions = iter::once(Restrictions::of(user)).chain(of_roles);
        let restrictions = restrictions.filter(|restrictions| !restrictions.is_empty()).collect();
        let roles: Vec<_> = roles.into_iter().map(|role| role.name).collect();
        Ok(Self {
            name: name.clone(),
            digest: name.digest(),
            id: user_id(user),
            role_documents: Arc::new(roles.iter().map(role_document).collect::<Vec<_>>().iter().collect()),
            authorization: Authorization::new(&privileges),
            known: KnownRights::default(),
            privileges: privileges.into(),
            restrictions,
            roles,
            generation,
        })
    }

    /// All actions that the user may take on a collection. The results for the connection's recent collections are
    /// cached.
    pub fn rights_on(&mut self, database: &str, collection: &str) -> ActionSet {
        self.known.on(&self.authorization, database, collection)
    }

    /// The current rights of the user of that name; `None` if there is no such user.
    /// # Errors
    /// Errors of reading users and roles.
    pub fn of(authority: &Authority, name: &Name) -> Result<Option<Self>> {
        let generation = authority.access.generation();
        if authority.access.is_reserved(name) {
            return Ok(Some(Self::member(generation)));
        }
        let Some(user) = find_user(&authority.catalog, name)? else { return Ok(None) };
        Self::read(authority, name, user.as_ref(), generation).map(Some)
    }

    /// Another member of the set. A document of that name, which a restored dump may have, is not read.
    pub(crate) fn member(generation: u64) -> Self {
        let role = builtin_members_role();
        let name = member_name();
        let roles = vec![Name::new(role.name.name, name.database.as_str())];
        Self {
            digest: name.digest(),
            name,
            id: None,
            role_documents: Arc::new(roles.iter().map(role_document).collect::<Vec<_>>().iter().collect()),
            authorization: Authorization::new(&role.privileges),
            known: KnownRights::default(),
            privileges: role.privileges.into(),
            restrictions: Vec::new(),
            roles,
            generation,
        }
    }

    /// The user with current rights, read again if users or roles may have changed since. `None` if the user was
    /// dropped or may no longer log in from that address.
    /// # Errors
    /// Errors of reading users and roles.
    pub fn renewed(self, authority: &Authority, source: Option<IpAddr>) -> Result<Option<Self>> {
        if self.is_current(authority) {
            return Ok(Some(self));
        }
        let now = Self::of(authority, &self.name)?.filter(|now| now.id == self.id);
        if now.as_ref().is_some_and(|now| !now.may_come_from(source)) {
            tracing::info!(target: "ACCESS", id = 142, user = self.name.name, db = self.name.database, "Logged out: authentication restrictions are no longer met");
            return Ok(None);
        }
        Ok(now)
    }

    /// Whether an address meets all restrictions. A client of a Unix domain socket has no address.
    pub fn may_come_from(&self, source: Option<IpAddr>) -> bool {
        self.restrictions.iter().all(|restrictions| restrictions.are_met_by(source))
    }

    /// Whether the rights are of the current generation, so that [`Self::renewed`] has nothing to read.
    pub fn is_current(&self, authority: &Authority) -> bool {
        authority.access.generation() == self.generation
    }

    /// The user, connected from that address, as owner of the operations, cursors and sessions that begin now.
    pub fn as_owner(&self, source: Option<IpAddr>) -> Owner {
        let (name, privileges) = (self.name.clone(), Arc::clone(&self.privileges));
        Owner { name, digest: self.digest, id: self.id.clone(), privileges, source }
    }

    /// Whether the owner is this user, and not another user of the same name.
    pub fn is_owner(&self, owner: &Owner) -> bool {
        self.name == owner.name && self.id == owner.id
    }

    /// Whether the owner is this user, who still has all their privileges from then and may still connect from that
    /// address.
    pub fn is_still_owner(&self, owner: &Owner) -> bool {
        let keeps = |before: &Privilege| {
            let now = self.privileges.iter().find(|now| now.resource == before.resource);
            now.is_some_and(|now| before.actions.without(now.actions).is_empty())
        };
        let is_as_before = || Arc::ptr_eq(&owner.privileges, &self.privileges) || owner.privileges.iter().all(keeps);
        self.is_owner(owner) && self.may_come_from(owner.source) && is_as_before()
    }
}

/// A role as `$$USER_ROLES` shows it.
/// Source: MongoDB manual, "USER_ROLES", whose examples have these three fields.
fn role_document(role: &Name) -> DocumentBuf {
    let Name { database, name, .. } = role;
    DocumentBuf::new().with("_id", &format!("{database}.{name}")).with("role", name).with("db", database)
}

fn user_id(user: DocumentRef<'_>) -> Option<Arc<[u8]>> {
    match user.get("userId")? {
        ValueRef::Binary { bytes, .. } => Some(bytes.into()),
        _ => None,
    }
}
