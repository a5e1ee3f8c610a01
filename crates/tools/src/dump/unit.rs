//! Documents of one namespace on their way to the output, in one buffer that is filled once and written as it is.

use super::state::RangeState;
use crate::progress::Counts;
use bunko_archive::{archive, crc64};

/// Length from which a unit is handed to the output, in bytes. It is large enough for a compressed frame of its own,
/// and small enough that a unit for each thread and each compressor takes little memory.
pub(super) const UNIT_BYTES: usize = 4 * 1024 * 1024;

/// Framing of documents in an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A block's header and terminator, and a checksum at the end.
    Archive,
    /// No framing.
    Plain,
}

/// Documents of one range, and the state of the range after them.
pub(super) struct Unit {
    pub bytes: Vec<u8>,
    /// Offset of the first document: a block's header may precede it.
    begin: usize,
    pub documents: u64,
    /// The range's position in the plan.
    pub range: usize,
    /// State of the range after this unit.
    pub state: RangeState,
}

impl Unit {
    /// Begins an empty unit in `buffer`.
    pub fn begin(mut buffer: Vec<u8>, form: Form, database: &str, collection: &str, range: usize) -> Self {
        buffer.clear();
        if form == Form::Archive {
            archive::begin_block(&mut buffer, database, collection);
        }
        Self { begin: buffer.len(), bytes: buffer, documents: 0, range, state: RangeState::default() }
    }

    /// Length of the documents in bytes.
    pub fn document_bytes(&self) -> u64 {
        (self.bytes.len() - self.begin) as u64
    }

    /// Removes the documents, because they will be read again.
    pub fn discard(&mut self, counts: &Counts) {
        counts.take_back(self.documents, self.document_bytes());
        self.bytes.truncate(self.begin);
        self.documents = 0;
    }

    /// Closes the block. A unit without documents becomes empty, because an empty block would mean a view.
    pub fn seal(mut self, form: Form) -> SealedUnit {
        let (documents, document_bytes) = (self.documents, self.document_bytes());
        let mut crc = 0;
        if form == Form::Archive {
            crc = crc64::checksum(&self.bytes[self.begin..]);
            archive::end_block(&mut self.bytes);
        }
        if documents == 0 {
            self.bytes.clear();
        }
        SealedUnit { bytes: self.bytes, documents, document_bytes, crc, range: self.range, state: self.state }
    }
}

/// A unit that is ready for the output.
pub(super) struct SealedUnit {
    pub bytes: Vec<u8>,
    pub documents: u64,
    pub document_bytes: u64,
    /// Checksum of the documents; 0 if the output has no checksums.
    pub crc: u64,
    pub range: usize,
    pub state: RangeState,
}
