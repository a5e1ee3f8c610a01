//! Whether the server is a member of a replica set.

/// The server's role towards its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deployment {
    /// A server that is not in a replica set.
    Standalone,
    /// A member of a replica set.
    SetMember,
}
