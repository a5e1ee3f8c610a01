//! `dbStats`: sizes and counts of one database, and how full its file system is.

use crate::collection_statistics::CollectionStatistics;
use crate::dispatch::{Command, Databases, Halt};
use crate::invocation::Invocation;
use crate::statistics_scale::scale;
use bunko_bson::Writer;
use bunko_errors::{ErrorCode, Failure};
use std::path::Path;

pub(super) const COMMAND: Command = Command {
    name: "dbStats",
    aliases: &["dbstats"],
    fields: &["scale", "freeStorage"],
    databases: Databases::Any,
    run,
};

#[derive(Default)]
struct DatabaseStatistics {
    collections: u64,
    objects: u64,
    data_bytes: u64,
    storage_bytes: u64,
    indexes: u64,
    index_bytes: u64,
}

struct FileSystem {
    used_bytes: u64,
    total_bytes: u64,
}

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let scale = scale(invocation)?;
    // Sizes count what is alive, so nothing is free for reuse; see `collection_statistics`.
    let shows_free = invocation.integer("freeStorage")?.unwrap_or(0) != 0;
    let statistics = sum(invocation);
    let file_system = file_system(invocation.service.catalog.store().path())?;
    let scaled = |bytes: u64| bytes as f64 / scale as f64;
    let average = if statistics.objects == 0 { 0.0 } else { statistics.data_bytes as f64 / statistics.objects as f64 };
    reply
        .append("db", invocation.request.database)
        .append("collections", statistics.collections as i64)
        .append("views", 0_i64)
        .append("objects", statistics.objects as i64)
        .append("avgObjSize", average)
        .append("dataSize", scaled(statistics.data_bytes))
        .append("storageSize", scaled(statistics.storage_bytes));
    if shows_free {
        reply.append("freeStorageSize", 0.0);
    }
    reply.append("indexes", statistics.indexes as i64).append("indexSize", scaled(statistics.index_bytes));
    if shows_free {
        reply.append("indexFreeStorageSize", 0.0);
    }
    reply.append("totalSize", scaled(statistics.storage_bytes + statistics.index_bytes));
    if shows_free {
        reply.append("totalFreeStorageSize", 0.0);
    }
    reply
        .append("scaleFactor", scale as i64)
        .append("fsUsedSize", scaled(file_system.used_bytes))
        .append("fsTotalSize", scaled(file_system.total_bytes));
    Ok(())
}

fn sum(invocation: &Invocation<'_>) -> DatabaseStatistics {
    let mut sum = DatabaseStatistics::default();
    for collection in invocation.service.catalog.collections(invocation.request.database) {
        let statistics = CollectionStatistics::of(&collection);
        sum.collections += 1;
        sum.objects += statistics.count;
        sum.data_bytes += statistics.data_bytes;
        sum.storage_bytes += statistics.storage_bytes;
        sum.indexes += statistics.indexes.len() as u64;
        sum.index_bytes += statistics.index_bytes();
    }
    sum
}

fn file_system(directory: &Path) -> Result<FileSystem, Failure> {
    let status = rustix::fs::statvfs(directory).map_err(|error| {
        Failure::new(ErrorCode::OPERATION_FAILED, format!("statvfs of {} failed: {error}", directory.display()))
    })?;
    let total_bytes = status.f_blocks.saturating_mul(status.f_frsize);
    let free_bytes = status.f_bfree.saturating_mul(status.f_frsize);
    Ok(FileSystem { used_bytes: total_bytes.saturating_sub(free_bytes), total_bytes })
}
