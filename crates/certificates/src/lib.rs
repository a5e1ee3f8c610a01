//! Certificates and keys in PEM files: a certificate's subject, how long it is valid, and its permitted uses.
//!
//! **Invariant:** nothing here decides about trust. Callers verify a certificate before they ask for its name.
#![forbid(unsafe_code)]

mod authorities;
mod der;
mod details;
mod key;
mod password;
mod pem;
mod subject;
mod usage;

pub use authorities::system_authorities;
pub use details::Details;
pub use password::Password;
pub use pem::{certificate_and_key, certificates, revocation_lists};
pub use usage::is_for_clients;
