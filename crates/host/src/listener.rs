//! Which process listens on a port or a Unix domain socket.

use crate::raw_calls;
use std::fs;
use std::net::ToSocketAddrs;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// The process that listens on a TCP port of this machine, if this process may see it.
///
/// A port has several listeners only with SO_REUSEPORT, which no MongoDB server sets; the first one found is returned.
pub fn listener(port: u16) -> Option<u32> {
    let inodes: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|table| listening_inodes(&table, port))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    if inodes.is_empty() {
        return None;
    }
    let pids = fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.into_iter().find(|&pid| holds_one_of(pid, &inodes))
}

/// The process at a server's address, if it listens there and has the id that the server states. `None` where the
/// server is on another machine, in a container, or belongs to another user.
pub fn local_server(host: &str, port: u16, stated_pid: Option<u32>) -> Option<u32> {
    let is_local = (host, port).to_socket_addrs().ok()?.all(|address| address.ip().is_loopback());
    let pid = if is_local { listener(port)? } else { return None };
    // Behind a forwarded port the listener is the forwarder, whose id differs.
    stated_pid.is_none_or(|stated| stated == pid).then_some(pid)
}

/// The process behind a Unix domain socket, as the kernel tells the connecting side, if it has the id that the server
/// states. `None` where it is in another process namespace (a container), or forwards to another server.
///
/// Connects once and sends nothing.
pub fn local_unix_server(socket: &Path, stated_pid: Option<u32>) -> Option<u32> {
    let connection = UnixStream::connect(socket).ok()?;
    let pid = visible(raw_calls::peer_pid(&connection).ok()?)?;
    stated_pid.is_none_or(|stated| stated == pid).then_some(pid)
}

/// The id that the kernel gives for a socket's other end, if that process exists here. The id is 0 for a process in a
/// namespace that is not visible from this one, and a process that passed its socket on may have ended.
fn visible(pid: i32) -> Option<u32> {
    let pid = u32::try_from(pid).ok().filter(|&pid| pid != 0)?;
    Path::new(&format!("/proc/{pid}")).exists().then_some(pid)
}

/// Sockets in state LISTEN (0A) whose local address ends in the port.
/// Source: proc(5), `/proc/net/tcp`.
fn listening_inodes(table: &str, port: u16) -> Vec<u64> {
    let suffix = format!(":{port:04X}");
    let inode = |line: &str| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let listens = fields.get(3) == Some(&"0A") && fields.get(1)?.ends_with(&suffix);
        fields.get(9)?.parse().ok().filter(|_| listens)
    };
    table.lines().skip(1).filter_map(inode).collect()
}

fn holds_one_of(pid: u32, sockets: &[String]) -> bool {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    descriptors
        .flatten()
        .filter_map(|descriptor| fs::read_link(descriptor.path()).ok())
        .any(|link| sockets.iter().any(|socket| link.as_os_str() == socket.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn only_listeners_on_the_port_count() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:6989 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1\n\
            1: 0100007F:6989 0100007F:D431 01 00000000:00000000 00:00000000 00000000     0        0 4712 1\n\
            2: 0100007F:698A 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4713 1\n";
        assert_eq!(listening_inodes(table, 27017), [4711]);
    }

    #[test]
    fn this_process_is_found_behind_its_socket() {
        let directory = tempfile::tempdir().expect("writable");
        let path = directory.path().join("mongodb-1.sock");
        assert_eq!(local_unix_server(&path, None), None);
        let socket = std::os::unix::net::UnixListener::bind(&path).expect("bound");
        let pid = std::process::id();
        assert_eq!(local_unix_server(&path, None), Some(pid));
        assert_eq!(local_unix_server(&path, Some(pid)), Some(pid));
        assert_eq!(local_unix_server(&path, Some(pid + 1)), None);
        drop(socket);
        assert_eq!(local_unix_server(&path, None), None);
    }

    #[test]
    fn a_process_that_cannot_be_seen_is_none() {
        assert_eq!(visible(std::process::id() as i32), Some(std::process::id()));
        // An id from another namespace, an id of no process, and one above the kernel's limit of 2^22.
        assert_eq!([0, -1, i32::MAX].map(visible), [None; 3]);
    }

    #[test]
    fn this_process_is_found_while_it_listens() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = socket.local_addr().expect("bound").port();
        let pid = std::process::id();
        assert_eq!(listener(port), Some(pid));
        assert_eq!(local_server("127.0.0.1", port, None), Some(pid));
        assert_eq!(local_server("127.0.0.1", port, Some(pid)), Some(pid));
        assert_eq!(local_server("127.0.0.1", port, Some(pid + 1)), None);
        // TEST-NET-1 (RFC 5737) is never this machine.
        assert_eq!(local_server("192.0.2.1", port, None), None);
        drop(socket);
        // A forked child of another test may hold a copy of the socket until its exec.
        let is_free = || {
            listener(port).is_none() || {
                std::thread::sleep(Duration::from_millis(10));
                false
            }
        };
        assert!((0..500).any(|_| is_free()));
    }
}
