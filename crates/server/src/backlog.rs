//! Connections that the kernel keeps until they are accepted.

/// Length of the queue of connections waiting to be accepted.
pub(crate) const BACKLOG: i32 = 4096;
