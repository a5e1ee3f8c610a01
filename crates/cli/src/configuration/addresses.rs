//! Addresses to listen on.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs};

/// Whether host names are resolved to IPv6 addresses as well.
#[derive(Clone, Copy, Debug)]
pub enum Families {
    V4,
    Both,
}

/// All addresses of this machine.
pub const ALL: &str = "*";

/// Reads a comma-separated list of IP addresses, host names, `localhost` and `*`. Names are looked up.
/// # Errors
/// A sentence that names the part of the list that has no address.
pub fn parse(list: &str, families: Families) -> Result<Vec<IpAddr>, String> {
    let mut addresses = Vec::new();
    for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        match name {
            "localhost" => addresses.extend(families.of(Ipv4Addr::LOCALHOST, Ipv6Addr::LOCALHOST)),
            ALL => addresses.extend(families.of(Ipv4Addr::UNSPECIFIED, Ipv6Addr::UNSPECIFIED)),
            _ => match name.parse() {
                Ok(address) => addresses.push(address),
                Err(_) => addresses.extend(look_up(name, families)?),
            },
        }
    }
    let mut named = HashSet::new();
    addresses.retain(|address| named.insert(*address));
    if addresses.is_empty() {
        return Err(format!("'{list}' names no address"));
    }
    Ok(addresses)
}

impl Families {
    fn of(self, v4: Ipv4Addr, v6: Ipv6Addr) -> impl Iterator<Item = IpAddr> {
        let v6 = matches!(self, Self::Both).then_some(IpAddr::V6(v6));
        std::iter::once(IpAddr::V4(v4)).chain(v6)
    }
}

fn look_up(name: &str, families: Families) -> Result<Vec<IpAddr>, String> {
    if name.starts_with('/') {
        return Err(format!("'{name}' is a path: net.unixDomainSocket.pathPrefix says where the Unix socket is"));
    }
    let is_wanted = |address: &IpAddr| address.is_ipv4() || matches!(families, Families::Both);
    let found = (name, 0).to_socket_addrs();
    let found: Vec<_> = found.into_iter().flatten().map(|address| address.ip()).filter(is_wanted).collect();
    if found.is_empty() {
        return Err(format!(
            "'{name}' is neither an IP address, localhost, {ALL} nor the name of a host with an address"
        ));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(list: &str, families: Families) -> String {
        let addresses = parse(list, families).expect("valid");
        addresses.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn names_stand_for_addresses() {
        assert_eq!(parsed("localhost, ::1,127.0.0.1", Families::V4), "127.0.0.1 ::1");
        assert_eq!(parsed("localhost,10.0.0.1", Families::Both), "127.0.0.1 ::1 10.0.0.1");
        assert_eq!(parsed("*", Families::Both), "0.0.0.0 ::");
        assert_eq!(parsed("::", Families::V4), "::");
    }

    #[test]
    fn malformed_addresses_are_named() {
        for list in ["nowhere.invalid", "/tmp/mongodb.sock"] {
            let refused = parse(list, Families::V4).expect_err("refused");
            assert!(refused.contains(&format!("'{list}'")), "{refused}");
        }
        assert!(parse(" ,", Families::V4).is_err());
    }
}
