//! Access control of the server that starts: whether it is enforced, and the first user.

use crate::configuration::Settings;
use crate::first_user::FirstUser;
use crate::log_format::STARTUP_WARNING;
use bunko_catalog::Catalog;
use bunko_command::Service;

/// Whether commands need privileges, and the first user to be created.
pub struct Access {
    is_enforced: bool,
    first_user: Option<FirstUser>,
}

impl Access {
    /// Reads settings and environment. A first user turns access control on, as in MongoDB's images.
    /// # Errors
    /// A sentence that names the settings that contradict each other.
    pub fn of(settings: &Settings) -> Result<Self, String> {
        let first_user = FirstUser::of_environment()?;
        match (settings.authorization, &first_user) {
            (Some(false), Some(_)) => Err("MONGO_INITDB_ROOT_USERNAME needs security.authorization, which is \
                                           disabled: give one of them"
                .to_owned()),
            (authorization, _) => {
                Ok(Self { is_enforced: authorization.unwrap_or(false) || first_user.is_some(), first_user })
            }
        }
    }

    pub fn is_enforced(&self) -> bool {
        self.is_enforced
    }

    /// Creates the first user and turns access control on. Runs before any client can connect.
    /// # Errors
    /// A sentence that says why there is no first user.
    pub fn begin(&self, service: &Service, catalog: &Catalog, port: u16) -> Result<(), String> {
        if let Some(user) = &self.first_user {
            user.make(service, catalog)?;
        }
        if !self.is_enforced {
            return Ok(());
        }
        service.authority.access.enforce();
        if service.authority.waits_for_first_user() {
            tracing::warn!(target: "ACCESS", id = 114, ctx = "main", tags = STARTUP_WARNING, "Access control is enabled and there is no user yet. Make the first one from this machine: mongosh --port {port} admin --eval \"db.createUser({{user: 'root', pwd: passwordPrompt(), roles: ['root']}})\"");
        }
        Ok(())
    }
}
