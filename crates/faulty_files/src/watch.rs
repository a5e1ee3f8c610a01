//! A watched directory: what its calls meet, and what is known of its files.

use crate::recording::{Event, FileId};
use libc::{EIO, ENOSPC, c_int};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a slow call takes.
const SLOW: Duration = Duration::from_millis(25);

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The call does nothing and says EIO.
    Failed,
    /// A call that needs room does nothing and says ENOSPC, once.
    NoSpace,
    /// That call and all that need room say ENOSPC, until [`Watch::give_room`].
    DiskFull,
    /// A read or write handles half of its bytes and says so.
    Short,
    /// A write writes half of its bytes and says EIO.
    Torn,
    /// The call takes long.
    Slow,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 6] = [Self::Failed, Self::NoSpace, Self::DiskFull, Self::Short, Self::Torn, Self::Slow];
}

/// A fault: how the `at`-th call fails, from 1, of those that can fail in this way.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Fault {
    pub kind: Kind,
    pub at: u64,
}

/// What a call is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nature {
    /// Reads, opens, looks.
    Look,
    /// Transfers that many bytes from the file.
    Read(usize),
    /// Transfers that many bytes to the file.
    Write(usize),
    /// Needs room without transferring bytes, or may find late that there is none.
    Grow,
    /// Changes something and needs no room.
    Change,
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Proceed,
    Fail(c_int),
    /// That many bytes are transferred.
    Short(usize),
    /// That many bytes are written, and the call fails.
    Torn(usize, c_int),
}

#[derive(Default)]
struct State {
    fault: Option<Fault>,
    /// Calls so far that the fault could have hit.
    count: u64,
    hit: Option<String>,
    /// Calls that the full disk refused behind the one that was hit.
    refused: Vec<String>,
    is_full: bool,
    is_dead: bool,
    is_recording: bool,
    events: Vec<Event>,
    /// By inode number.
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
    state: Mutex<State>,
}

static WATCHED: Mutex<Vec<Arc<Watched>>> = Mutex::new(Vec::new());
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether anything is watched at all.
pub(crate) fn is_any() -> bool {
    COUNT.load(Ordering::Acquire) > 0
}

/// Who watches a path.
pub(crate) fn of_path(path: &Path) -> Option<Arc<Watched>> {
    lock(&WATCHED).iter().find(|watched| path.starts_with(&watched.root)).cloned()
}

/// Who watches a file, by its inode.
pub(crate) fn of_inode(inode: u64) -> Option<Arc<Watched>> {
    lock(&WATCHED).iter().find(|watched| lock(&watched.state).files.contains_key(&inode)).cloned()
}

impl Watched {
    /// Counts a call and decides what becomes of it.
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

    /// A call and its file, by its path below the directory.
    fn told(&self, name: &str, path: &Path) -> String {
        format!("{name} {}", path.strip_prefix(&self.root).unwrap_or(path).display())
    }

    /// Runs a call that changes something, and records it if it succeeded; nobody else's call comes between.
    pub fn perform<T>(&self, call: impl FnOnce() -> T, event: impl FnOnce(&T, &mut Files<'_>) -> Option<Event>) -> T {
        let mut state = lock(&self.state);
        let outcome = call();
        // What is looked up for the recording may fail for reasons of its own.
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

/// The files that are known, while a call is being recorded.
pub(crate) struct Files<'s> {
    state: &'s mut State,
}

impl Files<'_> {
    /// A file by its inode.
    pub fn id(&self, inode: u64) -> Option<FileId> {
        self.state.files.get(&inode).map(|known| known.id)
    }

    /// A new file under an inode that may have been another's.
    pub fn add(&mut self, inode: u64, path: &Path) -> FileId {
        self.state.next_file += 1;
        let id = self.state.next_file;
        self.state.files.insert(inode, Known { id, path: path.to_owned() });
        id
    }

    /// A file has got another path, and with a directory all that is below it.
    pub fn moved(&mut self, from: &Path, to: &Path) {
        for known in self.state.files.values_mut() {
            if let Ok(below) = known.path.strip_prefix(from) {
                known.path = if below.as_os_str().is_empty() { to.to_owned() } else { to.join(below) };
            }
        }
    }

    /// A file whose last name is gone: its inode may soon be another's.
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

/// A directory whose calls are watched until this is dropped.
pub struct Watch {
    watched: Arc<Watched>,
}

impl Watch {
    /// Watches a directory that is there. What is below it is taken for durable.
    ///
    /// # Panics
    /// Where it cannot be read.
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

    /// Where it is, by its canonical path.
    pub fn path(&self) -> &Path {
        &self.watched.root
    }

    /// Counts anew, and lets a fault hit. Everything works again.
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

    /// The call that the fault hit, with its file.
    pub fn hit(&self) -> Option<String> {
        lock(&self.watched.state).hit.clone()
    }

    /// All calls that failed: the one that the fault hit, and those that a full disk refused from then on.
    pub fn failed(&self) -> Vec<String> {
        let state = lock(&self.watched.state);
        state.hit.iter().chain(&state.refused).cloned().collect()
    }

    /// Somebody made room on the disk.
    pub fn give_room(&self) {
        lock(&self.watched.state).is_full = false;
    }

    /// The process is dead: no call does anything from here on.
    pub fn kill(&self) {
        lock(&self.watched.state).is_dead = true;
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

    /// What was recorded.
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
