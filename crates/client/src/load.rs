//! Load on a server: many connections, each with many requests in flight, from few threads.
//!
//! A run has two steps, so that connecting is not part of the measured time: [`Load::connect`] opens every connection
//! and does its handshake, [`Load::run`] starts all threads at one signal and returns when the last reply is in.
//!
//! **Invariant:** memory is bounded by connections x (requests in flight + 64 KiB of unsent bytes + one request).

mod generator;
mod pacer;
mod slots;
mod socket;

use crate::connection::Connection;
use crate::error::{ClientError, CommandError};
use crate::reply::Reply;
use crate::uri::Uri;
use generator::Generator;
use rustix::process::{Resource, getrlimit, setrlimit};
use socket::Socket;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};
use std::{fmt, io};

/// File descriptors that a process needs besides its connections.
const DESCRIPTORS_SPARE: u64 = 64;

/// The requests of a load. Each thread has its own workload.
pub trait Workload: Send {
    /// Appends exactly one request, made by [`crate::frame::FrameWriter`], or nothing when the work is done.
    ///
    /// `due` is the time of the request: in a closed loop now, in an open loop the time at which it should be made.
    fn next_request(&mut self, request_id: i32, due: Instant, out: &mut Vec<u8>) -> Next;

    /// Takes the reply to `request`.
    fn on_reply(&mut self, request: Request, reply: Result<Reply<'_>, CommandError>, now: Instant) -> Then;

    /// Appends the request that a [`Then::Follow`] with `step` asked for, and returns it.
    fn follow(&mut self, step: Request, request_id: i32, out: &mut Vec<u8>) -> Request {
        let _ = (request_id, out);
        unreachable!("nothing follows {step:?} unless on_reply says so")
    }
}

/// Outcome of [`Workload::next_request`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A request was appended.
    Appended(Request),
    /// This thread's work is done, and nothing was appended.
    Finished,
}

/// How the load goes on after a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// The place in flight is free for the next request.
    Free,
    /// Another request of the same operation. It is made at once, on the same connection, outside the arrivals, and
    /// even when the time is over or the work is done: an operation that has begun is completed.
    Follow(Request),
}

/// A request as its workload knows it; it is returned with the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// A tag for the workload's own use.
    pub tag: u64,
    /// Start of its latency.
    pub started_at: Instant,
}

/// When requests are made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrival {
    /// As soon as an earlier request is answered.
    Closed,
    /// At equal intervals, however fast the server answers. The value is requests per second over all threads.
    Constant(f64),
    /// As a Poisson stream, however fast the server answers: the intervals are exponential and follow from a seed. The
    /// sum of several threads' or generators' streams is a Poisson stream again.
    Poisson {
        /// Mean requests per second, over all threads.
        rate: f64,
        /// Each thread derives its own seed from it.
        seed: u64,
    },
}

impl Arrival {
    /// Requests per second of an open loop; `None` for a closed loop.
    pub fn rate(self) -> Option<f64> {
        match self {
            Self::Closed => None,
            Self::Constant(rate) | Self::Poisson { rate, .. } => Some(rate),
        }
    }
}

/// Whether the scheduler may move generator threads between processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// The scheduler may move them.
    #[default]
    Free,
    /// Thread `i` stays on the `i`-th of the processors that this process may use, from the last one backwards.
    Pinned,
}

/// Options of a load.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Sockets over all threads, at least 1.
    pub connections: usize,
    /// Requests in flight per connection, at least 1.
    pub in_flight: usize,
    /// Generator threads; at most one per connection is used.
    pub threads: usize,
    /// Whether the threads stay on their processors.
    pub placement: Placement,
    /// When requests are made.
    pub arrival: Arrival,
    /// Longest time after the starting signal at which an operation may begin; without it the workloads decide when
    /// they are done.
    pub duration: Option<Duration>,
    /// Once true, no more requests are made; replies to those in flight are still awaited.
    pub stop: Arc<AtomicBool>,
    /// The run fails if requests are in flight and no reply arrives for this long.
    pub stall_timeout: Duration,
}

/// A run that did not reach its end.
#[derive(Debug)]
pub enum LoadError {
    /// A connection broke or never came up.
    Client(ClientError),
    /// The generator's own system calls failed.
    Generator(io::Error),
    /// No reply came for [`LoadOptions::stall_timeout`].
    Stalled {
        /// Requests still unanswered.
        outstanding: usize,
        /// How long no reply came.
        timeout: Duration,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(error) => error.fmt(f),
            Self::Generator(error) => write!(f, "load generator: {error}"),
            Self::Stalled { outstanding, timeout } => {
                write!(f, "no reply for {} s with {outstanding} requests in flight", timeout.as_secs_f64())
            }
        }
    }
}

impl std::error::Error for LoadError {}

impl From<ClientError> for LoadError {
    fn from(error: ClientError) -> Self {
        Self::Client(error)
    }
}

impl From<io::Error> for LoadError {
    fn from(error: io::Error) -> Self {
        Self::Generator(error)
    }
}

impl From<rustix::io::Errno> for LoadError {
    fn from(error: rustix::io::Errno) -> Self {
        Self::Generator(error.into())
    }
}

/// Measurements of the generator itself.
#[derive(Clone, Copy, Debug)]
pub struct LoadFigures {
    /// Generator threads that ran.
    pub threads: usize,
    /// Time from the starting signal to the last reply.
    pub elapsed: Duration,
    /// CPU time of all generator threads, user and system.
    pub generator_cpu: Duration,
    /// Time in which the threads had nothing to do.
    pub generator_waited: Duration,
    /// Time in which the threads could have run but no processor was free. Time that is neither this, nor CPU time, nor
    /// waiting, is time in which they were stopped from outside.
    pub generator_queued: Duration,
}

/// Connections that have completed their handshakes.
pub struct Load {
    options: LoadOptions,
    sockets: Vec<Socket>,
}

impl Load {
    /// Opens all connections.
    /// # Errors
    /// The error of the first connection that fails.
    pub fn connect(uri: &Uri, options: LoadOptions) -> Result<Self, LoadError> {
        allow_descriptors(options.connections as u64 + DESCRIPTORS_SPARE)?;
        let first = Connection::connect(uri)?;
        let others = (1..options.connections).map(|_| Socket::new(first.open_another()?));
        let mut sockets = others.collect::<Result<Vec<_>, LoadError>>()?;
        sockets.push(Socket::new::<LoadError>(first)?);
        Ok(Self { options, sockets })
    }

    /// Number of workloads that [`Self::run`] takes: one per generator thread.
    pub fn threads(&self) -> usize {
        self.options.threads.clamp(1, self.sockets.len())
    }

    /// The options of the next run; the number of connections can no longer change.
    pub fn options_mut(&mut self) -> &mut LoadOptions {
        &mut self.options
    }

    /// Runs the workloads until they are done or the time is over. Connections stay open until `self` is dropped.
    /// # Errors
    /// The first thread's error; a run that failed returns no figures.
    /// # Panics
    /// If there are not exactly [`Self::threads`] workloads.
    pub fn run<W: Workload>(&mut self, workloads: &mut [W]) -> Result<LoadFigures, LoadError> {
        let threads = self.threads();
        assert_eq!(workloads.len(), threads, "one workload per generator thread");
        let mut generators = Vec::with_capacity(threads);
        let mut sockets = self.sockets.as_mut_slice();
        for (thread, workload) in workloads.iter_mut().enumerate() {
            // If the connections cannot be divided evenly, the first threads take one more each.
            let (mine, rest) = sockets.split_at_mut(sockets.len().div_ceil(threads - thread));
            sockets = rest;
            generators.push(Generator::new(workload, mine, &self.options, thread, threads)?);
        }
        let start = &Barrier::new(threads);
        let results: Vec<_> = std::thread::scope(|scope| {
            let mut handles = Vec::with_capacity(threads);
            for generator in generators {
                handles.push(scope.spawn(move || {
                    start.wait();
                    generator.run()
                }));
            }
            handles.into_iter().map(|handle| handle.join().expect("a generator thread panicked")).collect()
        });
        let spans = results.into_iter().collect::<Result<Vec<_>, _>>()?;
        let started = spans.iter().map(|span| span.started).min();
        let ended = spans.iter().map(|span| span.ended).max();
        Ok(LoadFigures {
            threads,
            elapsed: ended.zip(started).map_or(Duration::ZERO, |(ended, started)| ended - started),
            generator_cpu: spans.iter().map(|span| span.cpu).sum(),
            generator_waited: spans.iter().map(|span| span.waited).sum(),
            generator_queued: spans.iter().map(|span| span.queued).sum(),
        })
    }
}

/// Raises this process's soft limit of open files, as far as the hard limit allows.
fn allow_descriptors(needed: u64) -> io::Result<()> {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    if limit.maximum.is_some_and(|maximum| maximum < needed) {
        let message = format!("{needed} open files needed, ulimit -Hn allows {}", limit.maximum.unwrap_or(0));
        return Err(io::Error::other(message));
    }
    limit.current = Some(needed);
    Ok(setrlimit(Resource::Nofile, limit)?)
}
