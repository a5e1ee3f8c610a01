//! The user for whom the server keeps something.

use crate::{Name, Privilege};
use std::net::IpAddr;
use std::sync::Arc;

/// The user who opened a cursor, began a transaction or runs an operation, with their privileges at that time.
/// `authority` decides whether the user may still use it.
#[derive(Clone, Debug)]
pub struct Owner {
    /// The user's name.
    pub name: Name,
    /// SHA-256 digest of the name, which identifies the user as owner of sessions.
    pub digest: [u8; 32],
    /// The user's id. A later user of that name has a different one.
    pub id: Option<Arc<[u8]>>,
    /// The user's privileges at that time.
    pub privileges: Arc<[Privilege]>,
    /// The client's address; `None` for a Unix domain socket.
    pub source: Option<IpAddr>,
}
