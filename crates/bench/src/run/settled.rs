//! Settled phases: defaults filled in, lists of connections unrolled, contradictions refused.

use super::Plan;
use crate::observer::StepName;
use crate::operation::{Effect, SessionUse, Transfer, check_keys};
use crate::reference::{StepKey, TransferKey, figure};
use crate::scenario::{
    ArrivalKind, EndSettings, OneOrMany, Phase, PhaseLoad, PlacementSetting, Rate, ReadSettings, Role, Scenario,
};
use bunko_client::load::Placement;
use bunko_dataset::{Dataset, DatasetOptions};
use bunko_report::result::Step;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// Default time without any reply after which a server counts as dead.
const STALL_TIMEOUT: Duration = Duration::from_mins(1);
/// Maximum number of connections from one machine, which has not more ports.
const CONNECTIONS_MAX: usize = 60_000;
const IN_FLIGHT_MAX: usize = 100_000;
const THREADS_MAX: usize = 1_024;
/// Maximum number of collections of a scenario.
const COLLECTIONS_MAX: u64 = 1_000;
/// Maximum number of documents of a scenario.
const DOCUMENTS_MAX: u64 = 1 << 36;

/// One step: a phase at one number of connections.
pub(super) struct SettledPhase {
    pub phase: Phase,
    pub connections: usize,
    pub in_flight: usize,
    pub threads: usize,
    pub placement: Placement,
    pub rate: Option<Rate>,
    pub arrival: ArrivalKind,
    pub warm_up: Duration,
    pub end: End,
    pub write_concern: Option<String>,
    pub sessions: SessionUse,
    /// Encoded size of a document, in bytes.
    pub document_bytes: usize,
    pub stall_timeout: Duration,
}

/// Condition that ends a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// A time has passed.
    After(Duration),
    /// A number of requests was made.
    Requests(u64),
    /// The operation is complete.
    Natural,
}

impl SettledPhase {
    pub fn effects(&self) -> Vec<Effect> {
        self.phase.operation.operation().effects()
    }

    /// Whether it drops and restores the documents. Their storage then differs from that after a load.
    pub fn restores(&self) -> bool {
        self.effects().contains(&Effect::Restores)
    }

    pub fn is_reported(&self) -> bool {
        self.phase.role == Role::Measure
    }

    pub fn name<'a>(&'a self, target: &'a str, variant: &'a [(String, String)], repetition: u32) -> StepName<'a> {
        StepName { target, variant, phase: &self.phase.name, connections: self.connections, repetition }
    }

    /// The report's step for this phase of a variant, without runs. `cores` is this machine's number, `engine` is the
    /// target's.
    pub fn empty_step(&self, target: usize, plan: &Plan, engine: &str, cores: usize) -> Step {
        let variant = plan.step_variant(self);
        let (phase, connections, in_flight) = (self.phase.name.as_str(), self.connections, self.in_flight);
        let experiment = plan.scenario.experiment.as_deref();
        let transfer = TransferKey::of(&plan.scenario, phase, self.write_concern.as_deref(), self.document_bytes);
        let key = StepKey { experiment, engine, variant: &variant, phase, connections, in_flight, transfer };
        Step {
            target,
            phase: phase.to_owned(),
            operation: self.phase.operation.name().to_owned(),
            connections,
            in_flight,
            reference: figure(&key, cores),
            variant,
            runs: Vec::new(),
        }
    }
}

/// The dataset of a scenario.
/// # Errors
/// Settings that contradict each other or the shape.
pub(super) fn dataset(scenario: &Scenario) -> Result<Arc<Dataset>, String> {
    let dataset = Dataset::new(&dataset_options(scenario)?).map_err(|error| format!("dataset: {error}"))?;
    Ok(Arc::new(dataset))
}

/// # Errors
/// As [`dataset`].
pub(super) fn dataset_options(scenario: &Scenario) -> Result<DatasetOptions, String> {
    let settings = &scenario.dataset;
    let options = |documents| DatasetOptions {
        seed: scenario.seed,
        shape: settings.shape.clone(),
        documents,
        document_bytes: settings.document_bytes.map(|bytes| bytes.0 as usize),
        compressible: settings.compressible,
        key_order: settings.key_order,
        id: settings.id,
    };
    let build = |documents| Dataset::new(&options(documents)).map_err(|error| format!("dataset: {error}"));
    let documents = match (settings.documents, settings.total_bytes) {
        (Some(documents), None) => documents,
        (None, Some(total)) => (total.0 / build(1)?.document_bytes() as u64).max(1),
        (None, None) => return Err("dataset: 'documents' or 'total-bytes' is needed".into()),
        (Some(_), Some(_)) => return Err("dataset: 'documents' and 'total-bytes' exclude each other".into()),
    };
    if documents == 0 {
        return Err("dataset: documents: at least 1 is needed".into());
    }
    if documents > DOCUMENTS_MAX {
        return Err(format!("dataset: {documents} documents are more than {DOCUMENTS_MAX}"));
    }
    let collections = settings.collections;
    if !(1..=COLLECTIONS_MAX.min(documents)).contains(&collections) {
        let max = COLLECTIONS_MAX.min(documents);
        return Err(format!("dataset: collections: {collections} is not in 1..{max}"));
    }
    Ok(options(documents))
}

/// The phases of a variant, and the settings of loads that they read.
pub(super) struct Settled {
    pub phases: Vec<SettledPhase>,
    pub read: ReadSettings,
}

/// Settles every phase.
/// # Errors
/// The first contradiction, with the phase's name.
pub(super) fn settle(scenario: &Scenario) -> Result<Settled, String> {
    if scenario.repetitions == 0 {
        return Err("repetitions: at least 1 is needed".into());
    }
    let dataset = dataset(scenario)?;
    scenario.load.check_end()?;
    for keys in &scenario.dataset.indexes {
        check_keys(&dataset, keys).map_err(|error| format!("dataset: indexes: {error}"))?;
    }
    if let Some(settings) = &scenario.allocation {
        settings.methods().map_err(|error| format!("allocation: methods: {error}"))?;
    }
    let read = ReadSettings::default();
    let mut names = HashSet::new();
    let mut settled = Vec::new();
    for phase in &scenario.phase {
        let failed = |message: String| format!("phase '{}': {message}", phase.name);
        if !names.insert(phase.name.as_str()) {
            return Err(failed("there is another one of that name".into()));
        }
        let operation = phase.operation.operation();
        operation.check(&dataset).map_err(|message| failed(format!("{}: {message}", phase.operation.name())))?;
        phase.limits.check().map_err(failed)?;
        if scenario.dataset.collections > 1 && !operation.takes_collections() {
            let message =
                format!("{}: it knows one collection, and dataset.collections says more", phase.operation.name());
            return Err(failed(message));
        }
        let load = PhaseLoad::new(&phase.name, &phase.load, &scenario.load, &read);
        if let Some(transfer) = operation.transfer() {
            check_transfer(phase, scenario, &transfer).map_err(failed)?;
            settled.push(settle_transfer(phase, &transfer, &load, &dataset).map_err(failed)?);
            continue;
        }
        if let Some(Rate::ShareOf { phase: other, .. }) = load.rate()
            && (other == phase.name || !names.contains(other.as_str()))
        {
            return Err(failed(format!("rate: there is no phase '{other}' before it")));
        }
        let connections = load.connections().as_ref().map_or(vec![1], OneOrMany::values);
        if connections.is_empty() {
            return Err(failed("connections: the list is empty".into()));
        }
        for connections in connections {
            settled.push(settle_one(phase, &load, connections, &dataset).map_err(failed)?);
        }
    }
    Ok(Settled { phases: settled, read })
}

/// Refuses settings of a load that dump and restore ignore. A restore accepts only a write concern, a dump nothing.
fn check_transfer(phase: &Phase, scenario: &Scenario, transfer: &Transfer<'_>) -> Result<(), String> {
    let is_dump = |other: &&Phase| matches!(other.operation.operation().transfer(), Some(Transfer::Dump(_)));
    let before = || scenario.phase.iter().take_while(|other| other.name != phase.name);
    let name = phase.operation.name();
    match transfer {
        Transfer::Restore(_) if !before().any(|other| is_dump(&other)) => {
            Err("restore: there is no phase before it that dumps".into())
        }
        Transfer::Restore(_) if !phase.load.is_at_most_a_write_concern() => {
            Err(format!("load: of its settings, {name} takes 'write-concern' alone"))
        }
        Transfer::Dump(_) if !phase.load.names().is_empty() => Err(format!("load: of its settings, {name} takes none")),
        _ => Ok(()),
    }
}

fn settle_transfer(
    phase: &Phase,
    transfer: &Transfer<'_>,
    load: &PhaseLoad<'_>,
    dataset: &Dataset,
) -> Result<SettledPhase, String> {
    let write_concern = match transfer {
        Transfer::Restore(_) => write_concern(phase, load)?,
        Transfer::Dump(_) => None,
    };
    Ok(SettledPhase {
        phase: phase.clone(),
        connections: 1,
        in_flight: 1,
        threads: 1,
        placement: Placement::Free,
        rate: None,
        arrival: ArrivalKind::default(),
        warm_up: Duration::ZERO,
        end: End::Natural,
        write_concern,
        sessions: SessionUse::None,
        document_bytes: dataset.document_bytes(),
        stall_timeout: STALL_TIMEOUT,
    })
}

/// The write concern of a phase that writes; `None` if none is set, or the phase writes nothing.
fn write_concern(phase: &Phase, load: &PhaseLoad<'_>) -> Result<Option<String>, String> {
    let effects = phase.operation.operation().effects();
    if !effects.iter().any(Effect::obeys_write_concern) {
        return Ok(None);
    }
    let Some(write_concern) = load.write_concern() else { return Ok(None) };
    let concern: bunko_client::WriteConcern =
        write_concern.parse().map_err(|error| format!("write-concern: {error}"))?;
    if !concern.expects_reply() && effects.len() != 1 {
        return Err("write-concern: a mix of operations needs acknowledged writes".into());
    }
    Ok(Some(write_concern))
}

fn settle_one(
    phase: &Phase,
    load: &PhaseLoad<'_>,
    connections: usize,
    dataset: &Dataset,
) -> Result<SettledPhase, String> {
    let within = |name: &str, value: usize, max: usize| {
        if (1..=max).contains(&value) { Ok(value) } else { Err(format!("{name}: {value} is not in 1..{max}")) }
    };
    let connections = within("connections", connections, CONNECTIONS_MAX)?;
    let in_flight = within("in-flight", load.in_flight().unwrap_or(1), IN_FLIGHT_MAX)?;
    let threads = within("threads", load.threads().unwrap_or(1), THREADS_MAX)?;
    let operation = phase.operation.operation();
    let write_concern = write_concern(phase, load)?;
    let sessions = load.sessions().unwrap_or_default();
    if sessions != SessionUse::None && operation.has_sessions() {
        return Err(format!("sessions: {} has sessions of its own", phase.operation.name()));
    }
    let rate = load.rate();
    let fills = operation.effects().contains(&Effect::Fills);
    Ok(SettledPhase {
        phase: phase.clone(),
        connections,
        in_flight,
        threads,
        placement: match load.placement().unwrap_or_default() {
            PlacementSetting::Free => Placement::Free,
            PlacementSetting::Pinned => Placement::Pinned,
        },
        arrival: rate.as_ref().and_then(|_| load.arrival()).unwrap_or_default(),
        rate,
        warm_up: if fills { Duration::ZERO } else { load.warm_up().map_or(Duration::ZERO, |span| span.0) },
        end: end(phase, load, (connections * in_flight) as u64, dataset)?,
        write_concern,
        sessions,
        document_bytes: dataset.document_bytes(),
        stall_timeout: load.stall_timeout().map_or(STALL_TIMEOUT, |span| span.0),
    })
}

/// The end of a phase: its own `duration` or `requests`, else the operation's end, else the scenario's.
fn end(phase: &Phase, load: &PhaseLoad<'_>, slots: u64, dataset: &Dataset) -> Result<End, String> {
    let operation = phase.operation.operation();
    let fills = operation.effects().contains(&Effect::Fills);
    let has_natural_end = operation.natural_requests(dataset.documents(), slots).is_some();
    phase.load.check_end()?;
    let end_of = |end: EndSettings| match end {
        EndSettings { duration: Some(duration), .. } => Some(End::After(duration.0)),
        EndSettings { requests, .. } => requests.map(End::Requests),
    };
    let own = load.own_end();
    match end_of(own) {
        Some(_) if fills => Err("load: it ends when the dataset is there".into()),
        Some(end) => Ok(end),
        None if has_natural_end => Ok(End::Natural),
        None => end_of(load.common_end()).ok_or_else(|| "load: 'duration' or 'requests' is needed".into()),
    }
}
