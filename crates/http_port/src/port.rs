//! The sockets of a port, and the thread that serves them.

use bunko_server::{PlainClients, Tls, bind_listener};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio_rustls::TlsAcceptor;

/// How long a client may take for the handshake, for the header of a request, and between two requests.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time after which a connection ends with the reply under way, so that clients who keep connections busy, or do not
/// read their replies, hold no place for ever.
const CONNECTION_TIME_MAX: Duration = Duration::from_mins(2);
/// Maximum number of bytes of a request's header.
const HEADER_BYTES_MAX: usize = 16 << 10;
/// First byte of a TLS connection: the type of the record with the client's hello.
/// Source: RFC 8446, section 5.1.
const TLS_FIRST_BYTE: u8 = 22;

/// The contents of a port: it answers requests.
pub trait Site: Send + Sync + 'static {
    /// The reply to a request.
    fn reply(&self, request: Request<Incoming>, arrival: Arrival)
    -> impl Future<Output = Response<Full<Bytes>>> + Send;
}

/// How a request reached its port.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// The client's address.
    pub client: SocketAddr,
    /// The server's address of the connection.
    pub server: SocketAddr,
    /// Whether the connection is encrypted.
    pub is_encrypted: bool,
}

/// Options of a port.
#[derive(Clone)]
pub struct PortOptions {
    /// Name of the port's thread.
    pub thread: &'static str,
    /// Addresses to bind.
    pub addresses: Vec<SocketAddr>,
    /// The server's TLS; `None` for plain connections.
    pub tls: Option<Arc<Tls>>,
    /// Maximum number of connections at once; others wait in the kernel's queue.
    pub connections_max: usize,
}

/// A port that serves its site. Dropping it ends its thread.
pub struct Port {
    addresses: Vec<SocketAddr>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Port {
    /// Binds and begins to serve.
    /// # Errors
    /// If an address cannot be bound; the error names it.
    pub fn start(site: impl Site, options: &PortOptions) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let entered = runtime.enter();
        let mut listeners = Vec::new();
        let mut addresses = Vec::new();
        for address in &options.addresses {
            let listener = bind_listener(*address)?;
            addresses.push(listener.local_addr()?);
            listeners.push(TcpListener::from_std(listener)?);
        }
        drop(entered);
        let acceptor = Arc::new(Acceptor {
            site,
            tls: options.tls.clone(),
            room: Arc::new(Semaphore::new(options.connections_max)),
        });
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name(options.thread.into()).spawn(move || {
            runtime.block_on(async move {
                for listener in listeners {
                    tokio::spawn(Arc::clone(&acceptor).accept(listener));
                }
                // Ends when the port is dropped.
                let _ = stopped.await;
            });
        })?;
        Ok(Self { addresses, stop: Some(stop), thread: Some(thread) })
    }

    /// The bound addresses, with the ports that the system chose.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Acceptor<S> {
    site: S,
    tls: Option<Arc<Tls>>,
    room: Arc<Semaphore>,
}

impl<S: Site> Acceptor<S> {
    async fn accept(self: Arc<Self>, listener: TcpListener) {
        loop {
            // The semaphore is never closed.
            let Ok(place) = Arc::clone(&self.room).acquire_owned().await else { return };
            match listener.accept().await {
                Ok((socket, address)) => {
                    let acceptor = Arc::clone(&self);
                    tokio::spawn(async move {
                        acceptor.serve(socket, address).await;
                        drop(place);
                    });
                }
                // No file descriptor is left, for example: the next try may succeed.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }

    /// Serves a connection to its end. Errors are ignored: the client has gone, or does not speak HTTP.
    async fn serve(&self, socket: TcpStream, client: SocketAddr) {
        let Ok(server) = socket.local_addr() else { return };
        let plain = Arrival { client, server, is_encrypted: false };
        let Some(tls) = &self.tls else { return self.converse(socket, plain).await };
        let mut first = [0];
        let peeked = tokio::time::timeout(PATIENCE, socket.peek(&mut first)).await;
        if !matches!(peeked, Ok(Ok(1))) {
            return;
        }
        if first[0] == TLS_FIRST_BYTE {
            let handshake = TlsAcceptor::from(tls.configuration()).accept(socket);
            if let Ok(Ok(stream)) = tokio::time::timeout(PATIENCE, handshake).await {
                self.converse(stream, Arrival { is_encrypted: true, ..plain }).await;
            }
        } else if tls.plain_clients() == PlainClients::Served {
            self.converse(socket, plain).await;
        }
    }

    async fn converse(&self, stream: impl AsyncRead + AsyncWrite + Unpin, arrival: Arrival) {
        let reply = service_fn(|request| async move { Ok::<_, Infallible>(self.site.reply(request, arrival).await) });
        let mut connection = pin!(
            http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(PATIENCE)
                .max_buf_size(HEADER_BYTES_MAX)
                .serve_connection(TokioIo::new(stream), reply)
        );
        if tokio::time::timeout(CONNECTION_TIME_MAX, connection.as_mut()).await.is_err() {
            connection.as_mut().graceful_shutdown();
            let _ = tokio::time::timeout(PATIENCE, connection).await;
        }
    }
}
