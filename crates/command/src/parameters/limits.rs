//! Parameters that limit memory, threads and time.

use super::{invalid, whole_number};
use crate::service::Service;
use bunko_bson::ValueRef;
use bunko_errors::Result;
use bunko_operation::{Gatherer, WORKERS_MAX};
use std::ops::RangeInclusive;
use std::sync::atomic::Ordering;

/// Most threads that may work for one operation. A parameter of Bunko, not of MongoDB.
pub(super) const OPERATION_WORKERS: &str = "operationWorkersMax";

/// Most memory that the changes of one transaction may take, in bytes.
pub(super) const TRANSACTION_MEMORY: &str = "transactionMemoryLimitBytes";
/// Allowed values. With less, transactions could hardly write; a larger one would block all other writers for long when
/// it commits.
pub const TRANSACTION_MEMORY_BYTES: RangeInclusive<i64> = 1 << 20..=16 << 30;

/// Most memory that the tables of all vector indexes may take, in bytes.
pub(super) const VECTOR_MEMORY: &str = "vectorSearchMemoryLimitBytes";

/// Most memory that the words of all search indexes may take, in bytes.
pub(super) const SEARCH_MEMORY: &str = "searchMemoryLimitBytes";

/// Longest time that a transaction waits for a change of a collection, in milliseconds.
pub(super) const LOCK_REQUEST: &str = "maxTransactionLockRequestTimeoutMillis";
/// Most index builds that run at once. Source: MongoDB manual, "Server Parameters".
pub(super) const ACTIVE_BUILDS: &str = "maxNumActiveUserIndexBuilds";

/// Most memory that an index build may take, in megabytes, and the smallest allowed value. Source: MongoDB manual,
/// "Server Parameters".
pub(super) const BUILD_MEMORY: &str = "maxIndexBuildMemoryUsageMegabytes";
const BUILD_MEMORY_MEGABYTES_MIN: i32 = 50;

/// How long past snapshots are kept, in seconds.
pub(super) const SNAPSHOT_WINDOW: &str = "minSnapshotHistoryWindowInSeconds";

pub(super) fn write_kept_for_cursors_max(service: &Service, value: ValueRef<'_>) -> Result<()> {
    const NAME: &str = "idleCursorKeepMaxMB";
    let megabytes = Some(whole_number(NAME, value)?).filter(|megabytes| (0..=1 << 40).contains(megabytes));
    let megabytes = megabytes.ok_or_else(|| invalid(NAME, value, "is not within 0 to 1099511627776"))?;
    service.parameters.kept_for_cursors_max_mb.store(megabytes, Ordering::Relaxed);
    Ok(())
}

pub(super) fn write_transaction_lifetime(service: &Service, value: ValueRef<'_>) -> Result<()> {
    const NAME: &str = "transactionLifetimeLimitSeconds";
    let seconds = i32::try_from(whole_number(NAME, value)?).ok().filter(|seconds| *seconds > 0);
    let seconds = seconds.ok_or_else(|| invalid(NAME, value, "is not within 1 to 2147483647"))?;
    service.parameters.set_transaction_lifetime(seconds.unsigned_abs());
    Ok(())
}

pub(super) fn write_snapshot_window(service: &Service, value: ValueRef<'_>) -> Result<()> {
    let seconds = i32::try_from(whole_number(SNAPSHOT_WINDOW, value)?).ok().filter(|seconds| *seconds >= 0);
    let seconds = seconds.ok_or_else(|| invalid(SNAPSHOT_WINDOW, value, "is not within 0 to 2147483647"))?;
    service.catalog.past_states().set_window_s(seconds.unsigned_abs());
    Ok(())
}

pub(super) fn write_lock_request(service: &Service, value: ValueRef<'_>) -> Result<()> {
    let milliseconds = i32::try_from(whole_number(LOCK_REQUEST, value)?);
    let milliseconds =
        milliseconds.map_err(|_| invalid(LOCK_REQUEST, value, "is not within -2147483648 to 2147483647"))?;
    service.catalog.transaction_memory().set_lock_request_ms_max(milliseconds);
    Ok(())
}

pub(super) fn write_transaction_memory(service: &Service, value: ValueRef<'_>) -> Result<()> {
    let bytes_max = whole_number(TRANSACTION_MEMORY, value)?;
    if !TRANSACTION_MEMORY_BYTES.contains(&bytes_max) {
        let (least, most) = TRANSACTION_MEMORY_BYTES.into_inner();
        return Err(invalid(TRANSACTION_MEMORY, value, &format!("is not within {least} to {most}")));
    }
    service.catalog.transaction_memory().set_one_bytes_max(bytes_max.unsigned_abs());
    Ok(())
}

pub(super) fn write_vector_memory(service: &Service, value: ValueRef<'_>) -> Result<()> {
    service.catalog.vector_memory().set_bytes_max(memory_bytes(VECTOR_MEMORY, value)?);
    Ok(())
}

pub(super) fn write_search_memory(service: &Service, value: ValueRef<'_>) -> Result<()> {
    service.catalog.search_memory().set_bytes_max(memory_bytes(SEARCH_MEMORY, value)?);
    Ok(())
}

pub(super) fn write_active_builds(service: &Service, value: ValueRef<'_>) -> Result<()> {
    let count = i32::try_from(whole_number(ACTIVE_BUILDS, value)?).ok().filter(|count| *count >= 0);
    let count = count.ok_or_else(|| invalid(ACTIVE_BUILDS, value, "is not within 0 to 2147483647"))?;
    service.catalog.index_builds().set_active_max(count.unsigned_abs() as usize);
    Ok(())
}

pub(super) fn write_build_memory(service: &Service, value: ValueRef<'_>) -> Result<()> {
    let megabytes = i32::try_from(whole_number(BUILD_MEMORY, value)?).ok();
    let megabytes = megabytes.filter(|megabytes| *megabytes >= BUILD_MEMORY_MEGABYTES_MIN);
    let megabytes = megabytes.ok_or_else(|| invalid(BUILD_MEMORY, value, "is not within 50 to 2147483647"))?;
    service.catalog.index_builds().set_bytes_max(u64::from(megabytes.unsigned_abs()) << 20);
    Ok(())
}

/// A number of bytes; 0 is allowed.
fn memory_bytes(name: &str, value: ValueRef<'_>) -> Result<u64> {
    u64::try_from(whole_number(name, value)?).map_err(|_| invalid(name, value, "is less than 0"))
}

pub(super) fn write_stage_limit(service: &Service, name: &str, gatherer: Gatherer, value: ValueRef<'_>) -> Result<()> {
    let bytes_max = u64::try_from(whole_number(name, value)?).ok().filter(|bytes_max| *bytes_max > 0);
    let bytes_max = bytes_max.ok_or_else(|| invalid(name, value, "is not greater than 0"))?;
    service.parameters.stage_bytes_max[gatherer as usize].store(bytes_max, Ordering::Relaxed);
    Ok(())
}

pub(super) fn write_workers_max(service: &Service, value: ValueRef<'_>) -> Result<()> {
    let count = whole_number(OPERATION_WORKERS, value)?;
    let count = u32::try_from(count).ok().filter(|count| (1..=WORKERS_MAX).contains(count));
    let count = count.ok_or_else(|| invalid(OPERATION_WORKERS, value, &format!("is not within 1 to {WORKERS_MAX}")))?;
    service.parameters.workers_max.store(count, Ordering::Relaxed);
    Ok(())
}
