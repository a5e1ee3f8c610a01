//! Records of the log that change nothing.

use crate::{Catalog, from_storage, notes};
use bunko_bson::DocumentRef;
use bunko_errors::Result;
use bunko_store::{Batch, Lsn};

impl Catalog {
    /// Writes an entry that changes nothing, with `data` as its `o`.
    /// # Errors
    /// As `Store::commit`.
    pub fn remark(&self, data: DocumentRef<'_>) -> Result<Lsn> {
        self.store().commit(&notes::batch_of_remark(data)).map_err(from_storage)
    }

    /// Writes a record that changes nothing, so that readers of the log know that it is complete up to a later time.
    /// # Errors
    /// As `Store::commit`.
    pub fn pass_time(&self) -> Result<()> {
        self.store().commit(&Batch::new()).map(drop).map_err(from_storage)
    }
}
