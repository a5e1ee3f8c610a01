//! Logs panics: also where the log is a file, and without clients' values where the log shows none.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::Cell;
use std::panic::PanicHookInfo;

thread_local! {
    /// Whether this thread is logging a panic: a panic in the log itself is not logged.
    static IS_BEING_TOLD: Cell<bool> = const { Cell::new(false) };
}

/// Makes panics of this process log lines, in place of the text that Rust prints. That text would not be part of the
/// log, and its message may show data that a client sent, for example a text that is cut in the middle of a character.
pub fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        if !IS_BEING_TOLD.replace(true) {
            tell(panic);
            IS_BEING_TOLD.set(false);
        }
    }));
}

fn tell(panic: &PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    // A backtrace is captured only if the environment asks for it.
    let backtrace = Backtrace::capture();
    let backtrace = (backtrace.status() == BacktraceStatus::Captured).then(|| backtrace.to_string());
    tracing::error!(
        target: "ASSERT", id = 4_757_800, ctx = thread.name().unwrap_or("thread"), place, error = message(panic.payload()),
        backtrace, "A thread panicked, which is a bug of this program"
    );
}

fn message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::{ExistingLog, LogFile, LogFormat, LogRotation};
    use crate::log_file::LogOutput;
    use crate::log_format::LogLayer;
    use bunko_observe::LogLines;
    use std::sync::Arc;
    use tracing_subscriber::layer::SubscriberExt;

    #[test]
    fn a_panic_is_a_line_and_shows_no_values_where_none_are_shown() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join("a.log");
        let file = LogFile { path: path.clone(), existing: ExistingLog::Append, rotation: LogRotation::Rename };
        let lines = Arc::new(LogLines::default());
        let output = Arc::new(LogOutput::open(Some(&file)).expect("opened"));
        let layer = LogLayer { format: LogFormat::Json, output, lines: Arc::clone(&lines), clock: || 0 };
        let logged = tracing_subscriber::registry().with(layer);
        let before = std::panic::take_hook();
        log_panics();
        tracing::subscriber::with_default(logged, || {
            for is_redacted in [false, true] {
                lines.set_redacted(is_redacted);
                let text = "canary-ä".to_owned();
                let cut = std::panic::catch_unwind(|| text[..8].len());
                assert!(cut.is_err());
            }
        });
        std::panic::set_hook(before);
        let written = std::fs::read_to_string(&path).expect("readable");
        let written: Vec<_> = written.lines().collect();
        assert_eq!(written.len(), 2, "{written:?}");
        let words = "A thread panicked, which is a bug of this program";
        assert!(written.iter().all(|line| line.contains(words) && line.contains("panics.rs:")), "{written:?}");
        assert!(written[0].contains("canary") && !written[1].contains("canary"), "{written:?}");
        assert!(written[1].contains(r####""error":"###""####), "{written:?}");
    }
}
