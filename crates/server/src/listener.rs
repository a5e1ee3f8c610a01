//! Accepting connections and giving each to the thread with the fewest.

use crate::socket::Stream;
use crate::unix_socket::{self, SocketFile, UnixSocketOptions};
use crate::worker::{NewConnection, Worker};
use bunko_command::{Peer, Service};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;

/// Where and how to listen.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Addresses to bind; port 0 asks the system for one.
    pub addresses: Vec<SocketAddr>,
    /// The Unix domain socket, named after the port of the first address.
    pub unix_socket: Option<UnixSocketOptions>,
    /// Threads that serve connections.
    pub threads: usize,
    /// Most connections at once (`net.maxIncomingConnections`).
    pub connections_max: usize,
}

/// A listening server.
pub struct Server {
    addresses: Vec<SocketAddr>,
    socket_file: Option<SocketFile>,
    stop: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
}

/// Connections waiting to be accepted.
pub(crate) const BACKLOG: i32 = 4096;

impl Server {
    /// Binds and starts serving.
    /// # Errors
    /// Where an address or the socket cannot be bound; the error names it.
    pub fn start(service: &Arc<Service>, options: &ServerOptions) -> io::Result<Self> {
        let mut listeners = Vec::with_capacity(options.addresses.len() + 1);
        let mut addresses = Vec::with_capacity(options.addresses.len());
        for address in &options.addresses {
            let listener = bind(*address)
                .map_err(|error| io::Error::new(error.kind(), format!("cannot bind {address}: {error}")))?;
            addresses.push(listener.local_addr()?);
            listeners.push(Bound::Tcp(listener));
        }
        // After the port, which another server of this machine may have: its socket has the same name.
        let mut socket_file = None;
        if let (Some(options), Some(address)) = (&options.unix_socket, addresses.first()) {
            let (listener, file) = unix_socket::bind(options, address.port())?;
            listeners.push(Bound::Unix(listener));
            socket_file = Some(file);
        }
        let (stop, stopped) = watch::channel(false);
        let mut threads = Vec::new();
        let mut workers = Vec::new();
        for number in 0..options.threads.max(1) {
            let (worker, thread) = Worker::start(number, service, stopped.clone())?;
            workers.push(worker);
            threads.push(thread);
        }
        let acceptor = Acceptor {
            workers,
            service: Arc::clone(service),
            last_id: AtomicI32::new(0),
            connections_max: options.connections_max,
        };
        threads.push(acceptor.start(listeners, stopped)?);
        Ok(Self { addresses, socket_file, stop, threads })
    }

    /// The addresses bound, with the ports that the system chose.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The Unix domain socket.
    pub fn unix_socket(&self) -> Option<&Path> {
        self.socket_file.as_ref().map(SocketFile::path)
    }

    /// Stops accepting, lets running commands end, closes all connections.
    pub fn stop(self) {
        self.stop.send_replace(true);
        for thread in self.threads {
            let _ = thread.join();
        }
    }
}

fn bind(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    use socket2::{Domain, Protocol, Socket, Type};
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // A restarted server must not wait for the old connections' TIME_WAIT.
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// What clients can already connect to.
enum Bound {
    Tcp(std::net::TcpListener),
    Unix(std::os::unix::net::UnixListener),
}

impl Bound {
    /// Within the acceptor's runtime.
    fn listen(self) -> io::Result<Listener> {
        Ok(match self {
            Self::Tcp(listener) => Listener::Tcp(TcpListener::from_std(listener)?),
            Self::Unix(listener) => Listener::Unix(UnixListener::from_std(listener)?),
        })
    }
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    async fn accept(&self) -> io::Result<(Stream, Peer)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                // Without it replies are late, and no worse.
                let _ = stream.set_nodelay(true);
                Ok((Stream::Tcp(stream.into_std()?), Peer::Tcp(address)))
            }
            Self::Unix(listener) => Ok((Stream::Unix(listener.accept().await?.0.into_std()?), Peer::Unix)),
        }
    }
}

/// A thread of the server as the acceptor sees it.
pub(crate) struct Seat {
    pub connections: Arc<AtomicUsize>,
    pub sender: tokio::sync::mpsc::UnboundedSender<NewConnection>,
}

struct Acceptor {
    workers: Vec<Seat>,
    service: Arc<Service>,
    last_id: AtomicI32,
    connections_max: usize,
}

impl Acceptor {
    fn start(self, listeners: Vec<Bound>, stopped: watch::Receiver<bool>) -> io::Result<JoinHandle<()>> {
        std::thread::Builder::new().name("listener".into()).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime can be made for the listener");
            let acceptor = Rc::new(self);
            let tasks = tokio::task::LocalSet::new();
            tasks.block_on(&runtime, async move {
                for listener in listeners {
                    tokio::task::spawn_local(Rc::clone(&acceptor).accept(listener));
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
                Ok((stream, peer)) => self.seat(stream, peer),
                Err(error) => {
                    // Out of file descriptors, usually: what is open goes on, and some will close.
                    tracing::error!(target: "NETWORK", id = 22942, ctx = "listener", error = %error, "Error accepting new connection");
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                }
            }
        }
    }

    /// Gives a connection to the thread with the fewest, or closes it where there are too many.
    fn seat(&self, stream: Stream, peer: Peer) {
        let counts: usize = self.workers.iter().map(|worker| worker.connections.load(Ordering::Relaxed)).sum();
        if counts >= self.connections_max {
            tracing::warn!(target: "NETWORK", id = 22942, ctx = "listener", remote = %peer, connections = counts, "Connection refused because there are too many open connections");
            return;
        }
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        tracing::info!(target: "NETWORK", id = 22943, ctx = "listener", remote = %peer, connectionId = id, connectionCount = counts + 1, "Connection accepted");
        let Some(worker) = self.workers.iter().min_by_key(|worker| worker.connections.load(Ordering::Relaxed)) else {
            return;
        };
        worker.connections.fetch_add(1, Ordering::Relaxed);
        let _ = worker.sender.send(NewConnection { id, stream, peer });
    }

    async fn close_idle_cursors(self: Rc<Self>) {
        let mut ticks = tokio::time::interval(std::time::Duration::from_secs(4));
        loop {
            ticks.tick().await;
            self.service.close_idle_cursors();
        }
    }
}
