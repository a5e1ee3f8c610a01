//! The draws that wait for room, and the granted draws that have not been taken yet.

use super::Purpose;
use std::collections::{BTreeMap, VecDeque};
use std::task::Waker;

/// A draw's number; later draws have higher ones.
pub(super) type Ticket = u64;

#[derive(Debug)]
struct Waiting {
    ticket: Ticket,
    bytes: u64,
    /// Wakes the task of the draw, once it has been polled.
    waker: Option<Waker>,
}

/// The draws of all purposes.
#[derive(Debug, Default)]
pub(super) struct Queue {
    last: Ticket,
    waiting: [VecDeque<Waiting>; Purpose::ALL.len()],
    granted: BTreeMap<Ticket, u64>,
}

/// Where a draw stood when it left.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// The draw was still in the queue.
    Waited,
    /// The draw had been given its bytes.
    Granted,
}

impl Queue {
    /// Puts a draw at the end of the purpose's queue, and returns its ticket.
    pub fn join(&mut self, purpose: Purpose, bytes: u64) -> Ticket {
        self.last += 1;
        self.waiting[purpose as usize].push_back(Waiting { ticket: self.last, bytes, waker: None });
        self.last
    }

    /// The bytes that the first draw for a purpose waits for; `None` if none waits.
    pub fn first(&self, purpose: Purpose) -> Option<u64> {
        self.waiting[purpose as usize].front().map(|waiting| waiting.bytes)
    }

    /// Grants the first draw its bytes, which the caller has taken. Returns the waker of its task.
    pub fn grant_first(&mut self, purpose: Purpose, bytes: u64) -> Option<Waker> {
        let Waiting { ticket, waker, .. } = self.waiting[purpose as usize].pop_front()?;
        self.granted.insert(ticket, bytes);
        waker
    }

    /// Takes the bytes granted to a draw, and returns whether there were any. If not, `waker` is woken once it is
    /// granted.
    pub fn take(&mut self, purpose: Purpose, ticket: Ticket, waker: &Waker) -> bool {
        if self.granted.remove(&ticket).is_some() {
            return true;
        }
        if let Some(waiting) = self.waiting[purpose as usize].iter_mut().find(|waiting| waiting.ticket == ticket) {
            match &mut waiting.waker {
                Some(known) => known.clone_from(waker),
                unknown => *unknown = Some(waker.clone()),
            }
        }
        false
    }

    /// Forgets a draw.
    pub fn leave(&mut self, purpose: Purpose, ticket: Ticket) -> Left {
        if self.granted.remove(&ticket).is_some() {
            return Left::Granted;
        }
        self.waiting[purpose as usize].retain(|waiting| waiting.ticket != ticket);
        Left::Waited
    }
}
