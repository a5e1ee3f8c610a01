//! Load on a server: many connections, each with many requests in flight, from few threads.
//!
//! A run has two steps, so that nobody times the dial: [`Load::connect`] opens every connection and shakes hands,
//! [`Load::run`] starts all threads at one signal and returns when the last reply is in.
//!
//! **Invariant:** memory is bounded by connections x (requests in flight + 64 KiB of unsent bytes + one request).

mod generator;
mod pacer;
mod socket;

use crate::connection::Connection;
use crate::error::{ClientError, CommandError};
use crate::reply::Reply;
use crate::uri::Uri;
use generator::Generator;
use rustix::process::{Resource, getrlimit, setrlimit};
use socket::Socket;
use std::sync::Barrier;
use std::time::{Duration, Instant};
use std::{fmt, io};

/// File descriptors that a process needs besides its connections.
const DESCRIPTORS_SPARE: u64 = 64;

/// What a load consists of. Each thread has one of its own.
pub trait Workload: Send {
    /// Appends exactly one request, made by [`crate::frame::FrameWriter`], or nothing when there are no more.
    fn next_request(&mut self, request_id: i32, out: &mut Vec<u8>) -> Next;

    /// Takes an answer. `started_at` is when the request was made, in an open loop when it was due.
    fn on_reply(&mut self, reply: Result<Reply<'_>, CommandError>, started_at: Instant, now: Instant);
}

/// What [`Workload::next_request`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A request was appended.
    Appended,
    /// This thread's work is done; nothing was appended.
    Finished,
}

/// When requests are made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrival {
    /// As soon as an earlier one is answered.
    Closed,
    /// At a fixed rate in requests per second over all threads, whatever the server does.
    Open(f64),
}

/// The shape of a load.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Sockets over all threads, at least 1.
    pub connections: usize,
    /// Requests in flight per connection, at least 1.
    pub in_flight: usize,
    /// Generator threads; no more than connections are used.
    pub threads: usize,
    /// When requests are made.
    pub arrival: Arrival,
    /// With requests in flight and no reply for this long, the run fails.
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
        /// How long nothing came.
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

/// What the generator itself measured.
#[derive(Clone, Copy, Debug)]
pub struct LoadFigures {
    /// From the starting signal to the last reply.
    pub elapsed: Duration,
    /// CPU time of all generator threads, user and system.
    pub generator_cpu: Duration,
}

/// Connections that are up and have shaken hands.
pub struct Load {
    options: LoadOptions,
    sockets: Vec<Socket>,
}

impl Load {
    /// Opens all connections.
    /// # Errors
    /// The first connection that fails.
    pub fn connect(uri: &Uri, options: LoadOptions) -> Result<Self, LoadError> {
        allow_descriptors(options.connections as u64 + DESCRIPTORS_SPARE)?;
        let sockets = (0..options.connections.max(1)).map(|_| Socket::new(Connection::connect(uri)?));
        let sockets = sockets.collect::<Result<_, LoadError>>()?;
        Ok(Self { options, sockets })
    }

    /// How many workloads [`Self::run`] takes: one per generator thread.
    pub fn threads(&self) -> usize {
        self.options.threads.clamp(1, self.sockets.len())
    }

    /// Runs the workloads to their ends. Connections stay open until `self` is dropped.
    /// # Errors
    /// The first thread's error; figures of a run that broke are not given.
    /// # Panics
    /// When `workloads` are not [`Self::threads`] many.
    pub fn run<W: Workload>(&mut self, workloads: &mut [W]) -> Result<LoadFigures, LoadError> {
        let threads = self.threads();
        assert_eq!(workloads.len(), threads, "one workload per generator thread");
        let mut generators = Vec::with_capacity(threads);
        let mut sockets = self.sockets.as_mut_slice();
        for (thread, workload) in workloads.iter_mut().enumerate() {
            // The first threads take one connection more where the division leaves a rest.
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
            elapsed: ended.zip(started).map_or(Duration::ZERO, |(ended, started)| ended - started),
            generator_cpu: spans.iter().map(|span| span.cpu).sum(),
        })
    }
}

/// Raises this process's soft limit of open files where the hard limit allows it.
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
