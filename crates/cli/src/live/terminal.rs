//! Standard output and standard error as the screen of a table.

use crate::abandonment::is_output_without_reader;
use bunko_live_tables::{Reader, Screen};
use std::io::{self, ErrorKind, Write};
use tokio::signal::unix::{SignalKind, signal};

/// The process's own outputs.
pub struct Terminal;

impl Screen for Terminal {
    fn show(&mut self, lines: &str) -> io::Result<Reader> {
        let mut output = io::stdout().lock();
        match output.write_all(lines.as_bytes()).and_then(|()| output.flush()) {
            Ok(()) => Ok(Reader::There),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Reader::Gone),
            Err(error) => Err(error),
        }
    }

    fn note(&mut self, sentence: &str) {
        eprintln!("bunko: {sentence}");
    }

    fn reader(&self) -> Reader {
        if is_output_without_reader() { Reader::Gone } else { Reader::There }
    }
}

/// Lets SIGINT and SIGTERM end the process with success: a table without an end is ended by its reader.
/// # Errors
/// A sentence, if signals cannot be handled.
pub fn end_on_signal() -> Result<(), String> {
    let failed = |error: io::Error| format!("cannot handle signals: {error}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let (mut interrupt, mut terminate) = {
        let _context = runtime.enter();
        (signal(SignalKind::interrupt()).map_err(failed)?, signal(SignalKind::terminate()).map_err(failed)?)
    };
    let hear = move || {
        runtime.block_on(async move {
            tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
            std::process::exit(0);
        });
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(hear).map(drop).map_err(failed)
}
