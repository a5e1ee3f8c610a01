//! The sockets on which a server accepts connections: bound here, or handed over by a service manager.

use crate::backlog::BACKLOG;
use crate::socket::Socket;
use crate::unix_socket::{self, SocketFile, UnixSocketOptions};
use bunko_command::Peer;
use socket2::{Domain, Protocol, SockRef, TcpKeepalive, Type};
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::{TcpListener, UnixListener};

/// Sockets that clients can already connect to.
#[derive(Default)]
pub struct ListeningSockets {
    pub(crate) bound: Vec<Bound>,
    addresses: Vec<SocketAddr>,
    unix_socket: Option<SocketPath>,
}

impl ListeningSockets {
    /// Binds the addresses, where port 0 asks the system for one, and a Unix domain socket that is named for the port
    /// of the first address.
    /// # Errors
    /// If an address or the socket cannot be bound; the error names it.
    pub fn bind(addresses: &[SocketAddr], unix_socket: Option<&UnixSocketOptions>) -> io::Result<Self> {
        let mut sockets = Self::default();
        for address in addresses {
            let listener = bind_listener(*address)?;
            sockets.addresses.push(listener.local_addr()?);
            sockets.bound.push(Bound::Tcp(listener));
        }
        // Bound after the port: another server of this machine may have the port, and its socket has the same name.
        if let (Some(options), Some(address)) = (unix_socket, sockets.addresses.first()) {
            let (listener, file) = unix_socket::bind(options, address.port())?;
            sockets.bound.push(Bound::Unix(listener));
            sockets.unix_socket = Some(SocketPath::Own(file));
        }
        Ok(sockets)
    }

    /// Takes sockets that a service manager has opened. It keeps the file of a Unix domain socket.
    /// # Errors
    /// A sentence that names the socket that does not listen, or that is of another kind.
    pub fn of_manager(descriptors: Vec<OwnedFd>) -> Result<Self, String> {
        let mut sockets = Self::default();
        for (number, descriptor) in descriptors.into_iter().enumerate() {
            let taken = sockets.take(descriptor.into());
            taken.map_err(|error| format!("socket {number} of the service manager cannot be used: {error}"))?;
        }
        Ok(sockets)
    }

    fn take(&mut self, socket: socket2::Socket) -> io::Result<()> {
        if socket.r#type()? != Type::STREAM || !socket.is_listener()? {
            return Err(io::Error::other("it does not listen for connections (ListenStream=)"));
        }
        socket.set_nonblocking(true)?;
        match socket.domain()? {
            Domain::UNIX => {
                let path = socket.local_addr()?.as_pathname().map(Path::to_owned);
                self.unix_socket = path.map(SocketPath::OfManager).or(self.unix_socket.take());
                self.bound.push(Bound::Unix(socket.into()));
            }
            Domain::IPV4 | Domain::IPV6 => {
                self.addresses.extend(socket.local_addr()?.as_socket());
                self.bound.push(Bound::Tcp(socket.into()));
            }
            _ => return Err(io::Error::other("it is neither TCP nor a Unix domain socket")),
        }
        Ok(())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.bound.is_empty()
    }

    /// The bound addresses, with the ports that the system chose.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Path of the Unix domain socket; `None` if there is none.
    pub fn unix_socket(&self) -> Option<&Path> {
        self.unix_socket.as_ref().map(|path| match path {
            SocketPath::Own(file) => file.path(),
            SocketPath::OfManager(path) => path,
        })
    }
}

/// Where a Unix domain socket is.
enum SocketPath {
    /// Removed when dropped.
    Own(SocketFile),
    OfManager(PathBuf),
}

/// Binds a socket for TCP that does not block. One for IPv6 takes no clients of IPv4, so both may have one port.
/// # Errors
/// If the address cannot be bound; the error names it.
pub fn bind_listener(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    bind(address).map_err(|error| io::Error::new(error.kind(), format!("cannot bind {address}: {error}")))
}

fn bind(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = socket2::Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // A restarted server must not wait for connections in TIME_WAIT.
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// A listening socket that clients can already connect to.
pub(crate) enum Bound {
    Tcp(std::net::TcpListener),
    Unix(std::os::unix::net::UnixListener),
}

impl Bound {
    /// Must be called in the acceptor's runtime.
    pub(crate) fn listen(self) -> io::Result<Listener> {
        Ok(match self {
            Self::Tcp(listener) => {
                notice_dead_peers(&listener)?;
                Listener::Tcp(TcpListener::from_std(listener)?)
            }
            Self::Unix(listener) => Listener::Unix(UnixListener::from_std(listener)?),
        })
    }
}

/// Longest silence of a client before the kernel asks whether it is still there.
/// Source: MongoDB's FAQ "Diagnostics", TCP keepalive.
const KEEPALIVE_TIME_MAX: Duration = Duration::from_mins(5);
/// Longest pause between two such questions. After the system's number of unanswered questions (9), it ends the
/// connection.
const KEEPALIVE_INTERVAL_MAX: Duration = Duration::from_secs(1);

/// Lets the kernel end connections whose client is gone without a word, such as after a power cut. Shorter times of the
/// system stay. Linux hands the listening socket's options to each accepted one, so connections cost no further call.
fn notice_dead_peers(listener: &std::net::TcpListener) -> io::Result<()> {
    let socket = SockRef::from(listener);
    let keepalive = TcpKeepalive::new()
        .with_time(socket.tcp_keepalive_time()?.min(KEEPALIVE_TIME_MAX))
        .with_interval(socket.tcp_keepalive_interval()?.min(KEEPALIVE_INTERVAL_MAX));
    socket.set_tcp_keepalive(&keepalive)
}

pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    pub(crate) async fn accept(&self) -> io::Result<(Socket, Peer)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                // If this fails, replies are only delayed.
                let _ = stream.set_nodelay(true);
                Ok((Socket::new(stream.into_std()?), Peer::Tcp(address)))
            }
            Self::Unix(listener) => Ok((Socket::new(listener.accept().await?.0.into_std()?), Peer::Unix)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_kernel_asks_silent_clients_whether_they_are_there() {
        let mut sockets = ListeningSockets::bind(&[SocketAddr::from(([127, 0, 0, 1], 0))], None).expect("bound");
        let address = sockets.addresses()[0];
        let listener = sockets.bound.remove(0).listen().expect("listens");
        let _client = std::net::TcpStream::connect(address).expect("connected");
        let (accepted, _) = listener.accept().await.expect("accepted");
        let accepted = SockRef::from(&accepted);
        assert!(accepted.keepalive().expect("an option"));
        assert!(accepted.tcp_keepalive_time().expect("an option") <= KEEPALIVE_TIME_MAX);
        assert!(accepted.tcp_keepalive_interval().expect("an option") <= KEEPALIVE_INTERVAL_MAX);
    }

    fn refused(descriptor: impl Into<OwnedFd>) -> String {
        let taken = ListeningSockets::of_manager(vec![descriptor.into()]);
        taken.map(|sockets| sockets.addresses().len()).expect_err("refused")
    }

    #[test]
    fn sockets_of_a_manager_keep_their_addresses() {
        let directory = tempfile::tempdir().expect("writable");
        let path = directory.path().join("bunko.sock");
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
        let unix = std::os::unix::net::UnixListener::bind(&path).expect("bound");
        let address = tcp.local_addr().expect("bound");
        let sockets = ListeningSockets::of_manager(vec![tcp.into(), unix.into()]).expect("both listen");
        assert_eq!((sockets.addresses(), sockets.unix_socket()), (&[address][..], Some(&*path)));
        drop(sockets);
        assert!(path.exists(), "the file belongs to the manager");
    }

    #[test]
    fn sockets_that_accept_no_connection_are_refused() {
        let expected = "socket 0 of the service manager cannot be used: it does not listen for connections \
                        (ListenStream=)";
        assert_eq!(refused(std::net::UdpSocket::bind("127.0.0.1:0").expect("bound")), expected);
        let (one, _other) = std::os::unix::net::UnixStream::pair().expect("a pair");
        assert_eq!(refused(one), expected);
        let directory = tempfile::tempdir().expect("writable");
        let file = std::fs::File::create(directory.path().join("file")).expect("made");
        assert!(refused(file).contains("Socket operation on non-socket"));
    }
}
