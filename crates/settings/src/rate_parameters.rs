//! The parameters `ingressConnectionEstablishment*`.
//! Source: MongoDB manual 8.2, "Server Parameters".

use crate::connection_rate::Bypass;
use crate::parameter::{Parameter, invalid, whole_number};
use bunko_access::AddressRange;
use bunko_bson::text::ValueText;
use bunko_bson::{Value, ValueRef, extended_json, number};
use bunko_errors::Result;
use bunko_request::fields::truth;
use std::sync::atomic::Ordering;

const RATE: &str = "ingressConnectionEstablishmentRatePerSec";
const BURST: &str = "ingressConnectionEstablishmentBurstCapacitySecs";
const QUEUE: &str = "ingressConnectionEstablishmentMaxQueueDepth";
const BYPASS: &str = "ingressConnectionEstablishmentRateLimiterBypass";
/// Maximum number of exempt ranges: each connection is compared with all of them.
const RANGES_MAX: usize = 1024;

pub const BURST_CAPACITY: Parameter = Parameter::settable(
    BURST,
    |owners| Ok(Value::Double(owners.pace().rate.lock().burst_seconds)),
    |owners, value| {
        let seconds = number::as_f64(value).filter(|seconds| *seconds > 0.0);
        let seconds = seconds.ok_or_else(|| invalid(BURST, value, "is not greater than 0"))?;
        owners.pace().rate.lock().burst_seconds = seconds;
        Ok(())
    },
);
pub const MAX_QUEUE_DEPTH: Parameter = Parameter::settable(
    QUEUE,
    |owners| Ok(Value::Int32(owners.pace().rate.lock().queue_max as i32)),
    |owners, value| {
        owners.pace().rate.lock().queue_max = whole(QUEUE, value, 0)?;
        Ok(())
    },
);
pub const LIMITER_BYPASS: Parameter = Parameter::settable(
    BYPASS,
    |owners| Ok(Value::Document(owners.pace().bypass.lock().shown.clone())),
    |owners, value| {
        let bypass = read_bypass(value).map_err(|why| invalid(BYPASS, value, &why))?;
        *owners.pace().bypass.lock() = bypass;
        Ok(())
    },
);
pub const LIMITER_ENABLED: Parameter = Parameter::settable(
    "ingressConnectionEstablishmentRateLimiterEnabled",
    |owners| Ok(Value::Boolean(owners.pace().is_limited.load(Ordering::Relaxed))),
    |owners, value| {
        owners.pace().is_limited.store(truth(value), Ordering::Relaxed);
        Ok(())
    },
);
pub const RATE_PER_SECOND: Parameter = Parameter::settable(
    RATE,
    |owners| Ok(Value::Int32(owners.pace().rate.lock().per_second as i32)),
    |owners, value| {
        owners.pace().rate.lock().per_second = whole(RATE, value, 1)? as f64;
        Ok(())
    },
);

/// Parses `{ranges: [<address or CIDR range>, ...]}`, or its text from a command-line flag.
fn read_bypass(value: ValueRef<'_>) -> std::result::Result<Bypass, String> {
    let shown = match value {
        ValueRef::Document(document) => document.to_owned(),
        ValueRef::String(text) => {
            extended_json::parse_document(text).map_err(|error| format!("is not a document: {error}"))?
        }
        _ => return Err("is not a document".to_owned()),
    };
    let mut ranges = Vec::new();
    for field in shown.as_ref() {
        let ("ranges", ValueRef::Array(texts)) = (field.name, field.value) else {
            return Err("has something else than an array 'ranges'".to_owned());
        };
        for text in texts.iter() {
            let range = text.as_str().and_then(AddressRange::parse);
            ranges.push(range.ok_or_else(|| format!("has {}, which is not a range of addresses", ValueText(text)))?);
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
