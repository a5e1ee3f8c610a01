//! Admission of connections: limits for all connections and per address, and exempt addresses.

use crate::held_memory::Held;
use crate::unread_replies::UnreadReplies;
use bunko_access::AddressRange;
use bunko_command::Peer;
use bunko_operation::{Clock, ServerMemory};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Limits of connections.
#[derive(Clone, Debug)]
pub struct AdmissionOptions {
    /// Maximum number of connections at once (`net.maxIncomingConnections`), not counting clients of [`Self::exempt`].
    pub connections_max: usize,
    /// Maximum number of connections from one address at once; IPv6 counts per network of 64 bits. `None` for no limit.
    pub by_address_max: Option<usize>,
    /// Addresses that are always admitted (`net.maxIncomingConnectionsOverride`).
    pub exempt: Vec<AddressRange>,
    /// Time limit of a first frame, of any frame and of a login, until the connection is logged in.
    pub login_patience: Duration,
}

/// Connections of the Unix domain socket admitted beyond the limit: such a client is on this machine, and probably
/// an administrator's.
const LOCAL_RESERVE: usize = 16;

/// The reason why a connection is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Full,
    AddressHasMany,
    Fast,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "there are too many open connections",
            Self::AddressHasMany => "there are too many open connections from its address",
            Self::Fast => "connections come faster than ingressConnectionEstablishmentRatePerSec",
        })
    }
}

/// The admission state that all connections share.
pub(crate) struct Admission {
    options: AdmissionOptions,
    by_address: Mutex<HashMap<IpAddr, usize>>,
    held: Held,
    unread: UnreadReplies,
    clock: Clock,
}

impl Admission {
    pub fn new(options: AdmissionOptions, memory: &Arc<ServerMemory>, clock: &Clock) -> Self {
        Self {
            options,
            by_address: Mutex::default(),
            held: Held::default(),
            unread: UnreadReplies::new(memory, clock),
            clock: clock.clone(),
        }
    }

    /// The replies that clients have not read.
    pub fn unread(&self) -> &UnreadReplies {
        &self.unread
    }

    /// Memory of connections that are not logged in.
    pub fn held(&self) -> &Held {
        &self.held
    }

    /// The server's clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    pub fn patience(&self) -> Duration {
        self.options.login_patience
    }

    /// Whether the client is admitted regardless of the limits.
    pub fn is_exempt(&self, peer: Peer) -> bool {
        match peer {
            Peer::Tcp(address) => self.options.exempt.iter().any(|range| range.has(address.ip())),
            Peer::Unix => false,
        }
    }

    /// Admits a client while `connections` are open.
    pub fn admit(self: &Arc<Self>, peer: Peer, connections: usize) -> Result<Admitted, Refusal> {
        let mut admitted = Admitted { admission: Arc::clone(self), counted: None };
        if self.is_exempt(peer) {
            return Ok(admitted);
        }
        let reserve = if peer == Peer::Unix { LOCAL_RESERVE } else { 0 };
        if connections >= self.options.connections_max.saturating_add(reserve) {
            return Err(Refusal::Full);
        }
        if let (Some(most), Some(address)) = (self.options.by_address_max, peer.network()) {
            let mut by_address = self.by_address.lock();
            let count = by_address.entry(address).or_default();
            if *count >= most {
                return Err(Refusal::AddressHasMany);
            }
            *count += 1;
            admitted.counted = Some(address);
        }
        Ok(admitted)
    }
}

/// A connection's place; dropping it gives the place back.
pub(crate) struct Admitted {
    admission: Arc<Admission>,
    counted: Option<IpAddr>,
}

impl fmt::Debug for Admitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admitted").field("counted", &self.counted).finish_non_exhaustive()
    }
}

impl Admitted {
    pub fn admission(&self) -> &Arc<Admission> {
        &self.admission
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let Some(address) = self.counted else { return };
        let mut by_address = self.admission.by_address.lock();
        if let Some(count) = by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                by_address.remove(&address);
            }
        }
    }
}

#[cfg(test)]
impl AdmissionOptions {
    pub(crate) fn unlimited() -> Self {
        Self {
            connections_max: usize::MAX,
            by_address_max: None,
            exempt: Vec::new(),
            login_patience: Duration::from_secs(30),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(address: &str) -> Peer {
        Peer::Tcp(address.parse().expect("an address"))
    }

    #[test]
    fn exempt_clients_are_admitted_when_it_is_full() {
        let exempt = vec![AddressRange::parse("10.0.0.0/8").expect("a range")];
        let options = AdmissionOptions { connections_max: 2, exempt, ..AdmissionOptions::unlimited() };
        let admission = Arc::new(Admission::new(options, &Arc::default(), &Clock::standing(0)));
        assert!(admission.admit(peer("11.0.0.1:5"), 1).is_ok());
        assert_eq!(admission.admit(peer("11.0.0.1:5"), 2).err(), Some(Refusal::Full));
        assert!(admission.admit(peer("10.9.0.1:5"), 1000).is_ok());
        assert!(admission.admit(Peer::Unix, 2 + LOCAL_RESERVE - 1).is_ok());
        assert_eq!(admission.admit(Peer::Unix, 2 + LOCAL_RESERVE).err(), Some(Refusal::Full));
    }

    #[test]
    fn places_of_an_address_are_given_back() {
        let options = AdmissionOptions { by_address_max: Some(2), ..AdmissionOptions::unlimited() };
        let admission = Arc::new(Admission::new(options, &Arc::default(), &Clock::standing(0)));
        let admit = |address| admission.admit(peer(address), 0);
        let first = admit("10.0.0.1:1").expect("admitted");
        let _second = admit("10.0.0.1:2").expect("admitted");
        assert_eq!(admit("10.0.0.1:3").err(), Some(Refusal::AddressHasMany));
        let other = admit("10.0.0.2:1").expect("another address");
        drop(first);
        assert!(admit("10.0.0.1:3").is_ok());
        drop(other);
        // One IPv6 network counts as one address, and an IPv4-mapped address as its IPv4 address.
        let six = [admit("[2001:db8::1]:1").expect("admitted"), admit("[2001:db8::ffff:1]:1").expect("admitted")];
        assert!(admit("[2001:db8::2]:1").is_err() && admit("[2001:db8:0:1::1]:1").is_ok());
        let mapped = admit("[::ffff:10.0.0.1]:1").expect("the second");
        assert!(admit("10.0.0.1:9").is_err());
        drop(mapped);
        drop(six);
        assert_eq!(admission.by_address.lock().len(), 1);
    }
}
