//! Lists that are complete at once and returned by a cursor: collections, indexes.

use crate::cursor_reply::{FirstBatch, write_first_batch};
use crate::invocation::Invocation;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, Writer, number};
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure, Result};
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

/// Writes the first batch of a complete list: `cursor.batchSize` documents, or all.
/// # Errors
/// A malformed `cursor` option.
pub(crate) fn write_document_list(
    invocation: &mut Invocation<'_>,
    reply: &mut Writer<'_>,
    namespace: &Namespace,
    documents: Vec<DocumentBuf>,
) -> Result<()> {
    let batch = FirstBatch {
        documents: batch_size(invocation)?.unwrap_or(u64::MAX),
        is_only: false,
        is_long: false,
        has_no_timeout: false,
    };
    let list = DocumentList { rest: documents.into_iter(), lent: DocumentBuf::new() };
    write_first_batch(invocation, reply, namespace, Box::new(list), &batch)
}

fn batch_size(invocation: &Invocation<'_>) -> Result<Option<u64>> {
    let Some(options) = invocation.document("cursor")? else { return Ok(None) };
    let command = invocation.command.name;
    let mut size = None;
    for element in options {
        if element.name != "batchSize" {
            return Err(Failure::new(
                ErrorCode::IDL_UNKNOWN_FIELD,
                format!("BSON field '{command}.cursor.{}' is an unknown field.", element.name),
            ));
        }
        if !element.value.is_nullish() {
            size = Some(read_size(command, element.value)?);
        }
    }
    Ok(size)
}

fn read_size(command: &str, value: ValueRef<'_>) -> Result<u64> {
    let size = number::clamp_to_i64(value).ok_or_else(|| {
        Failure::type_mismatch(format!(
            "BSON field '{command}.cursor.batchSize' is the wrong type '{}', expected types '[long, int, decimal, double]'",
            value.kind().alias()
        ))
    })?;
    u64::try_from(size)
        .map_err(|_| Failure::bad_value(format!("BSON field 'batchSize' value must be >= 0, actual value '{size}'")))
}
