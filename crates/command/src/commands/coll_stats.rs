//! `collStats`: sizes and counts of one collection.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use crate::target::Target;
use bunko_access::Action;
use bunko_bson::Writer;
use bunko_observe::statistics_scale::scale;
use bunko_pipelines::source_stages::write_buckets;
use bunko_pipelines::{CollectionStatistics, PipelineContext, write_missing};
use bunko_request::facts::{CommandFacts, UnstoredUse};
use bunko_request::field_kinds::{Kind, POSITIVE, field};
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "collStats",
        aliases: &["collstats"],
        fields: &[
            field("scale", POSITIVE),
            field("verbose", Kind::Flag),
            field("waitForLock", Kind::Flag),
            field("numericOnly", Kind::Flag),
        ],
        unstored: UnstoredUse::ReadsOplog,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCollection(Action::CollStats),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let namespace = invocation.namespace()?;
    let scale = scale(invocation)?;
    reply.append("ns", namespace.as_str());
    match Target::of(&invocation.service.catalog, invocation, &namespace)? {
        Target::Collection(collection) => CollectionStatistics::of(&collection).write(reply, scale),
        Target::TimeSeries(series) => {
            write_buckets(reply, &CollectionStatistics::of(&series.buckets), &series, scale);
        }
        Target::Unstored(unstored) => {
            invocation.refuse_if_long(true)?;
            let statistics = unstored.statistics(&invocation.surroundings())?;
            statistics.ok_or_else(|| unstored.refusal("collStats", &namespace))?.write(reply, scale);
        }
        Target::View => invocation.service.catalog.refuse_view(&namespace)?,
        Target::Absent => write_missing(reply, scale),
    }
    Ok(())
}
