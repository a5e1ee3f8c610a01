//! Refuses settings that have no effect, by name: otherwise a run would seem to have used them.
//!
//! The check covers the settings that `--set` or a sweep names, and those of a phase's own load and limits. A
//! scenario's own `[load]` holds defaults, which need not all be used.

use super::Plan;
use super::settled::Settled;
use crate::operation::Effect;
use crate::scenario::{DatasetSettings, Override, Phase, ReadSettings, Role, Scenario, ScenarioError, ScenarioSource};
use bunko_dataset::{Compressible, Dataset, DatasetOptions};
use toml::Value;

/// Number of documents that are compared to see whether a setting changes any.
const LOOKED_AT: u64 = 64;

/// # Errors
/// The first setting that has no effect.
pub(super) fn check(source: &ScenarioSource, plans: &[Plan]) -> Result<(), ScenarioError> {
    let read = ReadSettings::default();
    let named: Vec<String> =
        source.changes().iter().chain(plans.iter().flat_map(|plan| &plan.swept)).flat_map(paths).collect();
    for plan in plans {
        read.add(&plan.read);
        note_scenario(&plan.scenario, plans.len(), &read);
        note_size_and_text(&plan.scenario, &named, &read);
    }
    let first = plans.first().map(|plan| &plan.scenario);
    let reason = |path: &str| first.map_or_else(String::new, |scenario| reason(scenario, path));
    for change in source.changes() {
        if let Some(path) = paths(change).into_iter().find(|path| !read.has(path)) {
            return Err(source.failed(format!("--set {change}: {}", reason(&path))));
        }
    }
    for change in plans.iter().flat_map(|plan| &plan.swept) {
        if let Some(path) = paths(change).into_iter().find(|path| !read.has(path)) {
            return Err(source.failed(format!("sweep, {}: {}", change.key, reason(&path))));
        }
    }
    for phase in plans.iter().flat_map(|plan| &plan.scenario.phase) {
        for path in paths_of_phase(phase) {
            if !read.has(&path) {
                let setting = path.strip_prefix(&format!("phase.{}.", phase.name)).unwrap_or(&path).to_owned();
                return Err(source.failed(format!("phase '{}': {setting}: {}", phase.name, reason(&path))));
            }
        }
    }
    Ok(())
}

/// Path of a changed setting, or of each setting in a changed table.
fn paths(change: &Override) -> Vec<String> {
    fn add(path: &str, value: &Value, paths: &mut Vec<String>) {
        match value {
            Value::Table(table) => table.iter().for_each(|(key, value)| add(&format!("{path}.{key}"), value, paths)),
            _ => paths.push(path.to_owned()),
        }
    }
    let mut paths = Vec::new();
    add(&change.key, &change.value, &mut paths);
    paths
}

/// The settings of a phase that its operation or role may not use.
fn paths_of_phase(phase: &Phase) -> Vec<String> {
    let of_load = phase.load.names().into_iter().map(|name| format!("load.{name}"));
    let limits = (phase.limits != crate::scenario::Limits::default()).then(|| "limits".to_owned());
    of_load.chain(limits).map(|path| format!("phase.{}.{path}", phase.name)).collect()
}

/// Notes the settings that are read outside the phases' loads. Every field is named, so that a new one cannot be
/// forgotten.
fn note_scenario(scenario: &Scenario, variants: usize, read: &ReadSettings) {
    let Scenario {
        name: _,
        about: _,
        prose: _,
        experiment: _,
        seed: _,
        repetitions: _,
        servers: _,
        server: _,
        dataset,
        load: _,
        sweep: _,
        order: _,
        phase: phases,
        allocation,
    } = scenario;
    for path in ["name", "about", "prose", "experiment", "sweep"] {
        read.note(path.to_owned());
    }
    if allocation.is_some() {
        read.note("allocation".to_owned());
    }
    if phases.is_empty() {
        return;
    }
    for path in ["seed", "repetitions", "servers", "server"] {
        read.note(path.to_owned());
    }
    if variants > 1 {
        read.note("order".to_owned());
    }
    for phase in phases {
        note_phase(phase, read);
    }
    note_dataset(dataset, read);
}

fn note_phase(phase: &Phase, read: &ReadSettings) {
    let Phase { name, operation: _, load: _, cache: _, role, settle: _, limits: _, expect_count: _ } = phase;
    for setting in ["name", "operation", "cache", "role", "settle", "expect-count"] {
        read.note(format!("phase.{name}.{setting}"));
    }
    // Figures of a preparing phase are not shown, and limits do not apply to them.
    if *role == Role::Measure {
        read.note(format!("phase.{name}.limits"));
    }
}

fn note_dataset(dataset: &DatasetSettings, read: &ReadSettings) {
    let DatasetSettings {
        shape: _,
        documents: _,
        total_bytes: _,
        collections: _,
        document_bytes: _,
        compressible: _,
        key_order: _,
        id: _,
        indexes: _,
    } = dataset;
    for setting in ["shape", "collections", "document-bytes", "key-order", "id", "indexes"] {
        read.note(format!("dataset.{setting}"));
    }
}

/// The number of documents and their compressibility count as read if they change the documents. The check has to make
/// documents, so it covers only named settings.
fn note_size_and_text(scenario: &Scenario, named: &[String], read: &ReadSettings) {
    if scenario.phase.is_empty() {
        return;
    }
    let is_named = |setting: &str| named.iter().any(|path| path == setting);
    let fills = |phase: &Phase| phase.operation.operation().effects().contains(&Effect::Fills);
    for setting in ["dataset.documents", "dataset.total-bytes"] {
        let shows = || is_named(setting) && changes_documents(scenario, |options| options.documents = 1 << 32);
        if scenario.phase.iter().any(fills) || shows() {
            read.note(setting.to_owned());
        }
    }
    let other = match scenario.dataset.compressible {
        Compressible::Constant => Compressible::Ratio(1.0),
        Compressible::Ratio(_) => Compressible::Constant,
    };
    let setting = "dataset.compressible";
    if is_named(setting) && changes_documents(scenario, |options| options.compressible = other) {
        read.note(setting.to_owned());
    }
}

/// Whether a change of options changes the first documents.
fn changes_documents(scenario: &Scenario, change: impl Fn(&mut DatasetOptions)) -> bool {
    let Ok(options) = super::settled::dataset_options(scenario) else { return true };
    // Documents of the shape's own size are small, and quick to compare.
    let options = DatasetOptions { document_bytes: None, ..options };
    let mut changed = options.clone();
    change(&mut changed);
    let (Ok(one), Ok(other)) = (Dataset::new(&options), Dataset::new(&changed)) else { return true };
    let bytes = |dataset: &Dataset| {
        let mut bytes = Vec::new();
        (0..LOOKED_AT).for_each(|index| dataset.write(index, &mut bytes));
        bytes
    };
    bytes(&one) != bytes(&other)
}

/// The reason why a setting has no effect, and the setting to use instead.
fn reason(scenario: &Scenario, path: &str) -> String {
    if let Some(setting) = path.strip_prefix("load.") {
        let has_own = |phase: &&Phase| phase.load.names().iter().any(|name| name == setting);
        let own: Vec<String> =
            scenario.phase.iter().filter(has_own).map(|phase| format!("phase.{}.load.{setting}", phase.name)).collect();
        return match own.as_slice() {
            [] => of_load(setting).to_owned(),
            own => format!("every phase that could read it has a value of its own: {}", own.join(", ")),
        };
    }
    if let Some((_, setting)) = path.strip_prefix("phase.").and_then(|rest| rest.split_once('.')) {
        return match setting.strip_prefix("load.") {
            Some(setting) => of_load(setting).to_owned(),
            None if setting.starts_with("limits") => "no figures of a phase that prepares are shown".to_owned(),
            None => "nothing reads it".to_owned(),
        };
    }
    let reason = match path {
        _ if scenario.phase.is_empty() => "nothing reads it: the scenario has no phases",
        "dataset.documents" | "dataset.total-bytes" => {
            "no phase reads it: none loads the dataset, and 'duration' or 'requests' end those that insert"
        }
        "dataset.compressible" => "nothing reads it: these documents have no text that could be made compressible",
        "order" => "nothing reads it: there is one variant",
        _ => "nothing reads it",
    };
    reason.to_owned()
}

/// The reason why no phase reads a setting of a load.
fn of_load(setting: &str) -> &'static str {
    match setting {
        "arrival" => "nothing reads it: without a 'rate' the loop is closed",
        "warm-up" => "nothing reads it: phases that load, dump or restore have no warm-up",
        "duration" | "requests" => "nothing reads it: each phase ends by itself",
        "write-concern" => "nothing reads it: nothing is written",
        _ => "no phase reads it",
    }
}

impl Plan {
    /// A variant with its settled phases.
    pub(super) fn of(swept: Vec<Override>, scenario: Scenario, settled: Settled) -> Self {
        let variant = swept.iter().map(|set| (set.key.clone(), crate::scenario::shown(&set.value))).collect();
        Self { variant, swept, scenario, phases: settled.phases, read: settled.read }
    }
}

#[cfg(test)]
mod tests;
