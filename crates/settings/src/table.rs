//! The table of server parameters, for `getParameter` and `setParameter`. A parameter that can be set has its effect.
//! The other parameters show the server's value, or MongoDB's if nothing in this server depends on it.

use crate::feature_compatibility;
use crate::limits::{
    ACTIVE_BUILDS, BUILD_MEMORY, LOCK_REQUEST, OPERATION_WORKERS, SEARCH_MEMORY, SNAPSHOT_WINDOW, TARGET_LAG,
    TRANSACTION_MEMORY, VECTOR_MEMORY, write_active_builds, write_build_memory, write_kept_for_cursors_max,
    write_lock_request, write_search_memory, write_snapshot_window, write_stage_limit, write_target_lag,
    write_transaction_lifetime, write_transaction_memory, write_vector_memory, write_workers_max,
};
use crate::login_parameters::{self, LOGIN_DELAY, write_iterations, write_login_delay};
use crate::owners::Owners;
use crate::parameter::{Parameter, invalid, whole_number};
use crate::rate_parameters;
use crate::statistics_parameters;
use bunko_access::Mechanism;
use bunko_bson::{DocumentBuf, MAX_DEPTH_ACCEPTED, Value, ValueRef, number};
use bunko_errors::{Failure, Result};
use bunko_operation::Gatherer;
use bunko_query::CollectionScans;
use bunko_request::fields::truth;
use std::sync::atomic::Ordering;

/// Maximum number of bytes of `automationServiceDescriptor`.
/// Source: MongoDB manual, "Server Parameters".
const DESCRIPTOR_BYTES_MAX: usize = 64;

/// A parameter that limits the memory in which a kind of stage gathers data.
macro_rules! stage_limit {
    ($name:literal, $gatherer:expr) => {
        Parameter::settable(
            $name,
            |owners| Ok(Value::Int64(owners.parameters().stage_bytes_max($gatherer) as i64)),
            |owners, value| write_stage_limit(owners, $name, $gatherer, value),
        )
    };
}

/// How often a mechanism hashes the passwords that are set from then on.
macro_rules! scram_iterations {
    ($name:literal, $mechanism:expr) => {
        Parameter::settable(
            $name,
            |owners| Ok(Value::Int32(owners.authority().access.iterations($mechanism).load(Ordering::Relaxed))),
            |owners, value| write_iterations(owners, $name, $mechanism, value),
        )
    };
}

/// All parameters, by name.
pub const PARAMETERS: &[Parameter] = &[
    Parameter::startup("KeysRotationIntervalSec", |_| Ok(Value::Int32(7_776_000))),
    Parameter::startup("ShardingTaskExecutorPoolReplicaSetMatching", |_| text("automatic")),
    Parameter::settable(
        "allowDiskUseByDefault",
        |owners| Ok(Value::Boolean(owners.parameters().allows_disk_use.load(Ordering::Relaxed))),
        |owners, value| {
            owners.parameters().allows_disk_use.store(truth(value), Ordering::Relaxed);
            Ok(())
        },
    ),
    Parameter::settable(
        "auditAuthorizationSuccess",
        |owners| Ok(Value::Boolean(owners.authority().audit.chooses_successes())),
        |owners, value| owners.authority().audit.choose_successes(truth(value)),
    ),
    Parameter::settable(
        LOGIN_DELAY,
        |owners| Ok(Value::Int32(owners.authority().access.failure_delay().as_millis() as i32)),
        write_login_delay,
    ),
    Parameter::fixed("authSchemaVersion", |_| Ok(Value::Int32(5))),
    login_parameters::MECHANISMS,
    Parameter::settable("automationServiceDescriptor", read_descriptor, write_descriptor),
    Parameter::settable("cursorTimeoutMillis", read_cursor_timeout, write_cursor_timeout),
    Parameter::settable(
        "diagnosticDataCollectionEnabled",
        |_| Ok(Value::Boolean(false)),
        |_, value| {
            let is_asked_for = truth(value);
            if is_asked_for { Err(Failure::not_supported_yet("diagnosticDataCollectionEnabled: true")) } else { Ok(()) }
        },
    ),
    Parameter::settable(
        "enableFlowControl",
        |owners| Ok(Value::Boolean(owners.parameters().controls_flow.load(Ordering::Relaxed))),
        |owners, value| {
            owners.parameters().controls_flow.store(truth(value), Ordering::Relaxed);
            Ok(())
        },
    ),
    login_parameters::LOCALHOST_BYPASS,
    Parameter::startup("enableTestCommands", |owners| Ok(Value::Boolean(owners.at_start().accepts_test_commands))),
    Parameter::fixed("featureCompatibilityVersion", |owners| {
        Ok(Value::Document(DocumentBuf::new().with("version", feature_compatibility::version(owners.catalog())?)))
    }),
    Parameter::settable(
        TARGET_LAG,
        |owners| Ok(Value::Int32(owners.parameters().target_lag_s.load(Ordering::Relaxed) as i32)),
        write_target_lag,
    ),
    Parameter::settable(
        "idleCursorKeepMaxMB",
        |owners| Ok(Value::Int64(owners.parameters().kept_for_cursors_max_mb.load(Ordering::Relaxed))),
        write_kept_for_cursors_max,
    ),
    rate_parameters::BURST_CAPACITY,
    rate_parameters::MAX_QUEUE_DEPTH,
    rate_parameters::LIMITER_BYPASS,
    rate_parameters::LIMITER_ENABLED,
    rate_parameters::RATE_PER_SECOND,
    stage_limit!("internalDocumentSourceBucketAutoMaxMemoryBytes", Gatherer::BucketAuto),
    stage_limit!("internalDocumentSourceDensifyMaxMemoryBytes", Gatherer::Densify),
    stage_limit!("internalDocumentSourceGraphLookupMaxMemoryBytes", Gatherer::GraphLookup),
    stage_limit!("internalDocumentSourceGroupMaxMemoryBytes", Gatherer::Group),
    stage_limit!("internalDocumentSourceLookupCacheSizeBytes", Gatherer::Lookup),
    stage_limit!("internalDocumentSourceSetWindowFieldsMaxMemoryBytes", Gatherer::Window),
    stage_limit!("internalQueryFacetBufferSizeBytes", Gatherer::Facet),
    stage_limit!("internalQueryMaxBlockingSortMemoryUsageBytes", Gatherer::Sort),
    statistics_parameters::CACHE,
    statistics_parameters::RATE,
    statistics_parameters::SAMPLE,
    Parameter::startup("journalCommitInterval", |owners| {
        Ok(Value::Int32(owners.parameters().journal_commit_interval_ms))
    }),
    Parameter::startup("localLogicalSessionTimeoutMinutes", |owners| {
        Ok(Value::Int32(owners.at_start().session_timeout_minutes))
    }),
    Parameter::settable(
        "logComponentVerbosity",
        |owners| Ok(Value::Document(owners.parameters().verbosity.read())),
        |owners, value| owners.parameters().verbosity.write(value),
    ),
    Parameter::settable("logLevel", |owners| Ok(Value::Int32(owners.parameters().verbosity.level())), write_log_level),
    Parameter::startup("maxBSONDepth", |_| Ok(Value::Int32(MAX_DEPTH_ACCEPTED as i32))),
    Parameter::settable(
        BUILD_MEMORY,
        |owners| Ok(Value::Int32((owners.catalog().index_builds().bytes_max() >> 20) as i32)),
        write_build_memory,
    ),
    Parameter::settable(
        ACTIVE_BUILDS,
        |owners| Ok(Value::Int32(owners.catalog().index_builds().active_max() as i32)),
        write_active_builds,
    ),
    Parameter::startup("maxSessions", |owners| Ok(Value::Int32(owners.at_start().sessions_max as i32))),
    Parameter::settable(
        LOCK_REQUEST,
        |owners| Ok(Value::Int32(owners.catalog().transaction_memory().lock_request_ms_max())),
        write_lock_request,
    ),
    Parameter::settable(
        SNAPSHOT_WINDOW,
        |owners| Ok(Value::Int32(owners.catalog().past_states().window_s() as i32)),
        write_snapshot_window,
    ),
    Parameter::settable(
        "notablescan",
        |owners| Ok(Value::Boolean(owners.parameters().collection_scans() == CollectionScans::Refused)),
        |owners, value| {
            owners.parameters().refuses_scans.store(truth(value), Ordering::Relaxed);
            Ok(())
        },
    ),
    Parameter::startup("opentelemetryHttpEndpoint", |owners| text(owners.at_start().trace_endpoint)),
    Parameter::settable(
        OPERATION_WORKERS,
        |owners| Ok(Value::Int32(owners.parameters().workers_max.load(Ordering::Relaxed) as i32)),
        write_workers_max,
    ),
    Parameter::settable(
        "quiet",
        |owners| Ok(Value::Boolean(owners.parameters().is_quiet())),
        |owners, value| {
            owners.parameters().is_quiet.store(truth(value), Ordering::Relaxed);
            Ok(())
        },
    ),
    Parameter::settable(
        "redactClientLogData",
        |owners| Ok(Value::Boolean(owners.is_log_redacted())),
        |owners, value| {
            owners.set_log_redacted(truth(value));
            Ok(())
        },
    ),
    Parameter::startup("requireApiVersion", |_| Ok(Value::Boolean(false))),
    scram_iterations!("scramIterationCount", Mechanism::ScramSha1),
    scram_iterations!("scramSHA256IterationCount", Mechanism::ScramSha256),
    Parameter::settable(
        SEARCH_MEMORY,
        |owners| Ok(Value::Int64(owners.catalog().search_memory().bytes_max() as i64)),
        write_search_memory,
    ),
    Parameter::startup("tlsMode", |owners| text(owners.at_start().tls_mode)),
    Parameter::startup("traceExceptions", |_| Ok(Value::Boolean(false))),
    Parameter::settable(
        "transactionLifetimeLimitSeconds",
        |owners| Ok(Value::Int32(owners.parameters().transaction_lifetime().as_secs() as i32)),
        write_transaction_lifetime,
    ),
    Parameter::settable(
        TRANSACTION_MEMORY,
        |owners| Ok(Value::Int64(owners.catalog().transaction_memory().one_bytes_max() as i64)),
        write_transaction_memory,
    ),
    Parameter::settable(
        "ttlMonitorEnabled",
        |owners| Ok(Value::Boolean(owners.parameters().deletes_expired())),
        |owners, value| {
            owners.parameters().deletes_expired.store(truth(value), Ordering::Relaxed);
            Ok(())
        },
    ),
    Parameter::settable(
        "ttlMonitorSleepSecs",
        |owners| Ok(Value::Int64(owners.parameters().expiry_sleep_s.load(Ordering::Relaxed))),
        write_ttl_sleep,
    ),
    Parameter::settable(
        VECTOR_MEMORY,
        |owners| Ok(Value::Int64(owners.catalog().vector_memory().bytes_max() as i64)),
        write_vector_memory,
    ),
];

#[allow(clippy::unnecessary_wraps)]
fn text(text: &str) -> Result<Value> {
    Ok(Value::from(ValueRef::String(text)))
}

#[allow(clippy::unnecessary_wraps)]
fn read_cursor_timeout(owners: &dyn Owners) -> Result<Value> {
    Ok(Value::Int64(owners.parameters().cursor_timeout_ms.load(Ordering::Relaxed)))
}

fn write_cursor_timeout(owners: &dyn Owners, value: ValueRef<'_>) -> Result<()> {
    let milliseconds = whole_number("cursorTimeoutMillis", value)?;
    if milliseconds <= 0 {
        return Err(invalid("cursorTimeoutMillis", value, "is not greater than 0"));
    }
    owners.parameters().cursor_timeout_ms.store(milliseconds, Ordering::Relaxed);
    Ok(())
}

fn read_descriptor(owners: &dyn Owners) -> Result<Value> {
    text(&owners.parameters().descriptor.lock())
}

fn write_descriptor(owners: &dyn Owners, value: ValueRef<'_>) -> Result<()> {
    const NAME: &str = "automationServiceDescriptor";
    let ValueRef::String(descriptor) = value else {
        let kind = value.kind().alias();
        return Err(Failure::type_mismatch(format!(
            "Value for parameter {NAME} must be of type 'string', found {kind}"
        )));
    };
    if descriptor.len() > DESCRIPTOR_BYTES_MAX {
        let message = format!("Value for parameter {NAME} must be no more than {DESCRIPTOR_BYTES_MAX} bytes");
        return Err(Failure::new(bunko_errors::ErrorCode::OVERFLOW, message));
    }
    descriptor.clone_into(&mut owners.parameters().descriptor.lock());
    Ok(())
}

fn write_ttl_sleep(owners: &dyn Owners, value: ValueRef<'_>) -> Result<()> {
    let seconds = whole_number("ttlMonitorSleepSecs", value)?;
    if seconds <= 0 {
        return Err(invalid("ttlMonitorSleepSecs", value, "is not greater than 0"));
    }
    owners.parameters().expiry_sleep_s.store(seconds, Ordering::Relaxed);
    Ok(())
}

fn write_log_level(owners: &dyn Owners, value: ValueRef<'_>) -> Result<()> {
    let level = match value {
        ValueRef::Boolean(boolean) => i64::from(boolean),
        _ => number::clamp_to_i64(value).ok_or_else(|| invalid("logLevel", value, "is not a number"))?,
    };
    if level < 0 {
        return Err(invalid("logLevel", value, "is less than 0"));
    }
    owners.parameters().verbosity.set_level(level.min(5) as i32);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known::is_known;

    #[test]
    fn parameters_are_sorted_and_unique() {
        assert!(PARAMETERS.is_sorted_by(|a, b| a.name < b.name));
    }

    #[test]
    fn no_parameter_is_among_those_that_are_missing() {
        let both = PARAMETERS.iter().find(|parameter| is_known(parameter.name));
        assert!(both.is_none(), "{} is not missing", both.expect("one").name);
    }
}
