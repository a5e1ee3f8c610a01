//! The lab's reports in one directory: their list, and the page of each.
//!
//! A browser loads a report at an address of its own. A session asks for that address, which holds for one request and
//! is as random as a session's token ([`Ticket`]). A file of the directory need not come from the lab, so a report's
//! page may do little:
//!
//! | Attack | Stopped by |
//! |---|---|
//! | a name that leads out of the directory | names are names of its own files: no slash, no link, no leading dot |
//! | a device, a pipe, a file without end | only regular files are opened, up to [`REPORT_BYTES_MAX`] |
//! | a script in a report | only the scripts of this version's own reports run, by their hashes |
//! | a report that acts as the console | `sandbox`: an origin of its own, no forms, no windows; no requests at all |

use crate::guard::Refusal;
use crate::replies::{Reply, report_reply};
use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef};
use bunko_operation::{Draw, Purpose, ServerMemory};
use hyper::StatusCode;
use hyper::body::Bytes;
use rustix::fs::{FileType, Mode, OFlags, fstat, open, openat, statat};
use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Longest report that is shown, in bytes.
const REPORT_BYTES_MAX: u64 = 32 << 20;
/// Maximum number of files of the directory that are looked at.
const LOOKED_AT_MAX: usize = 10_000;
/// Maximum number of reports that are listed, the newest ones.
const LISTED_MAX: usize = 200;
/// How long the address of a report holds.
const TICKET_TIME: Duration = Duration::from_mins(1);
/// Maximum number of addresses that hold at once; a new one ends the oldest.
const TICKETS_MAX: usize = 32;
/// How the name of a report ends.
const SUFFIX: &str = ".html";

/// The reports of one directory.
pub struct Reports {
    directory: PathBuf,
    tickets: Mutex<VecDeque<Ticket>>,
}

/// The right to load one report once.
struct Ticket {
    secret: String,
    name: String,
    began: Instant,
}

/// The bytes of a report, which keep their memory until they are sent.
struct HeldBytes {
    bytes: Vec<u8>,
    draw: Draw,
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        debug_assert!(self.draw.bytes() >= self.bytes.len() as u64);
        &self.bytes
    }
}

impl Reports {
    pub fn new(directory: PathBuf) -> Self {
        Self { directory, tickets: Mutex::default() }
    }

    /// The newest reports with their lengths and times.
    /// # Errors
    /// If the directory cannot be read.
    pub fn list(&self) -> Result<DocumentBuf, Refusal> {
        let failed = |error: std::io::Error| {
            let reason = format!("the directory of reports cannot be read: {error}");
            Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, reason)
        };
        let directory = open_directory(&self.directory).map_err(failed)?;
        let mut found = Vec::new();
        let mut is_cut = false;
        for (number, entry) in std::fs::read_dir(&self.directory).map_err(failed)?.enumerate() {
            if number == LOOKED_AT_MAX {
                is_cut = true;
                break;
            }
            let Some(name) = entry.map_err(failed)?.file_name().into_string().ok().filter(|name| is_name(name)) else {
                continue;
            };
            let Ok(facts) = statat(&directory, &name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW) else { continue };
            if FileType::from_raw_mode(facts.st_mode) == FileType::RegularFile {
                found.push((facts.st_mtime, facts.st_size, name));
            }
        }
        found.sort_by(|(one, _, first), (other, _, second)| other.cmp(one).then(first.cmp(second)));
        is_cut |= found.len() > LISTED_MAX;
        found.truncate(LISTED_MAX);
        let mut reports = ArrayBuf::new();
        for (seconds, bytes, name) in &found {
            let report = DocumentBuf::new().with("name", name).with("bytes", *bytes);
            reports.push(&report.with("written", ValueRef::DateTime(seconds.saturating_mul(1000))));
        }
        Ok(DocumentBuf::new().with("reports", &reports).with("isCut", is_cut))
    }

    /// Makes the address of a report, which holds for one request. `secret` is a random text.
    /// # Errors
    /// If there is no such report.
    pub fn admit(&self, name: &str, secret: String, now: Instant) -> Result<DocumentBuf, Refusal> {
        self.open(name)?;
        let path = format!("{PATH}{secret}");
        let mut tickets = self.tickets();
        if tickets.len() == TICKETS_MAX {
            tickets.pop_front();
        }
        tickets.push_back(Ticket { secret, name: name.to_owned(), began: now });
        Ok(DocumentBuf::new().with("path", &path))
    }

    /// The report at the address with that secret.
    /// # Errors
    /// If the address does not hold, the report is gone, or there is no memory for it.
    pub fn load(&self, secret: &str, now: Instant, memory: &Arc<ServerMemory>) -> Result<Reply, Refusal> {
        let name = self.take(secret, now).ok_or_else(|| {
            let reason = "the address of a report holds once, and for a minute: open it in the console again";
            Refusal::new(StatusCode::NOT_FOUND, reason)
        })?;
        let (file, length) = self.open(&name)?;
        // One byte more tells whether the file has grown.
        let draw = memory.draw(length + 1, Purpose::Reply).ok_or_else(|| {
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the server has no memory for the report now")
        })?;
        let mut bytes = Vec::with_capacity(length as usize + 1);
        let read = file.take(length + 1).read_to_end(&mut bytes);
        read.map_err(|error| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, format!("{name}: {error}")))?;
        if bytes.len() as u64 != length {
            return Err(Refusal::new(StatusCode::CONFLICT, format!("{name} is being written: open it again")));
        }
        Ok(report_reply(Bytes::from_owner(HeldBytes { bytes, draw })))
    }

    fn take(&self, secret: &str, now: Instant) -> Option<String> {
        let mut tickets = self.tickets();
        tickets.retain(|ticket| now.duration_since(ticket.began) < TICKET_TIME);
        let place = tickets.iter().position(|ticket| ticket.secret == secret)?;
        tickets.remove(place).map(|ticket| ticket.name)
    }

    /// Opens a report; returns its length, too.
    fn open(&self, name: &str) -> Result<(File, u64), Refusal> {
        let missing = || Refusal::new(StatusCode::NOT_FOUND, "there is no such report");
        if !is_name(name) {
            return Err(missing());
        }
        let directory = open_directory(&self.directory).map_err(|_| missing())?;
        // A pipe without a writer would hold the thread.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&directory, name, flags, Mode::empty()).map_err(|_| missing())?;
        let facts = fstat(&file).map_err(|_| missing())?;
        if FileType::from_raw_mode(facts.st_mode) != FileType::RegularFile {
            return Err(missing());
        }
        let length = u64::try_from(facts.st_size).unwrap_or_default();
        if length > REPORT_BYTES_MAX {
            let reason = format!("{name} has {length} bytes, and the console shows reports up to {REPORT_BYTES_MAX}");
            return Err(Refusal::new(StatusCode::INSUFFICIENT_STORAGE, reason));
        }
        Ok((file.into(), length))
    }

    fn tickets(&self) -> MutexGuard<'_, VecDeque<Ticket>> {
        self.tickets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where reports are loaded; a secret follows.
pub const PATH: &str = "/report/";

fn open_directory(path: &Path) -> std::io::Result<rustix::fd::OwnedFd> {
    Ok(open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Whether a report may have that name: a visible file of the directory itself.
fn is_name(name: &str) -> bool {
    name.ends_with(SUFFIX) && !name.starts_with('.') && !name.contains(['/', '\0'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_in_the_directory() {
        for name in ["report.html", "a b.html", "レポート.html", "<b>.html", "a..html", "%2e%2e%2fx.html"] {
            assert!(is_name(name), "{name}");
        }
        for name in
            ["", "x", "x.htm", ".html", ".x.html", "../x.html", "/x.html", "a/x.html", "x\0.html", "..", "x.html/"]
        {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn an_address_holds_once_and_not_for_long() {
        let reports = Reports::new("/nowhere".into());
        let now = Instant::now();
        let put = |secret: String, began| {
            reports.tickets().push_back(Ticket { secret, name: "x.html".into(), began });
        };
        put("a".into(), now);
        put("b".into(), now);
        assert_eq!(reports.take("c", now), None);
        assert_eq!(reports.take("", now), None);
        assert_eq!(reports.take("a", now), Some("x.html".into()));
        assert_eq!(reports.take("a", now), None);
        assert_eq!(reports.take("b", now + TICKET_TIME), None);
        assert_eq!(reports.tickets().len(), 0);
    }
}
