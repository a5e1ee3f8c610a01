//! The rate limit for new connections (parameters `ingressConnectionEstablishment*`), and its counters.
//! Source: MongoDB manual 8.2, "Server Parameters".

use crate::parameters::{Parameter, invalid, whole_number};
use crate::service::Service;
use bunko_access::AddressRange;
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentBuf, Value, ValueRef, Writer, extended_json, number};
use bunko_errors::Result;
use bunko_request::fields::truth;
use parking_lot::Mutex;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The rate at which new connections are accepted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConnectionRate {
    /// Sustained rate.
    pub per_second: f64,
    /// Connections that may come at once after a pause, in seconds of the sustained rate.
    pub burst_seconds: f64,
    /// Most connections that wait for their turn.
    pub queue_max: u64,
}

/// Address ranges, and the document that set them.
#[derive(Debug, Default)]
struct Bypass {
    shown: DocumentBuf,
    ranges: Vec<AddressRange>,
}

/// The limit, if it is enabled, and its counters.
#[derive(Debug)]
pub struct ConnectionPace {
    is_limited: AtomicBool,
    rate: Mutex<ConnectionRate>,
    /// Addresses that the limit does not apply to.
    bypass: Mutex<Bypass>,
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
}

const RATE: &str = "ingressConnectionEstablishmentRatePerSec";
const BURST: &str = "ingressConnectionEstablishmentBurstCapacitySecs";
const QUEUE: &str = "ingressConnectionEstablishmentMaxQueueDepth";
const BYPASS: &str = "ingressConnectionEstablishmentRateLimiterBypass";
/// Most exempt ranges: each connection is compared with all of them.
const RANGES_MAX: usize = 1024;

pub(crate) const BURST_CAPACITY: Parameter = Parameter::settable(
    BURST,
    |service| Ok(Value::Double(service.pace.rate.lock().burst_seconds)),
    |service, value| {
        let seconds = number::as_f64(value).filter(|seconds| *seconds > 0.0);
        let seconds = seconds.ok_or_else(|| invalid(BURST, value, "is not greater than 0"))?;
        service.pace.rate.lock().burst_seconds = seconds;
        Ok(())
    },
);
pub(crate) const MAX_QUEUE_DEPTH: Parameter = Parameter::settable(
    QUEUE,
    |service| Ok(Value::Int32(service.pace.rate.lock().queue_max as i32)),
    |service, value| {
        service.pace.rate.lock().queue_max = whole(QUEUE, value, 0)?;
        Ok(())
    },
);
pub(crate) const LIMITER_BYPASS: Parameter = Parameter::settable(
    BYPASS,
    |service| Ok(Value::Document(service.pace.bypass.lock().shown.clone())),
    |service, value| {
        let bypass = read_bypass(value).map_err(|why| invalid(BYPASS, value, &why))?;
        *service.pace.bypass.lock() = bypass;
        Ok(())
    },
);
pub(crate) const LIMITER_ENABLED: Parameter = Parameter::settable(
    "ingressConnectionEstablishmentRateLimiterEnabled",
    |service| Ok(Value::Boolean(service.pace.is_limited.load(Ordering::Relaxed))),
    |service, value| {
        service.pace.is_limited.store(truth(value), Ordering::Relaxed);
        Ok(())
    },
);
pub(crate) const RATE_PER_SECOND: Parameter = Parameter::settable(
    RATE,
    |service| Ok(Value::Int32(service.pace.rate.lock().per_second as i32)),
    |service, value| {
        service.pace.rate.lock().per_second = whole(RATE, value, 1)? as f64;
        Ok(())
    },
);

/// Parses `{ranges: [<address or CIDR range>, ...]}`, or its text from a command-line flag.
fn read_bypass(value: ValueRef<'_>) -> std::result::Result<Bypass, String> {
    let shown = match value {
        ValueRef::Document(document) => document.to_owned(),
        ValueRef::String(text) => {
            extended_json::parse_document(text).map_err(|error| format!("is no document: {error}"))?
        }
        _ => return Err("is no document".to_owned()),
    };
    let mut ranges = Vec::new();
    for field in shown.as_ref() {
        let ("ranges", ValueRef::Array(texts)) = (field.name, field.value) else {
            return Err("has something else than an array 'ranges'".to_owned());
        };
        for text in texts.iter() {
            let range = text.as_str().and_then(AddressRange::parse);
            ranges.push(range.ok_or_else(|| format!("has {}, which is no range of addresses", ValueText(text)))?);
        }
    }
    if ranges.len() > RANGES_MAX {
        return Err(format!("has more than {RANGES_MAX} ranges"));
    }
    Ok(Bypass { shown, ranges })
}

/// A 32-bit integer, at least `least`.
fn whole(name: &str, value: ValueRef<'_>, least: i32) -> Result<u64> {
    let number = i32::try_from(whole_number(name, value)?).ok().filter(|number| *number >= least);
    let number = number.ok_or_else(|| invalid(name, value, &format!("is not within {least} to {}", i32::MAX)))?;
    Ok(u64::from(number.unsigned_abs()))
}

/// Appends the fields that `serverStatus` shows under `connections`.
pub(crate) fn write(service: &Service, out: &mut Writer<'_>) {
    let read = |count: &AtomicU64| count.load(Ordering::Relaxed) as i64;
    let pace = &service.pace;
    out.append("rejected", read(&pace.rejected)).append("queuedForEstablishment", read(&pace.queued));
    out.begin_document("establishmentRateLimit")
        .append("rejected", read(&pace.rejected_by_rate))
        .append("exempted", read(&pace.exempted))
        .end();
}
