//! What `getParameter` and `setParameter` see.

/// The server's parameters.
#[derive(Debug, Default)]
pub struct Parameters {}
