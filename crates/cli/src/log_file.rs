//! Destination of log lines, and the rotation of the file while the server runs.

use crate::configuration::{ExistingLog, LogFile, LogRotation};
use crate::console::Console;
use bunko_bson::datetime::format_iso8601_ms;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Stderr, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Length of an ISO 8601 time down to its seconds.
const TIME_CHARACTERS: usize = "2026-01-01T00:00:00".len();
/// Longest wait at the end of the process for a slow reader of standard error.
const FLUSH_TIME_MAX: Duration = Duration::from_secs(1);

/// Destination of log lines.
pub struct LogOutput {
    place: LogDestination,
    /// Lines that could not be written since the last call of [`LogOutput::take_dropped`].
    dropped_lines: AtomicU64,
}

enum LogDestination {
    StandardError(Console<Stderr>),
    File(OpenLogFile),
}

/// A log file, and how it is rotated.
pub struct OpenLogFile {
    path: PathBuf,
    rotation: LogRotation,
    file: Mutex<File>,
}

impl LogOutput {
    /// # Errors
    /// A sentence that names the setting and the file.
    pub fn open(settings: Option<&LogFile>) -> Result<Self, String> {
        let Some(LogFile { path, existing, rotation }) = settings else {
            return Ok(Self::new(LogDestination::StandardError(Console::new(std::io::stderr()))));
        };
        let mut options = OpenOptions::new();
        // A device or a pipe has no earlier lines that could be overwritten.
        let is_special = std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir());
        match existing {
            _ if is_special => options.append(true),
            ExistingLog::Append => options.append(true).create(true),
            ExistingLog::Refuse => options.append(true).create_new(true),
        };
        let file = options.open(path).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => {
                format!("systemLog.path: {} exists; set systemLog.logAppend: true to append to it", path.display())
            }
            _ => format!("systemLog.path: {}: {error}", path.display()),
        })?;
        let rotation = if is_special { LogRotation::Reopen } else { *rotation };
        Ok(Self::new(LogDestination::File(OpenLogFile { path: path.clone(), rotation, file: Mutex::new(file) })))
    }

    fn new(place: LogDestination) -> Self {
        Self { place, dropped_lines: AtomicU64::new(0) }
    }

    /// Writes a line, or counts it as dropped: a log that cannot be written must not stop the server.
    pub fn write_line(&self, line: &str) {
        if self.try_write_line(line).is_err() {
            self.dropped_lines.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Number of lines that [`Self::write_line`] dropped since the last call.
    pub fn take_dropped(&self) -> u64 {
        // The count is nearly always 0, and a load is cheaper than a swap.
        if self.dropped_lines.load(Ordering::Relaxed) == 0 { 0 } else { self.dropped_lines.swap(0, Ordering::Relaxed) }
    }

    /// Counts lines as dropped again, if the line that reports them was dropped too.
    pub fn count_dropped(&self, lines: u64) {
        self.dropped_lines.fetch_add(lines, Ordering::Relaxed);
    }

    /// Gives a slow reader of standard error a moment to read the last lines.
    pub fn flush(&self) {
        if let LogDestination::StandardError(console) = &self.place {
            console.flush(FLUSH_TIME_MAX);
        }
    }

    /// # Errors
    /// If the line cannot be written.
    pub fn try_write_line(&self, line: &str) -> std::io::Result<()> {
        self.try_write(format!("{line}\n").as_bytes())
    }

    /// Writes bytes that are not a line. A file gets all of them or none, so that later records stay readable.
    /// # Errors
    /// If the bytes cannot be written.
    pub fn try_write(&self, bytes: &[u8]) -> std::io::Result<()> {
        match &self.place {
            LogDestination::StandardError(console) => console.write(bytes),
            LogDestination::File(log) => {
                append_whole(&mut log.file.lock().unwrap_or_else(PoisonError::into_inner), bytes)
            }
        }
    }

    /// Whether the log is invisible at the terminal where the server was started.
    pub fn is_file(&self) -> bool {
        matches!(self.place, LogDestination::File(_))
    }

    /// Continues in a new file. Standard error is never rotated: its reader does that.
    /// # Errors
    /// A sentence that names the file; lines then go where they went before.
    pub fn rotate(&self, now_ms: i64) -> Result<(), String> {
        match &self.place {
            LogDestination::StandardError(_) => Ok(()),
            LogDestination::File(log) => log.rotate(now_ms),
        }
    }
}

/// Appends all bytes or, if the disk is full, none.
fn append_whole(file: &mut File, bytes: &[u8]) -> std::io::Result<()> {
    append(file, bytes).or_else(|(written, error)| cut_off(file, written).and(Err(error)))
}

/// Appends bytes; the error says how many were written before it.
fn append(file: &mut impl Write, bytes: &[u8]) -> Result<(), (usize, std::io::Error)> {
    let mut written = 0;
    while written < bytes.len() {
        match file.write(&bytes[written..]) {
            Ok(0) => return Err((written, ErrorKind::WriteZero.into())),
            Ok(more) => written += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err((written, error)),
        }
    }
    Ok(())
}

/// Removes the last bytes of a file.
fn cut_off(file: &File, count: usize) -> std::io::Result<()> {
    if count == 0 {
        return Ok(());
    }
    let length = file.metadata()?.len();
    file.set_len(length.saturating_sub(count as u64))
}

impl OpenLogFile {
    fn rotate(&self, now_ms: i64) -> Result<(), String> {
        // The lock is held throughout: of two rotations at once the second would rename the new file to the old one's
        // name.
        let mut current = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if self.rotation == LogRotation::Rename {
            let old = old_path(&self.path, now_ms);
            if old.exists() {
                return Err(format!("cannot rename {} to {}: it exists", self.path.display(), old.display()));
            }
            match std::fs::rename(&self.path, &old) {
                // Another program has moved it away already.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                outcome => outcome
                    .map_err(|error| format!("cannot rename {} to {}: {error}", self.path.display(), old.display()))?,
            }
        }
        let opened = OpenOptions::new().append(true).create(true).open(&self.path);
        let file = opened.map_err(|error| format!("cannot open {}: {error}", self.path.display()))?;
        *current = file;
        Ok(())
    }
}

/// Name of a rotated log file, as mongod chooses it: the path followed by the time, without colons.
fn old_path(path: &Path, now_ms: i64) -> PathBuf {
    let time: String = format_iso8601_ms(now_ms).chars().take(TIME_CHARACTERS).collect();
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", time.replace(':', "-")));
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: i64 = 1_767_225_600_000;

    fn log(path: &Path, rotation: LogRotation) -> LogOutput {
        let file = LogFile { path: path.to_owned(), existing: ExistingLog::Append, rotation };
        LogOutput::open(Some(&file)).expect("opened")
    }

    fn read(path: &Path) -> String {
        std::fs::read_to_string(path).expect("readable")
    }

    #[test]
    fn a_renamed_log_keeps_its_lines_and_a_new_one_begins() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join("a.log");
        let log = log(&path, LogRotation::Rename);
        log.write_line("one");
        log.rotate(NOW_MS).expect("rotated");
        log.write_line("two");
        let old = directory.path().join("a.log.2026-01-01T00-00-00");
        assert_eq!((read(&old).as_str(), read(&path).as_str()), ("one\n", "two\n"));
        let error = log.rotate(NOW_MS).expect_err("the name is taken");
        assert!(error.contains("a.log.2026-01-01T00-00-00: it exists"), "{error}");
        log.write_line("three");
        assert_eq!(read(&path), "two\nthree\n");
    }

    #[test]
    fn concurrent_rotations_lose_no_lines() {
        const THREADS: usize = 8;
        const ROUNDS: i64 = 300;
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join("a.log");
        let log = log(&path, LogRotation::Rename);
        let barrier = std::sync::Barrier::new(THREADS);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for round in 0..ROUNDS {
                        log.write_line("a line");
                        barrier.wait();
                        let _ = log.rotate(NOW_MS + 1000 * round);
                        barrier.wait();
                    }
                });
            }
        });
        let files = std::fs::read_dir(directory.path()).expect("a directory");
        let lines: usize = files.map(|file| read(&file.expect("a file").path()).lines().count()).sum();
        assert_eq!(lines, THREADS * ROUNDS as usize);
    }

    #[test]
    fn a_line_without_room_leaves_nothing() {
        let mut room = [0; 10];
        let outcome = append(&mut &mut room[..], b"twenty characters, no less");
        let (written, error) = outcome.expect_err("there is no room");
        assert_eq!((written, error.kind()), (10, ErrorKind::WriteZero));
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join("a.log");
        let log = log(&path, LogRotation::Rename);
        log.write_line("one");
        let LogDestination::File(open) = &log.place else { panic!("it is a file") };
        let mut file = open.file.lock().expect("no panic");
        file.write_all(b"twenty cha").expect("written");
        cut_off(&file, written).expect("cut off");
        drop(file);
        log.write_line("two");
        assert_eq!(read(&path), "one\ntwo\n");
    }

    #[test]
    fn a_device_is_opened_as_it_is_and_stays() {
        let path = PathBuf::from("/dev/null");
        let settings = LogFile { path: path.clone(), existing: ExistingLog::Refuse, rotation: LogRotation::Rename };
        let log = LogOutput::open(Some(&settings)).expect("opened");
        log.write_line("one");
        log.rotate(NOW_MS).expect("reopened");
        assert!(!path.metadata().expect("it is there").is_file());
    }

    #[test]
    fn a_reopened_log_is_the_file_that_has_the_name_now() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let (path, moved) = (directory.path().join("a.log"), directory.path().join("moved"));
        let log = log(&path, LogRotation::Reopen);
        log.write_line("one");
        std::fs::rename(&path, &moved).expect("renamed");
        log.write_line("two");
        log.rotate(NOW_MS).expect("reopened");
        log.write_line("three");
        assert_eq!((read(&moved).as_str(), read(&path).as_str()), ("one\ntwo\n", "three\n"));
    }
}
