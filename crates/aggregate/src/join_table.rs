//! The documents of another collection by keys, for joins without an index. Built once from the whole collection.

use crate::DocumentStream;
use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_errors::Result;
use bunko_operation::{Gatherer, OperationContext};
use bunko_scratch::{Spilled, Spool, SpoolReader};
use foldhash::HashMap;

/// Documents in the order of the collection, and their positions by key.
pub(crate) struct JoinTable {
    documents: SpoolReader,
    /// Positions of the documents with each key, ascending.
    positions: HashMap<Box<[u8]>, Vec<u32>>,
}

/// Appends a document's keys to a table, with the work that they cost.
pub(crate) struct KeysOfDocument<'t> {
    positions: &'t mut HashMap<Box<[u8]>, Vec<u32>>,
    position: u32,
    bytes: usize,
    operation: &'t OperationContext,
}

impl KeysOfDocument<'_> {
    /// Adds a key; a document may name a key several times.
    /// # Errors
    /// Errors of the operation.
    pub fn add(&mut self, key: &[u8]) -> Result<()> {
        self.operation.work(1 + key.len() / 64)?;
        let found = self.positions.entry(key.into()).or_default();
        if found.last() != Some(&self.position) {
            found.push(self.position);
            self.bytes += key.len() + size_of::<(Box<[u8]>, Vec<u32>)>() + size_of::<u32>();
        }
        Ok(())
    }
}

impl JoinTable {
    /// Builds a table of the documents of `input`; `keys` names the keys of each. Returns `None` if the table needs
    /// more memory than a stage may use. Documents can go on disk, but not keys, which are looked up in random order.
    /// # Errors
    /// Errors of the input, of `keys` and of the operation.
    pub fn build(
        mut input: Box<dyn DocumentStream>,
        gatherer: Gatherer,
        operation: &OperationContext,
        keys: &mut dyn FnMut(DocumentRef<'_>, &mut KeysOfDocument<'_>) -> Result<()>,
    ) -> Result<Option<Self>> {
        let mut documents = Spool::new(gatherer, "a join");
        let mut positions = HashMap::default();
        let (mut position, mut keys_bytes) = (0_u32, 0);
        while let Some(document) = input.next()? {
            let mut own = KeysOfDocument { positions: &mut positions, position, bytes: 0, operation };
            keys(document.as_ref(), &mut own)?;
            keys_bytes += own.bytes;
            let held_bytes = keys_bytes + documents.held_bytes() + document.len_bytes();
            let is_too_large = held_bytes > operation.stage_bytes_max(gatherer);
            if is_too_large && (operation.scratch().is_none() || keys_bytes > operation.stage_bytes_max(gatherer)) {
                return Ok(None);
            }
            documents.add(document.as_ref().as_bytes(), operation)?;
            position += 1;
        }
        Ok(Some(Self { documents: documents.finish()?, positions }))
    }

    /// Appends the positions of the documents with the key to `found`.
    pub fn add_positions(&self, key: &[u8], found: &mut Vec<u32>) {
        found.extend(self.positions.get(key).into_iter().flatten());
    }

    /// The documents at these positions, in the order of the collection, each once.
    /// # Errors
    /// Errors of reading documents from disk, and of the operation.
    pub fn documents(&mut self, mut found: Vec<u32>, operation: &OperationContext) -> Result<Vec<DocumentBuf>> {
        found.sort_unstable();
        found.dedup();
        let mut documents = Vec::with_capacity(found.len());
        for position in found {
            if let Some(document) = self.documents.get(position as usize, operation)? {
                documents.push(DocumentBuf::from_trusted(document.to_vec()));
            }
        }
        Ok(documents)
    }

    /// Documents that were put on disk.
    pub fn spilled(&self) -> Spilled {
        self.documents.spilled()
    }
}
