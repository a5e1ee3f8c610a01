//! Whether two scenarios ask for the same work.

use toml::{Table, Value};

/// Top-level settings of which the work does not depend, or only by chance: names and prose, the seed, how often it is
/// repeated.
const OF_NO_EFFECT: [&str; 6] = ["name", "about", "prose", "experiment", "seed", "repetitions"];

/// One line per setting that differs, in the order of A; empty where both ask for the same work.
pub(super) fn differences(a: &str, b: &str) -> Vec<String> {
    match (flatten(a), flatten(b)) {
        (Ok(a), Ok(b)) => of_settings(&a, &b),
        (Err(error), _) => vec![format!("the scenario in A cannot be read: {error}")],
        (_, Err(error)) => vec![format!("the scenario in B cannot be read: {error}")],
    }
}

type Settings = Vec<(String, String)>;

fn of_settings(a: &Settings, b: &Settings) -> Vec<String> {
    let value = |settings: &Settings, name: &str| {
        settings
            .iter()
            .find(|(other, _)| other == name)
            .map_or_else(|| "not set".to_owned(), |(_, value)| value.clone())
    };
    let only_in_b = b.iter().filter(|(name, _)| a.iter().all(|(other, _)| other != name));
    let names = a.iter().chain(only_in_b).map(|(name, _)| name);
    names
        .map(|name| (name, value(a, name), value(b, name)))
        .filter(|(_, in_a, in_b)| in_a != in_b)
        .map(|(name, in_a, in_b)| format!("{name}: {in_a} in A, {in_b} in B"))
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
        assert_eq!(differences(a, &a.replace("seed = 1", "seed = 2").replace("= 3", "= 5")), Vec::<String>::new());
        let b = a.replace("[1, 2]", "[1, 4]").replace("documents = 10\n", "") + "rate = 5.0\n";
        assert_eq!(
            differences(a, &b),
            [
                "documents: 10 in A, not set in B",
                "phase[0].in_flight: [1, 2] in A, [1, 4] in B",
                "phase[0].rate: not set in A, 5.0 in B"
            ]
        );
        assert_eq!(
            differences(a, "x = "),
            ["the scenario in B cannot be read: string values must be quoted, expected literal string"]
        );
    }
}
