//! Lists that are complete at once and returned by a cursor: collections, indexes.

use crate::cursor_reply::{FirstBatch, write_first_batch};
use crate::invocation::Invocation;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, Writer, number};
use bunko_catalog::Namespace;
use bunko_errors::{Failure, Result};
use bunko_request::fields::Fields;
use bunko_session::cursors::CursorSource;

struct DocumentList {
    rest: std::vec::IntoIter<DocumentBuf>,
    lent: DocumentBuf,
}

impl CursorSource for DocumentList {
    fn next(&mut self) -> Result<Option<DocumentRef<'_>>> {
        let Some(document) = self.rest.next() else { return Ok(None) };
        self.lent = document;
        Ok(Some(self.lent.as_ref()))
    }

    fn is_over(&self) -> bool {
        self.rest.len() == 0
    }
}

/// Writes the first batch of a complete list: that many documents, or all.
/// # Errors
/// As [`write_first_batch`].
pub(crate) fn write_document_list(
    invocation: &mut Invocation<'_>,
    reply: &mut Writer<'_>,
    namespace: &Namespace,
    documents: Vec<DocumentBuf>,
    batch_size: Option<u64>,
) -> Result<()> {
    let batch =
        FirstBatch { documents: batch_size.unwrap_or(u64::MAX), is_only: false, is_long: false, has_no_timeout: false };
    let list = DocumentList { rest: documents.into_iter(), lent: DocumentBuf::new() };
    write_first_batch(invocation, reply, namespace, Box::new(list), &batch)
}

/// `cursor.batchSize`, if it is given.
/// # Errors
/// `IDLUnknownField` for other fields of `cursor`; `TypeMismatch`; `BadValue` for a negative size.
pub(crate) fn parse_batch_size(fields: &Fields<'_>) -> Result<Option<u64>> {
    let Some(options) = fields.document("cursor")? else { return Ok(None) };
    let command = fields.command;
    let mut size = None;
    for element in options {
        if element.name != "batchSize" {
            return Err(Failure::unknown_field(format_args!("{command}.cursor.{}", element.name)));
        }
        if !element.value.is_nullish() {
            size = Some(read_size(command, element.value)?);
        }
    }
    Ok(size)
}

fn read_size(command: &str, value: ValueRef<'_>) -> Result<u64> {
    let size = number::clamp_to_i64(value).ok_or_else(|| {
        Failure::wrong_type(format_args!("{command}.cursor.batchSize"), value, "types '[long, int, decimal, double]'")
    })?;
    u64::try_from(size)
        .map_err(|_| Failure::bad_value(format!("BSON field 'batchSize' value must be >= 0, actual value '{size}'")))
}
