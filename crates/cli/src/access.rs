//! Access control of the server that starts: whether it is enforced, and the first user.

use crate::configuration::{ClusterAuth, Settings};
use crate::first_user::FirstUser;
use crate::key_file::{self, Keys};
use crate::log_format::STARTUP_WARNING;
use bunko_catalog::Catalog;
use bunko_command::{CERTIFICATE_MECHANISM, KEY_MECHANISM, Membership, OwnSubject, Service};
use std::sync::atomic::Ordering;

/// Whether commands need privileges, and the first user to be created.
pub struct Access {
    is_enforced: bool,
    first_user: Option<FirstUser>,
    /// The keys by which members of the set log in.
    keys: Option<Keys>,
    /// Whether members log in by certificates like the server's own.
    is_by_certificate: bool,
}

impl Access {
    /// Reads settings and environment. A first user turns access control on, as in MongoDB's images.
    /// # Errors
    /// A sentence that names the settings that contradict each other, or the key file that cannot be used.
    pub fn of(settings: &Settings) -> Result<Self, String> {
        let first_user = FirstUser::of_environment()?;
        let (keys, is_by_certificate) = match &settings.cluster_auth {
            ClusterAuth::None => (None, false),
            ClusterAuth::KeyFile(path) => (Some(key_file::read(path)?), false),
            ClusterAuth::Certificate => (None, true),
        };
        match (settings.authorization, &first_user) {
            (Some(false), Some(_)) => Err("MONGO_INITDB_ROOT_USERNAME needs security.authorization, which is \
                                           disabled: give one of them"
                .to_owned()),
            (authorization, _) => {
                let is_enforced = authorization.unwrap_or(false) || first_user.is_some();
                Ok(Self { is_enforced, first_user, keys, is_by_certificate })
            }
        }
    }

    pub fn is_enforced(&self) -> bool {
        self.is_enforced
    }

    /// Name and password of the first user, if the environment names one.
    pub fn first_user(&self) -> Option<(&str, &str)> {
        self.first_user.as_ref().map(FirstUser::credentials)
    }

    /// The keys by which members of the set log in, this server's own first.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().flat_map(Keys::iter)
    }

    /// Whether members of the set can log in.
    pub fn admits_members(&self) -> bool {
        self.keys.is_some() || self.is_by_certificate
    }

    /// Lets members of the set log in. Runs before any client can connect.
    /// # Errors
    /// A sentence that names the mechanism that the settings turn off.
    pub fn admit_members(&self, service: &Service, own: OwnSubject) -> Result<(), String> {
        if !self.admits_members() {
            return Ok(());
        }
        let (access, needed) = (&service.authority.access, self.mechanism());
        if !access.has_mechanism(needed) {
            return Err(format!(
                "setParameter.authenticationMechanisms lacks {needed}, by which members of the set log in"
            ));
        }
        let keys: Vec<_> = self.keys().collect();
        let own = self.is_by_certificate.then_some(own);
        let iterations = access.iterations(KEY_MECHANISM).load(Ordering::Relaxed) as u32;
        access.admit_members(Membership::new(iterations, &keys, own, &*service.world.random));
        Ok(())
    }

    /// The mechanism by which members log in.
    fn mechanism(&self) -> &'static str {
        if self.is_by_certificate { CERTIFICATE_MECHANISM } else { KEY_MECHANISM.name() }
    }

    /// Creates the first user and turns access control on. Runs before any client can connect. The users of a member of
    /// a set of several come from its primary.
    /// # Errors
    /// A sentence that says why there is no first user.
    pub fn begin(&self, service: &Service, catalog: &Catalog, port: u16) -> Result<(), String> {
        if let Some(user) = self.first_user.as_ref().filter(|_| !service.is_of_several()) {
            user.make(service, catalog)?;
        }
        if !self.is_enforced {
            return Ok(());
        }
        service.authority.access.enforce();
        if service.authority.waits_for_first_user() {
            tracing::warn!(target: "ACCESS", id = 114, ctx = "main", tags = STARTUP_WARNING, "Access control is enabled and there is no user yet. Create the first one from this machine: mongosh --port {port} admin --eval \"db.createUser({{user: 'root', pwd: passwordPrompt(), roles: ['root']}})\"");
        }
        Ok(())
    }
}
