//! Addresses to listen on.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether names stand for IPv6 addresses as well.
#[derive(Clone, Copy, Debug)]
pub enum Families {
    V4,
    Both,
}

/// All addresses of this machine.
pub const ALL: &str = "*";

/// # Errors
/// What [`parse`] says.
pub fn check(list: &str) -> Result<(), String> {
    parse(list, Families::V4).map(drop)
}

/// Reads a comma-separated list of IP addresses, `localhost` and `*`.
/// # Errors
/// A sentence that names what is no address.
pub fn parse(list: &str, families: Families) -> Result<Vec<IpAddr>, String> {
    let mut addresses = Vec::new();
    for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let (v4, v6): (IpAddr, IpAddr) = match name {
            "localhost" => (Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()),
            ALL => (Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()),
            _ => {
                let address = name.parse().map_err(|_| format!("'{name}' is not an IP address, localhost or {ALL}"))?;
                (address, address)
            }
        };
        addresses.push(v4);
        if let Families::Both = families {
            addresses.push(v6);
        }
    }
    let mut named = HashSet::new();
    addresses.retain(|address| named.insert(*address));
    if addresses.is_empty() {
        return Err(format!("'{list}' names no address"));
    }
    Ok(addresses)
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
    fn what_is_no_address_is_named() {
        assert!(check("nowhere").expect_err("refused").contains("'nowhere'"));
        assert!(check(" ,").is_err());
    }
}
