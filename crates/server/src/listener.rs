//! Accepting connections, and stopping the server.
//!
//! [`Server::stop`] takes no more commands and interrupts all operations, which answer `InterruptedAtShutdown` while
//! the threads still serve. Then the threads end. `cli` tells the index builds to stop before that, and closes the
//! store after it. If an operation does not end in time, the process ends as after a kill, and the next start recovers.

use crate::admission::{Admission, AdmissionOptions, Refusal};
use crate::connection;
use crate::doorway::Entrance;
use crate::execute::lower_priority;
use crate::executor::Executor;
use crate::listening_sockets::{Bound, ListeningSockets};
use crate::rate_limit::{RateDecision, RateLimit};
use crate::socket::Socket;
use crate::tls::Tls;
use bunko_command::{Client, ClientConnection, Peer, Service, THREAD_STACK_BYTES};
use bunko_host::Clock;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// Options of the server.
pub struct ServerOptions {
    /// Number of threads that serve connections.
    pub threads: usize,
    /// Limits of connections.
    pub admission: AdmissionOptions,
    /// The server's TLS; `None` for plain connections.
    pub tls: Option<Arc<Tls>>,
    /// Where connections from inside the process are accepted; `None` if there are none.
    pub entrance: Option<Entrance>,
}

/// A listening server.
pub struct Server {
    sockets: ListeningSockets,
    stop: watch::Sender<bool>,
    service: Arc<Service>,
    executor: Arc<Executor>,
    threads: Vec<JoinHandle<()>>,
    listener: JoinHandle<()>,
}

/// The end of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Stopped {
    /// No thread works for a client any more.
    InOrder,
    /// A thread still works and ignored the interruption.
    StillWorking,
}

/// Time for running commands to notice that the server stops, and to answer.
const END_OF_COMMANDS: Duration = Duration::from_secs(5);
/// Time for threads to end, once commands have ended or had their time.
const END_OF_THREADS: Duration = Duration::from_secs(5);
/// Interval of log lines about refused connections.
const REFUSALS_LINE: Duration = Duration::from_secs(1);
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// How long a thread for long commands stays without work. The allocator keeps what a thread has freed, and what other
/// threads free of its blocks, until the thread ends: gigabytes with hundreds of threads.
///
/// Rejected: `mi_thread_done` before each rest. If the thread ends before it allocates again, mimalloc 3.3 frees its
/// heap a second time, and the process crashes.
const IDLE_THREAD_KEPT: Duration = Duration::from_millis(200);

impl Server {
    /// Starts serving the clients of those sockets.
    /// # Errors
    /// If a thread cannot be started.
    pub fn start(service: &Arc<Service>, mut sockets: ListeningSockets, options: ServerOptions) -> io::Result<Self> {
        let listeners = std::mem::take(&mut sockets.bound);
        let (stop, stopped) = watch::channel(false);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            // The runtime's only own threads are those for long commands; the caller of `block_on` drives it.
            .on_thread_start(lower_priority)
            .thread_stack_size(THREAD_STACK_BYTES)
            .thread_keep_alive(IDLE_THREAD_KEPT)
            .build()?;
        let count = options.threads.max(1);
        let executor = Executor::new(count, service.world.clock.clone())?;
        let mut threads = Vec::new();
        for number in 0..count {
            let (executor, runtime) = (Arc::clone(&executor), runtime.handle().clone());
            let thread = std::thread::Builder::new().name(format!("conn-{number}")).stack_size(THREAD_STACK_BYTES);
            threads.push(thread.spawn(move || {
                // Timers and threads for long commands belong to the runtime.
                let _entered = runtime.enter();
                executor.work(number);
            })?);
        }
        let (watched, handle) = (Arc::clone(&executor), runtime.handle().clone());
        threads.push(std::thread::Builder::new().name("conn-watch".into()).spawn(move || {
            let _entered = handle.enter();
            watched.watch();
        })?);
        let clock = &service.world.clock;
        let acceptor = Acceptor {
            executor: Arc::clone(&executor),
            service: Arc::clone(service),
            last_id: AtomicI32::new(0),
            admission: Arc::new(Admission::new(options.admission, &service.facts.memory_limits.server, clock)),
            rate_limit: RefCell::new(RateLimit::new(clock.now())),
            refusals: RefCell::default(),
            tls: options.tls,
        };
        let listener = acceptor.start(runtime, (listeners, options.entrance), stopped)?;
        Ok(Self { sockets, stop, service: Arc::clone(service), executor, threads, listener })
    }

    /// The sockets on which it accepts connections.
    pub fn sockets(&self) -> &ListeningSockets {
        &self.sockets
    }

    /// Stops accepting connections and commands, interrupts running commands, which answer `InterruptedAtShutdown`, and
    /// closes all connections. Returns within 15 seconds.
    pub fn stop(self) -> Stopped {
        self.service.interrupt_all();
        let clock = &self.service.world.clock;
        let threads_serve = until(END_OF_COMMANDS, clock, || self.service.operations.running() == 0);
        self.executor.stop();
        let end = if threads_serve { END_OF_THREADS } else { Duration::ZERO };
        if !until(end, clock, || self.threads.iter().all(JoinHandle::is_finished)) {
            return Stopped::StillWorking;
        }
        self.executor.close();
        // The listener's runtime waits for its threads of long commands.
        self.stop.send_replace(true);
        if until(END_OF_THREADS, clock, || self.listener.is_finished()) {
            Stopped::InOrder
        } else {
            Stopped::StillWorking
        }
    }
}

/// Waits until `holds` is true. Returns whether that was in time.
fn until(patience: Duration, clock: &Clock, holds: impl Fn() -> bool) -> bool {
    let began = clock.now();
    while !holds() {
        if clock.since(began) >= patience {
            return false;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    true
}

struct Acceptor {
    executor: Arc<Executor>,
    service: Arc<Service>,
    last_id: AtomicI32,
    admission: Arc<Admission>,
    rate_limit: RefCell<RateLimit>,
    refusals: RefCell<Refusals>,
    tls: Option<Arc<Tls>>,
}

/// Counts refused connections. One line per second gives their number, so that refused clients cannot fill the log.
#[derive(Default)]
struct Refusals {
    last_line: Option<Instant>,
    unsaid: u64,
}

impl Acceptor {
    fn start(
        self,
        runtime: Runtime,
        (listeners, entrance): (Vec<Bound>, Option<Entrance>),
        stopped: watch::Receiver<bool>,
    ) -> io::Result<JoinHandle<()>> {
        std::thread::Builder::new().name("listener".into()).spawn(move || {
            let acceptor = Rc::new(self);
            let tasks = tokio::task::LocalSet::new();
            tasks.block_on(&runtime, async move {
                for listener in listeners {
                    tokio::task::spawn_local(Rc::clone(&acceptor).accept(listener));
                }
                if let Some(entrance) = entrance {
                    tokio::task::spawn_local(Rc::clone(&acceptor).accept_visitors(entrance));
                }
                tokio::task::spawn_local(Rc::clone(&acceptor).close_idle_cursors());
                let mut stopped = stopped;
                let _ = stopped.wait_for(|stopped| *stopped).await;
            });
        })
    }

    async fn accept(self: Rc<Self>, bound: Bound) {
        let listener = bound.listen().expect("a bound listener in non-blocking mode");
        loop {
            match listener.accept().await {
                Ok((socket, peer)) => self.take(socket, peer),
                Err(error) => {
                    // Usually there are no file descriptors left. Open connections go on, and some will close.
                    tracing::error!(target: "NETWORK", id = 22942, ctx = "listener", error = %error, "Error accepting new connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    async fn accept_visitors(self: Rc<Self>, mut entrance: Entrance) {
        while let Some(visitor) = entrance.next().await {
            // The port at which the client arrived has seen to TLS.
            self.serve(visitor.socket, visitor.client, None);
        }
    }

    /// Serves a connection when the rate limit allows it, or closes it.
    fn take(self: &Rc<Self>, socket: Socket, peer: Peer) {
        let pace = &self.service.pace;
        let Some(rate) = pace.rate() else { return self.serve_newcomer(socket, peer) };
        let is_bypassed = match peer {
            Peer::Tcp(address) => pace.is_bypassed(address.ip()),
            Peer::Unix => true,
        };
        if is_bypassed || self.admission.is_exempt(peer) {
            pace.exempted.fetch_add(1, Ordering::Relaxed);
            return self.serve_newcomer(socket, peer);
        }
        match self.rate_limit.borrow_mut().take(rate, self.service.world.clock.now()) {
            RateDecision::Now => self.serve_newcomer(socket, peer),
            RateDecision::Refused => {
                pace.rejected_by_rate.fetch_add(1, Ordering::Relaxed);
                self.refuse(peer, Refusal::Fast);
            }
            RateDecision::After(wait) => {
                pace.queued.fetch_add(1, Ordering::Relaxed);
                let acceptor = Rc::clone(self);
                tokio::task::spawn_local(async move {
                    tokio::time::sleep(wait).await;
                    acceptor.service.pace.queued.fetch_sub(1, Ordering::Relaxed);
                    acceptor.serve_newcomer(socket, peer);
                });
            }
        }
    }

    fn refuse(&self, peer: Peer, refusal: Refusal) {
        self.service.pace.rejected.fetch_add(1, Ordering::Relaxed);
        let (now, mut refusals) = (self.service.world.clock.now(), self.refusals.borrow_mut());
        refusals.unsaid += 1;
        if refusals.last_line.is_none_or(|last| now.duration_since(last) >= REFUSALS_LINE) {
            let (refused, connections) = (refusals.unsaid, self.executor.connections());
            *refusals = Refusals { last_line: Some(now), unsaid: 0 };
            tracing::warn!(target: "NETWORK", id = 22942, ctx = "listener", remote = %peer, connections, refused, "Connection refused because {refusal}");
        }
    }

    /// Serves a connection from a listening socket, or closes it if there are too many.
    fn serve_newcomer(&self, socket: Socket, peer: Peer) {
        let mut client = Client::new(0, peer);
        if self.service.authority.audit.is_on() {
            client.local = socket.local_end();
        }
        self.serve(socket, client, self.tls.clone());
    }

    /// Serves a client, or closes the connection if there are too many.
    fn serve(&self, socket: Socket, mut client: Client, tls: Option<Arc<Tls>>) {
        let peer = client.peer;
        if self.service.operations.are_interrupted() {
            return;
        }
        let connections = self.executor.connections();
        let admitted = match self.admission.admit(peer, connections) {
            Ok(admitted) => admitted,
            Err(refusal) => return self.refuse(peer, refusal),
        };
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        if !self.service.parameters.is_quiet() {
            tracing::info!(target: "NETWORK", id = 22943, ctx = "listener", remote = %peer, connectionId = id, connectionCount = connections + 1, "Connection accepted");
        }
        client.id = id;
        let client = ClientConnection::of(client);
        let (service, executor, socket) = (Arc::clone(&self.service), Arc::clone(&self.executor), Arc::new(socket));
        let haste = Arc::clone(client.haste());
        let served = connection::serve(service, executor, Arc::clone(&socket), tls, client, admitted);
        if let Err(error) = self.executor.spawn(id as u64, &socket, &haste, served) {
            tracing::error!(target: "NETWORK", id = 22942, ctx = "listener", error = %error, "Error accepting new connection");
        }
    }

    async fn close_idle_cursors(self: Rc<Self>) {
        let mut ticks = tokio::time::interval(Duration::from_secs(1));
        let mut looking: Option<tokio::task::JoinHandle<()>> = None;
        let mut electing: Option<tokio::task::JoinHandle<()>> = None;
        for tick in 0_u64.. {
            ticks.tick().await;
            self.service.abort_expired_transactions();
            if self.service.is_election_due() && electing.as_ref().is_none_or(tokio::task::JoinHandle::is_finished) {
                let service = Arc::clone(&self.service);
                electing = Some(tokio::task::spawn_blocking(move || service.elect_when_due()));
            }
            if tick.is_multiple_of(4) {
                self.service.close_idle_cursors();
                if looking.as_ref().is_none_or(tokio::task::JoinHandle::is_finished) {
                    let service = Arc::clone(&self.service);
                    looking = Some(tokio::task::spawn_blocking(move || service.close_cursors_that_keep_too_much()));
                }
            }
        }
    }
}
