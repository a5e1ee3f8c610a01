//! Scenarios that are part of the lab.

/// A built-in scenario.
#[derive(Debug)]
pub struct Builtin {
    /// Its name on the command line.
    pub name: &'static str,
    /// Contents of the file.
    pub text: &'static str,
}

impl Builtin {
    /// The line `about` of the file.
    pub fn about(&self) -> &'static str {
        let line = self.text.lines().find_map(|line| line.strip_prefix("about = \""));
        line.map_or("", |line| line.trim_end_matches('"'))
    }
}

macro_rules! builtin {
    ($($name:literal)*) => {
        /// Every file of `crates/bench/scenarios`.
        pub const BUILTIN: &[Builtin] =
            &[$(Builtin { name: $name, text: include_str!(concat!("../../scenarios/", $name, ".toml")) }),*];
    };
}

builtin! {
    "insert-matrix"
    "restore-matrix"
    "engine-compare"
    "docsize-sweep"
    "allocation-stall"
    "churn"
    "larger-than-memory"
    "point-operations"
    "sessions"
    "transactions"
    "analytics"
    "events"
    "ycsb-a"
    "ycsb-b"
    "ycsb-c"
    "ycsb-d"
    "ycsb-e"
    "ycsb-f"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::ScenarioSource;
    use std::collections::BTreeSet;

    #[test]
    fn every_file_is_in_the_table_and_can_be_run() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios");
        let files = std::fs::read_dir(folder).expect("the folder of scenarios").map(|entry| entry.expect("an entry"));
        let files: BTreeSet<String> = files.map(|file| file.file_name().to_string_lossy().into_owned()).collect();
        let table: BTreeSet<String> = BUILTIN.iter().map(|builtin| format!("{}.toml", builtin.name)).collect();
        assert_eq!(files, table);
        for builtin in BUILTIN {
            let source = ScenarioSource::builtin(builtin.name).unwrap_or_else(|error| panic!("{error}"));
            let scenario = source.scenario().expect("checked");
            assert_eq!((scenario.name.as_str(), scenario.about.as_str()), (builtin.name, builtin.about()));
            assert!(!scenario.about.contains('\n') && scenario.prose.len() > 100, "{} explains itself", builtin.name);
            crate::run::check(&source).unwrap_or_else(|error| panic!("{}: {error}", builtin.name));
        }
    }
}
