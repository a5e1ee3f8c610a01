//! The world is passed in: below `cli`, time is read from the `Clock` that a constructor takes, and files are opened by
//! the file layer. `xtask/clocks.txt` and `xtask/file_calls.txt` list the other calls, each with its reason; their
//! numbers only fall.

use std::collections::BTreeMap;
use std::path::Path;

use crate::findings::Findings;
use crate::module_tree;
use crate::ratchet::Ratchet;
use crate::rust_source;

/// The process's entry, the tests' machinery and the library that injects faults into file calls.
const OUTSIDE: &[&str] = &["cli", "testkit", "conformance", "faulty_files"];

/// The crate whose subject is the machine: it reads the system's own files.
const FILE_LAYER: &str = "host";

/// Reads of the machine's clock. `elapsed()` of the standard library's times is one too, and `Clock::machine` makes all
/// of them possible.
const CLOCKS: &[&str] = &["Instant::now", "SystemTime::now", "Clock::machine"];
const ELAPSED: &str = ".elapsed()";
const FILE_CALLS: &[&str] = &["fs", "File", "OpenOptions"];

pub fn check(root: &Path, findings: &mut Findings) -> Result<(), String> {
    let mut clocks = BTreeMap::new();
    let mut file_calls = BTreeMap::new();
    for found in module_tree::crates(root)?.iter().filter(|found| !OUTSIDE.contains(&found.name.as_str())) {
        for module in &found.modules {
            note(&mut clocks, &module.file, clock_calls(&module.source.code));
            if found.name != FILE_LAYER {
                note(&mut file_calls, &module.file, calls_of_files(&module.source.code));
            }
        }
    }
    let list = Ratchet::read_with_reasons(root, "xtask/clocks.txt", "reads of the clock")?;
    list.compare(&clocks, "take the time, or a `Clock`, as an argument", findings);
    let list = Ratchet::read_with_reasons(root, "xtask/file_calls.txt", "calls of files")?;
    list.compare(&file_calls, "ask the file layer", findings);
    Ok(())
}

fn note(counts: &mut BTreeMap<String, usize>, file: &str, count: usize) {
    if count > 0 {
        counts.insert(file.to_owned(), count);
    }
}

/// Calls of these functions, and the functions passed as values.
fn clock_calls(code: &str) -> usize {
    let read: usize = CLOCKS.iter().map(|name| rust_source::words(code, name).count()).sum();
    read + code.matches(ELAPSED).count()
}

/// Paths through `fs::`, `File::` and `OpenOptions::`; imports and types are not calls.
fn calls_of_files(code: &str) -> usize {
    let is_call = |offset: usize, name: &str| {
        let after = code[offset + name.len()..].strip_prefix("::");
        let function: &str = after.unwrap_or("");
        let length = function.bytes().take_while(|byte| rust_source::is_word_byte(*byte)).count();
        length > 0
            && function[length..].starts_with('(')
            && function.starts_with(|first: char| first.is_ascii_lowercase())
    };
    FILE_CALLS.iter().map(|name| rust_source::words(code, name).filter(|&at| is_call(at, name)).count()).sum()
}

#[cfg(test)]
mod tests {
    use super::{calls_of_files, clock_calls};

    #[test]
    fn reads_of_the_clock_are_counted() {
        assert_eq!(
            clock_calls(
                "let a = Instant::now(); b.unwrap_or_else(std::time::SystemTime::now); MyInstant::now(); a.elapsed(); \
                 Summary { elapsed: clock.since(a) }; Clock::machine()"
            ),
            4
        );
    }

    #[test]
    fn calls_of_files_are_counted_and_imports_are_not() {
        let code = "use std::fs::File; fs::read(a); std::fs::File::open(b)?; OpenOptions::new(); f(x: &fs::Metadata)";
        assert_eq!(calls_of_files(code), 3);
    }
}
