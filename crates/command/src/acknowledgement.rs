//! The steps that a command's write must have taken before its reply is sent.

use bunko_request::write_concern::WriteConcern;
use bunko_store::Lsn;

/// How far a command's write must have come before its reply is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Acknowledgement {
    /// Nothing was written.
    #[default]
    None,
    /// The record has been passed to the kernel: it survives the process.
    Written(Lsn),
    /// The record is on disk: it survives a power failure.
    Durable(Lsn),
}

impl Acknowledgement {
    pub(crate) fn of(concern: WriteConcern, written: Option<Lsn>) -> Self {
        match written {
            None => Self::None,
            Some(lsn) if concern.is_journaled => Self::Durable(lsn),
            Some(lsn) => Self::Written(lsn),
        }
    }
}
