//! Arbitrary input gets well-formed replies, and no command runs that needs a login: the inputs that the fuzzer has found,
//! each of which reaches code of its own, and changes of them. `fuzz/run` searches on, guided by the code that inputs reach.
//!
//! `BUNKO_SEED` sets the seed of the changes, `BUNKO_CHANGES` the number of changes of each input.

mod servers;
mod shape;

use bunko_engines::EngineOptions;
use bunko_testkit::random::Random;
use servers::Servers;
use std::path::{Path, PathBuf};

/// Changes of each input.
const CHANGES: u64 = 20;
/// Greatest number of edits of one change, and of bytes that one edit adds or removes.
const EDITS_MAX: u64 = 4;
const EDIT_BYTES_MAX: u64 = 16;

/// Names the input when its commands panic.
struct Shown<'i> {
    path: &'i Path,
    change: Option<u64>,
    seed: u64,
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}, change {:?} with seed {}", self.path.display(), self.change, self.seed);
        }
    }
}

#[test]
fn found_inputs_and_changes_of_them_are_answered() {
    let setting =
        |name: &str, default: u64| std::env::var(name).map_or(default, |said| said.parse().expect("a number"));
    let (seed, changes) = (setting("BUNKO_SEED", 1), setting("BUNKO_CHANGES", CHANGES));
    let inputs = inputs();
    let mut servers = Servers::new(|| {
        let engine = bunko_engines::find("memory").expect("an engine");
        (engine.kind)(&EngineOptions { memory_limit_bytes: 64 << 20, ..EngineOptions::default() })
    });
    for (number, (path, input)) in inputs.iter().enumerate() {
        let shown = Shown { path, change: None, seed };
        servers.feed(input);
        drop(shown);
        for change in 0..changes {
            // Follows from the input's own number, so that one input can be repeated alone.
            let mut random = Random(seed << 32 | (number as u64) << 8 | change);
            let _shown = Shown { path, change: Some(change), seed };
            servers.feed(&changed(input, &inputs, &mut random));
        }
    }
}

/// All seeds and found inputs with their files, in the order of their names.
fn inputs() -> Vec<(PathBuf, Vec<u8>)> {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let folders =
        ["seeds", "found"].map(|folder| std::fs::read_dir(fuzz.join(folder).join("command")).expect("a folder"));
    let mut paths: Vec<_> = folders.into_iter().flatten().map(|entry| entry.expect("an entry").path()).collect();
    paths.sort_unstable();
    assert!(paths.len() > 1000, "only {} inputs", paths.len());
    paths.into_iter().map(|path| (path.clone(), std::fs::read(path).expect("readable"))).collect()
}

/// The input after some edits: bytes that are set, removed, or copied from another input. The first byte, which chooses the
/// server, stays.
fn changed(input: &[u8], inputs: &[(PathBuf, Vec<u8>)], random: &mut Random) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..=random.below(EDITS_MAX) {
        let place = 1 + random.below(bytes.len().max(1) as u64) as usize;
        let length = 1 + random.below(EDIT_BYTES_MAX) as usize;
        match random.below(4) {
            0 => bytes.extend_from_slice(&random.number().to_le_bytes()),
            1 => drop(bytes.splice(place.min(bytes.len())..(place + length).min(bytes.len()), [])),
            2 => {
                let other = &inputs[random.below(inputs.len() as u64) as usize].1;
                let from = random.below(other.len().max(1) as u64) as usize;
                let copied = other[from.min(other.len())..(from + length).min(other.len())].iter().copied();
                drop(bytes.splice(place.min(bytes.len())..place.min(bytes.len()), copied));
            }
            _ => {
                if let Some(byte) = bytes.get_mut(place) {
                    *byte = random.number() as u8;
                }
            }
        }
    }
    bytes
}
