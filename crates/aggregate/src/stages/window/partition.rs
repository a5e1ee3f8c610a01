//! The documents of one partition in order: in memory while they fit, then in a file.

use super::super::placed::{Placed, header, read_header};
use crate::Environment;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::{Gatherer, OperationContext};
use bunko_scratch::{Lent, Positioned, PositionedWriter, Spilled};
use std::cell::RefCell;

/// One partition.
pub(super) struct Partition {
    held: Held,
    count: usize,
}

enum Held {
    InMemory(Vec<Placed>),
    /// In a `RefCell`, since reading a document changes which parts of the file are in memory.
    OnDisk(RefCell<Positioned>),
}

/// A document at its position.
pub(super) enum At<'p> {
    InMemory(&'p Placed),
    OnDisk(Lent),
}

impl At<'_> {
    pub(super) fn document(&self) -> DocumentRef<'_> {
        match self {
            Self::InMemory(placed) => placed.document.as_ref(),
            Self::OnDisk(lent) => DocumentRef::trusted(split(lent.record().1).1),
        }
    }

    /// The value of the sort field; of the first field if there are several.
    pub(super) fn sort_value(&self) -> ValueRef<'_> {
        match self {
            Self::InMemory(placed) => placed.value.as_ref(),
            Self::OnDisk(lent) => read_header(split(lent.record().1).0).map_or(ValueRef::Null, |(_, value)| value),
        }
    }

    /// Bytes of the document's sort key: they compare in sort order.
    pub(super) fn order(&self) -> &[u8] {
        match self {
            Self::InMemory(placed) => placed.order(),
            Self::OnDisk(lent) => lent.record().0,
        }
    }
}

/// Splits a record into its header, whose length is in its first bytes, and the document.
fn split(record: &[u8]) -> (&[u8], &[u8]) {
    let header_bytes = record.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize);
    record.split_at(header_bytes.min(record.len()))
}

impl Partition {
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The document at `position`, which must exist.
    pub(super) fn at(&self, position: usize, environment: &Environment) -> Result<At<'_>> {
        match &self.held {
            Held::InMemory(documents) => Ok(At::InMemory(&documents[position])),
            Held::OnDisk(file) => {
                let lent = file.borrow_mut().get(position, environment.operation())?;
                let missing =
                    || Failure::new(ErrorCode::INTERNAL_ERROR, "a partition has fewer documents than it said");
                lent.map(At::OnDisk).ok_or_else(missing)
            }
        }
    }

    /// The first position from `start` whose value satisfies `is_wanted`; the end if there is none.
    pub(super) fn first_from(
        &self,
        start: usize,
        is_wanted: impl Fn(ValueRef<'_>) -> bool,
        environment: &Environment,
    ) -> Result<usize> {
        let mut position = start;
        while position < self.count && !is_wanted(self.at(position, environment)?.sort_value()) {
            environment.operation().work(1)?;
            position += 1;
        }
        Ok(position)
    }
}

/// Gathers the documents of a partition.
#[derive(Default)]
pub(super) struct Gathering {
    documents: Vec<Placed>,
    /// Memory of `documents`, in bytes.
    held_bytes: usize,
    /// The file for documents, once they exceed the memory limit.
    file: Option<PositionedWriter>,
    count: usize,
}

impl Gathering {
    /// Appends a document.
    /// # Errors
    /// 5643011 if there is no room on disk; errors of files and of the operation.
    pub(super) fn add(&mut self, placed: Placed, operation: &OperationContext) -> Result<()> {
        self.count += 1;
        if let Some(file) = &mut self.file {
            return write(file, &placed, operation);
        }
        self.held_bytes += placed.document.len_bytes() + placed.key.len() + size_of::<Placed>();
        self.documents.push(placed);
        let bytes_max = operation.stage_bytes_now(Gatherer::Window);
        if self.held_bytes <= bytes_max {
            return Ok(());
        }
        let Some(mut file) = PositionedWriter::create(operation)? else {
            return Err(too_large(self.held_bytes, bytes_max));
        };
        for placed in std::mem::take(&mut self.documents) {
            write(&mut file, &placed, operation)?;
        }
        self.file = Some(file);
        Ok(())
    }

    /// Returns the partition, and the data that was put on disk.
    /// # Errors
    /// Errors of files.
    pub(super) fn finish(self, operation: &OperationContext) -> Result<(Partition, Spilled)> {
        let count = self.count;
        let Some(file) = self.file else {
            return Ok((Partition { held: Held::InMemory(self.documents), count }, Spilled::default()));
        };
        let (file, spilled) = file.finish(operation.stage_bytes_now(Gatherer::Window))?;
        Ok((Partition { held: Held::OnDisk(RefCell::new(file)), count }, spilled))
    }
}

/// MongoDB's error for a partition that needs the disk and may not use it.
fn too_large(bytes: usize, bytes_max: usize) -> Failure {
    let message = format!(
        "Exceeded max memory. Current memory: {bytes} bytes. Max allowed memory: {bytes_max} bytes. Set \
         'allowDiskUse: true' to spill to disk"
    );
    Failure::new(ErrorCode(5_643_011), message)
}

fn write(file: &mut PositionedWriter, placed: &Placed, operation: &OperationContext) -> Result<()> {
    let header: DocumentBuf = header(0, placed.value.as_ref());
    file.add(placed.order(), &[header.as_ref().as_bytes(), placed.document.as_ref().as_bytes()], operation)
}
