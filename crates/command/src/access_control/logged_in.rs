//! Who a connection is logged in as, and what that allows.

use super::roles::all_inherited;
use super::users::find_user;
use crate::service::Service;
use bunko_access::{Authorization, Name, Privilege, add, names_of};
use bunko_bson::{DocumentRef, ValueRef};
use bunko_errors::Result;
use std::sync::Arc;

/// A user who has proved to be who they are.
#[derive(Debug)]
pub(crate) struct LoggedIn {
    pub name: Name,
    /// The user's own id: another user of that name has another.
    pub id: Option<Arc<[u8]>>,
    /// What they may do, as of `generation`.
    pub privileges: Arc<[Privilege]>,
    /// The same, in the form that commands are held against.
    pub authorization: Authorization,
    /// All roles, with those that others bring.
    pub roles: Vec<Name>,
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
        Ok(Self {
            name: name.clone(),
            id: user_id(user),
            authorization: Authorization::new(&privileges),
            privileges: privileges.into(),
            roles: roles.into_iter().map(|role| role.name).collect(),
            generation,
        })
    }

    /// What the user of that name may do now; `None` where there is none.
    /// # Errors
    /// Where it cannot be read.
    pub fn of(service: &Service, name: &Name) -> Result<Option<Self>> {
        let generation = service.access.generation();
        let Some(user) = find_user(&service.catalog, name)? else { return Ok(None) };
        Self::read(service, name, user.as_ref(), generation).map(Some)
    }

    /// The same as of now, where users or roles may have changed since; `None` where the user is gone.
    /// # Errors
    /// Where they cannot be read.
    pub fn renewed(self, service: &Service) -> Result<Option<Self>> {
        if self.is_current(service) {
            return Ok(Some(self));
        }
        Ok(Self::of(service, &self.name)?.filter(|now| now.id == self.id))
    }

    /// Whether [`Self::renewed`] has nothing to do.
    pub fn is_current(&self, service: &Service) -> bool {
        service.access.generation() == self.generation
    }
}

fn user_id(user: DocumentRef<'_>) -> Option<Arc<[u8]>> {
    match user.get("userId")? {
        ValueRef::Binary { bytes, .. } => Some(bytes.into()),
        _ => None,
    }
}
