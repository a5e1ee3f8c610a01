//! One step: prepares data and caches, runs the load, checks the result.

use super::limits::{self, Sizes};
use super::settle::{Settled, settle};
use super::settled::{End, SettledPhase};
use super::variant::{DataRole, DataState, Session};
use super::{skipped, transfer};
use crate::BenchError;
use crate::clock::now_ms;
use crate::database::{self, DATABASE, Sample};
use crate::measure::{self, Measured, Task};
use crate::observer::Observer;
use crate::operation::{Assignment, Budget, Effect, Insertions};
use crate::scenario::{ArrivalKind, Cache, Rate};
use crate::target::Chilled;
use bunko_client::WriteConcern;
use bunko_client::load::{Arrival, Load, LoadOptions};
use bunko_report::result::{Finding, Measurement, Outcome, Run};
use std::sync::Arc;

/// Maximum number of documents that a generator may insert in one phase: 40 bits of a request's tag.
const INSERTIONS_MAX: u64 = 1 << 40;

pub(super) fn run(
    session: &mut Session<'_>,
    phase: &SettledPhase,
    observer: &mut dyn Observer,
) -> Result<Run, BenchError> {
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

/// Ends a step after the load: waits for the server's background work, checks limits, and verifies the data.
pub(super) fn conclude(
    session: &mut Session<'_>,
    phase: &SettledPhase,
    started_at_ms: u64,
    mut measurement: Measurement,
    acknowledges: bool,
) -> Result<Run, BenchError> {
    if let Some(longest) = phase.phase.settle
        && let Some(Settled { settling, finding }) = settle(session, longest.0)
    {
        measurement.settling = Some(settling);
        measurement.findings.extend(finding);
    }
    let on_disk = session.probe.data_directory().map(|directory| bunko_host::directory_bytes(directory));
    let sizes = Sizes { on_disk, live: session.live_bytes() };
    measurement.findings.extend(limits::check(&phase.phase.limits, &measurement, &sizes));
    verify(session, phase, &mut measurement, acknowledges)?;
    session.reached.insert(phase.phase.name.clone(), measurement.achieved_rate);
    let repetition = session.place.repetition;
    Ok(Run { repetition, started_at_ms, outcome: Outcome::Measured(Box::new(measurement)) })
}

/// Makes the collection if the phase needs a new one.
fn prepare_data(session: &mut Session<'_>, phase: &SettledPhase) -> Result<(), BenchError> {
    let fills = phase.effects().contains(&Effect::Fills);
    if fills || !session.data.exists {
        if session.role == DataRole::Owner {
            database::empty_collections(&mut session.control, session.collections, &session.indexes)?;
        }
        session.data = DataState { exists: true, ..DataState::default() };
        session.meet()?;
    }
    for effect in phase.effects() {
        if let Effect::Changes(fields) = effect {
            session.data.changed.extend(fields);
        }
    }
    Ok(())
}

/// The state of caches before a phase.
pub(super) struct Caches {
    pub state: String,
    pub finding: Option<Finding>,
}

/// Brings caches into the state that the phase declares, or returns why that is impossible.
pub(super) fn prepare_cache(session: &mut Session<'_>, cache: Cache) -> Result<Result<Caches, String>, BenchError> {
    let as_declared = |state: String| Ok(Caches { state, finding: None });
    Ok(match cache {
        Cache::AsLeft => as_declared("as the phase before left them".to_owned()),
        Cache::Warm => {
            let read = database::read_all(&mut session.control, session.collections)?;
            as_declared(format!("warm: {read} documents were read before"))
        }
        Cache::Cold => match session.target.chill()? {
            Chilled::NotOurs => Err("cold caches: only a server that the lab started can be restarted".to_owned()),
            Chilled::Cold => {
                session.reconnect()?;
                as_declared("cold: server restarted, its files' pages dropped by the kernel".to_owned())
            }
            Chilled::PagesKept(reason) => {
                session.reconnect()?;
                let detail = format!("the kernel keeps the files' pages: {reason}");
                let finding = Some(Finding::CacheNotAsDeclared { detail });
                Ok(Caches { state: "server restarted, its files' pages kept by the kernel".to_owned(), finding })
            }
        },
    })
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
    let measured = measure::measure(&mut load, &task, &mut session.probe, observer)?;
    drop(load);
    settle_data(session, phase, &insertions)?;
    Ok((started_at_ms, measured))
}

/// The phase's own write concern or the scenario's, else the connection string's.
pub(super) fn write_concern(session: &Session<'_>, phase: &SettledPhase) -> WriteConcern {
    let own = phase.write_concern.as_ref().and_then(|text| text.parse().ok());
    own.unwrap_or_else(|| session.write_concern.clone())
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

/// Compares the server's count and a sample of its documents with the expected ones.
fn verify(
    session: &mut Session<'_>,
    phase: &SettledPhase,
    measurement: &mut Measurement,
    acknowledges: bool,
) -> Result<(), BenchError> {
    if session.role == DataRole::Guest {
        return Ok(());
    }
    let found = database::count(&mut session.control, session.collections)?;
    let expected = phase.phase.expect_count.unwrap_or(session.data.expected);
    if found != expected {
        let what =
            if acknowledges { "documents in the collection" } else { "documents in the collection (unacknowledged)" };
        measurement.findings.push(Finding::CountsDiffer { what: what.to_owned(), expected, found });
    }
    let except: Vec<&str> = session.data.changed.iter().map(String::as_str).collect();
    let seed = session.seed ^ u64::from(session.place.repetition);
    let (base, share) = (session.data.base, session.share);
    let place = |number: u64| if number < base { number } else { base + share.place(number - base) };
    let sample = Sample { count: base + session.data.own, place: &place, seed };
    let (verified, differs) =
        database::verify(&mut session.control, &session.dataset, session.collections, &sample, &except)?;
    measurement.verified_documents = verified;
    measurement.findings.extend(differs.map(|detail| Finding::ContentsDiffer { detail }));
    Ok(())
}
