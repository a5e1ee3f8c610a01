//! The key of the last successful SCRAM.

use super::scram::SaltedPassword;
use crate::uri::Mechanism;
use std::sync::Mutex;

/// Keeps the key for the next connection with this credential. Deriving it takes some
/// milliseconds, which would matter for a thousand connections.
#[derive(Default)]
pub(crate) struct KeyCache(Mutex<Option<(Mechanism, SaltedPassword)>>);

impl KeyCache {
    pub fn get(&self, mechanism: Mechanism) -> Option<SaltedPassword> {
        let kept = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        kept.as_ref().filter(|(of, _)| *of == mechanism).map(|(_, key)| key.clone())
    }

    pub fn keep(&self, mechanism: Mechanism, key: SaltedPassword) {
        *self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some((mechanism, key));
    }
}
