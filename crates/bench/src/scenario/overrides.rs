//! `--set key=value`, and the settings that a sweep changes.

use std::fmt;
use std::str::FromStr;
use toml::{Table, Value};

/// Settings with the same meaning, which exclude each other.
const ALTERNATIVES: &[(&str, &str)] = &[("documents", "total-bytes"), ("duration", "requests")];

/// A setting with a new value. Its key is a path with dots: `load.connections`, `phase.insert.load.rate`. Phases are
/// addressed by name.
#[derive(Clone, Debug, PartialEq)]
pub struct Override {
    /// The path as written.
    pub key: String,
    /// A TOML value.
    pub value: Value,
}

impl Override {
    /// An override of `key` by `value`.
    pub fn new(key: &str, value: Value) -> Self {
        Self { key: key.to_owned(), value }
    }

    /// Sets the value in a scenario's table. If the scenario sweeps the setting, its values in the sweep are replaced
    /// instead.
    /// # Errors
    /// A path through a value that is not a table, or to a phase that does not exist.
    pub(super) fn apply_to_sweep_or_table(&self, scenario: &mut Table) -> Result<(), String> {
        let axes = scenario.get_mut("sweep").and_then(Value::as_array_mut).map_or(&mut [][..], Vec::as_mut_slice);
        if let Some(swept) = axes.iter_mut().filter_map(Value::as_table_mut).find_map(|axis| axis.get_mut(&self.key)) {
            *swept = match &self.value {
                Value::Array(values) => Value::Array(values.clone()),
                value => Value::Array(vec![value.clone()]),
            };
            return Ok(());
        }
        self.apply(scenario)
    }

    /// Sets the value in a scenario's table, and removes the setting's alternative if it has one.
    /// # Errors
    /// As [`Self::apply_to_sweep_or_table`].
    pub(super) fn apply(&self, scenario: &mut Table) -> Result<(), String> {
        let mut names = self.key.split('.').peekable();
        let mut table = scenario;
        while let Some(name) = names.next() {
            if names.peek().is_none() {
                for (one, other) in ALTERNATIVES.iter().flat_map(|&(one, other)| [(one, other), (other, one)]) {
                    if name == one {
                        table.remove(other);
                    }
                }
                table.insert(name.to_owned(), self.value.clone());
                return Ok(());
            }
            let next = table.entry(name.to_owned()).or_insert_with(|| Value::Table(Table::new()));
            table = match next {
                Value::Table(table) => table,
                Value::Array(phases) => {
                    let phase = names.next().unwrap_or_default();
                    let phases = phases.iter_mut().filter_map(Value::as_table_mut);
                    let mut named = phases.filter(|table| table.get("name").and_then(Value::as_str) == Some(phase));
                    named.next().ok_or_else(|| format!("'{}': there is no {name} '{phase}'", self.key))?
                }
                _ => return Err(format!("'{}': '{name}' is not a table", self.key)),
            };
        }
        Err("a setting needs a name".to_owned())
    }
}

impl FromStr for Override {
    type Err = String;

    /// Parses `key=value`. The value is TOML, a comma-separated list of TOML values, or else text.
    fn from_str(text: &str) -> Result<Self, String> {
        let (key, value) = text.split_once('=').ok_or_else(|| format!("'{text}' is not KEY=VALUE"))?;
        let key = key.trim();
        if key.is_empty() || key.split('.').any(str::is_empty) {
            return Err(format!("'{text}' does not name a setting"));
        }
        Ok(Self::new(key, parse_value(value.trim())))
    }
}

fn parse_value(text: &str) -> Value {
    let as_toml = |text: &str| toml::from_str::<Table>(&format!("value = {text}")).ok()?.remove("value");
    if let Some(value) = as_toml(text) {
        return value;
    }
    let is_list = text.contains(',') && !text.contains(['"', '{', '[']);
    if is_list {
        let values = text.split(',').map(|value| parse_value(value.trim()));
        return Value::Array(values.collect());
    }
    Value::String(text.to_owned())
}

impl fmt::Display for Override {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, shown(&self.value))
    }
}

/// A value as shown in tables.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(text: &str) -> Result<String, String> {
        let scenario =
            "seed = 1\n[load]\nin-flight = 1\n[[sweep]]\n'load.connections' = [1, 100]\n[[phase]]\nname = 'fetch'\n";
        let mut table: Table = toml::from_str(scenario).expect("TOML");
        text.parse::<Override>()?.apply_to_sweep_or_table(&mut table)?;
        Ok(table.to_string())
    }

    #[test]
    fn values_are_toml_lists_or_text() {
        let value = |text: &str| text.parse::<Override>().map(|set| set.value.to_string());
        assert_eq!(value("a=1").as_deref(), Ok("1"));
        assert_eq!(value("a=1,2").as_deref(), Ok("[1, 2]"));
        assert_eq!(value("a=64MB,1GB").as_deref(), Ok(r#"["64MB", "1GB"]"#));
        assert_eq!(value("a = 50% of insert").as_deref(), Ok(r#""50% of insert""#));
        assert_eq!(value("a={ b = [1] }").as_deref(), Ok("{ b = [1] }"));
        assert!(value("a").is_err() && value("=1").is_err() && value("a..b=1").is_err());
    }

    #[test]
    fn settings_are_found_in_sweeps_tables_and_phases() {
        assert!(applied("load.connections=7").is_ok_and(|text| text.contains(r#""load.connections" = [7]"#)));
        assert!(applied("load.in-flight=7").is_ok_and(|text| text.contains("in-flight = 7")));
        assert!(applied("phase.fetch.cache=cold").is_ok_and(|text| text.contains(r#"cache = "cold""#)));
        assert!(applied("phase.nope.cache=cold").is_err_and(|error| error.contains("no phase 'nope'")));
        assert!(applied("seed.x=1").is_err_and(|error| error.contains("'seed' is not a table")));
    }
}
