//! Certificates and keys in PEM files, whom a certificate names, how long it is valid, and what for.
//!
//! **Invariant:** nothing here decides about trust. Whoever asks a certificate for its name has had it verified before.
#![forbid(unsafe_code)]

mod der;
mod details;
mod key;
mod password;
mod pem;
mod subject;
mod usage;

pub use details::Details;
pub use password::Password;
pub use pem::{certificate_and_key, certificates, revocation_lists};
pub use usage::is_for_clients;
