//! The state of access control, and where users and roles are stored.
//!
//! Users and roles are documents of `admin.system.users` and `admin.system.roles`, in MongoDB's format. A connection
//! caches the rights of its user, with the generation at which they were read. A change that may concern users or roles
//! begins a new generation, and the connection's next command reads the rights again.

use crate::membership::{Membership, member_name};
use bunko_access::{Mechanism, Name};
use parking_lot::{Mutex, MutexGuard};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::time::Duration;

/// The database that keeps users and roles.
pub const DATABASE: &str = "admin";
/// The collection of users.
pub const USERS: &str = "system.users";
/// The collection of roles.
pub const ROLES: &str = "system.roles";
/// The database of users whose credentials are elsewhere. Only their rights are stored.
pub const EXTERNAL_DATABASE: &str = "$external";

/// The mechanisms by which users may log in, as `authenticationMechanisms` names them.
pub const MECHANISMS: [&str; 3] = ["SCRAM-SHA-1", "SCRAM-SHA-256", "MONGODB-X509"];

/// Length of the secret that pretended salts are derived from.
const SECRET_BYTES: usize = 32;

/// State of access control that all connections share.
pub struct AccessControl {
    generation: AtomicU64,
    /// Whether commands need privileges.
    is_enforced: AtomicBool,
    /// Whether a user has existed since the server started.
    has_had_users: AtomicBool,
    /// Secret from which the answers for unknown users are derived. The process makes a new secret when it starts: a
    /// salt that changes with a restart reveals no more than the salt of a user whose password was changed.
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
    /// The logins of other members of the set; set before the first client connects.
    membership: OnceLock<Membership>,
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
            membership: OnceLock::new(),
        }
    }
}

impl AccessControl {
    /// The process's secret from which the answers for unknown users are derived. It is made of random bits when it is
    /// first needed.
    pub(crate) fn secret(&self, random: &dyn Fn() -> u64) -> &[u8] {
        self.secret.get_or_init(|| {
            let mut secret = [0; SECRET_BYTES];
            for part in secret.chunks_mut(size_of::<u64>()) {
                part.copy_from_slice(&random().to_le_bytes());
            }
            secret
        })
    }

    /// Whether commands need privileges.
    pub fn is_enforced(&self) -> bool {
        self.is_enforced.load(Ordering::Relaxed)
    }

    /// Makes commands need privileges from now on.
    pub fn enforce(&self) {
        self.is_enforced.store(true, Ordering::Relaxed);
    }

    /// Whether a user has existed since the server started.
    pub fn has_had_users(&self) -> bool {
        self.has_had_users.load(Ordering::Acquire)
    }

    /// Notes that there is a user.
    pub fn note_users(&self) {
        self.has_had_users.store(true, Ordering::Release);
    }

    /// Whether the localhost exception is off, so that no client can create the first user without a login.
    pub fn is_bypass_closed(&self) -> bool {
        self.is_bypass_closed.load(Ordering::Relaxed)
    }

    /// Turns the localhost exception off.
    pub fn close_bypass(&self) {
        self.is_bypass_closed.store(true, Ordering::Relaxed);
    }

    /// The mechanisms that logins may use.
    pub fn mechanisms(&self) -> Vec<&'static str> {
        // MongoDB shows these two by default. X.509 can be used all the same.
        self.mechanisms.get().cloned().unwrap_or_else(|| MECHANISMS[..2].to_vec())
    }

    /// Whether logins may use the mechanism of that name; true for every name if the server's settings name no
    /// mechanisms.
    pub fn has_mechanism(&self, name: &str) -> bool {
        self.mechanisms.get().is_none_or(|names| names.contains(&name))
    }

    /// Restricts logins to these mechanisms. Only the first call has an effect.
    pub fn set_mechanisms(&self, names: Vec<&'static str>) {
        let _ = self.mechanisms.set(names);
    }

    /// The proofs that make a client a member of the set; `None` if they cannot log in.
    pub fn membership(&self) -> Option<&Membership> {
        self.membership.get()
    }

    /// Whether a name is reserved for the other members of the set, so that no stored user may have it.
    pub(crate) fn is_reserved(&self, name: &Name) -> bool {
        self.membership().is_some() && *name == member_name()
    }

    /// Lets other members of the set log in. Only the first call has an effect.
    pub fn admit_members(&self, membership: Membership) {
        let _ = self.membership.set(membership);
    }

    /// The generation of users and roles, which increases with each change of a user or role.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Lets a command change users or roles, one at a time. It may block for long.
    pub fn begin_change(&self) -> MutexGuard<'_, ()> {
        self.changes.lock()
    }

    /// Notes that users or roles may have changed. Call it once the change is visible to readers.
    pub fn note_change(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// The parameter `authFailedDelayMs`.
    pub fn failure_delay(&self) -> Duration {
        Duration::from_millis(self.failure_delay_ms.load(Ordering::Relaxed))
    }

    /// Sets the delay of the reply to a refused login.
    pub fn set_failure_delay(&self, delay: Duration) {
        self.failure_delay_ms.store(delay.as_millis() as u64, Ordering::Relaxed);
    }

    /// The parameters `scramIterationCount` and `scramSHA256IterationCount`.
    pub fn iterations(&self, mechanism: Mechanism) -> &AtomicI32 {
        match mechanism {
            Mechanism::ScramSha1 => &self.iterations_sha_1,
            Mechanism::ScramSha256 => &self.iterations_sha_256,
        }
    }
}
