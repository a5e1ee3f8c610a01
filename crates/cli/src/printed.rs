//! Printing to standard output. A reader that stops reading, such as `head`, is not an error.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write};

/// Prints a text.
/// # Errors
/// One line, if it cannot be written.
pub fn print(text: Arguments<'_>) -> Result<(), String> {
    let mut output = std::io::stdout().lock();
    match output.write_fmt(text).and_then(|()| output.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(format!("standard output: {error}")),
        _ => Ok(()),
    }
}

/// Prints a text and ends the line.
/// # Errors
/// As [`print()`].
pub fn print_line(text: Arguments<'_>) -> Result<(), String> {
    print(format_args!("{text}\n"))
}
