//! Runs a scenario: repetitions, targets, variants, phases.
//!
//! The order is repetition, then target, then variant, so that changes of the machine over time affect all targets
//! alike (A B A B). Odd repetitions take the targets in their order, even ones backwards (A B B A).
//!
//! For each variant on a target, `phase` prepares data and caches and offers the load. The operation's `Requests` make
//! each request and take each reply, `Recorder` counts them second by second, `sampler` reads the server's side, and
//! `PauseWatch` sleeps on each processor to notice when the machine stands still. Dumps and restores are handed to
//! `tools` as a whole (`transfer`). Afterwards `judge` names the findings against the figures, and `database` counts
//! and reads back the documents. The result is a [`Report`]; `compare`, `merge` and `history` begin with reports.

mod allocation;
mod archive;
mod conclusion;
mod durability;
mod limits;
mod phase;
mod preparation;
mod set;
mod settle;
mod settled;
mod transfer;
mod unread;
mod variant;
mod workers;

pub use workers::WorkerPosition;

use crate::BenchError;
use crate::clock::now_ms;
use crate::database::Existing;
use crate::observer::Observer;
use crate::scenario::{Override, ReadSettings, Scenario, ScenarioSource, ServerSettings, Variant, VariantOrder};
use crate::target::{OpenTarget, Target, TargetServer};
use bunko_bson::hexadecimal;
use bunko_client::WriteConcern;
use bunko_report::Report;
use bunko_report::result::{
    Completion, FORMAT, Finding, Machine, Outcome, Run, ScenarioRecord, Step, StorageRecord, WorkerShare,
};
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom;
use settled::SettledPhase;
use sha2::{Digest, Sha256};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use variant::Session;

/// Options of a run besides the scenario.
pub struct RunOptions {
    /// How an existing database is treated.
    pub existing: Existing,
    /// This generator's position, if several share the load.
    pub worker: Option<WorkerPosition>,
    /// Once true, the run ends early, as its report tells.
    pub stop: Arc<AtomicBool>,
    /// The command line that repeats the run.
    pub command: Vec<String>,
    /// Places where files are allocated, if the scenario measures that.
    pub allocation_places: Vec<AllocationPlace>,
    /// Directory where dumps are made, and removed again.
    pub archive_directory: PathBuf,
}

/// A directory on a filesystem whose allocation is measured.
#[derive(Clone, Debug)]
pub struct AllocationPlace {
    /// Name in the report.
    pub name: String,
    /// Directory where files are made, and removed again.
    pub directory: PathBuf,
}

/// One variant with its settled phases.
struct Plan {
    variant: Vec<(String, String)>,
    /// The changes that the sweep makes for this variant.
    swept: Variant,
    scenario: Scenario,
    phases: Vec<SettledPhase>,
    /// The settings of loads that the phases read.
    read: ReadSettings,
}

/// Swept settings for which steps already have columns.
const SHOWN_BY_STEPS: [&str; 2] = ["load.connections", "load.in-flight"];

impl Plan {
    /// The write concern that phases without one of their own share; `None` if there is no such phase, or it has none.
    fn common_write_concern(&self) -> Option<WriteConcern> {
        let has_own = |phase: &SettledPhase| phase.phase.load.names().iter().any(|name| name == "write-concern");
        let common = self.phases.iter().filter(|phase| !has_own(phase)).find_map(|phase| phase.write_concern.as_ref());
        common.and_then(|text| text.parse().ok())
    }

    /// The swept settings that distinguish this variant's step of a phase, except those that steps show anyway.
    /// Settings of later phases are left out.
    fn step_variant(&self, phase: &SettledPhase) -> Vec<(String, String)> {
        let place = |name: &str| self.scenario.phase.iter().position(|other| other.name == name);
        let concerns = |setting: &str| match setting.strip_prefix("phase.").and_then(|rest| rest.split_once('.')) {
            Some((of_phase, _)) => place(of_phase) <= place(&phase.phase.name),
            None => !SHOWN_BY_STEPS.contains(&setting),
        };
        let settings = self.variant.iter().filter(|(setting, _)| concerns(setting));
        settings.map(|(setting, value)| (short(setting).to_owned(), value.clone())).collect()
    }
}

/// Shortens a setting for a column's heading: `restore.workers` for `phase.again.operation.restore.workers`.
fn short(setting: &str) -> &str {
    let of_phase = setting.strip_prefix("phase.").and_then(|rest| rest.split_once('.'));
    match of_phase {
        Some((_, rest)) => rest.strip_prefix("operation.").unwrap_or(rest),
        None => setting,
    }
}

/// Runs a scenario against all targets.
/// # Errors
/// The reason why no step was run: a scenario that contradicts itself, a server that cannot be reached, an existing
/// database. A later error ends the run, and the report contains it.
pub fn run(
    source: &ScenarioSource,
    targets: &mut [Target],
    options: &RunOptions,
    observer: &mut dyn Observer,
) -> Result<Report, BenchError> {
    let scenario = source.scenario()?;
    let plans = plans(source)?;
    check_targets(source, &plans, targets)?;
    let steps_of_all = plans.iter().map(|plan| plan.phases.len()).sum::<usize>();
    let mut course = Course {
        options,
        observer,
        report: empty_report(source, &scenario, options),
        done: 0,
        of: steps_of_all * targets.len() * scenario.repetitions as usize,
    };
    // A report on allocation alone needs no server.
    let repetitions = if steps_of_all == 0 { 0 } else { scenario.repetitions };
    for repetition in 1..=repetitions {
        for target in targets_in_order(targets.len(), repetition) {
            for plan in in_order(&plans, &scenario, repetition) {
                match course.run_variant(plan, &mut targets[target], Round { target, repetition }) {
                    Ok(()) => {}
                    Err(error) if course.done == 0 => return Err(error),
                    Err(error) => return Ok(course.end(&plans, Completion::Failed { reason: error.to_string() })),
                }
                if course.is_stopped() {
                    return Ok(course.end(&plans, Completion::Interrupted));
                }
            }
        }
    }
    if let Some(settings) = &scenario.allocation {
        course.report.allocations = allocation::run(settings, options, course.observer)?;
    }
    let completion = if course.is_stopped() { Completion::Interrupted } else { Completion::Complete };
    Ok(course.end(&plans, completion))
}

/// The targets in their order in odd repetitions, backwards in even ones.
fn targets_in_order(count: usize, repetition: u32) -> Vec<usize> {
    if repetition % 2 == 1 { (0..count).collect() } else { (0..count).rev().collect() }
}

/// Checks a scenario as far as that is possible without a server.
/// # Errors
/// The first error that [`run`] would return.
pub fn check(source: &ScenarioSource) -> Result<(), BenchError> {
    plans(source).map(|_| ())
}

/// # Errors
/// The scenario says how servers are to be started, but a target is already running.
fn check_targets(source: &ScenarioSource, plans: &[Plan], targets: &[Target]) -> Result<(), BenchError> {
    if !targets.iter().any(|target| matches!(target.server, TargetServer::Uri(_))) {
        return Ok(());
    }
    let refused = |setting: &str| {
        let message =
            format!("{setting} is for servers that the lab starts; a URI (--uri, --a, --b) names one that runs");
        Err(source.failed(message).into())
    };
    if plans.iter().any(|plan| plan.scenario.server.transport.is_some()) {
        return refused("server.transport");
    }
    // As with `servers`, the scenario's own members are those that it has without a URI.
    let mut named = source.changes().iter().chain(plans.iter().flat_map(|plan| &plan.swept));
    if named.any(names_members) {
        return refused("server.members");
    }
    Ok(())
}

/// Whether `--set` or a sweep names the members of a set.
fn names_members(change: &Override) -> bool {
    change.key == "server.members" || change.key == "server" && change.value.get("members").is_some()
}

/// Target and repetition of a part of the run.
#[derive(Clone, Copy)]
struct Round {
    target: usize,
    repetition: u32,
}

/// A run in progress.
struct Course<'c> {
    options: &'c RunOptions,
    observer: &'c mut dyn Observer,
    report: Report,
    /// Steps begun so far, over all repetitions, targets and variants.
    done: usize,
    of: usize,
}

impl Course<'_> {
    fn is_stopped(&self) -> bool {
        self.options.stop.load(Ordering::Relaxed)
    }

    fn run_variant(&mut self, plan: &Plan, target: &mut Target, place: Round) -> Result<(), BenchError> {
        let label = target.label.clone();
        let open = OpenTarget::open(&mut target.server, &plan.scenario.server)?;
        let mut session = Session::begin(plan, open, self.options, place, &label)?;
        if self.report.targets.len() <= place.target {
            // The first repetition takes the targets in their order, so this adds them in their order.
            self.report.targets.push(session.target_record(&plan.variant));
        }
        self.report.targets[place.target].add_transport(session.transport());
        if let (Some(worker), None) = (self.options.worker, &self.report.worker) {
            let (index, count) = (worker.index, worker.count);
            let clock_offset_ms = session.clock_offset_ms()?;
            self.report.worker = Some(WorkerShare::Share { index, count, clock_offset_ms });
        }
        let result = self.run_phases(plan, &mut session, &label, place);
        if !plan.phases.iter().any(SettledPhase::restores) {
            self.keep_storage(session.storage_record());
        }
        // The phase's error is reported before an error of cleaning up.
        result.and(session.end())
    }

    /// Keeps only the last repetition's figures: the same documents take equal space in each repetition.
    fn keep_storage(&mut self, storage: StorageRecord) {
        let is_it = |other: &StorageRecord| (other.target, &other.variant) == (storage.target, &storage.variant);
        self.report.storage.retain(|other| !is_it(other));
        self.report.storage.push(storage);
    }

    fn run_phases(
        &mut self,
        plan: &Plan,
        session: &mut Session<'_>,
        label: &str,
        place: Round,
    ) -> Result<(), BenchError> {
        for phase in &plan.phases {
            self.done += 1;
            let name = phase.name(label, &plan.variant, place.repetition);
            self.observer.begin(&name, self.done, self.of);
            let mut run = phase::run(session, phase, self.observer)?;
            // Variants may differ only in settings of later phases. Then this step exists already, and is run only to
            // prepare those phases.
            let is_known = step_of(&self.report, place.target, plan, phase)
                .is_some_and(|step| self.report.steps[step].runs.iter().any(|run| run.repetition == place.repetition));
            if phase.is_reported() && !is_known || is_flawed_preparation(&mut run) {
                let step = make_step(&mut self.report, place.target, plan, phase);
                step.runs.push(run.clone());
                self.observer.end(step, &run);
            }
            if self.is_stopped() {
                break;
            }
        }
        Ok(())
    }

    /// Completes the report, and sorts its steps by target, variant and phase.
    fn end(self, plans: &[Plan], completion: Completion) -> Report {
        let mut report = self.report;
        report.completion = completion;
        report.ended_at_ms = now_ms();
        let written =
            plans.iter().flat_map(|plan| plan.phases.iter().map(move |phase| (plan.step_variant(phase), phase)));
        let written: Vec<_> = written.collect();
        report.steps.sort_by_cached_key(|step| {
            let place = written.iter().position(|(variant, phase)| {
                (variant, &phase.phase.name) == (&step.variant, &step.phase)
                    && (phase.connections, phase.in_flight) == (step.connections, step.in_flight)
            });
            (step.target, place)
        });
        report.storage.sort_by_key(|record| record.target);
        report
    }
}

/// Removes findings of a preparing phase except those that make later phases worthless; its pace does not matter.
/// Returns whether the phase must appear in the report.
fn is_flawed_preparation(run: &mut Run) -> bool {
    let Outcome::Measured(measurement) = &mut run.outcome else { return true };
    measurement.findings.retain(|finding| {
        matches!(finding, Finding::Errors { .. } | Finding::CountsDiffer { .. } | Finding::ContentsDiffer { .. })
    });
    !measurement.findings.is_empty()
}

/// Index of the report's step for that phase.
fn step_of(report: &Report, target: usize, plan: &Plan, phase: &SettledPhase) -> Option<usize> {
    let variant = plan.step_variant(phase);
    report.steps.iter().position(|step| {
        (step.target, &step.variant, &step.phase) == (target, &variant, &phase.phase.name)
            && (step.connections, step.in_flight) == (phase.connections, phase.in_flight)
    })
}

/// The report's step for that phase, made on first use.
fn make_step<'r>(report: &'r mut Report, target: usize, plan: &Plan, phase: &SettledPhase) -> &'r mut Step {
    let place = step_of(report, target, plan, phase).unwrap_or_else(|| {
        let engine = report.targets[target].storage_engine.as_deref().unwrap_or_default();
        report.steps.push(phase.empty_step(target, plan, engine, report.machine.cores));
        report.steps.len() - 1
    });
    &mut report.steps[place]
}

/// All variants with their settled phases.
/// # Errors
/// A contradiction, or a setting that has no effect.
fn plans(source: &ScenarioSource) -> Result<Vec<Plan>, BenchError> {
    let plans = settle_all(source)?;
    unread::check(source, &plans)?;
    Ok(plans)
}

fn settle_all(source: &ScenarioSource) -> Result<Vec<Plan>, BenchError> {
    let plan = |(variant, scenario): (Variant, Scenario)| {
        ServerSettings::check(&scenario).map_err(|message| source.failed(message))?;
        let phases = settled::settle(&scenario).map_err(|message| source.failed(message))?;
        Ok(Plan::of(variant, scenario, phases))
    };
    source.variants()?.into_iter().map(plan).collect()
}

/// A run that gave no figures.
fn skipped(session: &Session<'_>, reason: String) -> Run {
    Run { repetition: session.place.repetition, started_at_ms: now_ms(), outcome: Outcome::Skipped { reason } }
}

fn empty_report(source: &ScenarioSource, scenario: &Scenario, options: &RunOptions) -> Report {
    let resolved = source.resolved();
    let machine = bunko_host::machine();
    Report {
        format: FORMAT,
        lab_version: env!("CARGO_PKG_VERSION").to_owned(),
        command: options.command.clone(),
        scenario: ScenarioRecord {
            name: scenario.name.clone(),
            about: scenario.about.clone(),
            prose: scenario.prose.clone(),
            experiment: scenario.experiment.clone(),
            seed: scenario.seed,
            hash: hexadecimal::small(&Sha256::digest(&resolved)),
            resolved,
        },
        started_at_ms: now_ms(),
        ended_at_ms: 0,
        completion: Completion::Complete,
        worker: None,
        machine: Machine {
            processor: machine.processor,
            cores: machine.cores,
            memory_bytes: machine.memory_bytes,
            kernel: machine.kernel,
        },
        targets: Vec::new(),
        steps: Vec::new(),
        storage: Vec::new(),
        allocations: Vec::new(),
    }
}

/// The variants in the order of one repetition.
fn in_order<'p>(plans: &'p [Plan], scenario: &Scenario, repetition: u32) -> Vec<&'p Plan> {
    let mut plans: Vec<&Plan> = plans.iter().collect();
    if scenario.order == VariantOrder::Shuffled {
        let seed = scenario.seed ^ u64::from(repetition).rotate_left(32);
        plans.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
    }
    plans
}
