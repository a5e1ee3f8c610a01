//! Which process listens on a port.

use std::fs;
use std::net::ToSocketAddrs;

/// The process that listens on a TCP port of this machine, if we may see it.
///
/// A port has several listeners only with SO_REUSEPORT, which no MongoDB server sets; the first found is taken.
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

/// The process behind a server's address: it must listen there, and be the one that the server says it is.
/// `None` where the server is on another machine, in a container, or another user's.
pub fn local_server(host: &str, port: u16, stated_pid: Option<u32>) -> Option<u32> {
    let is_local = (host, port).to_socket_addrs().ok()?.all(|address| address.ip().is_loopback());
    let pid = if is_local { listener(port)? } else { return None };
    // Through a forwarded port the listener is the forwarder.
    stated_pid.is_none_or(|stated| stated == pid).then_some(pid)
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
    fn this_process_is_found_while_it_listens() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = socket.local_addr().expect("bound").port();
        let pid = std::process::id();
        assert_eq!(listener(port), Some(pid));
        assert_eq!(local_server("127.0.0.1", port, None), Some(pid));
        assert_eq!(local_server("127.0.0.1", port, Some(pid)), Some(pid));
        assert_eq!(local_server("127.0.0.1", port, Some(pid + 1)), None);
        // TEST-NET-1 (RFC 5737): never this machine.
        assert_eq!(local_server("192.0.2.1", port, None), None);
        drop(socket);
        // A child of another test may hold a copy of the socket until it becomes another program.
        let is_free = || {
            listener(port).is_none() || {
                std::thread::sleep(Duration::from_millis(10));
                false
            }
        };
        assert!((0..500).any(|_| is_free()));
    }
}
