//! A collection of our own, for one cell.

use crate::environment::integer;
use bunko_bson::DocumentBuf;
use bunko_client::{ClientError, Connection};
use std::time::{SystemTime, UNIX_EPOCH};

/// Holds nothing but collections that this scenario made; never dropped, for it may have been there before.
pub(super) const DATABASE: &str = "bunko_bench";

/// A collection that did not exist before; [`Self::drop`] removes it.
pub(super) struct CellCollection {
    pub name: String,
}

impl CellCollection {
    /// # Errors
    /// What the server said; a collection that is there already is an error, never taken over.
    pub fn create(control: &mut Connection) -> Result<Self, ClientError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = format!("insert_matrix_{}_{}", std::process::id(), now.as_millis());
        control.run_command(DATABASE, DocumentBuf::new().with("create", &name).as_ref())?;
        Ok(Self { name })
    }

    /// How many documents the server finds in it; 0 where its reply has no number.
    pub fn count(&self, control: &mut Connection) -> Result<u64, ClientError> {
        // An empty query would be answered from the collection's statistics, which a crash can falsify.
        let query = DocumentBuf::new().with("_id", &DocumentBuf::new().with("$exists", true));
        let command = DocumentBuf::new().with("count", &self.name).with("query", &query);
        let reply = control.run_command(DATABASE, command.as_ref())?;
        Ok(integer(reply.as_ref().get("n")).and_then(|count| count.try_into().ok()).unwrap_or(0))
    }

    pub fn drop(self, control: &mut Connection) -> Result<(), ClientError> {
        control.run_command(DATABASE, DocumentBuf::new().with("drop", &self.name).as_ref()).map(|_| ())
    }
}
