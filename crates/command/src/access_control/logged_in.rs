//! Who a connection is logged in as, and what that allows.

use super::KnownRights;
use super::roles::all_inherited;
use super::users::find_user;
use crate::service::Service;
use crate::sessions::id::Digest;
use bunko_access::{ActionSet, Authorization, Name, Privilege, Restrictions, add, names_of};
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef};
use bunko_errors::Result;
use std::iter;
use std::net::IpAddr;
use std::sync::Arc;

/// A user who has proved to be who they are.
#[derive(Debug)]
pub(crate) struct LoggedIn {
    pub name: Name,
    /// Whose their sessions are.
    pub digest: Digest,
    /// The user's own id: another user of that name has another.
    pub id: Option<Arc<[u8]>>,
    /// What they may do, as of `generation`.
    pub privileges: Arc<[Privilege]>,
    /// The same, in the form that commands are held against.
    pub authorization: Authorization,
    known: KnownRights,
    /// All roles, with those that others bring.
    pub roles: Vec<Name>,
    /// The same, as `$$USER_ROLES` has them.
    pub role_documents: Arc<ArrayBuf>,
    /// Those of the user and of each role that have any.
    restrictions: Vec<Restrictions>,
    generation: u64,
}

impl LoggedIn {
    /// Reads what a user may do whose document is `user`.
    /// # Errors
    /// Where roles cannot be read.
    pub fn read(service: &Service, name: &Name, user: DocumentRef<'_>, generation: u64) -> Result<Self> {
        let roles = all_inherited(&service.catalog, &names_of(user, "roles", "role"))?;
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

    /// All that they may do on a collection, which is found out once for those that the connection names often.
    pub fn rights_on(&mut self, database: &str, collection: &str) -> ActionSet {
        self.known.on(&self.authorization, database, collection)
    }

    /// What the user of that name may do now; `None` where there is none.
    /// # Errors
    /// Where it cannot be read.
    pub fn of(service: &Service, name: &Name) -> Result<Option<Self>> {
        let generation = service.access.generation();
        let Some(user) = find_user(&service.catalog, name)? else { return Ok(None) };
        Self::read(service, name, user.as_ref(), generation).map(Some)
    }

    /// The same as of now, where users or roles may have changed since; `None` where the user is gone, or may not log in
    /// from that address any more.
    /// # Errors
    /// Where they cannot be read.
    pub fn renewed(self, service: &Service, source: Option<IpAddr>) -> Result<Option<Self>> {
        if self.is_current(service) {
            return Ok(Some(self));
        }
        let now = Self::of(service, &self.name)?.filter(|now| now.id == self.id);
        if now.as_ref().is_some_and(|now| !now.may_come_from(source)) {
            tracing::info!(target: "ACCESS", user = self.name.name, db = self.name.database, "Logged out: authentication restrictions are not met any more");
            return Ok(None);
        }
        Ok(now)
    }

    /// Whether all restrictions are met by an address; at a Unix domain socket there is none.
    pub fn may_come_from(&self, source: Option<IpAddr>) -> bool {
        self.restrictions.iter().all(|restrictions| restrictions.are_met_by(source))
    }

    /// Whether [`Self::renewed`] has nothing to do.
    pub fn is_current(&self, service: &Service) -> bool {
        service.access.generation() == self.generation
    }
}

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
