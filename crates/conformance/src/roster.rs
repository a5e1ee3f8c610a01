//! Every engine in turn.

use bunko_engines::{ENGINES, EngineOptions, Entry};
use bunko_store::Survival;

/// What engines are told here: caches too small to hide the files behind them.
pub const OPTIONS: EngineOptions =
    EngineOptions { cache_bytes: 1 << 20, compression: bunko_engines::Compression::Lz4, memory_limit_bytes: 1 << 30 };

/// What a restart does to an engine.
pub fn survival(entry: &Entry) -> Survival {
    (entry.kind)(&OPTIONS).survival
}

/// The engines to test: all, or the one that `BUNKO_CONFORMANCE_ENGINE` names.
///
/// # Panics
/// Where it names none: a mistyped name must not pass.
pub fn engines() -> Vec<&'static Entry> {
    match std::env::var("BUNKO_CONFORMANCE_ENGINE") {
        Ok(name) => vec![bunko_engines::find(&name).unwrap_or_else(|| panic!("there is no engine {name:?}"))],
        Err(_) => ENGINES.iter().collect(),
    }
}

/// Runs the test for each engine on a thread named after it, so that one that fails hides no other.
///
/// # Panics
/// Naming the engines that failed.
pub fn each_engine(test: impl Fn(&'static Entry) + Sync) {
    let failed: Vec<&str> = std::thread::scope(|scope| {
        let runs: Vec<_> = engines()
            .into_iter()
            .map(|entry| {
                let thread = std::thread::Builder::new().name(entry.name.to_owned());
                (entry.name, thread.spawn_scoped(scope, || test(entry)).expect("a thread can be started"))
            })
            .collect();
        runs.into_iter().filter_map(|(name, run)| run.join().is_err().then_some(name)).collect()
    });
    assert!(failed.is_empty(), "failed: {}", failed.join(", "));
}

/// An engine that outlives a restart, whose store can hold collections in others.
pub fn each_durable_engine(test: impl Fn(&'static Entry) + Sync) {
    each_engine(|entry| {
        if survival(entry) == Survival::Durable {
            test(entry);
        }
    });
}
