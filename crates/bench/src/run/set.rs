//! The members of the target's replica set beside a step.

use super::variant::Session;
use crate::measure::{WatchedSet, watch_set};
use bunko_report::result::Measurement;

/// Runs a part of a step beside which the members of the target's set are watched, if it is in one.
pub(super) fn watched<T>(
    session: &mut Session<'_>,
    work: impl FnOnce(&mut Session<'_>) -> T,
) -> (T, Option<WatchedSet>) {
    let Some(mut set) = session.set.take() else { return (work(session), None) };
    let stop = session.stop.clone();
    let (returned, watched) = watch_set(&mut set, &stop, || work(session));
    session.set = Some(set);
    (returned, Some(watched))
}

/// Enters the record of the members.
pub(super) fn enter(measurement: &mut Measurement, watched: Option<WatchedSet>) {
    if let Some(WatchedSet { record, finding }) = watched {
        measurement.set = Some(record);
        measurement.findings.extend(finding);
    }
}
