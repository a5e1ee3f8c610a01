//! Users and roles as the server stores them, and the user that each connection is logged in as.
//!
//! They are documents of `admin.system.users` and `admin.system.roles`, in MongoDB's format. A connection caches the
//! rights of its user, with the generation at which they were read. A change that may concern users or roles begins a
//! new generation, and the connection's next command reads the rights again.

mod known_rights;
mod logged_in;
mod login;
mod redaction;
mod revocation;
mod role_fields;
mod roles;
mod user_fields;
mod users;
mod x509;

use known_rights::KnownRights;
pub(crate) use logged_in::LoggedIn;
pub(crate) use login::{EXTERNAL, Login, continue_login, mechanisms_of, offer_in_hello, start_login};
pub(crate) use redaction::{Shown, has_entry_of_users, has_namespace_of_users, is_on_users};
pub(crate) use revocation::end_revoked;
pub(crate) use role_fields::{
    check_exist, check_grantable, check_privileges_grantable, name_of_argument, name_to_create, privileges,
    restrictions, role_names,
};
pub(crate) use roles::{
    BuiltinShown, Role, all_inherited, documents_of, find_role, roles_of_database, take_roles_away,
};
pub(crate) use user_fields::UserFields;
pub(crate) use users::{
    documents_in, documents_where, find_document, find_user, insert_user, keep_document, user_not_found, users_where,
};
pub(crate) use x509::{EXTERNAL_DATABASE, authenticate};

use crate::dispatch::Halt;
use crate::invocation::Invocation;
use crate::service::World;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use parking_lot::{Mutex, MutexGuard};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::time::Duration;

/// The database that keeps users and roles.
pub(crate) const DATABASE: &str = "admin";
pub(crate) const USERS: &str = "system.users";
pub(crate) const ROLES: &str = "system.roles";
/// The collection that holds the version of their format.
const VERSIONS: &str = "system.version";
/// Version of MongoDB's format with SCRAM credentials.
const SCHEMA_VERSION: i32 = 5;

/// The mechanisms by which users may log in, as `authenticationMechanisms` names them.
pub(crate) const MECHANISMS: [&str; 3] = ["SCRAM-SHA-1", "SCRAM-SHA-256", "MONGODB-X509"];

/// Length of the secret that pretended salts are derived from.
const SECRET_BYTES: usize = 32;

/// State of access control that all connections share.
pub(crate) struct AccessControl {
    generation: AtomicU64,
    /// Whether commands need privileges.
    is_enforced: AtomicBool,
    /// Whether a user has existed since the server started.
    has_had_users: AtomicBool,
    /// Secret from which the answers for unknown users are derived. The process makes a new one when it starts: a salt
    /// that changes with a restart reveals no more than the salt of a user whose password was changed.
    secret: OnceLock<[u8; SECRET_BYTES]>,
    /// Held by a command that changes users or roles, one at a time.
    changes: Mutex<()>,
    iterations_sha_1: AtomicI32,
    iterations_sha_256: AtomicI32,
    /// Delay of the reply to a refused login, in milliseconds.
    failure_delay_ms: AtomicU64,
    /// Whether the localhost exception is off, so that no client can create the first user without a login.
    is_bypass_closed: AtomicBool,
    /// The mechanisms that logins may use; set before the first client connects.
    mechanisms: OnceLock<Vec<&'static str>>,
}

impl Default for AccessControl {
    fn default() -> Self {
        Self {
            generation: AtomicU64::new(1),
            is_enforced: AtomicBool::new(false),
            has_had_users: AtomicBool::new(false),
            secret: OnceLock::new(),
            changes: Mutex::default(),
            iterations_sha_1: AtomicI32::new(10_000),
            iterations_sha_256: AtomicI32::new(15_000),
            failure_delay_ms: AtomicU64::new(0),
            is_bypass_closed: AtomicBool::new(false),
            mechanisms: OnceLock::new(),
        }
    }
}

impl AccessControl {
    fn secret(&self, world: &World) -> &[u8] {
        self.secret.get_or_init(|| {
            let mut secret = [0; SECRET_BYTES];
            for part in secret.chunks_mut(size_of::<u64>()) {
                part.copy_from_slice(&(world.random)().to_le_bytes());
            }
            secret
        })
    }

    /// Whether commands need privileges.
    pub(crate) fn is_enforced(&self) -> bool {
        self.is_enforced.load(Ordering::Relaxed)
    }

    /// Makes commands need privileges from now on.
    pub(crate) fn enforce(&self) {
        self.is_enforced.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_had_users(&self) -> bool {
        self.has_had_users.load(Ordering::Acquire)
    }

    pub(crate) fn note_users(&self) {
        self.has_had_users.store(true, Ordering::Release);
    }

    /// Whether the localhost exception is off, so that no client can create the first user without a login.
    pub(crate) fn is_bypass_closed(&self) -> bool {
        self.is_bypass_closed.load(Ordering::Relaxed)
    }

    /// Turns the localhost exception off.
    pub(crate) fn close_bypass(&self) {
        self.is_bypass_closed.store(true, Ordering::Relaxed);
    }

    /// The mechanisms that logins may use.
    pub(crate) fn mechanisms(&self) -> Vec<&'static str> {
        // MongoDB shows these two by default. X.509 can be used all the same.
        self.mechanisms.get().cloned().unwrap_or_else(|| MECHANISMS[..2].to_vec())
    }

    /// Whether logins may use the mechanism of that name; any if none were set.
    pub(crate) fn has_mechanism(&self, name: &str) -> bool {
        self.mechanisms.get().is_none_or(|names| names.contains(&name))
    }

    /// Restricts logins to these mechanisms. Only the first call has an effect.
    pub(crate) fn set_mechanisms(&self, names: Vec<&'static str>) {
        let _ = self.mechanisms.set(names);
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Notes that users or roles may have changed. Call it once the change is visible to readers.
    pub(crate) fn note_change(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// The parameter `authFailedDelayMs`.
    pub(crate) fn failure_delay(&self) -> Duration {
        Duration::from_millis(self.failure_delay_ms.load(Ordering::Relaxed))
    }

    pub(crate) fn set_failure_delay(&self, delay: Duration) {
        self.failure_delay_ms.store(delay.as_millis() as u64, Ordering::Relaxed);
    }

    /// The parameters `scramIterationCount` and `scramSHA256IterationCount`.
    pub(crate) fn iterations(&self, mechanism: bunko_access::Mechanism) -> &AtomicI32 {
        match mechanism {
            bunko_access::Mechanism::ScramSha1 => &self.iterations_sha_1,
            bunko_access::Mechanism::ScramSha256 => &self.iterations_sha_256,
        }
    }
}

/// Begins a command that changes users or roles. It runs on a thread of its own: deriving keys takes milliseconds, and
/// another change may hold the mutex.
/// # Errors
/// [`Halt::TooLong`] on a shared thread.
pub(crate) fn begin_change<'a>(invocation: &Invocation<'a>) -> Result<MutexGuard<'a, ()>, Halt> {
    invocation.refuse_if_long(true)?;
    let service = invocation.service;
    Ok(service.access.changes.lock())
}

/// The document with the field `name` set to `value`, or without that field.
pub(crate) fn with_field(document: DocumentRef<'_>, name: &str, value: Option<ValueRef<'_>>) -> DocumentBuf {
    let mut changed = DocumentBuf::new();
    for field in document {
        match value {
            _ if field.name != name => drop(changed.append(field.name, field.value)),
            Some(value) => drop(changed.append(name, value)),
            None => {}
        }
    }
    if let (Some(value), None) = (value, document.get(name)) {
        changed.append(name, value);
    }
    changed
}
