//! Starts of a server that must be refused.

use bunko_testkit::process::exit_of;
use std::path::Path;
use std::process::{Command, Stdio};

/// Exit statuses of a failed start and of a wrong configuration.
pub const FAILED: i32 = 1;
pub const WRONG: i32 = 2;

/// Runs `bunko serve` with arguments that it must refuse with that status; returns its output.
pub fn output(binary: &Path, arguments: &[&str], status: i32) -> String {
    let mut child = Command::new(binary)
        .arg("serve")
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it can be run");
    exit_of(&mut child);
    let output = child.wait_with_output().expect("its output");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {text}");
    text
}

/// The last line of [`output`], which is for people.
pub fn message(binary: &Path, arguments: &[&str], status: i32) -> String {
    let text = output(binary, arguments, status);
    let last = text.lines().last().unwrap_or_default();
    assert!(last.starts_with("bunko: "), "the last line is for people: {text}");
    last.to_owned()
}
