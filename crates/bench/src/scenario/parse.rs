//! Parses files into scenarios that can be run.

use super::{BUILTIN, Override, Scenario, Variant, sweep};
use std::fmt;
use std::path::Path;
use toml::{Table, Value};

/// A scenario that cannot be run as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// Name of the file or the built-in scenario, if it is known.
    pub source: String,
    /// The line, counted from 1.
    pub line: Option<usize>,
    /// A sentence that names the key.
    pub message: String,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}, line {line}: {}", self.source, self.message),
            None => write!(f, "{}: {}", self.source, self.message),
        }
    }
}

impl std::error::Error for ScenarioError {}

/// A scenario's text and the changes of the command line.
#[derive(Clone, Debug)]
pub struct ScenarioSource {
    name: String,
    table: Table,
    /// The changes of `--set`, in their order.
    changes: Vec<Override>,
}

impl ScenarioSource {
    /// Reads a file.
    /// # Errors
    /// An unreadable file, or text that is not a scenario.
    pub fn read(path: &Path) -> Result<Self, ScenarioError> {
        let name = path.display().to_string();
        let failed = |message| ScenarioError { source: name.clone(), line: None, message };
        let text = std::fs::read_to_string(path).map_err(|error| failed(format!("cannot be read: {error}")))?;
        Self::parse(&name, &text)
    }

    /// A built-in scenario.
    /// # Errors
    /// A name that is not in the table.
    pub fn builtin(name: &str) -> Result<Self, ScenarioError> {
        let failed = |message: String| ScenarioError { source: name.to_owned(), line: None, message };
        let builtin = BUILTIN.iter().find(|builtin| builtin.name == name);
        let builtin =
            builtin.ok_or_else(|| failed("there is no such scenario; 'bunko bench list' shows them".into()))?;
        Self::parse(name, builtin.text)
    }

    /// Parses a scenario's text, and checks it as a whole while its lines are known.
    /// # Errors
    /// The first error, with its line.
    pub fn parse(name: &str, text: &str) -> Result<Self, ScenarioError> {
        let located = |error: toml::de::Error| ScenarioError {
            source: name.to_owned(),
            line: error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1),
            message: message(error),
        };
        toml::from_str::<Scenario>(text).map_err(located)?;
        let table = toml::from_str(text).map_err(located)?;
        Ok(Self { name: name.to_owned(), table, changes: Vec::new() })
    }

    /// Applies `--set`.
    /// # Errors
    /// A setting that does not exist or does not take the value.
    pub fn set(&mut self, change: &Override) -> Result<(), ScenarioError> {
        let failed = |message: String| self.failed(format!("--set {change}: {message}"));
        let mut table = self.table.clone();
        change.apply_to_sweep_or_table(&mut table).map_err(failed)?;
        table.clone().try_into::<Scenario>().map_err(|error| failed(error.message().to_owned()))?;
        self.table = table;
        self.changes.push(change.clone());
        Ok(())
    }

    /// The changes of [`Self::set`], in their order.
    pub fn changes(&self) -> &[Override] {
        &self.changes
    }

    /// Removes file allocation, for a command that does not time it.
    /// # Errors
    /// A setting of file allocation was changed.
    pub fn without_allocation(&mut self, command: &str) -> Result<(), ScenarioError> {
        if let Some(change) = self.changes.iter().find(|change| change.key.split('.').next() == Some("allocation")) {
            return Err(self.failed(format!("--set {change}: {command} times no file allocation")));
        }
        self.table.remove("allocation");
        Ok(())
    }

    /// Keeps only the last value of each swept setting and of each list of connections, and returns which.
    pub(crate) fn keep_last_values(&mut self) -> Vec<String> {
        let mut kept = Vec::new();
        let mut keep = |name: String, value: &mut Value, is_swept: bool| {
            let Some(values) = value.as_array().filter(|values| values.len() > 1) else { return };
            let all: Vec<String> = values.iter().map(super::shown).collect();
            let last = values[values.len() - 1].clone();
            kept.push(format!("{name}={} of {}", super::shown(&last), all.join(", ")));
            *value = if is_swept { Value::Array(vec![last]) } else { last };
        };
        for axis in self.table.get_mut("sweep").and_then(Value::as_array_mut).into_iter().flatten() {
            let settings = axis.as_table_mut().into_iter().flatten();
            settings.for_each(|(key, values)| keep(key.clone(), values, true));
        }
        if let Some(connections) = self.table.get_mut("load").and_then(|load| load.get_mut("connections")) {
            keep("load.connections".to_owned(), connections, false);
        }
        for phase in self.table.get_mut("phase").and_then(Value::as_array_mut).into_iter().flatten() {
            let name = phase.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            if let Some(connections) = phase.get_mut("load").and_then(|load| load.get_mut("connections")) {
                keep(format!("phase.{name}.load.connections"), connections, false);
            }
        }
        kept
    }

    /// Removes the phases after this one, and their swept settings.
    /// # Errors
    /// There is no such phase; a setting of a removed phase was changed.
    pub(crate) fn end_behind(&mut self, phase: &str) -> Result<(), ScenarioError> {
        let phases = self.scenario()?.phase;
        let place = phases.iter().position(|other| other.name == phase);
        let place = place.ok_or_else(|| self.failed(format!("there is no phase '{phase}'")))?;
        let is_behind = |key: &str| {
            let of_phase = key.strip_prefix("phase.").and_then(|rest| rest.split('.').next());
            of_phase.is_some_and(|name| phases[place + 1..].iter().any(|other| other.name == name))
        };
        if let Some(change) = self.changes.iter().find(|change| is_behind(&change.key)) {
            return Err(self.failed(format!("--set {change}: the run ends after phase '{phase}'")));
        }
        if let Some(phases) = self.table.get_mut("phase").and_then(Value::as_array_mut) {
            phases.truncate(place + 1);
        }
        if let Some(axes) = self.table.get_mut("sweep").and_then(Value::as_array_mut) {
            let axes_left = axes.drain(..).filter_map(|axis| {
                let mut axis = axis.as_table().cloned()?;
                axis.retain(|key, _| !is_behind(key));
                (!axis.is_empty()).then_some(Value::Table(axis))
            });
            *axes = axes_left.collect::<Vec<_>>();
        }
        Ok(())
    }

    /// The scenario as TOML, including `--set`.
    pub fn resolved(&self) -> String {
        toml::to_string(&self.table).unwrap_or_default()
    }

    /// The scenario, without its sweeps applied.
    /// # Errors
    /// As [`Self::set`].
    pub fn scenario(&self) -> Result<Scenario, ScenarioError> {
        self.table.clone().try_into().map_err(|error: toml::de::Error| self.failed(error.message().to_owned()))
    }

    /// Every variant with its scenario.
    /// # Errors
    /// A sweep that contradicts itself or the scenario.
    pub fn variants(&self) -> Result<Vec<(Variant, Scenario)>, ScenarioError> {
        let axes = self.scenario()?.sweep;
        let variants = sweep::variants(&axes).map_err(|message| self.failed(message))?;
        let resolve = |variant: Variant| {
            let mut table = self.table.clone();
            table.remove("sweep");
            for change in &variant {
                let failed = |message: String| self.failed(format!("sweep, {change}: {message}"));
                change.apply(&mut table).map_err(failed)?;
                table.clone().try_into::<Scenario>().map_err(|error| failed(error.message().to_owned()))?;
            }
            let scenario =
                table.try_into().map_err(|error: toml::de::Error| self.failed(error.message().to_owned()))?;
            Ok((variant, scenario))
        };
        variants.into_iter().map(resolve).collect()
    }

    pub(crate) fn failed(&self, message: String) -> ScenarioError {
        ScenarioError { source: self.name.clone(), line: None, message }
    }
}

/// The error's message, after the path of the key. The TOML error shows the path only if it does not show the text.
fn message(mut error: toml::de::Error) -> String {
    error.set_input(None);
    let shown = error.to_string();
    let path = shown.lines().nth(1).and_then(|line| line.strip_prefix("in `")?.strip_suffix('`'));
    path.map_or(error.message().to_owned(), |path| format!("{path}: {}", error.message()))
}
