//! The last lines of the server's log, for `getLog`.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The last lines of the server's log, for `getLog`.
#[derive(Debug, Default)]
pub struct LogLines {
    lines: Mutex<Kept>,
    total: AtomicU64,
    startup_warnings: Mutex<Vec<String>>,
    is_redacted: AtomicBool,
}

/// The kept lines, oldest first, and the sum of their lengths.
#[derive(Debug, Default)]
struct Kept {
    lines: VecDeque<String>,
    bytes: usize,
}

impl LogLines {
    /// Maximum number of lines that are kept.
    const LINES_MAX: usize = 1024;
    /// Maximum number of bytes of all kept lines, so that they fit into a reply. Source: MongoDB 8.2, the log in
    /// memory.
    const BYTES_MAX: usize = 1 << 20;
    /// Maximum number of warnings of the start that are kept.
    const STARTUP_WARNINGS_MAX: usize = 64;

    /// Whether log lines leave out values from clients (`security.redactClientLogData`).
    pub fn is_redacted(&self) -> bool {
        self.is_redacted.load(Ordering::Relaxed)
    }

    /// Sets redaction for lines that are written from now on.
    pub fn set_redacted(&self, is_redacted: bool) {
        self.is_redacted.store(is_redacted, Ordering::Relaxed);
    }

    /// Keeps one line, in place of the oldest ones if the buffer is full. A line larger than the buffer is cut.
    pub fn push(&self, mut line: String) {
        self.total.fetch_add(1, Ordering::Relaxed);
        if line.len() > Self::BYTES_MAX {
            line.truncate(line.floor_char_boundary(Self::BYTES_MAX));
            line.shrink_to_fit();
        }
        let mut kept = self.lines.lock();
        while kept.lines.len() == Self::LINES_MAX || kept.bytes + line.len() > Self::BYTES_MAX {
            let Some(oldest) = kept.lines.pop_front() else { break };
            kept.bytes -= oldest.len();
        }
        kept.bytes += line.len();
        kept.lines.push_back(line);
    }

    /// Keeps a startup warning, unless `STARTUP_WARNINGS_MAX` are kept already.
    pub fn push_startup_warning(&self, line: String) {
        let mut warnings = self.startup_warnings.lock();
        if warnings.len() < Self::STARTUP_WARNINGS_MAX {
            warnings.push(line);
        }
    }

    /// The startup warnings.
    pub fn startup_warnings(&self) -> Vec<String> {
        self.startup_warnings.lock().clone()
    }

    /// The kept lines, and the number of lines ever written.
    pub fn snapshot(&self) -> (Vec<String>, u64) {
        (self.lines.lock().lines.iter().cloned().collect(), self.total.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(lines: impl IntoIterator<Item = String>) -> Vec<usize> {
        let log = LogLines::default();
        lines.into_iter().for_each(|line| log.push(line));
        log.snapshot().0.iter().map(String::len).collect()
    }

    #[test]
    fn lines_are_kept_within_their_number_and_their_bytes() {
        assert_eq!(kept((0..2000).map(|_| "short".to_owned())).len(), 1024);
        assert_eq!(kept((0..2000).map(|_| "x".repeat(16 << 10))), [16 << 10; 64]);
        assert_eq!(kept(["first".to_owned(), "x".repeat(2 << 20)]), [1 << 20]);
        assert_eq!(kept(["x".repeat(2 << 20), "last".to_owned()]), [4]);
        assert_eq!(kept(["é".repeat(1 << 20)]), [1 << 20]);
    }
}
