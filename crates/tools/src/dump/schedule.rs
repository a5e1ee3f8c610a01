//! Which range is read next.

use super::plan::Planned;
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroUsize;

/// Average length from which documents are large, in bytes. A reader of large documents holds a reply and a unit of 16
/// MB each, and their compressor as much again, so only one reader is used.
const LARGE_DOCUMENT_BYTES: u64 = 1024 * 1024;

/// One range of one collection, by their positions in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Task {
    pub collection: usize,
    pub range: usize,
}

/// Hands out ranges in the order of the plan, of at most a given number of collections at a time.
pub(super) struct Schedule {
    parallel_collections: NonZeroUsize,
    /// By collection, whether its documents are large.
    is_large: Vec<bool>,
    queue: Mutex<Queue>,
    changed: Condvar,
}

struct Queue {
    tasks: VecDeque<Task>,
    /// Ranges that are being read, by collection.
    active: BTreeMap<usize, usize>,
}

impl Schedule {
    /// Makes a schedule of the ranges that `is_left` accepts.
    pub fn new(collections: &[Planned], parallel_collections: NonZeroUsize, is_left: impl Fn(Task) -> bool) -> Self {
        let tasks = collections
            .iter()
            .enumerate()
            .flat_map(|(collection, planned)| (0..planned.ranges.len()).map(move |range| Task { collection, range }));
        let queue = Queue { tasks: tasks.filter(|&task| is_left(task)).collect(), active: BTreeMap::new() };
        let is_large = |planned: &Planned| {
            planned.size_bytes.checked_div(planned.documents).is_some_and(|average| average >= LARGE_DOCUMENT_BYTES)
        };
        let is_large = collections.iter().map(is_large).collect();
        Self { parallel_collections, is_large, queue: Mutex::new(queue), changed: Condvar::new() }
    }

    /// The next range; waits while only collections beyond the limit are left. `None` once no range is left.
    pub fn take(&self) -> Option<Task> {
        let mut queue = self.queue.lock();
        loop {
            if queue.tasks.is_empty() {
                return None;
            }
            let next = queue.tasks.iter().position(|task| self.may_begin(*task, &queue.active));
            if let Some(task) = next.and_then(|next| queue.tasks.remove(next)) {
                *queue.active.entry(task.collection).or_default() += 1;
                return Some(task);
            }
            self.changed.wait(&mut queue);
        }
    }

    fn may_begin(&self, task: Task, active: &BTreeMap<usize, usize>) -> bool {
        let has_room = active.len() < self.parallel_collections.get() || active.contains_key(&task.collection);
        let is_large_active = || active.keys().any(|&collection| self.is_large[collection]);
        has_room && !(self.is_large[task.collection] && is_large_active())
    }

    /// Marks a range that was handed out as done.
    pub fn finish(&self, task: Task) {
        let mut queue = self.queue.lock();
        if let Some(count) = queue.active.get_mut(&task.collection) {
            *count -= 1;
            if *count == 0 {
                queue.active.remove(&task.collection);
            }
        }
        self.changed.notify_all();
    }

    /// Stops handing out ranges.
    pub fn stop(&self) {
        self.queue.lock().tasks.clear();
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::super::oplog;
    use super::super::ranges::Range;
    use super::*;

    #[test]
    fn no_more_collections_at_a_time_than_allowed() {
        let planned = |ranges: usize| Planned { ranges: vec![Range::whole(); ranges], ..oplog::planned() };
        let collections = [planned(3), planned(0), planned(1), planned(2)];
        let two = NonZeroUsize::new(2).expect("not zero");
        let schedule = Schedule::new(&collections, two, |task| task != Task { collection: 0, range: 1 });
        let take = || schedule.take().map(|task| (task.collection, task.range));
        assert_eq!([take(), take(), take()], [Some((0, 0)), Some((0, 2)), Some((2, 0))]);
        schedule.finish(Task { collection: 0, range: 0 });
        std::thread::scope(|scope| {
            let waiting = scope.spawn(take);
            schedule.finish(Task { collection: 2, range: 0 });
            assert_eq!(waiting.join().expect("no panic"), Some((3, 0)));
        });
        schedule.stop();
        assert_eq!(take(), None);
    }

    #[test]
    fn one_range_with_large_documents_at_a_time() {
        let planned = |documents| Planned { size_bytes: 40 << 20, documents, ..oplog::planned() };
        let collections = [planned(4), planned(4), planned(4), planned(40_000)];
        let schedule = Schedule::new(&collections, NonZeroUsize::new(4).expect("not zero"), |_| true);
        let take = || schedule.take().map(|task| task.collection);
        assert_eq!([take(), take()], [Some(0), Some(3)]);
        schedule.finish(Task { collection: 0, range: 0 });
        assert_eq!(take(), Some(1));
        schedule.finish(Task { collection: 1, range: 0 });
        assert_eq!([take(), take()], [Some(2), None]);
    }
}
