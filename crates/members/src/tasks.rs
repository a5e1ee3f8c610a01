//! The actions that wait for the thread `member`.

use bunko_bson::DocumentBuf;
use bunko_replica::{Configuration, Position, Term, Vote};
use bunko_store::Clock;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// An action that changes the store or a file.
pub(crate) enum Task {
    SaveVote(Vote),
    Keep(Arc<Configuration>, DocumentBuf),
    BecomePrimary(Term),
    StepDown,
    /// Keep that this member remembers its votes and what it has acknowledged.
    Remember,
    /// Bytes of the log, and the position after which they stand.
    Append(Position, Vec<u8>),
    Truncate(Position),
}

#[derive(Default)]
struct Waiting {
    ready: VecDeque<Task>,
    /// Actions that failed, and when they are tried again. There are two at most, since only a truncation and the newest
    /// configuration are.
    later: Vec<(Instant, Task)>,
    is_over: bool,
}

/// The actions that wait. The agreement asks for few at a time: it waits for the outcome of most, and a primary sends the
/// next bytes when the last ones are acknowledged.
#[derive(Default)]
pub(crate) struct Tasks {
    waiting: Mutex<Waiting>,
    news: Condvar,
}

impl Tasks {
    pub(crate) fn put(&self, task: Task) {
        self.waiting.lock().ready.push_back(task);
        self.news.notify_one();
    }

    /// Adds an action that failed, to be tried again at that moment.
    pub(crate) fn put_later(&self, at: Instant, task: Task) {
        self.waiting.lock().later.push((at, task));
        self.news.notify_one();
    }

    /// Adds bytes of the log, unless bytes for the same position wait already: a primary repeats what is not acknowledged
    /// in time.
    pub(crate) fn put_append(&self, after: Position, bytes: Vec<u8>) {
        let mut waiting = self.waiting.lock();
        if !waiting.ready.iter().any(|task| matches!(task, Task::Append(other, _) if *other == after)) {
            waiting.ready.push_back(Task::Append(after, bytes));
            self.news.notify_one();
        }
    }

    /// Ends the thread.
    pub(crate) fn end(&self) {
        self.waiting.lock().is_over = true;
        self.news.notify_one();
    }

    /// The next action, once there is one; `None` if the thread must end.
    pub(crate) fn next(&self, clock: &Clock) -> Option<Task> {
        let mut waiting = self.waiting.lock();
        loop {
            if waiting.is_over {
                return None;
            }
            let now = clock.now();
            if let Some(index) = waiting.later.iter().position(|(at, _)| *at <= now) {
                return Some(waiting.later.swap_remove(index).1);
            }
            if let Some(task) = waiting.ready.pop_front() {
                return Some(task);
            }
            match waiting.later.iter().map(|(at, _)| *at).min() {
                Some(at) => drop(self.news.wait_for(&mut waiting, at - now)),
                None => self.news.wait(&mut waiting),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_task_that_failed_is_tried_again_when_its_time_has_come_and_holds_up_no_other() {
        let (tasks, clock) = (Tasks::default(), Clock::machine());
        let position = |end| Position { term: 1, end };
        tasks.put_later(clock.now() + Duration::from_millis(20), Task::Truncate(position(1)));
        tasks.put(Task::Truncate(position(2)));
        let ends = [0, 1].map(|_| match tasks.next(&clock) {
            Some(Task::Truncate(position)) => position.end,
            _ => 0,
        });
        assert_eq!(ends, [2, 1]);
        tasks.put_later(clock.now() + Duration::from_mins(10), Task::StepDown);
        tasks.end();
        assert!(tasks.next(&clock).is_none());
    }
}
