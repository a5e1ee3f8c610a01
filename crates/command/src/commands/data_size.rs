//! `dataSize`: bytes and number of a collection's documents; both are kept, so none is read.

use crate::dispatch::{Command, Databases, Halt};
use crate::invocation::Invocation;
use crate::oplog_view;
use bunko_bson::{ValueRef, Writer};
use bunko_catalog::Namespace;

pub(super) const COMMAND: Command = Command {
    name: "dataSize",
    aliases: &["datasize"],
    fields: &["keyPattern", "min", "max", "estimate"],
    databases: Databases::Any,
    run,
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let ValueRef::String(name) = invocation.argument() else {
        return Err(invocation.mismatch("dataSize", invocation.argument(), "type 'string'").into());
    };
    let namespace = Namespace::parse(name)?;
    oplog_view::check(&invocation.service.catalog, &namespace, invocation.command.name)?;
    let is_estimate = invocation.boolean("estimate", false)?;
    for bound in ["keyPattern", "min", "max"] {
        if invocation.document(bound)?.is_some() {
            return Err(invocation.unsupported(bound).into());
        }
    }
    let (bytes, count) = invocation
        .collection_not_view(&namespace)?
        .map_or((0, 0), |collection| (collection.data_bytes(), collection.count()));
    reply
        .append("estimate", is_estimate)
        .append("size", bytes as i64)
        .append("numObjects", count as i64)
        .append("millis", 0_i64);
    Ok(())
}
