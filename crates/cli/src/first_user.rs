//! The first user of an empty data directory, from the environment variables of MongoDB's images.
//! Source: the documentation of Docker's official image `mongo`, "MONGO_INITDB_ROOT_USERNAME,
//! MONGO_INITDB_ROOT_PASSWORD".

use bunko_catalog::{Catalog, Collection};
use bunko_command::Service;
use std::env::VarError;

const NAME: &str = "MONGO_INITDB_ROOT_USERNAME";
const PASSWORD: &str = "MONGO_INITDB_ROOT_PASSWORD";
/// Suffix of a variable that names a file with the value.
const FILE: &str = "_FILE";

/// A user with the role `root`. It has no printed form.
pub struct FirstUser {
    name: String,
    password: String,
}

impl FirstUser {
    /// Reads the user from the environment; `None` if it names none.
    /// # Errors
    /// A sentence that names the variables that contradict each other, or the file that cannot be read.
    pub fn of_environment() -> Result<Option<Self>, String> {
        match (variable(NAME)?, variable(PASSWORD)?) {
            (Some(name), Some(password)) => Ok(Some(Self { name, password })),
            (None, None) => Ok(None),
            _ => Err(format!("{NAME} and {PASSWORD} go together, each as it is or with {FILE}: one is missing")),
        }
    }

    /// Name and password.
    pub fn credentials(&self) -> (&str, &str) {
        (&self.name, &self.password)
    }

    /// Creates the user if no client has written anything yet; collections that the server keeps for itself do not
    /// count. Any other data directory is left as it is, with its users.
    /// # Errors
    /// A sentence that says why there is no user now.
    pub fn make(&self, service: &Service, catalog: &Catalog) -> Result<(), String> {
        let is_own = |collection: &Collection| !collection.namespace().is_replicated();
        if !catalog.databases().iter().flat_map(|database| catalog.collections(database)).all(|kept| is_own(&kept)) {
            tracing::info!(target: "ACCESS", id = 112, ctx = "main", "The data directory is not empty: {NAME} creates no user");
            return Ok(());
        }
        let made = service.make_root_user(&self.name, &self.password);
        made.map_err(|failure| format!("{NAME}: the first user cannot be made: {}", failure.message()))?;
        tracing::info!(target: "ACCESS", id = 113, ctx = "main", user = self.name, db = "admin", role = "root", "Created the first user");
        Ok(())
    }
}

/// The value of a variable, or of the file that its `_FILE` form names; `None` if it is empty.
fn variable(name: &str) -> Result<Option<String>, String> {
    let read = |name: &str| match std::env::var(name) {
        Ok(value) => Ok(Some(value).filter(|value| !value.is_empty())),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => Err(format!("{name} is not UTF-8")),
    };
    let of_file = format!("{name}{FILE}");
    match (read(name)?, read(&of_file)?) {
        (Some(_), Some(_)) => Err(format!("{name} and {of_file} exclude each other; give one of them")),
        (value, None) => Ok(value),
        (None, Some(path)) => {
            let text = std::fs::read_to_string(&path).map_err(|error| format!("{of_file}: {path}: {error}"))?;
            Ok(Some(text.trim_end_matches(['\n', '\r']).to_owned()).filter(|text| !text.is_empty()))
        }
    }
}
