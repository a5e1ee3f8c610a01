//! `profile`: sets which operations of a database are stored in `system.profile`, and how long a slow operation takes.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_authority::privileges::administration;
use bunko_bson::{ValueRef, Writer, number};
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure};
use bunko_matcher::Filter;
use bunko_observe::profiler::{self, Level, PROFILE};
use bunko_request::facts::{CommandFacts, Profiling};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::Fields;
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "profile",
        fields: &[field("slowms", Kind::Number), field("sampleRate", Kind::Number), field("filter", Kind::Own)],
        profiling: Profiling::Never,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::By(administration::profile),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let database = invocation.request.database;
    let level = level(invocation)?;
    let slow_ms = parse_slow_ms(invocation)?;
    let sample_rate = parse_sample_rate(invocation)?;
    let filter = parse_filter(invocation)?;
    let profiler = &invocation.service.profiler;
    let was = profiler.database(database);
    reply
        .append("was", was.level as i32)
        .append("slowms", profiler.slow_ms())
        .append("sampleRate", profiler.sample_rate());
    if let Some((filter, _)) = &was.filter {
        let note = "When a filter expression is set, slowms and sampleRate are not used for profiling and slow-query \
                    log lines.";
        reply.append("filter", filter).append("note", note);
    }
    if let Some(milliseconds) = slow_ms {
        profiler.set_slow_ms(milliseconds.clamp(i32::MIN.into(), i32::MAX.into()) as i32);
    }
    if let Some(rate) = sample_rate {
        profiler.set_sample_rate(rate);
    }
    let mut next = (*was).clone();
    if let Some(level) = level {
        if level != Level::None {
            make_profile(invocation)?;
        }
        next.level = level;
    }
    match filter {
        FilterChange::Nothing => {}
        FilterChange::None => next.filter = None,
        FilterChange::Filter(written, parsed) => next.filter = Some((written.to_owned(), *parsed)),
    }
    profiler.set_database(database, next);
    Ok(())
}

/// Creates the collection that operations are stored in.
/// # Errors
/// `NamespaceExists` if it exists and is not capped.
fn make_profile(invocation: &Invocation<'_>) -> Result<(), Failure> {
    let catalog = &invocation.service.catalog;
    let namespace = Namespace::new(invocation.request.database, PROFILE)?;
    if catalog.collection(&namespace).is_some_and(|kept| !kept.is_capped()) {
        let message = format!("{namespace} exists, but isn't capped");
        return Err(Failure::new(ErrorCode::NAMESPACE_EXISTS, message));
    }
    // A client may be copying the files, which must not change. The first operation that is profiled afterwards creates
    // the collection.
    if invocation.service.write_lock.is_closed() { Ok(()) } else { profiler::make_profile(catalog, &namespace) }
}

/// The level to set; `None` for any other number, which only asks for the current settings.
fn level(invocation: &Invocation<'_>) -> Result<Option<Level>, Failure> {
    Ok(number::clamp_to_i64(invocation.argument_of(Kind::Number)?).and_then(Level::of_number))
}

fn parse_slow_ms(fields: &Fields<'_>) -> Result<Option<i64>, Failure> {
    fields.integer("slowms")
}

fn parse_sample_rate(fields: &Fields<'_>) -> Result<Option<f64>, Failure> {
    let Some(value) = fields.field("sampleRate") else { return Ok(None) };
    let rate = number::as_f64(value)
        .ok_or_else(|| fields.mismatch("sampleRate", value, "types '[long, int, decimal, double]'"))?;
    if !(0.0..=1.0).contains(&rate) {
        return Err(Failure::bad_value(format!("'sampleRate' must be between 0.0 and 1.0 inclusive, found {rate}")));
    }
    Ok(Some(rate))
}

/// The value of `filter`: not given, `unset`, or a filter.
enum FilterChange<'a> {
    Nothing,
    None,
    Filter(bunko_bson::DocumentRef<'a>, Box<Filter>),
}

fn parse_filter<'a>(fields: &Fields<'a>) -> Result<FilterChange<'a>, Failure> {
    match fields.field("filter") {
        None => Ok(FilterChange::Nothing),
        Some(ValueRef::String("unset")) => Ok(FilterChange::None),
        Some(ValueRef::Document(filter)) => Ok(FilterChange::Filter(filter, Box::new(Filter::parse(filter)?))),
        Some(ValueRef::String(_)) => Err(Failure::bad_value("Expected an object, or the string 'unset'.")),
        Some(other) => Err(fields.mismatch("filter", other, "types '[object, string]'")),
    }
}
