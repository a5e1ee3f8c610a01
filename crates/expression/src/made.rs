//! Values that operators make, with limits on size and depth, and counted as work.
//!
//! **Invariant:** arrays and documents that are larger than their sources are made in this module only.

use crate::{Evaluated, EvaluationContext};
use bunko_bson::{
    ArrayBuf, DocumentBuf, MAX_DEPTH_ACCEPTED, MAX_INTERNAL_DOCUMENT_BYTES, MAX_USER_DOCUMENT_BYTES, Value, ValueRef,
    depth,
};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationContext;

/// Largest array or document that one operator makes, in bytes.
/// Source: MongoDB parameters internalQueryMaxRangeBytes, internalQueryMaxPushBytes and the like.
pub(crate) const CONTAINER_BYTES_MAX: usize = 100 * 1024 * 1024;
/// Bytes copied in one step of work.
const BYTES_PER_STEP: usize = 64;

/// Work of copying a value or comparing all of it.
#[inline]
pub(crate) fn steps(value: ValueRef<'_>) -> usize {
    bytes_steps(value.content_bytes())
}

/// Work of copying `bytes` bytes.
#[inline]
pub(crate) fn bytes_steps(bytes: usize) -> usize {
    1 + bytes / BYTES_PER_STEP
}

/// Work of copying a text.
#[inline]
pub(crate) fn text_steps(text: &str) -> usize {
    bytes_steps(text.len())
}

/// # Errors
/// 16493 for a length of 16 MiB or more, in bytes.
pub(crate) fn check_string_length(length: usize) -> Result<()> {
    if length < MAX_USER_DOCUMENT_BYTES {
        return Ok(());
    }
    Err(Failure::new(ErrorCode(16493), "Tried to create string longer than 16MB"))
}

/// A string made by an operator.
/// # Errors
/// 16493 for 16 MiB or more; errors of counting work.
pub(crate) fn string<'a>(text: String, context: &EvaluationContext<'_>) -> Result<Evaluated<'a>> {
    check_string_length(text.len())?;
    context.operation().work(text_steps(&text))?;
    Ok(Evaluated::Owned(Value::String(text)))
}

/// A value made by an operator; the length of a string is checked.
/// # Errors
/// As [`string`].
pub(crate) fn checked<'a>(value: Value, context: &EvaluationContext<'_>) -> Result<Evaluated<'a>> {
    match value {
        Value::String(text) => string(text, context),
        other => {
            context.operation().work(steps(other.as_ref()))?;
            Ok(Evaluated::Owned(other))
        }
    }
}

/// A copy of the value that borrows nothing.
/// # Errors
/// Errors of counting work.
pub(crate) fn owned<'a>(value: Evaluated<'_>, context: &EvaluationContext<'_>) -> Result<Evaluated<'a>> {
    if let Evaluated::Ref(value) = &value {
        context.operation().work(steps(*value))?;
    }
    Ok(value.into_owned())
}

/// Work of finding a field in a document.
pub(crate) fn field_steps(value: ValueRef<'_>) -> usize {
    1 + value.content_bytes() / 256
}

/// Checks a value that will stand `levels` deep in a document or array.
/// # Errors
/// `Overflow` if the value would be nested deeper than a document may be.
#[inline]
pub fn check_depth(value: ValueRef<'_>, levels: usize) -> Result<()> {
    match value {
        ValueRef::Document(_) | ValueRef::Array(_) | ValueRef::JavaScriptWithScope { .. }
            if depth::exceeds(value, MAX_DEPTH_ACCEPTED.saturating_sub(levels)) =>
        {
            Err(too_deep())
        }
        _ => Ok(()),
    }
}

#[cold]
fn too_deep() -> Failure {
    let message = format!(
        "cannot convert document to BSON because it exceeds the limit of {MAX_DEPTH_ACCEPTED} levels of nesting"
    );
    Failure::new(ErrorCode::OVERFLOW, message)
}

/// # Errors
/// `ExceededMemoryLimit` beyond 100 MiB.
#[inline]
pub(crate) fn check_container_bytes(operator: &str, bytes: usize) -> Result<()> {
    if bytes <= CONTAINER_BYTES_MAX { Ok(()) } else { Err(too_large(operator, "would use")) }
}

/// Checks a document that one stage passes to another. It may be larger than a document in a reply.
/// # Errors
/// As [`check_document_bytes`].
#[inline]
pub(crate) fn check_stage_bytes(bytes: usize) -> Result<()> {
    if bytes <= CONTAINER_BYTES_MAX { Ok(()) } else { check_document_bytes(bytes) }
}

/// Checks a document for a reply.
/// # Errors
/// `BSONObjectTooLarge` beyond the size of a document in a message.
#[inline]
pub fn check_document_bytes(bytes: usize) -> Result<()> {
    if bytes <= MAX_INTERNAL_DOCUMENT_BYTES { Ok(()) } else { Err(document_too_large(bytes)) }
}

#[cold]
fn document_too_large(bytes: usize) -> Failure {
    let message = format!(
        "BSONObj size: {bytes} (0x{bytes:X}) is invalid. Size must be between 0 and {MAX_INTERNAL_DOCUMENT_BYTES}(16MB)"
    );
    Failure::new(ErrorCode::BSON_OBJECT_TOO_LARGE, message)
}

/// The error of an operator or accumulator whose value is too large.
#[cold]
pub(crate) fn too_large(operator: &str, uses: &str) -> Failure {
    let message = format!(
        "{operator} {uses} too much memory and cannot spill to disk. Memory limit: {CONTAINER_BYTES_MAX} bytes"
    );
    Failure::new(ErrorCode::EXCEEDED_MEMORY_LIMIT, message)
}

/// An array under construction.
pub(crate) struct MadeArray<'o> {
    array: ArrayBuf,
    operator: &'static str,
    operation: &'o OperationContext,
}

impl<'o> MadeArray<'o> {
    pub(crate) fn new(operator: &'static str, context: &EvaluationContext<'o>) -> Self {
        Self::with(ArrayBuf::new(), operator, context)
    }

    /// Continues an array.
    pub(crate) fn with(array: ArrayBuf, operator: &'static str, context: &EvaluationContext<'o>) -> Self {
        Self { array, operator, operation: context.operation() }
    }

    /// Appends a value.
    /// # Errors
    /// `ExceededMemoryLimit` beyond 100 MiB, `Overflow` for a value that is nested too deep, errors of counting work.
    pub(crate) fn push(&mut self, value: ValueRef<'_>) -> Result<()> {
        check_depth(value, 1)?;
        self.push_element(value)
    }

    /// Appends an element of another array, which cannot be nested too deep.
    #[inline]
    pub(crate) fn push_element(&mut self, element: ValueRef<'_>) -> Result<()> {
        check_container_bytes(self.operator, self.array.len_bytes() + element.content_bytes())?;
        self.operation.work(steps(element))?;
        self.array.push(element);
        Ok(())
    }

    /// Appends elements of other arrays.
    pub(crate) fn extend<'v>(&mut self, elements: impl IntoIterator<Item = ValueRef<'v>>) -> Result<()> {
        elements.into_iter().try_for_each(|element| self.push_element(element))
    }

    pub(crate) fn count(&self) -> usize {
        self.array.count()
    }

    pub(crate) fn into_array(self) -> ArrayBuf {
        self.array
    }

    pub(crate) fn finish<'a>(self) -> Evaluated<'a> {
        Evaluated::Owned(Value::Array(self.array))
    }
}

/// A document under construction.
pub(crate) struct MadeDocument<'o> {
    document: DocumentBuf,
    operator: &'static str,
    operation: &'o OperationContext,
}

impl<'o> MadeDocument<'o> {
    pub(crate) fn new(operator: &'static str, context: &EvaluationContext<'o>) -> Self {
        Self { document: DocumentBuf::new(), operator, operation: context.operation() }
    }

    /// Appends a field.
    /// # Errors
    /// As [`MadeArray::push`].
    pub(crate) fn append(&mut self, name: &str, value: ValueRef<'_>) -> Result<()> {
        check_depth(value, 1)?;
        self.append_field(name, value)
    }

    /// Appends a field of another document, whose value cannot be nested too deep.
    #[inline]
    pub(crate) fn append_field(&mut self, name: &str, value: ValueRef<'_>) -> Result<()> {
        check_container_bytes(self.operator, self.document.len_bytes() + name.len() + value.content_bytes())?;
        self.operation.work(steps(value))?;
        self.document.append(name, value);
        Ok(())
    }

    pub(crate) fn finish<'a>(self) -> Evaluated<'a> {
        Evaluated::Owned(Value::Document(self.document))
    }
}
