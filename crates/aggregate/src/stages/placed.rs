//! Sorted documents with the value that decides their position, for `$bucketAuto` and `$setWindowFields`.

use bunko_bson::{DocumentBuf, DocumentRef, Value, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationContext;
use bunko_scratch::{Sorted, Sorter, Spilled};

/// A document with its sort key and value.
pub(super) struct Placed {
    /// The sort key.
    pub(super) key: Vec<u8>,
    /// Number of leading key bytes that identify the partition; the others give the order within it.
    pub(super) part_bytes: usize,
    /// The value that decides the position.
    pub(super) value: Value,
    pub(super) document: DocumentBuf,
}

impl Placed {
    /// The key bytes of its partition.
    pub(super) fn part(&self) -> &[u8] {
        &self.key[..self.part_bytes]
    }

    /// The key bytes that give the order within its partition.
    pub(super) fn order(&self) -> &[u8] {
        &self.key[self.part_bytes..]
    }
}

/// Adds a document and its value to a sorter; the first `part_bytes` of the key identify the partition.
/// # Errors
/// As [`Sorter::add`].
pub(super) fn place(
    sorter: &mut Sorter,
    (key, part_bytes): (&[u8], usize),
    value: ValueRef<'_>,
    document: DocumentRef<'_>,
    operation: &OperationContext,
) -> Result<()> {
    let value = header(part_bytes, value);
    sorter.add(key, &[value.as_ref().as_bytes(), document.as_bytes()], operation)
}

/// The header stored before a document.
pub(super) fn header(part_bytes: usize, value: ValueRef<'_>) -> DocumentBuf {
    DocumentBuf::new().with("", part_bytes as i64).with("", value)
}

/// Reads a header: the number of key bytes that identify the partition, and the value.
pub(super) fn read_header(header: &[u8]) -> Option<(i64, ValueRef<'_>)> {
    let mut fields = DocumentRef::trusted(header).iter().map(|field| field.value);
    match (fields.next(), fields.next()) {
        (Some(ValueRef::Int64(part_bytes)), Some(value)) => Some((part_bytes, value)),
        _ => None,
    }
}

/// The documents added by [`place`], in order, with a look at the next one.
pub(super) struct PlacedInOrder {
    sorted: Sorted,
    next: Option<Placed>,
}

impl PlacedInOrder {
    pub(super) fn new(sorted: Sorted, operation: &OperationContext) -> Result<Self> {
        let mut placed = Self { sorted, next: None };
        placed.advance(operation)?;
        Ok(placed)
    }

    fn advance(&mut self, operation: &OperationContext) -> Result<()> {
        self.next = match self.sorted.next(operation)? {
            Some((key, record)) => Some(read(key, record)?),
            None => None,
        };
        Ok(())
    }

    pub(super) fn next(&mut self, operation: &OperationContext) -> Result<Option<Placed>> {
        let placed = self.next.take();
        if placed.is_some() {
            self.advance(operation)?;
        }
        Ok(placed)
    }

    pub(super) fn peek(&self) -> Option<&Placed> {
        self.next.as_ref()
    }

    pub(super) fn next_if(
        &mut self,
        is_wanted: impl Fn(&Placed) -> bool,
        operation: &OperationContext,
    ) -> Result<Option<Placed>> {
        if self.next.as_ref().is_some_and(is_wanted) { self.next(operation) } else { Ok(None) }
    }

    pub(super) fn spilled(&self) -> Spilled {
        self.sorted.spilled()
    }
}

fn read(key: &[u8], record: &[u8]) -> Result<Placed> {
    let damaged = || Failure::new(ErrorCode::FILE_STREAM_FAILED, "a scratch file is not as it was written");
    let value_bytes = record.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize);
    let (value, document) = record.split_at_checked(value_bytes).ok_or_else(damaged)?;
    let (part_bytes, value) = read_header(value).ok_or_else(damaged)?;
    let part_bytes = usize::try_from(part_bytes).ok().filter(|bytes| *bytes <= key.len()).ok_or_else(damaged)?;
    let document = DocumentBuf::from_trusted(document.to_vec());
    Ok(Placed { key: key.to_vec(), part_bytes, value: value.to_value(), document })
}
