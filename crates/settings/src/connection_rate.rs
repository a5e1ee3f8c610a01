//! The rate limit for new connections and its counters.
//! Source: MongoDB manual 8.2, "Server Parameters".

use bunko_access::AddressRange;
use bunko_bson::{DocumentBuf, Writer};
use parking_lot::Mutex;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The rate at which new connections are accepted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConnectionRate {
    /// Sustained rate, in connections per second.
    pub per_second: f64,
    /// Connections that may come at once after a pause, in seconds of the sustained rate.
    pub burst_seconds: f64,
    /// Maximum number of connections that wait for their turn.
    pub queue_max: u64,
}

/// Address ranges, and the document that set them.
#[derive(Debug, Default)]
pub(crate) struct Bypass {
    pub(crate) shown: DocumentBuf,
    pub(crate) ranges: Vec<AddressRange>,
}

/// The limit, if it is enabled, and its counters.
#[derive(Debug)]
pub struct ConnectionPace {
    pub(crate) is_limited: AtomicBool,
    pub(crate) rate: Mutex<ConnectionRate>,
    /// Addresses that the limit does not apply to.
    pub(crate) bypass: Mutex<Bypass>,
    /// Connections closed because there were too many or because they came too fast.
    pub rejected: AtomicU64,
    /// Connections closed because they came too fast.
    pub rejected_by_rate: AtomicU64,
    /// Connections accepted without limit because of their address.
    pub exempted: AtomicU64,
    /// Connections that wait for their turn now.
    pub queued: AtomicU64,
}

impl Default for ConnectionPace {
    fn default() -> Self {
        let rate = ConnectionRate { per_second: f64::from(i32::MAX), burst_seconds: f64::MAX, queue_max: 0 };
        Self {
            is_limited: AtomicBool::new(false),
            rate: Mutex::new(rate),
            bypass: Mutex::default(),
            rejected: AtomicU64::new(0),
            rejected_by_rate: AtomicU64::new(0),
            exempted: AtomicU64::new(0),
            queued: AtomicU64::new(0),
        }
    }
}

impl ConnectionPace {
    /// The limit; `None` if it is not enabled.
    pub fn rate(&self) -> Option<ConnectionRate> {
        self.is_limited.load(Ordering::Relaxed).then(|| *self.rate.lock())
    }

    /// Whether `ingressConnectionEstablishmentRateLimiterBypass` exempts this address.
    pub fn is_bypassed(&self, address: IpAddr) -> bool {
        self.bypass.lock().ranges.iter().any(|range| range.has(address))
    }

    /// Appends the fields that `serverStatus` shows under `connections`.
    pub fn write(&self, out: &mut Writer<'_>) {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed) as i64;
        out.append("rejected", read(&self.rejected)).append("queuedForEstablishment", read(&self.queued));
        out.begin_document("establishmentRateLimit")
            .append("rejected", read(&self.rejected_by_rate))
            .append("exempted", read(&self.exempted))
            .end();
    }
}
