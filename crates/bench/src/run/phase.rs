//! One step: prepares data and caches, runs the load, checks the result.

use super::conclusion::conclude;
use super::preparation::{prepare_cache, prepare_data, write_concern};
use super::settled::{End, SettledPhase};
use super::variant::{DataRole, Session};
use super::{set, skipped, transfer};
use crate::BenchError;
use crate::clock::now_ms;
use crate::database::DATABASE;
use crate::measure::{self, Measured, Task};
use crate::observer::Observer;
use crate::operation::{Assignment, Budget, Effect, Insertions};
use crate::scenario::{ArrivalKind, Rate};
use bunko_client::load::{Arrival, Load, LoadOptions};
use bunko_report::result::{Finding, Measurement, Run};
use std::sync::Arc;

/// Maximum number of documents that a generator may insert in one phase: 40 bits of a request's tag.
const INSERTIONS_MAX: u64 = 1 << 40;

pub(super) fn run(
    session: &mut Session<'_>,
    phase: &SettledPhase,
    observer: &mut dyn Observer,
) -> Result<Run, BenchError> {
    session.meet()?;
    prepare_data(session, phase)?;
    if let Some(transfer) = phase.phase.operation.operation().transfer() {
        return transfer::run(session, phase, transfer, observer);
    }
    let caches = match prepare_cache(session, phase.phase.cache)? {
        Ok(caches) => caches,
        Err(reason) => return Ok(skipped(session, reason)),
    };
    let offered_rate = match offered_rate(session, phase) {
        Ok(rate) => rate,
        Err(reason) => return Ok(skipped(session, reason)),
    };
    let (started_at_ms, Measured { mut measurement, acknowledges }) = run_load(session, phase, offered_rate, observer)?;
    measurement.cache = caches.state;
    measurement.findings.extend(caches.finding);
    if let Some(reason) = refusal(&measurement) {
        return Ok(skipped(session, reason));
    }
    conclude(session, phase, started_at_ms, measurement, acknowledges)
}

/// This generator's share of the rate; `None` in a closed loop.
fn offered_rate(session: &Session<'_>, phase: &SettledPhase) -> Result<Option<f64>, String> {
    let share = session.share.count as f64;
    match &phase.rate {
        None => Ok(None),
        Some(Rate::Fixed(rate)) => Ok(Some(rate / share)),
        // The rate that this worker reached is already its share.
        Some(Rate::ShareOf { share, phase: other }) => match session.reached.get(other) {
            Some(reached) => Ok(Some(reached * share)),
            None => Err(format!("rate: phase '{other}' has no figures")),
        },
    }
}

/// When requests arrive: at the offered rate, or in a closed loop without one.
fn arrival(kind: ArrivalKind, offered_rate: Option<f64>, seed: u64) -> Arrival {
    match (offered_rate, kind) {
        (None, _) => Arrival::Closed,
        (Some(rate), ArrivalKind::Constant) => Arrival::Constant(rate),
        (Some(rate), ArrivalKind::Poisson) => Arrival::Poisson { rate, seed },
    }
}

fn run_load(
    session: &mut Session<'_>,
    phase: &SettledPhase,
    offered_rate: Option<f64>,
    observer: &mut dyn Observer,
) -> Result<(u64, Measured), BenchError> {
    let write_concern = write_concern(session, phase);
    let documents = session.dataset.documents();
    let effects = phase.effects();
    let limit = if effects.contains(&Effect::Fills) { session.share.of(documents) } else { INSERTIONS_MAX };
    let insertions = Arc::new(Insertions::new(session.data.base, session.data.issued, limit, session.share));
    let slots = (phase.connections * phase.in_flight) as u64;
    let mine = session.share.of(session.data.base);
    let requests = match phase.end {
        _ if effects.contains(&Effect::Builds) && session.role == DataRole::Guest => Some(0),
        End::After(_) => None,
        End::Requests(requests) => Some(session.share.of(requests)),
        End::Natural => phase.phase.operation.operation().natural_requests(mine, slots),
    };
    let stream = u64::from(session.place.repetition) * session.share.count + session.share.index;
    let options = LoadOptions {
        connections: phase.connections,
        in_flight: phase.in_flight,
        threads: phase.threads,
        placement: phase.placement,
        arrival: arrival(phase.arrival, offered_rate, session.seed ^ stream.rotate_left(48)),
        duration: None,
        stop: Arc::clone(&session.stop),
        stall_timeout: phase.stall_timeout,
    };
    let mut load = Load::connect(&session.uri, options)?;
    let sequence = Arc::new(Budget::new(mine));
    let dataset = Arc::clone(&session.dataset);
    let changed = session.data.changed.clone();
    let collection = session.collections.first();
    let assignment = Assignment {
        dataset: &dataset,
        database: DATABASE,
        collection: &collection,
        collections: session.collections,
        write_concern: &write_concern,
        insertions: &insertions,
        sequence: &sequence,
        changed: &changed,
        seed: session.seed,
        stream,
    };
    let task = Task { operation: &phase.phase.operation, sessions: phase.sessions, assignment, requests, offered_rate };
    if !phase.warm_up.is_zero() && !effects.contains(&Effect::Fills) {
        load.options_mut().duration = Some(phase.warm_up);
        // The warm-up has a sequence of its own, so that the whole sequence is left for the measurement.
        let warm_sequence = Arc::new(Budget::new(mine));
        let assignment = Assignment { stream: stream ^ 1 << 40, sequence: &warm_sequence, ..assignment };
        measure::warm_up(&mut load, &Task { requests: None, assignment, ..task })?;
    }
    load.options_mut().duration = match phase.end {
        End::After(duration) => Some(duration),
        End::Requests(_) | End::Natural => None,
    };
    // All generators give their starting signal together, once their connections are open.
    session.meet()?;
    let started_at_ms = now_ms();
    let (measured, members) =
        set::watched(session, |session| measure::measure(&mut load, &task, &mut session.probe, observer));
    let mut measured = measured?;
    set::enter(&mut measured.measurement, members);
    drop(load);
    settle_data(session, phase, &insertions)?;
    Ok((started_at_ms, measured))
}

/// Counts the documents that all generators together inserted in a phase.
fn settle_data(session: &mut Session<'_>, phase: &SettledPhase, insertions: &Insertions) -> Result<(), BenchError> {
    let inserted = session.sum(insertions.acknowledged_total())?;
    let effects = phase.effects();
    let data = &mut session.data;
    data.expected += inserted;
    if effects.contains(&Effect::Fills) {
        data.base = inserted;
    } else if session.share.count == 1 {
        data.base = insertions.readable_count();
    } else {
        data.issued = insertions.issued();
        data.own = insertions.readable_count() - data.base;
    }
    Ok(())
}

/// The reason, if the server failed every request and thus does not support the operation.
fn refusal(measurement: &Measurement) -> Option<String> {
    let all_failed = measurement.errors > 0 && measurement.errors == measurement.requests;
    let first = measurement.findings.iter().find_map(|finding| match finding {
        Finding::Errors { first, .. } => Some(first),
        _ => None,
    })?;
    all_failed.then(|| format!("the server refused it: {first}"))
}
