//! Whether two scenarios ask for the same work.

use toml::{Table, Value};

/// Top-level settings on which the work does not depend, or depends only by chance: names and prose, the seed, the
/// number of repetitions.
const OF_NO_EFFECT: [&str; 6] = ["name", "about", "prose", "experiment", "seed", "repetitions"];

/// A setting that two scenarios do not have in common.
pub(crate) struct Difference {
    /// Its full name: `phase[1].rate`.
    pub(crate) setting: String,
    /// Its value in A, as TOML.
    pub(crate) a: String,
    /// Its value in B.
    pub(crate) b: String,
}

/// One line per setting that differs, in the order of A; empty where both ask for the same work.
pub(super) fn in_words(a: &str, b: &str) -> Vec<String> {
    match differences(a, b) {
        Ok(differences) => {
            let line = |Difference { setting, a, b }: &Difference| format!("{setting}: {a} in A, {b} in B");
            differences.iter().map(line).collect()
        }
        Err(error) => vec![error],
    }
}

/// The settings that differ, in the order of A; none where both ask for the same work.
/// # Errors
/// A sentence that says which of the two is not TOML.
pub(crate) fn differences(a: &str, b: &str) -> Result<Vec<Difference>, String> {
    let a = flatten(a).map_err(|error| format!("the scenario in A cannot be read: {error}"))?;
    let b = flatten(b).map_err(|error| format!("the scenario in B cannot be read: {error}"))?;
    Ok(of_settings(&a, &b))
}

type Settings = Vec<(String, String)>;

fn of_settings(a: &Settings, b: &Settings) -> Vec<Difference> {
    let value = |settings: &Settings, name: &str| {
        settings
            .iter()
            .find(|(other, _)| other == name)
            .map_or_else(|| "not set".to_owned(), |(_, value)| value.clone())
    };
    let only_in_b = b.iter().filter(|(name, _)| a.iter().all(|(other, _)| other != name));
    let names = a.iter().chain(only_in_b).map(|(name, _)| name);
    names
        .map(|name| Difference { setting: name.clone(), a: value(a, name), b: value(b, name) })
        .filter(|difference| difference.a != difference.b)
        .collect()
}

/// Every setting with its full name: `phase[1].rate`.
fn flatten(scenario: &str) -> Result<Settings, String> {
    let table: Table = scenario.parse().map_err(|error: toml::de::Error| error.message().to_owned())?;
    let mut settings = Vec::new();
    for (name, value) in &table {
        if !OF_NO_EFFECT.contains(&name.as_str()) {
            push(name.clone(), value, &mut settings);
        }
    }
    Ok(settings)
}

fn push(name: String, value: &Value, settings: &mut Settings) {
    match value {
        Value::Table(table) => {
            table.iter().for_each(|(key, value)| push(format!("{name}.{key}"), value, settings));
        }
        Value::Array(elements) if elements.iter().any(Value::is_table) => {
            for (index, element) in elements.iter().enumerate() {
                push(format!("{name}[{index}]"), element, settings);
            }
        }
        scalar => settings.push((name, scalar.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_settings_that_change_the_work_are_named() {
        let a = "name = 'x'\nseed = 1\nrepetitions = 3\ndocuments = 10\n[[phase]]\nname = 'load'\nin_flight = [1, 2]\n";
        assert_eq!(in_words(a, &a.replace("seed = 1", "seed = 2").replace("= 3", "= 5")), Vec::<String>::new());
        let b = a.replace("[1, 2]", "[1, 4]").replace("documents = 10\n", "") + "rate = 5.0\n";
        assert_eq!(
            in_words(a, &b),
            [
                "documents: 10 in A, not set in B",
                "phase[0].in_flight: [1, 2] in A, [1, 4] in B",
                "phase[0].rate: not set in A, 5.0 in B"
            ]
        );
        assert_eq!(
            in_words(a, "x = "),
            ["the scenario in B cannot be read: string values must be quoted, expected literal string"]
        );
    }
}
