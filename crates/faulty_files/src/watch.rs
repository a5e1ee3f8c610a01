//! A watched directory: the faults that its calls meet, and the files that are known in it.

use crate::recording::{Event, FileId};
use libc::{EIO, ENOSPC, c_int};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Delay of a slow call.
const SLOW: Duration = Duration::from_millis(25);

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The call does nothing and fails with EIO.
    Failed,
    /// A call that needs room does nothing and fails with ENOSPC, once.
    NoSpace,
    /// This call and all later calls that need room fail with ENOSPC, until [`Watch::give_room`].
    DiskFull,
    /// A read or write transfers half of its bytes and returns their number.
    Short,
    /// A write writes half of its bytes and fails with EIO.
    Torn,
    /// The call is delayed.
    Slow,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 6] = [Self::Failed, Self::NoSpace, Self::DiskFull, Self::Short, Self::Torn, Self::Slow];
}

/// A fault: the kind, and which call it hits, counted from 1 among the calls that can fail in this way.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Fault {
    pub kind: Kind,
    pub at: u64,
}

/// The work that a call is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nature {
    /// Reads, opens or looks up without transferring bytes or changing anything.
    Look,
    /// Transfers that many bytes from the file.
    Read(usize),
    /// Transfers that many bytes to the file.
    Write(usize),
    /// Needs room without transferring bytes, or may find out late that there is no room.
    Grow,
    /// Changes something and needs no room.
    Change,
}

/// Decision about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Proceed,
    Fail(c_int),
    /// This many bytes are transferred.
    Short(usize),
    /// This many bytes are written, and the call fails.
    Torn(usize, c_int),
}

#[derive(Default)]
struct WatchedCalls {
    fault: Option<Fault>,
    /// Calls so far that the fault could have hit.
    count: u64,
    hit: Option<String>,
    /// Calls that the full disk refused after the one that was hit.
    refused: Vec<String>,
    is_full: bool,
    is_dead: bool,
    is_recording: bool,
    events: Vec<Event>,
    /// Known files by inode number.
    files: HashMap<u64, Known>,
    next_file: FileId,
    root_inode: u64,
}

struct Known {
    id: FileId,
    path: PathBuf,
}

pub(crate) struct Watched {
    root: PathBuf,
    state: Mutex<WatchedCalls>,
}

static WATCHED: Mutex<Vec<Arc<Watched>>> = Mutex::new(Vec::new());
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether any directory is watched.
pub(crate) fn is_any() -> bool {
    COUNT.load(Ordering::Acquire) > 0
}

/// The watched directory that a path is in; `None` if it is in none.
pub(crate) fn of_path(path: &Path) -> Option<Arc<Watched>> {
    lock(&WATCHED).iter().find(|watched| path.starts_with(&watched.root)).cloned()
}

/// The watched directory that the file with this inode is in; `None` if it is in none.
pub(crate) fn of_inode(inode: u64) -> Option<Arc<Watched>> {
    lock(&WATCHED).iter().find(|watched| lock(&watched.state).files.contains_key(&inode)).cloned()
}

impl Watched {
    /// Counts a call and decides whether it fails.
    pub fn enter(&self, name: &str, path: &Path, nature: Nature) -> Verdict {
        let mut state = lock(&self.state);
        if state.is_dead {
            return Verdict::Fail(EIO);
        }
        let needs_room = matches!(nature, Nature::Grow | Nature::Write(_));
        if state.is_full && needs_room {
            let refused = self.told(name, path);
            state.refused.push(refused);
            return Verdict::Fail(ENOSPC);
        }
        let Some(fault) = state.fault else { return Verdict::Proceed };
        let can_hit = match (fault.kind, nature) {
            (Kind::Failed | Kind::Slow, _) => true,
            (Kind::NoSpace | Kind::DiskFull, _) => needs_room,
            (Kind::Short, Nature::Read(bytes) | Nature::Write(bytes)) => bytes > 1,
            (Kind::Torn, Nature::Write(bytes)) => bytes > 1,
            (Kind::Short | Kind::Torn, _) => false,
        };
        state.count += u64::from(can_hit);
        if !can_hit || state.count != fault.at {
            return Verdict::Proceed;
        }
        state.hit = Some(self.told(name, path));
        match (fault.kind, nature) {
            (Kind::NoSpace, _) => Verdict::Fail(ENOSPC),
            (Kind::DiskFull, _) => {
                state.is_full = true;
                Verdict::Fail(ENOSPC)
            }
            (Kind::Short, Nature::Read(bytes) | Nature::Write(bytes)) => Verdict::Short(bytes / 2),
            (Kind::Torn, Nature::Write(bytes)) => Verdict::Torn(bytes / 2, EIO),
            (Kind::Slow, _) => {
                drop(state);
                std::thread::sleep(SLOW);
                Verdict::Proceed
            }
            _ => Verdict::Fail(EIO),
        }
    }

    /// The name of a call, and its file's path below the directory.
    fn told(&self, name: &str, path: &Path) -> String {
        format!("{name} {}", path.strip_prefix(&self.root).unwrap_or(path).display())
    }

    /// Runs a call that changes something, and records it if it succeeded. The lock keeps calls of other threads from
    /// coming between.
    pub fn perform<T>(&self, call: impl FnOnce() -> T, event: impl FnOnce(&T, &mut Files<'_>) -> Option<Event>) -> T {
        let mut state = lock(&self.state);
        let outcome = call();
        // Lookups for the recording may fail and set `errno`, so that the call's own error is kept and restored.
        let error = std::io::Error::last_os_error().raw_os_error();
        let event = event(&outcome, &mut Files { state: &mut state });
        crate::calls::set_error(error.unwrap_or(0));
        if state.is_recording {
            state.events.extend(event);
        }
        outcome
    }

    /// The path under which a file was last seen.
    pub fn path_of(&self, inode: u64) -> PathBuf {
        lock(&self.state).files.get(&inode).map_or_else(PathBuf::new, |known| known.path.clone())
    }
}

/// The known files, while a call is being recorded.
pub(crate) struct Files<'s> {
    state: &'s mut WatchedCalls,
}

impl Files<'_> {
    /// A file by its inode; `None` if it is not known.
    pub fn id(&self, inode: u64) -> Option<FileId> {
        self.state.files.get(&inode).map(|known| known.id)
    }

    /// Adds a file under an inode that another file may have had before.
    pub fn add(&mut self, inode: u64, path: &Path) -> FileId {
        self.state.next_file += 1;
        let id = self.state.next_file;
        self.state.files.insert(inode, Known { id, path: path.to_owned() });
        id
    }

    /// Notes that a file has a new path; for a directory, everything below it too.
    pub fn moved(&mut self, from: &Path, to: &Path) {
        for known in self.state.files.values_mut() {
            if let Ok(below) = known.path.strip_prefix(from) {
                known.path = if below.as_os_str().is_empty() { to.to_owned() } else { to.join(below) };
            }
        }
    }

    /// Forgets a file whose last name is gone: a new file may get its inode.
    pub fn forget(&mut self, inode: u64) {
        self.state.files.remove(&inode);
    }

    /// The directory of a path, and the name in it.
    pub fn entry(&self, path: &Path) -> Option<(FileId, OsString)> {
        let name: &OsStr = path.file_name()?;
        let inode = std::fs::metadata(path.parent()?).ok()?.ino();
        Some((self.id(inode)?, name.to_owned()))
    }
}

/// A directory whose calls are watched until this value is dropped.
pub struct Watch {
    watched: Arc<Watched>,
}

impl Watch {
    /// Watches an existing directory. Its contents are taken as durable.
    ///
    /// # Panics
    /// If it cannot be read.
    pub fn new(directory: &Path) -> Self {
        crate::calls::link();
        let root = directory.canonicalize().expect("a directory that is there");
        let watched = Arc::new(Watched { root: root.clone(), state: Mutex::default() });
        {
            let mut state = lock(&watched.state);
            let inode = std::fs::metadata(&root).expect("readable").ino();
            state.root_inode = inode;
            state.files.insert(inode, Known { id: 0, path: root.clone() });
            add_all(&mut Files { state: &mut state }, &root);
        }
        lock(&WATCHED).push(Arc::clone(&watched));
        COUNT.fetch_add(1, Ordering::Release);
        Self { watched }
    }

    /// The directory's canonical path.
    pub fn path(&self) -> &Path {
        &self.watched.root
    }

    /// Resets the count and plans a fault, or none. A full disk has room again, and a killed process lives.
    pub fn plan(&self, fault: Option<Fault>) {
        let mut state = lock(&self.watched.state);
        (state.fault, state.count, state.hit) = (fault, 0, None);
        state.refused.clear();
        (state.is_full, state.is_dead) = (false, false);
    }

    /// How many calls the planned fault could have hit.
    pub fn count(&self) -> u64 {
        lock(&self.watched.state).count
    }

    /// The call that the fault hit, with its file; `None` if no call was hit.
    pub fn hit(&self) -> Option<String> {
        lock(&self.watched.state).hit.clone()
    }

    /// All calls that failed: the one that the fault hit, and the later ones that a full disk refused.
    pub fn failed(&self) -> Vec<String> {
        let state = lock(&self.watched.state);
        state.hit.iter().chain(&state.refused).cloned().collect()
    }

    /// Makes room on the full disk.
    pub fn give_room(&self) {
        lock(&self.watched.state).is_full = false;
    }

    /// Kills the process as far as its files go: from here on, every call fails and does nothing.
    pub fn kill(&self) {
        lock(&self.watched.state).is_dead = true;
    }

    /// Lets calls succeed again, for a process that starts after the killed one has ended.
    pub fn revive(&self) {
        lock(&self.watched.state).is_dead = false;
    }

    /// Records from here on.
    pub fn record(&self) {
        lock(&self.watched.state).is_recording = true;
    }

    /// Puts a mark into the recording.
    pub fn note(&self, mark: u64) {
        let mut state = lock(&self.watched.state);
        if state.is_recording {
            state.events.push(Event::Note(mark));
        }
    }

    /// Takes the recorded calls.
    pub fn recorded(&self) -> Vec<Event> {
        std::mem::take(&mut lock(&self.watched.state).events)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        lock(&WATCHED).retain(|watched| !Arc::ptr_eq(watched, &self.watched));
        COUNT.fetch_sub(1, Ordering::Release);
    }
}

fn add_all(files: &mut Files<'_>, directory: &Path) {
    for entry in std::fs::read_dir(directory).expect("readable") {
        let entry = entry.expect("readable");
        let metadata = entry.metadata().expect("readable");
        files.add(metadata.ino(), &entry.path());
        if metadata.is_dir() {
            add_all(files, &entry.path());
        }
    }
}
