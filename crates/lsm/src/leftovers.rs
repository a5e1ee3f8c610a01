//! Removes files of the trees that no version names.
//!
//! lsm-tree removes such files when it opens the trees, but a start that is refused later must not remove files that
//! may help to repair the directory. So the files of an earlier process are put aside before the trees are opened, and
//! put back unless this process writes. Files of a failed flush or merge of this process are removed once no other
//! flush or merge is running, which might be about to name them.

use crate::tree_files::{TreeFiles, table_number};
use bunko_store::{Result, files};
use lsm_tree::{AbstractTree, AnyTree};
use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files that an earlier process left, out of lsm-tree's way.
pub(crate) struct Aside {
    files: Arc<TreeFiles>,
    is_removed: bool,
}

impl Aside {
    /// Puts aside the files that the present version does not name, after putting back those that an earlier start left
    /// aside.
    pub fn put(files: &Arc<TreeFiles>) -> Result<Self> {
        put_back(files)?;
        let aside = Self { files: Arc::clone(files), is_removed: false };
        let unnamed = files.unnamed()?;
        if !unnamed.is_empty() {
            // Trees of an earlier version do not have it yet.
            bunko_store::make_directory(&files.aside())?;
        }
        for path in unnamed {
            move_into(&path, &files.aside())?;
        }
        Ok(aside)
    }

    fn remove(mut self) -> Result<()> {
        let aside = self.files.aside();
        if aside.exists() {
            // A crash may have come after the version that makes the files superfluous was written, but before its name
            // was synced, so sync that name before they are removed.
            files::sync_directory(&self.files.path)?;
            for path in files::entries(&aside)? {
                files::remove(&path)?;
            }
        }
        self.is_removed = true;
        Ok(())
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if !self.is_removed {
            // If that fails, the next start puts them back.
            let _ = put_back(&self.files);
        }
    }
}

fn put_back(trees: &TreeFiles) -> Result<()> {
    let aside = trees.aside();
    for path in files::entries(&aside)? {
        let is_table = path.file_name().is_some_and(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit));
        let tables = trees.tables();
        move_into(&path, if is_table { &tables } else { &trees.path })?;
    }
    Ok(())
}

fn move_into(path: &Path, directory: &Path) -> Result<()> {
    let name = path.file_name().unwrap_or_default();
    files::rename(path, &directory.join(name))
}

/// Keeps track of running flushes and merges, which write tables, and removes the tables of failed ones.
pub(crate) struct Leftovers {
    tree: AnyTree,
    pub files: Arc<TreeFiles>,
    state: Mutex<Tracked>,
}

#[derive(Default)]
struct Tracked {
    /// Files of an earlier process; removed once this process writes.
    aside: Option<Aside>,
    /// Number of running flushes and merges.
    running: usize,
    /// The lowest table number that the running flushes and merges may use: the next number when the first of them
    /// began.
    first: u64,
    /// Tables from `first` on that a version has named. Readers may use them even if the present version does not name
    /// them.
    named: FxHashSet<u64>,
    has_failed: bool,
    /// Tables of failed flushes and merges, until they are removed.
    suspects: FxHashSet<u64>,
}

/// A running flush or merge. It counts as failed if it is dropped before [`Self::finish`].
pub(crate) struct Writing<'l> {
    leftovers: &'l Leftovers,
    is_finished: bool,
}

impl Leftovers {
    pub fn new(tree: &AnyTree, files: &Arc<TreeFiles>, aside: Aside) -> Self {
        let state = Mutex::new(Tracked { aside: Some(aside), ..Tracked::default() });
        Self { tree: tree.clone(), files: Arc::clone(files), state }
    }

    /// Removes the files of an earlier process. Must be called before the first version is written.
    pub fn sweep(&self) -> Result<()> {
        self.state.lock().aside.take().map_or(Ok(()), Aside::remove)
    }

    /// Bytes of tables that the present version does not name, except those being written.
    pub fn unnamed_bytes(&self) -> u64 {
        let being_written = {
            let state = self.state.lock();
            if state.running > 0 { state.first } else { u64::MAX }
        };
        let version = self.tree.current_version();
        let named: FxHashSet<u64> = version.iter_tables().map(lsm_tree::Table::id).collect();
        let bytes = |path: &PathBuf| {
            let number = table_number(path)?;
            if number >= being_written || named.contains(&number) { None } else { Some(path.metadata().ok()?.len()) }
        };
        files::entries(&self.files.tables()).map_or(0, |tables| tables.iter().filter_map(bytes).sum())
    }

    /// Notes that a flush or merge begins.
    pub fn begin(&self) -> Result<Writing<'_>> {
        self.sweep()?;
        let mut state = self.state.lock();
        if state.running == 0 {
            (state.first, state.has_failed) = (self.tree.next_table_id(), false);
            state.named.clear();
        }
        state.running += 1;
        Ok(Writing { leftovers: self, is_finished: false })
    }

    /// Removes the tables of failed flushes and merges. No flush or merge may be running.
    fn clean_up(&self, state: &mut Tracked) {
        if state.has_failed {
            let tables = state.first..self.tree.next_table_id();
            state.suspects.extend(tables.filter(|table| !state.named.contains(table)));
        }
        if state.suspects.is_empty() {
            return;
        }
        // A flush or merge that failed at its last step may have its version on disk, which the next start would use.
        let Some(on_disk) = self.files.named() else { return };
        let in_memory: FxHashSet<u64> = self.tree.current_version().iter_tables().map(lsm_tree::Table::id).collect();
        state.suspects.retain(|table| {
            if in_memory.contains(table) {
                return false;
            }
            // If it cannot be removed, the next start removes it.
            on_disk.contains(table) || files::remove_if_present(&self.files.table(*table)).is_err()
        });
    }
}

impl Writing<'_> {
    /// Notes that a version names these tables. Must be called before a merge can choose them.
    pub fn named(&self, tables: impl Iterator<Item = u64>) {
        self.leftovers.state.lock().named.extend(tables);
    }

    /// Ends the flush or merge as a success.
    pub fn finish(mut self) {
        self.is_finished = true;
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        let version = self.leftovers.tree.current_version();
        let mut state = self.leftovers.state.lock();
        let first = state.first;
        state.named.extend(version.iter_tables().map(lsm_tree::Table::id).filter(|table| *table >= first));
        state.running -= 1;
        state.has_failed |= !self.is_finished;
        if state.running == 0 {
            self.leftovers.clean_up(&mut state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsm_tree::{InternalValue, SequenceNumberCounter, ValueType};

    fn entries(count: u32) -> impl Iterator<Item = lsm_tree::Result<InternalValue>> {
        let entry = |number: u32| InternalValue::from_components(number.to_be_bytes(), "value", 1, ValueType::Value);
        (0..count).map(move |number| Ok(entry(number)))
    }

    fn open(directory: &Path) -> Leftovers {
        let files = Arc::new(TreeFiles::new(directory.join("trees")));
        files.make_durable_directory().expect("made");
        let aside = Aside::put(&files).expect("put aside");
        let counter = SequenceNumberCounter::default;
        let tree = lsm_tree::Config::new(&files.path, counter(), counter()).open().expect("opens");
        Leftovers::new(&tree, &files, aside)
    }

    fn flush(leftovers: &Leftovers, writing: &Writing<'_>) {
        let (tables, _) = leftovers.tree.flush_to_tables(entries(9)).expect("room").expect("not empty");
        leftovers.tree.register_tables(&tables, None, None, &[], 0).expect("registered");
        writing.named(tables.iter().map(lsm_tree::Table::id));
    }

    fn fail(leftovers: &Leftovers) {
        let failure = std::io::Error::other("a full disk");
        let torn = entries(9).chain([Err(lsm_tree::Error::Io(failure))]);
        assert!(leftovers.tree.flush_to_tables(torn).is_err());
    }

    /// Names of the table files.
    fn tables(leftovers: &Leftovers) -> Vec<String> {
        let entries = std::fs::read_dir(leftovers.files.tables()).expect("readable");
        let mut names: Vec<_> =
            entries.map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn leftovers_of_a_failure_go_once_no_work_may_name_them() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let leftovers = open(directory.path());
        let first = leftovers.begin().expect("begun");
        flush(&leftovers, &first);
        first.finish();
        let usual = tables(&leftovers);
        let failing = leftovers.begin().expect("begun");
        fail(&leftovers);
        drop(failing);
        assert_eq!(tables(&leftovers), usual);
        let (other, failing) = (leftovers.begin().expect("begun"), leftovers.begin().expect("begun"));
        fail(&leftovers);
        drop(failing);
        assert!(tables(&leftovers).len() > usual.len(), "the other one may be about to name any");
        flush(&leftovers, &other);
        // A merge removes the flushed tables while a reader uses them.
        let reader = leftovers.tree.current_version();
        leftovers.tree.major_compact(u64::MAX, 0).expect("merged");
        other.finish();
        let left = tables(&leftovers);
        for table in reader.iter_tables() {
            assert!(left.contains(&table.id().to_string()), "{} is being read, and {left:?} are there", table.id());
        }
        assert_eq!(left.len(), reader.iter_tables().count() + 1);
    }

    #[test]
    fn leftovers_of_an_earlier_process_stay_until_a_write() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let leftovers = open(directory.path());
        let writing = leftovers.begin().expect("begun");
        flush(&leftovers, &writing);
        fail(&leftovers);
        // As if the process ended here.
        let before = tables(&leftovers);
        std::mem::forget(writing);
        drop(leftovers);
        std::fs::write(directory.path().join("trees/.tmpAbCdEf"), "half of it").expect("written");
        let all = bunko_testkit::directory::files_below(directory.path());
        let refused = open(directory.path());
        assert_eq!(tables(&refused).len() + 1, before.len());
        drop(refused);
        assert_eq!(bunko_testkit::directory::files_below(directory.path()), all);
        let killed = open(directory.path());
        std::mem::forget(killed);
        let accepted = open(directory.path());
        accepted.sweep().expect("removed");
        assert_eq!(tables(&accepted).len() + 1, before.len());
        drop(accepted);
        assert_eq!(bunko_testkit::directory::files_below(directory.path()).len(), 3, "current, version and table");
    }
}
