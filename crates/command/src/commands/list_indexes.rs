//! `listIndexes`: the indexes of a collection, as they were specified.

use crate::dispatch::{Command, Databases, Halt};
use crate::document_list::write_document_list;
use crate::invocation::Invocation;
use crate::oplog_view::is_oplog;
use crate::time_series;
use bunko_bson::Writer;
use bunko_errors::{ErrorCode, Failure};

pub(super) const COMMAND: Command =
    Command { name: "listIndexes", aliases: &[], fields: &["cursor"], databases: Databases::Any, run };

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let namespace = invocation.namespace()?;
    if is_oplog(&invocation.service.catalog, &namespace) {
        return Ok(write_document_list(invocation, reply, namespace, Vec::new())?);
    }
    if let Some(series) = time_series::find(&invocation.service.catalog, &namespace)? {
        let indexes = series.buckets.indexes();
        // The buckets' own index on `_id` is none of the measurements.
        let indexes = indexes.iter().filter(|index| !index.is_id());
        let specs = indexes
            .map(|index| time_series::of_measurements(index.spec().document.as_ref(), &series.options))
            .collect();
        return Ok(write_document_list(invocation, reply, namespace, specs)?);
    }
    let collection = invocation
        .collection_not_view(&namespace)?
        .ok_or_else(|| Failure::new(ErrorCode::NAMESPACE_NOT_FOUND, format!("ns does not exist: {namespace}")))?;
    let specs = collection.indexes().iter().map(|index| index.document.clone()).collect();
    Ok(write_document_list(invocation, reply, namespace, specs)?)
}
