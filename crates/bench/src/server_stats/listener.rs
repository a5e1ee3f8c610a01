//! Which process listens on a port.

use std::fs;

/// The process that listens on a TCP port of this machine, if we may see it.
///
/// A port has several listeners only with SO_REUSEPORT, which no MongoDB server sets; the first found is taken.
pub(super) fn pid_of_listener(port: u16) -> Option<u32> {
    let inodes: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|table| listening_inodes(&table, port))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    let pids = fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.into_iter().find(|&pid| !inodes.is_empty() && holds_one_of(pid, &inodes))
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

    #[test]
    fn only_listeners_on_the_port_count() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:6989 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1\n\
            1: 0100007F:6989 0100007F:D431 01 00000000:00000000 00:00000000 00000000     0        0 4712 1\n\
            2: 0100007F:698A 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4713 1\n";
        assert_eq!(listening_inodes(table, 27017), [4711]);
    }
}
