//! `dbStats`: sizes and counts of one database, and how full its file system is; see `collection_statistics`.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use crate::storage_engine_option::MMAP;
use bunko_access::Action;
use bunko_bson::Writer;
use bunko_catalog::{Namespace, from_storage};
use bunko_errors::{ErrorCode, Failure};
use bunko_observe::statistics_scale::scale;
use bunko_pipelines::{CollectionStatistics, PipelineContext, oplog};
use bunko_request::facts::CommandFacts;
use bunko_request::field_kinds::{Kind, POSITIVE, field};
use bunko_request::fields::Fields;
use bunko_session::Halt;
use std::path::Path;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "dbStats",
        aliases: &["dbstats"],
        fields: &[field("scale", POSITIVE), field("freeStorage", Kind::BooleanLike)],
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnDatabase(Action::DbStats),
    run,
    ..Command::PLAIN
};

#[derive(Default)]
struct DatabaseStatistics {
    collections: u64,
    objects: u64,
    data_bytes: u64,
    storage_bytes: u64,
    free_bytes: u64,
    indexes: u64,
    index_bytes: u64,
    index_free_bytes: u64,
    /// Whether a collection is stored by the engine that has one file for all databases.
    uses_shared_file: bool,
}

/// The filesystem of the data directory.
pub(super) struct FileSystem {
    pub free_bytes: u64,
    pub total_bytes: u64,
}

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let (scale, shows_free) = parse(invocation)?;
    let statistics = sum(invocation)?;
    let store = invocation.service.catalog.store();
    // Time series count too, as views of their buckets.
    let views = invocation.service.catalog.views(invocation.request.database)?.len();
    let scaled = |bytes: u64| bytes as f64 / scale as f64;
    let average = if statistics.objects == 0 { 0.0 } else { statistics.data_bytes as f64 / statistics.objects as f64 };
    reply
        .append("db", invocation.request.database)
        .append("collections", statistics.collections as i64)
        .append("views", views as i64)
        .append("objects", statistics.objects as i64)
        .append("avgObjSize", average)
        .append("dataSize", scaled(statistics.data_bytes))
        .append("storageSize", scaled(statistics.storage_bytes));
    if shows_free {
        reply.append("freeStorageSize", scaled(statistics.free_bytes));
    }
    reply.append("indexes", statistics.indexes as i64).append("indexSize", scaled(statistics.index_bytes));
    if shows_free {
        reply.append("indexFreeStorageSize", scaled(statistics.index_free_bytes));
    }
    reply.append("totalSize", scaled(statistics.storage_bytes + statistics.index_bytes));
    if shows_free {
        reply.append("totalFreeStorageSize", scaled(statistics.free_bytes + statistics.index_free_bytes));
    }
    if statistics.uses_shared_file {
        // MMAPv1 reported its allocated space here. It had files for each database; this engine has one file for all of
        // them.
        reply.append("fileSize", scaled(store.engine(MMAP).map_err(from_storage)?.size_bytes()));
    }
    reply.append("scaleFactor", scale as i64);
    // A server without a directory does not report this, like MongoDB's In-Memory engine.
    if let Some(directory) = store.path() {
        let file_system = file_system(directory)?;
        reply
            .append("fsUsedSize", scaled(file_system.total_bytes.saturating_sub(file_system.free_bytes)))
            .append("fsTotalSize", scaled(file_system.total_bytes));
    }
    Ok(())
}

/// The scale, and whether free space is shown.
fn parse(fields: &Fields<'_>) -> Result<(u64, bool), Failure> {
    Ok((scale(fields)?, fields.boolean("freeStorage", false)?))
}

fn sum(invocation: &Invocation<'_>) -> Result<DatabaseStatistics, Halt> {
    let mut sum = DatabaseStatistics::default();
    let catalog = &invocation.service.catalog;
    let collections = catalog.collections(invocation.request.database);
    let mut all = CollectionStatistics::of_all(catalog.store(), &collections);
    if invocation.request.database == Namespace::OPLOG_DATABASE && catalog.store().keeps_history() {
        invocation.refuse_if_long(true)?;
        all.push(oplog::statistics(&invocation.surroundings())?);
    }
    for statistics in all {
        sum.collections += 1;
        sum.objects += statistics.count;
        sum.data_bytes += statistics.data_bytes;
        sum.storage_bytes += statistics.storage_bytes();
        sum.free_bytes += statistics.storage.free_bytes;
        sum.indexes += statistics.indexes.len() as u64;
        sum.index_bytes += statistics.index_bytes();
        sum.index_free_bytes += statistics.index_free_bytes();
        sum.uses_shared_file |= statistics.engine == MMAP;
    }
    Ok(sum)
}

/// Asks the kernel about the filesystem of a directory.
/// # Errors
/// `OperationFailed`.
pub(super) fn file_system(directory: &Path) -> Result<FileSystem, Failure> {
    let status = rustix::fs::statvfs(directory).map_err(|error| {
        Failure::new(ErrorCode::OPERATION_FAILED, format!("statvfs of {} failed: {error}", directory.display()))
    })?;
    let total_bytes = status.f_blocks.saturating_mul(status.f_frsize);
    let free_bytes = status.f_bfree.saturating_mul(status.f_frsize);
    Ok(FileSystem { free_bytes, total_bytes })
}
