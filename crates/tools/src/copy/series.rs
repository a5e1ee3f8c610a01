//! Copies time series by their documents: buckets have formats that not every server reads.
//!
//! Change streams have no events of time series, so one that has changed is copied anew at the end.

use super::Copy;
use super::listing::Listed;
use super::pair::Pair;
use crate::cursor::{Cursor, DOCUMENT_BYTES_GUESSED, batch_documents};
use crate::restore::outcome::write_errors;
use crate::{ToolError, retry};
use bunko_bson::DocumentBuf;
use bunko_client::CommandError;

/// Makes a series of the target equal to the source's.
/// # Errors
/// The servers', the connections', `Interrupted`.
pub(super) fn copy(
    copy: &Copy<'_>,
    pair: &mut Pair,
    series: &Listed,
    read_concern: Option<&DocumentBuf>,
) -> Result<(), ToolError> {
    let failed = |cause| ToolError::server(series.namespace(), cause);
    pair.drop_on_target(&series.database, &series.name)?;
    let mut create = DocumentBuf::new().with("create", &series.name);
    create.extend(series.options.as_ref());
    pair.target().run(&series.database, &create)?;
    let mut find =
        DocumentBuf::new().with("find", &series.name).with("batchSize", batch_documents(DOCUMENT_BYTES_GUESSED) as i64);
    if let Some(read_concern) = read_concern {
        find.append("readConcern", read_concern);
    }
    let insert = DocumentBuf::new().with("insert", &series.name).with("ordered", false);
    // The reading link is one of its own, because the next batches are asked for ahead.
    let mut reading = Pair::connect(copy)?;
    let (link, progress) = reading.source().link();
    let mut cursor = Cursor::open(link, progress, &series.database, &find).map_err(failed)?;
    let mut documents = Vec::new();
    while cursor.next(&mut documents).map_err(failed)?.is_some() {
        if !documents.is_empty() {
            let reply = pair.target().write(&series.database, &insert, ("documents", &documents))?;
            if let Some((_, error)) = write_errors(reply.as_ref()).first() {
                return Err(ToolError::server(series.namespace(), CommandError::read(*error)));
            }
        }
        documents.clear();
        retry::check(copy.interrupted)?;
    }
    Ok(())
}
