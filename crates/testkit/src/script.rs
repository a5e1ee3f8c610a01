//! Runs text files of inputs and expected outputs.
//!
//! A file is a sequence of cases, parted by blank lines; lines that begin with `#` between cases are comments:
//! ```text
//! directive
//! any lines of input
//! ----
//! expected output, to the next blank line
//! ```
//! `REWRITE=1 cargo test` writes what was answered into the files, to be *read* before it is kept;
//! `RUN=some/file cargo test` runs one file below the directory.

/// One case of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The first line: one word that says what to do.
    pub directive: String,
    /// The lines up to `----`, without the last line end.
    pub input: String,
}

/// Runs every case of every file below `dir`, which is relative to the tested crate's directory.
/// An output without line end gets one, so that scripts need no marker for its absence.
///
/// # Panics
/// Where an output differs from the expected one, a file cannot be read, a directive line has more than one word, or
/// no case was found at all: a mistyped directory must not pass.
pub fn run(dir: &str, mut f: impl FnMut(&Case) -> String) {
    let mut cases_run = 0;
    // Cargo runs a crate's tests in the crate's directory, so the relative path needs no help.
    datadriven::walk(dir, |file| {
        let name = file.filename.clone();
        file.run(|test: &mut datadriven::TestCase| -> String {
            assert!(test.args.is_empty(), "{name}: directive {:?} has arguments: {:?}", test.directive, test.args);
            cases_run += 1;
            let case = Case { directive: test.directive.clone(), input: test.input.trim_end_matches('\n').to_owned() };
            let mut output = f(&case);
            if !output.is_empty() && !output.ends_with('\n') {
                output.push('\n');
            }
            output
        });
    });
    let one_file_asked = std::env::var_os("RUN").is_some();
    assert!(cases_run > 0 || one_file_asked, "no cases below {dir:?}");
}
