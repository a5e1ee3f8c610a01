//! An operation that waits before it begins, on its connection.

use bunko_session::operations::RunningOperation;
use std::fmt;

/// The operation that waits.
pub(crate) struct HeldBack(pub(crate) RunningOperation);

impl fmt::Debug for HeldBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldBack").finish_non_exhaustive()
    }
}
