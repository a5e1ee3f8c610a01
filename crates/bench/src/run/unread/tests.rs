//! Gives every built-in scenario every setting of a scenario file. The setting must change the run, or be refused by
//! name.

use super::super::{Plan, plans, settle_all};
use crate::operation::Effect;
use crate::scenario::{BUILTIN, Override, Role, ScenarioSource};
use std::collections::BTreeSet;
use std::collections::hash_map::DefaultHasher;
use std::fmt::Write;
use std::hash::{Hash, Hasher};

/// Two values of each setting that occurs once in a scenario.
const OF_SCENARIO: &[(&str, [&str; 2])] = &[
    ("seed", ["11", "12"]),
    ("repetitions", ["4", "5"]),
    ("servers", ["one", "each-engine"]),
    ("server.transport", ["tcp", "unix"]),
    ("server.members", ["[\"data\"]", "[\"data\", \"arbiter\"]"]),
    ("order", ["written", "shuffled"]),
    ("dataset.shape", ["plain", "counter"]),
    ("dataset.documents", ["50000", "70000"]),
    ("dataset.total-bytes", ["80MB", "90MB"]),
    ("dataset.collections", ["2", "3"]),
    ("dataset.document-bytes", ["1500", "1600"]),
    ("dataset.compressible", ["\"1\"", "\"3\""]),
    ("dataset.key-order", ["ascending", "shuffled"]),
    ("dataset.id", ["int64", "text"]),
    ("dataset.indexes", ["_id", "_id,_id:-1"]),
    ("allocation.sizes", ["[\"1MiB\"]", "[\"2MiB\"]"]),
    ("allocation.methods", ["[\"fallocate\"]", "[\"recycle\"]"]),
    ("allocation.repetitions", ["4", "5"]),
];
/// Settings of each phase.
const OF_PHASE: &[(&str, [&str; 2])] = &[
    ("cache", ["as-left", "warm"]),
    ("settle", ["4s", "5s"]),
    ("role", ["measure", "prepare"]),
    ("expect-count", ["4", "5"]),
    ("limits.resident", ["4GB", "5GB"]),
];
/// Settings of the scenario's load, and of each phase's.
const OF_LOAD: &[(&str, [&str; 2])] = &[
    ("connections", ["3", "5"]),
    ("in-flight", ["3", "5"]),
    ("threads", ["3", "5"]),
    ("placement", ["free", "pinned"]),
    ("rate", ["300", "500"]),
    ("arrival", ["constant", "poisson"]),
    ("warm-up", ["3s", "5s"]),
    ("duration", ["30s", "50s"]),
    ("requests", ["300", "500"]),
    ("write-concern", ["majority", "j"]),
    ("sessions", ["named", "retryable"]),
    ("stall-timeout", ["30s", "50s"]),
];

/// With more variants, only a scenario's last variant is checked: a whole matrix would take minutes.
const VARIANTS_MAX: usize = 2;

/// All inputs of a run of these variants.
fn told(plans: &[Plan]) -> String {
    let mut told = format!("{} variants\n", plans.len());
    for plan in plans {
        let scenario = &plan.scenario;
        writeln!(told, "{:?}", scenario.allocation).unwrap();
        if scenario.phase.is_empty() {
            continue;
        }
        let about = (scenario.seed, scenario.repetitions, scenario.servers, &scenario.server);
        writeln!(told, "{about:?} {:?}", plan.common_write_concern().map(|concern| concern.to_string())).unwrap();
        if plans.len() > 1 {
            writeln!(told, "{:?}", scenario.order).unwrap();
        }
        let dataset = super::super::settled::dataset(scenario).unwrap();
        let mut bytes = Vec::new();
        let looked_at = if dataset.document_bytes() > 2_000 { 1 } else { super::LOOKED_AT };
        (0..looked_at).for_each(|index| dataset.write(index, &mut bytes));
        let mut hash = DefaultHasher::new();
        bytes.hash(&mut hash);
        let settings = (&scenario.dataset.indexes, scenario.dataset.collections);
        writeln!(told, "{settings:?} {} {}", dataset.document_bytes(), hash.finish()).unwrap();
        for phase in &plan.phases {
            let load = (phase.connections, phase.in_flight, phase.threads, &phase.rate, phase.arrival, phase.warm_up);
            let rest = (phase.end, &phase.write_concern, phase.sessions, phase.stall_timeout);
            writeln!(told, "{load:?} {rest:?} {:?}", phase.placement).unwrap();
            let phase = &phase.phase;
            writeln!(told, "{:?} {:?} {:?}", phase.name, phase.operation, phase.cache).unwrap();
            writeln!(told, "{:?} {:?} {:?}", phase.role, phase.settle, phase.expect_count).unwrap();
            if phase.role == Role::Measure {
                writeln!(told, "{:?}", phase.limits).unwrap();
            }
            if phase.operation.operation().effects().contains(&Effect::Fills) {
                writeln!(told, "{}", dataset.documents()).unwrap();
            }
        }
    }
    told
}

/// Checks one setting with two values: it must be accepted if it changes the run, and refused if not.
fn check(scenario: &str, key: &str, values: [&str; 2]) {
    let sources = values.map(|value| {
        let mut source = ScenarioSource::builtin(scenario).unwrap();
        if source.variants().unwrap().len() > VARIANTS_MAX {
            source.keep_last_values();
        }
        let change: Override = format!("{key}={value}").parse().unwrap();
        source.set(&change).map(|()| source)
    });
    let [Ok(one), Ok(other)] = sources else {
        // The scenario has no such table, for example `allocation`.
        return;
    };
    let (Ok(plans_of_one), Ok(plans_of_other)) = (settle_all(&one), settle_all(&other)) else {
        // The setting contradicts the scenario, and is refused with that reason.
        return;
    };
    let differ = told(&plans_of_one) != told(&plans_of_other);
    match plans(&one) {
        Ok(_) => assert!(differ, "{scenario} takes {key}, and it changes nothing"),
        Err(error) => {
            let error = error.to_string();
            // With this setting, the sweep's own setting would have no effect: all variants would be equal.
            if error.contains(": sweep, ") {
                return;
            }
            assert!(!differ, "{scenario} refuses {key}, which changes what is run: {error}");
            assert!(error.contains(key), "{scenario} refuses {key} without naming it: {error}");
        }
    }
}

#[test]
fn every_setting_of_every_scenario_is_read_or_refused_by_name() {
    for builtin in BUILTIN {
        let scenario = ScenarioSource::builtin(builtin.name).and_then(|source| source.scenario()).unwrap();
        let phases = || scenario.phase.iter().map(|phase| format!("phase.{}.", phase.name));
        for &(key, values) in OF_SCENARIO {
            check(builtin.name, key, values);
        }
        for &(key, values) in OF_LOAD {
            check(builtin.name, &format!("load.{key}"), values);
            phases().for_each(|phase| check(builtin.name, &format!("{phase}load.{key}"), values));
        }
        for &(key, values) in OF_PHASE {
            phases().for_each(|phase| check(builtin.name, &format!("{phase}{key}"), values));
        }
    }
}

/// The keys of a table, from the error for a wrong key.
fn keys(with_wrong_key: &str) -> BTreeSet<String> {
    let error = ScenarioSource::parse("file", with_wrong_key).expect_err("it has a wrong key");
    let (_, expected) = error.message.split_once("expected").unwrap_or_else(|| panic!("{error}"));
    expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Checks that the tables above have every setting.
#[test]
fn the_tables_have_every_setting() {
    let of = |table: &[(&str, [&str; 2])], prefix: &str| -> BTreeSet<String> {
        let keys = table.iter().filter_map(|(key, _)| key.strip_prefix(prefix));
        keys.map(|key| key.split('.').next().unwrap().to_owned()).collect()
    };
    let without = |keys: BTreeSet<String>, words: &[&str]| -> BTreeSet<String> {
        keys.into_iter().filter(|key| !words.contains(&key.as_str())).collect()
    };
    assert_eq!(of(OF_LOAD, ""), keys("load = { wrong = 1 }"));
    assert_eq!(of(OF_SCENARIO, "dataset."), keys("dataset = { wrong = 1 }"));
    assert_eq!(of(OF_SCENARIO, "allocation."), keys("allocation = { wrong = 1 }"));
    assert_eq!(of(OF_SCENARIO, "server."), keys("server = { wrong = 1 }"));
    let words = ["name", "about", "prose", "experiment", "load", "sweep", "phase"];
    assert_eq!(of(OF_SCENARIO, ""), without(keys("wrong = 1"), &words));
    assert_eq!(of(OF_PHASE, ""), without(keys("phase = [{ wrong = 1 }]"), &["name", "operation", "load"]));
}

fn refusal(scenario: &str, change: &str) -> String {
    let mut source = ScenarioSource::builtin(scenario).unwrap();
    source.set(&change.parse().unwrap()).unwrap();
    plans(&source).err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn a_refusal_says_what_to_set_instead() {
    assert_eq!(
        refusal("allocation-stall", "load.duration=2s"),
        "allocation-stall: --set load.duration=2s: every phase that could read it has a value of its own: \
         phase.saturate.load.duration, phase.half-rate.load.duration"
    );
    assert_eq!(
        refusal("insert-matrix", "dataset.total-bytes=40MB"),
        "insert-matrix: --set dataset.total-bytes=40MB: no phase reads it: none loads the dataset, and 'duration' or \
         'requests' end those that insert"
    );
    assert_eq!(refusal("insert-matrix", "load.duration=2s"), "");
}
