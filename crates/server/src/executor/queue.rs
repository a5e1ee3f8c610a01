//! Ready tasks, in the order in which they run.
//!
//! A task is hurried if its client's transaction has claims that other operations wait for, or if its turn is next
//! (`Haste` of `catalog`). It is heavy if it moved many bytes when it last ran: hundreds of clients that read large
//! batches would keep each small request waiting until each has had a turn.

use super::task::Task;
use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum number of hurried tasks in a row while others wait, so that hurried tasks cannot starve them.
const IN_A_ROW_MAX: u32 = 4;

/// Hurried tasks run before other light ones; each kind runs in order of arrival.
#[derive(Default)]
pub(super) struct Queue {
    hurried: VecDeque<Arc<Task>>,
    others: VecDeque<Arc<Task>>,
    heavy: VecDeque<Arc<Task>>,
    /// Hurried tasks that ran since another task did.
    in_a_row: u32,
}

impl Queue {
    pub fn push(&mut self, task: Arc<Task>) {
        let queue = if task.haste.is_on() {
            &mut self.hurried
        } else if task.is_heavy() {
            &mut self.heavy
        } else {
            &mut self.others
        };
        queue.push_back(task);
    }

    /// Takes the next task that is not heavy: a hurried one, or another after `IN_A_ROW_MAX` hurried ones.
    pub fn pop_light(&mut self) -> Option<Arc<Task>> {
        let is_their_turn = self.in_a_row < IN_A_ROW_MAX || self.others.is_empty();
        match self.hurried.pop_front_if(|_| is_their_turn) {
            Some(task) => {
                self.in_a_row += 1;
                Some(task)
            }
            None => {
                self.in_a_row = 0;
                self.others.pop_front()
            }
        }
    }

    /// Takes the heavy task that has waited longest.
    pub fn pop_heavy(&mut self) -> Option<Arc<Task>> {
        self.heavy.pop_front()
    }

    pub fn len(&self) -> usize {
        self.hurried.len() + self.others.len() + self.heavy.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Appends all tasks of another queue.
    pub fn append(&mut self, mut other: Self) {
        self.hurried.append(&mut other.hurried);
        self.others.append(&mut other.others);
        self.heavy.append(&mut other.heavy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::Executor;
    use crate::executor::task::HEAVY_BYTES;
    use crate::socket::Socket;
    use bunko_command::Haste;
    use std::os::unix::net::UnixStream;

    fn task(id: u64, is_hurried: bool) -> Arc<Task> {
        let socket = Arc::new(Socket::new(UnixStream::pair().unwrap().0));
        let haste = Arc::<Haste>::default();
        haste.set(is_hurried);
        Task::new(
            &Executor::new(1, bunko_host::Clock::machine()).unwrap(),
            id,
            &socket,
            &haste,
            Box::pin(std::future::pending()),
        )
    }

    fn order(mut queue: Queue) -> Vec<u64> {
        std::iter::from_fn(|| queue.pop_light().or_else(|| queue.pop_heavy())).map(|task| task.id).collect()
    }

    #[test]
    fn hurried_tasks_come_first_and_starve_no_other() {
        let mut queue = Queue::default();
        (0..3).for_each(|id| queue.push(task(id, false)));
        (10..20).for_each(|id| queue.push(task(id, true)));
        assert_eq!(queue.len(), 13);
        assert_eq!(order(queue), [10, 11, 12, 13, 0, 14, 15, 16, 17, 1, 18, 19, 2]);
    }

    #[test]
    fn heavy_tasks_come_last_unless_they_are_hurried() {
        let heavy = |id, is_hurried| {
            let task = task(id, is_hurried);
            task.weigh(HEAVY_BYTES);
            task
        };
        let mut queue = Queue::default();
        for task in [heavy(0, false), heavy(1, false), task(2, false), heavy(3, true)] {
            queue.push(task);
        }
        assert_eq!(queue.len(), 4);
        let lighter = heavy(4, false);
        lighter.weigh(HEAVY_BYTES - 1);
        queue.push(lighter);
        assert_eq!(order(queue), [3, 2, 4, 0, 1]);
    }

    #[test]
    fn tasks_taken_over_keep_their_order() {
        let (mut own, mut other) = (Queue::default(), Queue::default());
        own.push(task(1, false));
        other.push(task(2, false));
        other.push(task(3, true));
        own.append(std::mem::take(&mut other));
        assert!(other.is_empty());
        assert_eq!(order(own), [3, 1, 2]);
    }
}
