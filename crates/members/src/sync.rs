//! The thread `sync`: copies all data from another member when the primary's log cannot continue this member's.
//!
//! ```text
//! needed ─► another member begins an image ─► its files arrive in ranges ─► all are read back ─► order ─► restart
//!              ▲        (`crates/store/src/image`)      │ a broken connection, a restart: goes on
//!              └──────── the image is over ─────────────┘
//! ```
//! The member goes on with its own data meanwhile: it votes with its log, unless its files were lost, and serves no reads.
//! The restart puts the files in place of the data, and the member follows the primary from the image's end.
//!
//! **Invariant:** the image's end is not below this member's own position, which does not move from the order to the
//! restart: all that it has acknowledged and that is committed is in the image. Its vote stays.

use crate::IMAGE;
use crate::clock::wait_for_ring;
use crate::core::Core;
use crate::sync_progress::SyncProgress;
use crate::wire::{FROM_HOST, TO_HOST};
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, number};
use bunko_client::{ClientError, Connection};
use bunko_replica::MemberId;
use bunko_replica_set::MemberState;
use bunko_store::{IMAGE_RANGE_BYTES, ImageList, Position, ReceivedImage, StorageError, Wanted};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// How often the thread checks whether an image is ready, and whether one is needed still.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// How often the thread looks around while no data are needed; a ring tells it when they are.
const IDLE_INTERVAL: Duration = Duration::from_secs(10);
/// The pause after an attempt that failed, times the number of failures.
const PAUSE: Duration = Duration::from_secs(1);
/// So many failures make the pause longer.
const FAILURES_MAX: i64 = 10;
/// How often the source hears that its image is still needed: in less time than it waits ([`bunko_store::IMAGE_IDLE_MAX`]).
const KEEP_INTERVAL: Duration = Duration::from_secs(20);
/// Number of attempts with one source, which may only have lost a connection, before another one is tried.
const TRIES: i64 = 3;
/// Number of idle looks without a request for a sync after which partly copied files are removed.
const FORGOTTEN_AFTER: u64 = 6;
/// Number of times that ranges may fail their checksum before an attempt ends.
const DAMAGED_MAX: usize = 10;

/// Copies data whenever they are needed, until the member ends. The work of the thread `sync`.
pub(crate) fn run(core: &Arc<Core>, is_over: &AtomicBool) {
    let (mut failed_attempts, mut idle_looks) = (0, 0);
    let is_wanted = || !is_over.load(Ordering::Acquire) && core.needs_resync();
    loop {
        let heard = core.resync.rings();
        if is_over.load(Ordering::Acquire) {
            return;
        }
        if !core.needs_resync() {
            *core.progress.lock() = None;
            failed_attempts = 0;
            if core.primary().is_some() {
                idle_looks += 1;
                if idle_looks == FORGOTTEN_AFTER {
                    // The log has brought what an earlier process began to copy. If they cannot be removed, the files stay.
                    let _ = ReceivedImage::forget(&core.directory);
                }
            }
            wait_for_ring(&core.clock, &core.resync, heard, core.clock.now() + IDLE_INTERVAL);
            continue;
        }
        let Some(source) = source(core, failed_attempts) else {
            thread::sleep(LOOK_INTERVAL);
            continue;
        };
        let mut attempt = Attempt { core, source, connection: None, is_wanted: &is_wanted };
        attempt.show(failed_attempts);
        match attempt.run() {
            Ok(Outcome::Installed) => return,
            Ok(Outcome::NotWanted) => {}
            Err(error) => {
                failed_attempts += 1;
                tracing::warn!(target: "REPL", id = 332, ctx = "sync", host = attempt.source.0, error, "The initial sync failed, and is tried again");
                if let Some(progress) = &mut *core.progress.lock() {
                    progress.failure = Some(error);
                    progress.failed_attempts = failed_attempts;
                }
                let until = core.clock.now() + PAUSE * failed_attempts.min(FAILURES_MAX) as u32;
                while is_wanted() && core.clock.now() < until {
                    thread::sleep(LOOK_INTERVAL);
                }
            }
        }
    }
}

/// The member to copy from, `host:port` and `_id`: the primary, and after a failure in turn with secondaries. Data of a
/// delayed member may be older than the start of the primary's log.
fn source(core: &Core, failed_attempts: i64) -> Option<(String, i64)> {
    let primary = core.primary();
    let shown = core.set.member();
    let is_delayed = |id: MemberId| shown.listed.iter().any(|listed| listed.id == id.0 && listed.delay_secs > 0);
    let links = core.links.read();
    let secondary = links.iter().find(|link| {
        let seen = link.heard.seen();
        seen.failure.is_none()
            && !is_delayed(link.peer)
            && seen.number("state") == Some(i64::from(MemberState::Secondary.number()))
    });
    let primary = links.iter().find(|link| Some(link.peer) == primary);
    let (first, second) = if (failed_attempts / TRIES) % 2 == 0 { (primary, secondary) } else { (secondary, primary) };
    first.or(second).map(|link| (link.host.clone(), i64::from(link.peer.0)))
}

enum Outcome {
    Installed,
    NotWanted,
}

struct Attempt<'a> {
    core: &'a Arc<Core>,
    source: (String, i64),
    connection: Option<Connection>,
    is_wanted: &'a dyn Fn() -> bool,
}

impl Attempt<'_> {
    fn show(&self, failed_attempts: i64) {
        let mut progress = self.core.progress.lock();
        let last = progress.take();
        *progress = Some(SyncProgress {
            source: self.source.0.clone(),
            began: last.as_ref().map_or_else(|| self.core.clock.now(), |last| last.began),
            failed_attempts,
            bytes: last.as_ref().map_or(0, |last| last.bytes),
            arrived_bytes: last.as_ref().map_or(0, |last| last.arrived_bytes),
            failure: last.and_then(|last| last.failure),
        });
    }

    fn show_arrived(&self, image: &ReceivedImage) {
        if let Some(progress) = &mut *self.core.progress.lock() {
            (progress.bytes, progress.arrived_bytes) = (image.bytes(), image.arrived_bytes());
        }
    }

    fn run(&mut self) -> Result<Outcome, String> {
        let Some(mut image) = self.begin()? else { return Ok(Outcome::NotWanted) };
        let (id, mut damaged) = (image.id().to_owned(), 0);
        loop {
            while let Some(wanted) = image.wanted() {
                if !(self.is_wanted)() {
                    return Ok(Outcome::NotWanted);
                }
                self.show_arrived(&image);
                // The log needs disk, too.
                if !self.core.store.has_disk_for(wanted.bytes) {
                    let missing = image.bytes() - image.arrived_bytes();
                    return Err(format!("the disk has no room for the {missing} bytes of the image that are missing"));
                }
                let (bytes, checksum) = self.read(&id, &wanted)?;
                match image.put(&wanted, &bytes, checksum) {
                    Err(StorageError::ImageDamaged { .. }) if damaged < DAMAGED_MAX => {
                        damaged += 1;
                        tracing::warn!(target: "REPL", id = 333, ctx = "sync", file = wanted.name, offset = wanted.offset, "Bytes of the initial sync fail their checksum, and are asked for again");
                    }
                    outcome => outcome.map_err(|error| error.to_string())?,
                }
            }
            self.show_arrived(&image);
            match self.telling(&id, |tell| image.verify(tell))? {
                0 => break,
                ranges => note_damaged(ranges),
            }
        }
        if let Err(reason) = self.telling(&id, |tell| image.sync(tell)) {
            // Bytes that can be read back after a failed sync may still not be on the disk.
            ReceivedImage::forget(&self.core.directory).map_err(|error| error.to_string())?;
            return Err(reason);
        }
        if !self.order(&image)? {
            return Ok(Outcome::NotWanted);
        }
        tracing::info!(target: "REPL", id = 334, ctx = "sync", bytes = image.bytes(), end = image.end().end, "The initial sync has all data: the server starts again with them");
        // If the source is gone by now, it has no image any more.
        let _ = self.ask(&DocumentBuf::new().with("kind", "release").with("id", image.id()));
        if let Some(host) = self.core.host.upgrade() {
            host.restart();
        }
        Ok(Outcome::Installed)
    }

    /// Works on this member's disk, and tells the source meanwhile that its image is still needed, whose log goes on from
    /// there.
    fn telling<T>(
        &mut self,
        id: &str,
        work: impl FnOnce(&mut dyn FnMut()) -> Result<T, StorageError>,
    ) -> Result<T, String> {
        let mut told = self.core.clock.now();
        let mut tell = || {
            if self.core.clock.since(told) >= KEEP_INTERVAL {
                // Whether the image is still there is found when it is read again.
                if self.ask(&DocumentBuf::new().with("kind", "keep").with("id", id)).is_err() {
                    self.connection = None;
                }
                told = self.core.clock.now();
            }
        };
        work(&mut tell).map_err(|error| error.to_string())
    }

    /// Orders the installation, unless no image is wanted any more. This member's log may have grown during the copy, and
    /// grows no more once it has been compared.
    fn order(&self, image: &ReceivedImage) -> Result<bool, String> {
        let core = self.core;
        let change = loop {
            if !(self.is_wanted)() {
                return Ok(false);
            }
            // An administrator may be copying the files.
            match core.hold_log() {
                Some(change) => break change,
                None => thread::sleep(LOOK_INTERVAL),
            }
        };
        if !(self.is_wanted)() {
            core.release_log();
            return Ok(false);
        }
        let ordered = check_end(image.end(), core.store.last_position())
            .and_then(|()| image.intend_installation().map_err(|error| error.to_string()));
        if let Err(reason) = ordered {
            // Until it is certain that no order is there, the log stays as it is.
            ReceivedImage::take_back_order(&core.directory).map_err(|error| error.to_string())?;
            core.release_log();
            ReceivedImage::forget(&core.directory).map_err(|error| error.to_string())?;
            return Err(reason);
        }
        // It ends with the process.
        std::mem::forget(change);
        Ok(true)
    }

    /// The image to receive: one that an earlier process has received in part, if its sender still has it, or another one.
    fn begin(&mut self) -> Result<Option<ReceivedImage>, String> {
        let directory = self.core.directory.clone();
        let left = ReceivedImage::resume(&directory).map_err(|error| error.to_string())?;
        let mut known = left.as_ref().map(|image| image.id().to_owned());
        let list = loop {
            if !(self.is_wanted)() {
                return Ok(None);
            }
            let mut asked = DocumentBuf::new().with("kind", "begin");
            if let Some(known) = &known {
                asked.append("known", known.as_str());
            }
            let answer = self.ask(&asked)?;
            let id = answer.as_ref().get("id").and_then(ValueRef::as_str).ok_or("the answer names no image")?;
            let (engine, own) =
                (answer.as_ref().get("engine").and_then(ValueRef::as_str), self.core.store.engine_name());
            if engine != Some(own) {
                let other = engine.unwrap_or("without a name");
                return Err(format!(
                    "the other member has the storage engine '{other}' and this one '{own}': that is not supported yet"
                ));
            }
            if let Some(list) = answer.as_ref().get("list").and_then(ValueRef::as_document) {
                break ImageList::parse(list).ok_or("the image's list of files is malformed")?;
            }
            known = Some(id.to_owned());
            thread::sleep(LOOK_INTERVAL);
        };
        if let Err(reason) = check_end(list.end, self.core.store.last_position()) {
            let _ = self.ask(&DocumentBuf::new().with("kind", "release").with("id", list.id.as_str()));
            ReceivedImage::forget(&directory).map_err(|error| error.to_string())?;
            return Err(reason);
        }
        if let Some(mut image) = left.filter(|image| image.id() == list.id) {
            let damaged = self.telling(&list.id, |tell| image.verify(tell))?;
            tracing::info!(target: "REPL", id = 331, ctx = "sync", bytes = image.bytes(), arrived = image.arrived_bytes(), "The initial sync continues where it was interrupted");
            note_damaged(damaged);
            return Ok(Some(image));
        }
        // Another image, of which a part has arrived, makes room.
        ReceivedImage::forget(&directory).map_err(|error| error.to_string())?;
        if !self.core.store.has_disk_for(list.bytes()) {
            let _ = self.ask(&DocumentBuf::new().with("kind", "release").with("id", list.id.as_str()));
            return Err(format!("the disk has no room for the {} bytes of the image", list.bytes()));
        }
        tracing::info!(target: "REPL", id = 330, ctx = "sync", host = self.source.0, files = list.files.len(), bytes = list.bytes(), "The initial sync begins: all data are copied from another member");
        ReceivedImage::begin(&directory, list).map(Some).map_err(|error| error.to_string())
    }

    fn read(&mut self, id: &str, wanted: &Wanted) -> Result<(Vec<u8>, u32), String> {
        let asked = DocumentBuf::new().with("kind", "read").with("id", id).with("file", wanted.name.as_str());
        let answer = self.ask(&asked.with("offset", wanted.offset as i64))?;
        let answer = answer.as_ref();
        let whole = |name: &str| answer.get(name).and_then(number::as_i64_exact);
        let checksum = whole("checksum").and_then(|checksum| u32::try_from(checksum).ok());
        let bytes = match (answer.get("bytes"), whole("zeros")) {
            (Some(ValueRef::Binary { bytes, .. }), _) => bytes.to_vec(),
            (_, Some(zeros)) if (0..=IMAGE_RANGE_BYTES as i64).contains(&zeros) => vec![0; zeros as usize],
            _ => return Err("the answer has no bytes".to_owned()),
        };
        Ok((bytes, checksum.ok_or("the answer has no checksum")?))
    }

    /// Asks the source. After a broken connection the next attempt connects again.
    fn ask(&mut self, image: &DocumentBuf) -> Result<DocumentBuf, String> {
        let (core, (host, to)) = (self.core, &self.source);
        let body = DocumentBuf::new()
            .with(crate::COMMAND, 1)
            .with("set", core.set.name())
            .with("to", *to)
            .with(TO_HOST, host.as_str())
            .with("from", i64::from(core.id.0))
            .with(FROM_HOST, core.own_host.as_str())
            .with("setId", core.set.id())
            .with(IMAGE, image);
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => none.insert((core.dial)(host).map_err(|error| error.to_string())?),
        };
        let reply = connection.run_command("admin", body.as_ref()).map_err(|error: ClientError| error.to_string())?;
        let answer = reply.as_ref().get(IMAGE).and_then(ValueRef::as_document);
        answer.map(DocumentRef::to_owned).ok_or_else(|| "the answer has no image".to_owned())
    }
}

/// Refuses an image that may lack what this member has acknowledged.
fn check_end(image: Position, own: Position) -> Result<(), String> {
    if image >= own {
        return Ok(());
    }
    Err(format!("the image ends at {}, before this member's log, which ends at {}", image.end, own.end))
}

fn note_damaged(ranges: usize) {
    if ranges > 0 {
        tracing::warn!(target: "REPL", id = 337, ctx = "sync", ranges, "Files of the initial sync were damaged on this disk, and the ranges are asked for again");
    }
}
