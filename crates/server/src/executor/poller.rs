//! The epoll set that all threads wait on.

use crate::socket::Socket;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::fd::OwnedFd;
use rustix::io::{self, Errno};
use std::time::Duration;

/// The bell's number among the tasks' numbers.
const BELL: u64 = u64::MAX;

/// The epoll set and its bell.
pub(super) struct Poller {
    epoll: OwnedFd,
    /// Ends a wait. It is edge-triggered like the sockets: every ring is one event, and the counter is never read.
    bell: OwnedFd,
}

impl Poller {
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &bell, EventData::new_u64(BELL), EventFlags::IN | EventFlags::ET)?;
        Ok(Self { epoll, bell })
    }

    /// Reports events of a socket from now on; its present readiness is reported at once.
    pub fn add(&self, socket: &Socket, id: u64) -> io::Result<()> {
        let interest = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.epoll, socket, EventData::new_u64(id), interest)
    }

    /// Takes as many events as `events` has capacity. Waits at most `timeout` for the first one.
    pub fn take(&self, events: &mut Vec<Event>, timeout: Option<Duration>) {
        events.clear();
        let timeout = timeout.map(|timeout| Timespec::try_from(timeout).expect("a tick at most"));
        match epoll::wait(&self.epoll, spare_capacity(events), timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => unreachable!("a wait on a set of our own failed: {error}"),
        }
    }

    /// The task's number and the event flags; `None` for the bell.
    pub fn read(event: Event) -> Option<(u64, EventFlags)> {
        let (data, flags) = (event.data, event.flags);
        (data.u64() != BELL).then_some((data.u64(), flags))
    }

    /// Ends the wait of one thread: of a waiting thread now, else of the next that waits.
    pub fn ring(&self) {
        // Fails only after 2^64 rings.
        let _ = io::write(&self.bell, &1_u64.to_ne_bytes());
    }
}
