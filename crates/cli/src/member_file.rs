//! The file that says which member of a set of several this server is.

use crate::access::Access;
use crate::configuration::Settings;
use crate::file_modes::cannot_open;
use bunko_command::{Kept, finish_joining};
use bunko_store::{StorageError, Survival};

/// Reads the file that says which member of a set of several this server is. First deletes the data of a server that
/// joins a set.
/// # Errors
/// A sentence that names the directory.
pub fn read(settings: &Settings) -> Result<Option<Kept>, String> {
    if settings.survival == Survival::Volatile {
        return Ok(None);
    }
    let failed = |error: StorageError| cannot_open(&settings.dbpath, &error);
    if settings.replica_set.is_some() {
        finish_joining(&settings.dbpath).map_err(failed)?;
    }
    let member = Kept::read(&settings.dbpath).map_err(failed)?;
    match (&member, &settings.replica_set) {
        (Some(_), None) => Err(format!(
            "the data directory {} is that of a member of a replica set of several: start it with --replSet",
            settings.dbpath.display()
        )),
        _ => Ok(member),
    }
}

/// Refuses authorization in a set of several members that could not log in to each other.
/// # Errors
/// A sentence that names the setting.
pub fn check_access(member: Option<&Kept>, access: &Access) -> Result<(), String> {
    if member.is_some() && access.is_enforced() && !access.admits_members() {
        let refused = "security.authorization: the members of a replica set of several must log in to each other: give \
                       all of them the same security.keyFile, or security.clusterAuthMode x509";
        return Err(refused.to_owned());
    }
    Ok(())
}
