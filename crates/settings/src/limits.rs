//! Parameters that limit memory, threads and time.

use crate::owners::Owners;
use crate::parameter::{invalid, whole_number};
use bunko_bson::ValueRef;
use bunko_errors::Result;
use bunko_operation::{Gatherer, WORKERS_MAX};
use std::ops::RangeInclusive;
use std::sync::atomic::Ordering;

/// Maximum number of threads that may work for one operation. A parameter of Bunko, not of MongoDB.
pub const OPERATION_WORKERS: &str = "operationWorkersMax";

/// Maximum memory that the changes of one transaction may take, in bytes.
pub const TRANSACTION_MEMORY: &str = "transactionMemoryLimitBytes";
/// Allowed values of the limit. With a lower one, transactions could hardly write; with a higher one, a large
/// transaction would block all other writers for long when it commits.
pub const TRANSACTION_MEMORY_BYTES: RangeInclusive<i64> = 1 << 20..=16 << 30;

/// Maximum memory that the tables of all vector indexes may take, in bytes.
pub const VECTOR_MEMORY: &str = "vectorSearchMemoryLimitBytes";

/// Maximum memory that the words of all search indexes may take, in bytes.
pub const SEARCH_MEMORY: &str = "searchMemoryLimitBytes";

/// Longest time that a transaction waits for a change of a collection, in milliseconds.
pub const LOCK_REQUEST: &str = "maxTransactionLockRequestTimeoutMillis";
/// Maximum number of index builds that run at once. Source: MongoDB manual, "Server Parameters".
pub const ACTIVE_BUILDS: &str = "maxNumActiveUserIndexBuilds";

/// Maximum memory that an index build may take, in megabytes, and the smallest allowed value. Source: MongoDB manual,
/// "Server Parameters".
pub const BUILD_MEMORY: &str = "maxIndexBuildMemoryUsageMegabytes";
const BUILD_MEMORY_MEGABYTES_MIN: i32 = 50;

/// How long past snapshots are kept, in seconds.
pub const SNAPSHOT_WINDOW: &str = "minSnapshotHistoryWindowInSeconds";

pub fn write_kept_for_cursors_max(owners: &dyn Owners, value: ValueRef<'_>) -> Result<()> {
    const NAME: &str = "idleCursorKeepMaxMB";
    let megabytes = Some(whole_number(NAME, value)?).filter(|megabytes| (0..=1 << 40).contains(megabytes));
    let megabytes = megabytes.ok_or_else(|| invalid(NAME, value, "is not within 0 to 1099511627776"))?;
    owners.parameters().kept_for_cursors_max_mb.store(megabytes, Ordering::Relaxed);
    Ok(())
}

pub fn write_transaction_lifetime(owners: &dyn Owners, value: ValueRef<'_>) -> Result<()> {
    const NAME: &str = "transactionLifetimeLimitSeconds";
    let seconds = i32::try_from(whole_number(NAME, value)?).ok().filter(|seconds| *seconds > 0);
    let seconds = seconds.ok_or_else(|| invalid(NAME, value, "is not within 1 to 2147483647"))?;
    owners.parameters().set_transaction_lifetime(seconds.unsigned_abs());
    Ok(())
}

/// How far the commit point may be behind before writers are slowed down, in seconds.
pub const TARGET_LAG: &str = "flowControlTargetLagSeconds";

pub fn write_target_lag(owners: &dyn Owners, value: ValueRef<'_>) -> Result<()> {
    let seconds = i32::try_from(whole_number(TARGET_LAG, value)?).ok().filter(|seconds| *seconds > 0);
    let seconds = seconds.ok_or_else(|| invalid(TARGET_LAG, value, "is not within 1 to 2147483647"))?;
    owners.parameters().target_lag_s.store(seconds.unsigned_abs(), Ordering::Relaxed);
    Ok(())
}

pub fn write_snapshot_window(owners: &dyn Owners, value: ValueRef<'_>) -> Result<()> {
    let seconds = i32::try_from(whole_number(SNAPSHOT_WINDOW, value)?).ok().filter(|seconds| *seconds >= 0);
    let seconds = seconds.ok_or_else(|| invalid(SNAPSHOT_WINDOW, value, "is not within 0 to 2147483647"))?;
    owners.catalog().past_states().set_window_s(seconds.unsigned_abs());
    Ok(())
}

pub fn write_lock_request(owners: &dyn Owners, value: ValueRef<'_>) -> Result<()> {
    let milliseconds = i32::try_from(whole_number(LOCK_REQUEST, value)?);
    let milliseconds =
        milliseconds.map_err(|_| invalid(LOCK_REQUEST, value, "is not within -2147483648 to 2147483647"))?;
    owners.catalog().transaction_memory().set_lock_request_ms_max(milliseconds);
    Ok(())
}

pub fn write_transaction_memory(owners: &dyn Owners, value: ValueRef<'_>) -> Result<()> {
    let bytes_max = whole_number(TRANSACTION_MEMORY, value)?;
    if !TRANSACTION_MEMORY_BYTES.contains(&bytes_max) {
        let (least, most) = TRANSACTION_MEMORY_BYTES.into_inner();
        return Err(invalid(TRANSACTION_MEMORY, value, &format!("is not within {least} to {most}")));
    }
    owners.catalog().transaction_memory().set_one_bytes_max(bytes_max.unsigned_abs());
    Ok(())
}

pub fn write_vector_memory(owners: &dyn Owners, value: ValueRef<'_>) -> Result<()> {
    owners.catalog().vector_memory().set_bytes_max(memory_bytes(VECTOR_MEMORY, value)?);
    Ok(())
}

pub fn write_search_memory(owners: &dyn Owners, value: ValueRef<'_>) -> Result<()> {
    owners.catalog().search_memory().set_bytes_max(memory_bytes(SEARCH_MEMORY, value)?);
    Ok(())
}

pub fn write_active_builds(owners: &dyn Owners, value: ValueRef<'_>) -> Result<()> {
    let count = i32::try_from(whole_number(ACTIVE_BUILDS, value)?).ok().filter(|count| *count >= 0);
    let count = count.ok_or_else(|| invalid(ACTIVE_BUILDS, value, "is not within 0 to 2147483647"))?;
    owners.catalog().index_builds().set_active_max(count.unsigned_abs() as usize);
    Ok(())
}

pub fn write_build_memory(owners: &dyn Owners, value: ValueRef<'_>) -> Result<()> {
    let megabytes = i32::try_from(whole_number(BUILD_MEMORY, value)?).ok();
    let megabytes = megabytes.filter(|megabytes| *megabytes >= BUILD_MEMORY_MEGABYTES_MIN);
    let megabytes = megabytes.ok_or_else(|| invalid(BUILD_MEMORY, value, "is not within 50 to 2147483647"))?;
    owners.catalog().index_builds().set_bytes_max(u64::from(megabytes.unsigned_abs()) << 20);
    Ok(())
}

/// A number of bytes; 0 is allowed.
fn memory_bytes(name: &str, value: ValueRef<'_>) -> Result<u64> {
    u64::try_from(whole_number(name, value)?).map_err(|_| invalid(name, value, "is less than 0"))
}

pub fn write_stage_limit(owners: &dyn Owners, name: &str, gatherer: Gatherer, value: ValueRef<'_>) -> Result<()> {
    let bytes_max = u64::try_from(whole_number(name, value)?).ok().filter(|bytes_max| *bytes_max > 0);
    let bytes_max = bytes_max.ok_or_else(|| invalid(name, value, "is not greater than 0"))?;
    owners.parameters().stage_bytes_max[gatherer as usize].store(bytes_max, Ordering::Relaxed);
    Ok(())
}

pub fn write_workers_max(owners: &dyn Owners, value: ValueRef<'_>) -> Result<()> {
    let count = whole_number(OPERATION_WORKERS, value)?;
    let count = u32::try_from(count).ok().filter(|count| (1..=WORKERS_MAX).contains(count));
    let count = count.ok_or_else(|| invalid(OPERATION_WORKERS, value, &format!("is not within 1 to {WORKERS_MAX}")))?;
    owners.parameters().workers_max.store(count, Ordering::Relaxed);
    Ok(())
}
