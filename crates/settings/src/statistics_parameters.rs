//! The parameters `internalQueryStats*`.
//! Source: MongoDB's own description of query statistics, "Server Parameters".

use crate::parameter::{Parameter, invalid, whole_number};
use bunko_bson::{Value, number};

const CACHE_SIZE: &str = "internalQueryStatsCacheSize";
const RATE_LIMIT: &str = "internalQueryStatsRateLimit";
const SAMPLE_RATE: &str = "internalQueryStatsSampleRate";

pub const CACHE: Parameter = Parameter::settable(
    CACHE_SIZE,
    |owners| Ok(Value::String(owners.parameters().query_statistics.cache_size())),
    |owners, value| {
        let text = value.as_str().ok_or_else(|| invalid(CACHE_SIZE, value, "is not a string"))?;
        let outcome = owners.parameters().query_statistics.set_cache_size(text);
        outcome.map_err(|why| invalid(CACHE_SIZE, value, why))?;
        owners.limit_query_statistics();
        Ok(())
    },
);
pub const RATE: Parameter = Parameter::settable(
    RATE_LIMIT,
    |owners| Ok(Value::Int32(owners.parameters().query_statistics.per_second())),
    |owners, value| {
        let rate = i32::try_from(whole_number(RATE_LIMIT, value)?).ok().filter(|rate| *rate >= -1);
        let rate = rate.ok_or_else(|| invalid(RATE_LIMIT, value, "is not within -1 to 2147483647"))?;
        owners.parameters().query_statistics.set_per_second(rate);
        Ok(())
    },
);
pub const SAMPLE: Parameter = Parameter::settable(
    SAMPLE_RATE,
    |owners| Ok(Value::Double(owners.parameters().query_statistics.fraction())),
    |owners, value| {
        let fraction = number::as_f64(value).filter(|fraction| (0.0..=1.0).contains(fraction));
        let fraction = fraction.ok_or_else(|| invalid(SAMPLE_RATE, value, "is not within 0 to 1"))?;
        owners.parameters().query_statistics.set_fraction(fraction);
        Ok(())
    },
);
