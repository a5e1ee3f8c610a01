//! The epoll set that all threads wait on.

use crate::socket::Socket;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::fd::OwnedFd;
use rustix::io::{self, Errno};
use std::time::Duration;

/// The bell's place among the tasks' numbers.
const BELL: u64 = u64::MAX;

/// What the threads sleep in.
pub(super) struct Poller {
    epoll: OwnedFd,
    /// Ends a wait. Edge-triggered, as the sockets are: every ring is one event, and nobody reads it.
    bell: OwnedFd,
}

impl Poller {
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &bell, EventData::new_u64(BELL), EventFlags::IN | EventFlags::ET)?;
        Ok(Self { epoll, bell })
    }

    /// Reports what happens at a socket from now on, and at once what it is ready for.
    pub fn add(&self, socket: &Socket, id: u64) -> io::Result<()> {
        let interest = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.epoll, socket, EventData::new_u64(id), interest)
    }

    /// Takes events, as many as there is room for; waits for the first, for `timeout` at most.
    pub fn take(&self, events: &mut Vec<Event>, timeout: Option<Duration>) {
        events.clear();
        let timeout = timeout.map(|timeout| Timespec::try_from(timeout).expect("a tick at most"));
        match epoll::wait(&self.epoll, spare_capacity(events), timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => unreachable!("a wait on a set of our own failed: {error}"),
        }
    }

    /// Whose event it is, and what happened; `None` for the bell.
    pub fn read(event: Event) -> Option<(u64, EventFlags)> {
        let (data, flags) = (event.data, event.flags);
        (data.u64() != BELL).then_some((data.u64(), flags))
    }

    /// Ends the wait of one thread, now or when next one waits.
    pub fn ring(&self) {
        // It fails where the bell was rung 2^64 times.
        let _ = io::write(&self.bell, &1_u64.to_ne_bytes());
    }
}
