//! One generator thread: an epoll loop over its share of the connections.

use super::pacer::Pacer;
use super::slots::Slots;
use super::socket::{Flushed, Socket};
use super::{LoadError, LoadOptions, Next, Placement, Request, Then, Workload};
use crate::reply::ReplyChecker;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime, timerfd_create,
    timerfd_settime,
};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Bytes read at once; each thread has one buffer.
const SCRATCH_BYTES: usize = 256 * 1024;
const EVENTS_MAX: usize = 256;
/// Shortest sleep of an open loop: waking for every single request would take processors from the server.
const SLICE: Duration = Duration::from_micros(100);
/// Index that stands for the timer among the sockets.
const TIMER: u64 = u64::MAX;

/// Time that a thread worked, and its cost.
pub(super) struct Span {
    pub started: Instant,
    pub ended: Instant,
    pub cpu: Duration,
    /// Time in which the thread had nothing to do.
    pub waited: Duration,
    /// Time in which the thread could have run, but no processor was free.
    pub queued: Duration,
}

pub(super) struct Generator<'l, W> {
    workload: &'l mut W,
    sockets: &'l mut [Socket],
    options: &'l LoadOptions,
    thread: (usize, usize),
    epoll: OwnedFd,
    /// Timer of an open loop: epoll's own timeout counts milliseconds, but arrivals are microseconds apart.
    timer: OwnedFd,
    /// The arrival that the timer was last set for.
    armed_for: Option<Instant>,
    pacer: Pacer,
    checker: ReplyChecker,
    scratch: Vec<u8>,
    free_slots: Slots,
    /// Steps whose next request goes to the socket that was just read.
    follows: Vec<Request>,
    /// Sockets with bytes that have not been offered to the kernel yet.
    dirty: Vec<usize>,
    last_request_id: i32,
    outstanding: usize,
    /// Sockets that wait for the kernel to take more bytes.
    waiting_for_room: usize,
    finished: bool,
    last_progress: Instant,
    /// Requests that are due later are not made.
    deadline: Option<Instant>,
    waited: Duration,
}

impl<'l, W: Workload> Generator<'l, W> {
    /// Registers the sockets. Everything that can fail before the starting signal fails here.
    pub fn new(
        workload: &'l mut W,
        sockets: &'l mut [Socket],
        options: &'l LoadOptions,
        index: usize,
        count: usize,
    ) -> Result<Self, LoadError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (index, socket) in sockets.iter().enumerate() {
            epoll::add(&epoll, socket.stream(), EventData::new_u64(index as u64), EventFlags::IN)?;
        }
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        // Edge-triggered: a timer that has fired is reported once and never read.
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), EventFlags::IN | EventFlags::ET)?;
        let free_slots = Slots::new(sockets.len(), options.in_flight.max(1));
        let now = Instant::now();
        Ok(Self {
            workload,
            sockets,
            options,
            thread: (index, count),
            epoll,
            timer,
            armed_for: None,
            pacer: Pacer::Closed,
            checker: ReplyChecker::default(),
            scratch: vec![0; SCRATCH_BYTES],
            free_slots,
            follows: Vec::new(),
            dirty: Vec::new(),
            last_request_id: 0,
            outstanding: 0,
            waiting_for_room: 0,
            finished: false,
            last_progress: now,
            deadline: None,
            waited: Duration::ZERO,
        })
    }

    /// Works until the workload is finished and the last reply is in.
    pub fn run(mut self) -> Result<Span, LoadError> {
        if self.options.placement == Placement::Pinned {
            pin_to_processor(self.thread.0)?;
        }
        let (cpu_before, queued_before) = (thread_cpu(), thread_queued());
        let started = Instant::now();
        self.pacer = Pacer::new(self.options.arrival, self.thread.0, self.thread.1, started);
        self.last_progress = started;
        self.deadline = self.options.duration.map(|duration| started + duration);
        self.issue(started)?;
        let mut events = Vec::with_capacity(EVENTS_MAX);
        while !self.finished || self.outstanding > 0 || self.waiting_for_room > 0 {
            self.wait(&mut events)?;
            for event in events.drain(..) {
                self.handle(event)?;
            }
            let now = Instant::now();
            self.issue(now)?;
            if self.outstanding > 0 && now - self.last_progress > self.options.stall_timeout {
                let timeout = self.options.stall_timeout;
                return Err(LoadError::Stalled { outstanding: self.outstanding, timeout });
            }
        }
        for socket in &mut *self.sockets {
            socket.drain_silent()?;
        }
        let cpu = thread_cpu().saturating_sub(cpu_before);
        let queued = thread_queued().saturating_sub(queued_before);
        Ok(Span { started, ended: Instant::now(), cpu, waited: self.waited, queued })
    }

    fn wait(&mut self, events: &mut Vec<Event>) -> Result<(), LoadError> {
        // A free slot that is not used waits for its arrival, not for the server.
        let arrival = self.pacer.next_arrival().filter(|_| !self.finished && !self.free_slots.is_empty());
        if let Some(arrival) = arrival.filter(|&arrival| self.armed_for != Some(arrival)) {
            // Arrivals that are closer together than a slice are sent together; their latency still counts from their
            // own time.
            let delay = arrival.saturating_duration_since(Instant::now()).max(SLICE);
            timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once_after(delay))?;
            self.armed_for = Some(arrival);
        }
        let timeout = timespec(self.options.stall_timeout);
        let before = Instant::now();
        let result = epoll::wait(&self.epoll, spare_capacity(events), Some(&timeout));
        self.waited += before.elapsed();
        match result {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn handle(&mut self, event: Event) -> Result<(), LoadError> {
        let (data, flags) = (event.data, event.flags);
        if data.u64() == TIMER {
            return Ok(());
        }
        let index = data.u64() as usize;
        if flags.contains(EventFlags::OUT) {
            self.flush(index)?;
        }
        if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
            let now = self.receive(index)?;
            self.issue(now)?;
        }
        Ok(())
    }

    /// Takes the replies that have arrived on one socket, with one clock reading for all of them.
    fn receive(&mut self, index: usize) -> Result<Instant, LoadError> {
        let (workload, checker, follows) = (&mut *self.workload, &mut self.checker, &mut self.follows);
        let mut now = None;
        let replies = self.sockets[index].receive(&mut self.scratch, |reply, request| {
            let now = *now.get_or_insert_with(Instant::now);
            match workload.on_reply(request, checker.check(reply.document), now) {
                Then::Free => {}
                Then::Follow(step) => follows.push(step),
            }
        })?;
        self.outstanding -= replies;
        if self.options.stop.load(Ordering::Relaxed) {
            // Operations end where they are: a scan could take minutes more.
            self.follows.clear();
        }
        self.free_slots.give(index, replies - self.follows.len());
        while let Some(step) = self.follows.pop() {
            self.follow(index, step);
        }
        let now = now.unwrap_or(self.last_progress);
        self.last_progress = now;
        Ok(now)
    }

    /// Makes every request that is due and has a free slot, then offers the new bytes to the kernel.
    fn issue(&mut self, now: Instant) -> Result<(), LoadError> {
        while !self.finished && !self.free_slots.is_empty() {
            let Some(due) = self.pacer.due(now) else { break };
            if self.is_over(due) {
                self.finished = true;
                break;
            }
            let Some(index) = self.free_slots.take() else { break };
            if !self.sockets[index].has_room() {
                self.flush(index)?;
            }
            if self.sockets[index].has_room() {
                self.make_request(index, due);
            } else {
                self.sockets[index].deferred_slots += 1;
            }
        }
        while let Some(index) = self.dirty.pop() {
            if self.sockets[index].dirty {
                self.flush(index)?;
            }
        }
        Ok(())
    }

    /// Whether a request that is due at `due` is too late to be made.
    fn is_over(&self, due: Instant) -> bool {
        self.deadline.is_some_and(|deadline| due >= deadline) || self.options.stop.load(Ordering::Relaxed)
    }

    fn make_request(&mut self, index: usize, due: Instant) {
        let socket = &mut self.sockets[index];
        self.last_request_id = self.last_request_id.wrapping_add(1);
        let start = socket.outgoing().len();
        let Next::Appended(request) = self.workload.next_request(self.last_request_id, due, socket.outgoing()) else {
            self.finished = true;
            return;
        };
        self.pacer.advance();
        self.track(index, start, request);
    }

    /// Makes the next request of an operation in progress; it uses no arrival.
    fn follow(&mut self, index: usize, step: Request) {
        let outgoing = self.sockets[index].outgoing();
        let start = outgoing.len();
        self.last_request_id = self.last_request_id.wrapping_add(1);
        let request = self.workload.follow(step, self.last_request_id, outgoing);
        self.track(index, start, request);
    }

    /// Records the request that was appended at `start`.
    fn track(&mut self, index: usize, start: usize, request: Request) {
        let socket = &mut self.sockets[index];
        if socket.track(start, self.last_request_id, request) {
            if self.outstanding == 0 {
                self.last_progress = Instant::now();
            }
            self.outstanding += 1;
        } else {
            self.free_slots.give(index, 1);
        }
        if !std::mem::replace(&mut socket.dirty, true) {
            self.dirty.push(index);
        }
    }

    fn flush(&mut self, index: usize) -> Result<(), LoadError> {
        let socket = &mut self.sockets[index];
        let blocked = socket.flush()? == Flushed::Partly;
        if blocked != socket.awaits_room {
            socket.awaits_room = blocked;
            let interest = if blocked { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
            epoll::modify(&self.epoll, socket.stream(), EventData::new_u64(index as u64), interest)?;
            if blocked {
                self.waiting_for_room += 1;
            } else {
                self.waiting_for_room -= 1;
            }
        }
        if !blocked {
            self.free_slots.give(index, std::mem::take(&mut socket.deferred_slots));
        }
        Ok(())
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec { tv_sec: duration.as_secs() as i64, tv_nsec: i64::from(duration.subsec_nanos()) }
}

fn once_after(delay: Duration) -> Itimerspec {
    Itimerspec { it_interval: timespec(Duration::ZERO), it_value: timespec(delay) }
}

/// Keeps the calling thread on one of the processors that it may use. Thread 0 gets the last one, because interrupts
/// and other work tend to use the first.
fn pin_to_processor(index: usize) -> Result<(), LoadError> {
    let allowed = sched_getaffinity(None)?;
    let processors: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&processor| allowed.is_set(processor)).collect();
    let mut chosen = CpuSet::new();
    chosen.set(processors[processors.len() - 1 - index % processors.len()]);
    Ok(sched_setaffinity(None, &chosen)?)
}

/// CPU time of the calling thread so far, user and system.
fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Time that the calling thread was runnable but not running; zero if the kernel does not tell.
fn thread_queued() -> Duration {
    bunko_host::thread_run_delay().unwrap_or_default()
}
