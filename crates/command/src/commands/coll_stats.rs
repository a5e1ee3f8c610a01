//! `collStats`: sizes and counts of one collection.

use crate::authorization::Privileges;
use crate::collection_statistics::{CollectionStatistics, write_missing};
use crate::dispatch::{Command, Databases, Halt, TransactionUse};
use crate::field_kinds::{Kind, POSITIVE, field};
use crate::invocation::Invocation;
use crate::oplog_view::{self, is_oplog};
use crate::source_stages::coll_stats::write_buckets;
use crate::statistics_scale::scale;
use crate::time_series;
use bunko_access::Action;
use bunko_bson::Writer;

pub(super) const COMMAND: Command = Command {
    name: "collStats",
    aliases: &["collstats"],
    fields: &[
        field("scale", POSITIVE),
        field("verbose", Kind::Flag),
        field("waitForLock", Kind::Flag),
        field("numericOnly", Kind::Flag),
    ],
    databases: Databases::Any,
    transaction: TransactionUse::Refused,
    privileges: Privileges::OnCollection(Action::CollStats),
    run,
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let namespace = invocation.namespace()?;
    let scale = scale(invocation)?;
    reply.append("ns", namespace.as_str());
    if is_oplog(&invocation.service.catalog, &namespace) {
        oplog_view::statistics(invocation)?.write(reply, scale);
        return Ok(());
    }
    if let Some(series) = time_series::find(&invocation.service.catalog, &namespace)? {
        write_buckets(reply, &CollectionStatistics::of(&series.buckets), &series, scale);
        return Ok(());
    }
    match invocation.collection_not_view(&namespace)? {
        Some(collection) => CollectionStatistics::of(&collection).write(reply, scale),
        None => write_missing(reply, scale),
    }
    Ok(())
}
