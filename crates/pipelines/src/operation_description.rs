//! Running operations, as `currentOp` and `$currentOp` describe them.

use bunko_bson::text::ValueText;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef, datetime, number};
use bunko_catalog::{Catalog, Index, Namespace};
use bunko_observe::lock_modes::Locking;
use bunko_observe::namespace_of;
use bunko_request::facts::{IndexBuildUse, ReadsFrom};
use bunko_session::cursors::{CursorStore, CursorTold};
use bunko_session::operations::{Observed, Operations, Slowing};
use bunko_session::transactions::{Surroundings, Transactions, describe_idle, describe_running};
use std::time::{Duration, Instant};

/// The name shown for a thread that resumes index builds: every other operation that is shown
/// belongs to a client.
const OWN_THREAD: &str = "IndexBuildsCoordinatorMongod-0";

/// The work that a server does now.
#[derive(Clone, Copy)]
pub struct Activity<'s> {
    /// Databases, collections, indexes.
    pub catalog: &'s Catalog,
    /// Running operations.
    pub operations: &'s Operations,
    /// The transactions that are open.
    pub transactions: &'s Transactions,
    /// Longest time that a transaction may be open.
    pub transaction_lifetime: Duration,
    /// Open cursors.
    pub cursors: &'s CursorStore,
    /// `host:port` as clients name the server.
    pub host: &'s str,
    /// The moment, to measure elapsed time with.
    pub now: Instant,
    /// Milliseconds since 1970.
    pub now_ms: i64,
}

/// How to show commands that were too large to be kept whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LargeCommands {
    /// As the fields that were kept.
    Fields,
    /// As a text of the kept fields under `$truncated`, beside the comment.
    Truncated,
}

/// Describes the operation of a connection, or the idle connection.
pub fn describe(activity: Activity<'_>, observed: &Observed, large: LargeCommands) -> DocumentBuf {
    let mut described = DocumentBuf::new().with("type", "op").with("host", activity.host);
    match observed.client {
        Some(client) => described
            .append("desc", &format!("conn{}", observed.connection))
            .append("connectionId", observed.connection)
            .append("client", &client.to_string()),
        None => described.append("desc", OWN_THREAD),
    };
    if let Some(metadata) = &observed.metadata {
        let application = metadata.as_ref().get("application").and_then(ValueRef::as_document);
        if let Some(name) = application.and_then(|application| application.get("name")) {
            described.append("appName", name);
        }
        described.append("clientMetadata", metadata);
    }
    described
        .extend(effective_users(observed).as_ref())
        .append("active", observed.opid != 0)
        .append("currentOpTime", &datetime::format_iso8601_ms(activity.now_ms).replace('Z', "+00:00"));
    if observed.opid != 0 {
        describe_operation(&mut described, activity, observed, large);
    }
    described
}

/// Describes the idle sessions with an open transaction.
pub fn describe_idle_sessions(activity: Activity<'_>) -> Vec<DocumentBuf> {
    let (open, surroundings) = (activity.transactions.all(), surroundings(activity));
    open.iter().filter(|entry| !entry.session.is_at_work()).map(|entry| describe_idle(surroundings, entry)).collect()
}

fn surroundings(activity: Activity<'_>) -> Surroundings<'_> {
    Surroundings {
        host: activity.host,
        now: activity.now,
        now_ms: activity.now_ms,
        lifetime: activity.transaction_lifetime,
    }
}

/// The logged-in user, as the field `effectiveUsers`.
fn effective_users(observed: &Observed) -> DocumentBuf {
    let Some(user) = &observed.user else { return DocumentBuf::new() };
    DocumentBuf::new().with("effectiveUsers", &[&user.to_document("user")].into_iter().collect::<ArrayBuf>())
}

fn describe_operation(described: &mut DocumentBuf, activity: Activity<'_>, observed: &Observed, large: LargeCommands) {
    described.append("opid", observed.opid as i32);
    if let Some(session) = &observed.session {
        described.append("lsid", &session.to_document());
    }
    if let Some(entry) = observed.session.and_then(|session| activity.transactions.of(session))
        && entry.session.is_at_work()
    {
        described.append("transaction", &describe_running(surroundings(activity), &entry));
    }
    if observed.is_killed {
        described.append("killPending", true);
    }
    let mut command = observed.command.clone();
    if command.as_ref().get("$db").is_none() {
        command.append("$db", &observed.database);
    }
    if observed.is_command_cut && large == LargeCommands::Truncated {
        command = truncated(command.as_ref());
    }
    described
        .append("secs_running", observed.running_for.as_secs() as i64)
        .append("microsecs_running", observed.running_for.as_micros() as i64)
        .append("op", observed.entry.usage.opcode_name())
        .append("ns", &namespace_of(observed.entry, &observed.database, observed.command.as_ref()))
        .append("redacted", false)
        .append("command", &command);
    if let Some(id) = cursor_in_use(observed) {
        let told = activity.cursors.in_use(id, activity.now);
        let cursor =
            told.map_or_else(|| DocumentBuf::new().with("cursorId", id), |told| describe_told(activity, id, &told));
        described.append("cursor", &cursor.with("operationUsingCursorId", i64::from(observed.opid)));
    }
    match index_build(activity, observed) {
        Some(Build::Waits) => {
            let active_max = activity.catalog.index_builds().active_max();
            let message = format!(
                "Index Build: waiting for its turn: {active_max} builds go on at once (maxNumActiveUserIndexBuilds)"
            );
            described.append("msg", &message);
        }
        Some(Build::Scans { done, total }) => {
            let percent = done * 100 / total.max(1);
            let message =
                format!("Index Build: scanning collection Index Build: scanning collection: {done}/{total} {percent}%");
            let progress = DocumentBuf::new().with("done", done as i64).with("total", total as i64);
            described.append("msg", &message).append("progress", &progress);
        }
        None => {}
    }
    let has_collection = observed.command.as_ref().first().is_some_and(|first| first.value.as_str().is_some());
    described
        .append("numYields", 0)
        .append("locks", &Locking::of(observed.entry, has_collection).held())
        .append("waitingForLock", observed.is_held_back)
        .append("lockStats", &DocumentBuf::new())
        .append("waitingForFlowControl", matches!(observed.slowing, Slowing::Since(_)))
        .append("flowControlStats", &describe_slowing(activity.now, observed.slowing));
}

/// Describes how flow control slows a write down.
/// Source: MongoDB manual 8.2, "$currentOp", `flowControlStats`.
fn describe_slowing(now: Instant, slowing: Slowing) -> DocumentBuf {
    let waited = match slowing {
        Slowing::None => return DocumentBuf::new(),
        Slowing::Since(since) => now.saturating_duration_since(since),
        Slowing::Over(waited) => waited,
    };
    let mut described = DocumentBuf::new();
    if matches!(slowing, Slowing::Over(_)) {
        described.append("acquireCount", 1_i64);
    }
    described.with("acquireWaitCount", 1_i64).with("timeAcquiringMicros", waited.as_micros() as i64)
}

/// Describes a cursor that waits or is in use.
/// Source: MongoDB manual 8.2, "$currentOp", `cursor`.
pub(crate) fn describe_told(activity: Activity<'_>, id: i64, told: &CursorTold) -> DocumentBuf {
    let last_use_ms = activity.now_ms - told.unused_for.as_millis() as i64;
    DocumentBuf::new()
        .with("cursorId", id)
        .with("createdDate", ValueRef::DateTime(told.origin.created_ms))
        .with("lastAccessDate", ValueRef::DateTime(last_use_ms))
        .with("nDocsReturned", told.progress.documents as i64)
        .with("nBatchesReturned", told.progress.batches as i64)
        .with("noCursorTimeout", told.origin.has_no_timeout)
        .with("tailable", told.origin.is_tailable)
        .with("awaitData", told.origin.awaits_data)
        .with("originatingCommand", &told.origin.command)
}

/// A truncated command, as MongoDB shows it.
fn truncated(kept: DocumentRef<'_>) -> DocumentBuf {
    let mut text = ValueText(ValueRef::Document(kept)).to_string();
    text.push_str("...");
    let mut truncated = DocumentBuf::new().with("$truncated", text.as_str());
    if let Some(comment) = kept.get("comment") {
        truncated.append("comment", comment);
    }
    truncated
}

/// The id of the cursor that a `getMore` reads.
fn cursor_in_use(observed: &Observed) -> Option<i64> {
    let first = observed.command.as_ref().first().filter(|_| observed.entry.reads == ReadsFrom::Cursor)?;
    number::as_i64_exact(first.value)
}

/// State of an index build that an operation waits for.
enum Build {
    Waits,
    Scans { done: u64, total: u64 },
}

impl Build {
    /// The state of an index's build; `None` if the index is ready.
    fn of(index: &Index) -> Option<Self> {
        if index.is_build_waiting() {
            return Some(Self::Waits);
        }
        index.build_progress().map(|(done, total)| Self::Scans { done, total })
    }
}

/// State of the build that the operation waits for.
fn index_build(activity: Activity<'_>, observed: &Observed) -> Option<Build> {
    if observed.entry.index_build == IndexBuildUse::None {
        return None;
    }
    let command = observed.command.as_ref();
    let name = command.first()?.value.as_str()?;
    let collection = activity.catalog.collection(&Namespace::new(&observed.database, name).ok()?)?;
    let Some(specs) = command.get("indexes").and_then(ValueRef::as_array) else {
        // The specifications were too large to be kept.
        return collection.indexes().iter().find_map(|index| Build::of(index));
    };
    let mut names = specs.iter().filter_map(|spec| spec.as_document()?.get("name")?.as_str());
    names.find_map(|name| Build::of(&*collection.index(name)?))
}
