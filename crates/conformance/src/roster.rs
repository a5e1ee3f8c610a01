//! Runs tests on every engine.

use bunko_engines::{ENGINES, EngineOptions, Entry};
use bunko_store::Survival;

/// Options of the engines in tests: caches too small to hide the files behind them.
pub const OPTIONS: EngineOptions =
    EngineOptions { cache_bytes: 1 << 20, compression: bunko_engines::Compression::Lz4, memory_limit_bytes: 1 << 30 };

/// Whether an engine's contents survive a restart.
pub fn survival(entry: &Entry) -> Survival {
    (entry.kind)(&OPTIONS).survival
}

/// The engines to test: all, or the one named by `BUNKO_CONFORMANCE_ENGINE`.
///
/// # Panics
/// If the variable names no engine: a mistyped name must not pass.
pub fn engines() -> Vec<&'static Entry> {
    match std::env::var("BUNKO_CONFORMANCE_ENGINE") {
        Ok(name) => vec![bunko_engines::find(&name).unwrap_or_else(|| panic!("there is no engine {name:?}"))],
        Err(_) => ENGINES.iter().collect(),
    }
}

/// Runs the test for each engine on a thread named after it, so that a failure with one engine does not hide others.
///
/// # Panics
/// If the test fails for any engine; names these engines.
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

/// Runs the test for each durable engine; a store with such an engine can hold collections in others.
pub fn each_durable_engine(test: impl Fn(&'static Entry) + Sync) {
    each_engine(|entry| {
        if survival(entry) == Survival::Durable {
            test(entry);
        }
    });
}
