//! Waits for other threads and processes: a test waits for a condition, not for a time.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Longest wait for an event that must happen. It ends a test that would wait for ever, and says nothing about speed: on
/// a machine that does much else, events come late.
pub const PATIENCE: Duration = Duration::from_mins(1);

const PAUSE: Duration = Duration::from_millis(5);

/// Looks until it finds something, and returns that. An error of `look` says what is missing.
///
/// # Panics
/// With that error, after [`PATIENCE`].
#[track_caller]
pub fn wait_for<T>(mut look: impl FnMut() -> Result<T, String>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match look() {
            Ok(found) => return found,
            Err(missing) => assert!(Instant::now() < deadline, "{missing}"),
        }
        thread::sleep(PAUSE);
    }
}

/// Waits until a condition holds; `what` names it.
///
/// # Panics
/// After [`PATIENCE`].
#[track_caller]
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    wait_for(|| if holds() { Ok(()) } else { Err(format!("this does not happen: {what}")) });
}

/// Waits until a file contains those words, and returns the first line with them.
///
/// # Panics
/// After [`PATIENCE`].
#[track_caller]
pub fn wait_for_line(path: &Path, words: &str) -> String {
    wait_for(|| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        line_with(&text, words).ok_or_else(|| format!("'{words}' is not in {}:\n{text}", path.display()))
    })
}

/// The first line of a text that contains those words.
pub(crate) fn line_with(text: &str, words: &str) -> Option<String> {
    text.lines().find(|line| line.contains(words)).map(str::to_owned)
}
