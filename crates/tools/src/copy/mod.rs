//! `bunko copy`: the data of a running server into another one, without a dump, and its changes after it.
//!
//! ```text
//! once:    noted time T ── dump of the snapshot T ══ pipe ══ restore ── users and roles ── comparison
//! follow:  noted time T ── dump ══ pipe ══ restore ── events from T on, without an end
//! finish:  events until now ── (writes blocked) ── events until then ── comparison
//! ```
//! An event of the source's change stream says *which* document has changed; its present state is then read from the
//! source (`changes.rs`). So each document of the target is in a state that the source's document had at or after the
//! last event that was applied to it. Once the source rests and all its events are applied, both are equal, byte for
//! byte. Applying the stored updates in order was rejected: an update tells the order of the fields and ambiguous paths
//! not exactly, and events that the copy has seen already would have to be told from others.
//!
//! Commands on collections are followed in the same way: the target gets the definition that the source has now
//! (`definitions.rs`).
//!
//! The progress is a document in the target (`record.rs`), written after all that it says is done.
//!
//! **Invariant:** the recorded position is never later than the events that are applied and committed by a majority.
//! **Invariant:** memory is bounded: a reply, and what is read for it, for each thread.

mod bulk;
mod changes;
mod conflicts;
mod definitions;
mod documents;
mod equality;
mod events;
mod expiry;
mod facts;
mod fence;
mod finish;
mod follow;
mod listing;
mod notice;
mod pair;
mod record;
mod scope;
mod series;

pub use notice::Notice;

use crate::namespaces::Filter;
use crate::progress::Progress;
use crate::restore::EmptyTimestamps;
use crate::{Interrupted, Server, ToolError};
use bunko_bson::{DocumentBuf, Timestamp, ValueRef};
use facts::Facts;
use pair::Pair;
use record::{Phase, Record};
use scope::Scope;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// Attempts to copy collections that change their names meanwhile.
const ATTEMPTS_MAX: u32 = 10;

/// Beginning of the `appName` of all copies' connections to their targets.
pub const APP_NAME: &str = "bunko copy";

/// Work after the data is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nothing: the copy is of one moment.
    Once,
    /// Changes of the source are applied until the user interrupts.
    Follow,
    /// Changes of the source are applied until there are no more, and both are compared.
    Finish,
}

/// Fate of data that the target has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// A target with data of its own is refused.
    Refuse,
    /// The data is dropped before the copy begins. A copy that was begun goes on.
    Drop,
    /// As [`Self::Drop`], also where an earlier copy could go on.
    Anew,
}

/// Whether clients may write to the source while the last changes are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceWrites {
    /// Clients may write; the user stops them.
    GoOn,
    /// The source refuses them (`setUserWriteBlockMode`), also after the end.
    Block,
}

/// Whether source and target are compared at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// All documents and indexes are compared.
    Everything,
    /// Nothing is compared.
    Nothing,
}

/// All options of a copy.
#[derive(Clone, Debug)]
pub struct CopyOptions {
    /// Namespaces to copy; the servers' own are never copied.
    pub filter: Filter,
    /// Work after the data is copied.
    pub mode: Mode,
    /// Fate of data that the target has.
    pub existing: Existing,
    /// Whether the source refuses writes at the end.
    pub source_writes: SourceWrites,
    /// Whether both are compared at the end.
    pub comparison: Comparison,
    /// Threads that read, and threads that apply changes.
    pub threads: NonZeroUsize,
    /// The `appName` of this run's connections to the target, which no other run has; it begins with [`APP_NAME`].
    pub app_name: String,
}

/// A copy that runs.
struct Copy<'a> {
    source: &'a dyn Server,
    target: &'a dyn Server,
    options: &'a CopyOptions,
    scope: Scope,
    /// Whether the target can keep zero timestamps.
    empty_timestamps: EmptyTimestamps,
    progress: &'a Arc<Progress>,
    interrupted: &'a Interrupted,
    report: &'a (dyn Fn(&Notice) + Sync),
}

/// The two servers of a copy.
#[derive(Clone, Copy)]
pub struct Servers<'a> {
    /// The server whose data is copied.
    pub source: &'a dyn Server,
    /// The server that gets the data.
    pub target: &'a dyn Server,
}

/// Copies, and follows if the options say so. Returns after the user's interruption of [`Mode::Follow`], too.
/// # Errors
/// `Usage` for servers between which nothing can be copied; the error of a server, after attempts that took about a
/// minute; `Failed` if both differ at the end; `Interrupted` before anything is followed.
pub fn run(
    servers: Servers<'_>,
    options: &CopyOptions,
    progress: &Arc<Progress>,
    interrupted: &Interrupted,
    report: &(dyn Fn(&Notice) + Sync),
) -> Result<(), ToolError> {
    let Servers { source, target } = servers;
    let scope = Scope::new(options.filter.clone());
    let empty_timestamps = EmptyTimestamps::OfServer;
    let mut copy = Copy { source, target, options, scope, empty_timestamps, progress, interrupted, report };
    let mut pair = Pair::connect(&copy)?;
    let facts = Facts::check(&copy, &mut pair)?;
    copy.empty_timestamps = facts.empty_timestamps;
    let record = copy.begin(&mut pair, &facts)?;
    match options.mode {
        Mode::Once => copy.once(&mut pair, record),
        Mode::Follow | Mode::Finish => copy.live(&mut pair, record),
    }
}

impl Copy<'_> {
    /// Reads the record of an earlier copy, or makes one on a target without data.
    fn begin(&self, pair: &mut Pair, facts: &Facts) -> Result<Record, ToolError> {
        let selection = self.scope.fingerprint();
        let earlier = Record::read(pair.target())?;
        let has_stopped_expiry = earlier.as_ref().is_some_and(|record| record.has_stopped_expiry);
        if let Some(mut record) = earlier.filter(|_| self.options.existing != Existing::Anew) {
            record.check(&facts.source_name, &selection, self.options)?;
            if record.phase != Phase::Finished {
                record.take_over(pair.target())?;
                fence::wait_for_earlier_runs(self, pair)?;
                self.note(format!("an earlier copy goes on ({})", record.phase.name()));
                return Ok(record);
            }
        }
        let found = listing::all(pair.target(), &self.scope)?;
        if self.options.existing == Existing::Refuse
            && let Some(first) = found.first()
        {
            let count = found.len();
            return Err(ToolError::Usage(format!(
                "the target has data of its own: {} ({count} collections and views in all): --drop drops them first",
                first.namespace()
            )));
        }
        let wanted = listing::all(pair.source(), &self.scope)?;
        if let Some(encrypted) = wanted.iter().find(|listed| listed.is_encrypted()) {
            return Err(ToolError::Usage(format!(
                "{}: 'encryptedFields': a copy of collections with queryable encryption is not supported yet: \
                 --nsExclude leaves it out",
                encrypted.namespace()
            )));
        }
        if wanted.is_empty() {
            self.note("the source has none of the collections that were asked for".to_owned());
        }
        let mut record = Record::new(facts.source_name.clone(), selection);
        record.take_over(pair.target())?;
        fence::wait_for_earlier_runs(self, pair)?;
        for old in &found {
            pair.drop_on_target(&old.database, &old.name)?;
        }
        let shown = wanted.iter().find(|listed| listed.kind == listing::Kind::Collection && !listed.is_capped());
        record.noted = match (self.options.mode, shown) {
            (Mode::Once, Some(shown)) if facts.now.is_some() => facts::keep_snapshot(pair.source(), shown)?,
            _ => facts.now,
        };
        record.has_stopped_expiry = has_stopped_expiry;
        record.write_anew(pair.target())?;
        Ok(record)
    }

    /// Copies the data as of one moment.
    fn once(&self, pair: &mut Pair, mut record: Record) -> Result<(), ToolError> {
        let concern = record.noted.map(snapshot_at);
        if concern.is_none() {
            self.note(
                "the source is not a member of a replica set: the copy is of one moment only if nothing writes meanwhile"
                    .to_owned(),
            );
        }
        expiry::stop(self, pair, &mut record)?;
        let copied = self.copy_data(pair, record.run, concern.as_ref());
        let compared = copied.and_then(|()| equality::check(self, pair, concern.as_ref()));
        let expiring = expiry::go_on(self, pair, &mut record);
        compared.map_err(Self::with_advice)?;
        expiring?;
        record.phase = Phase::Finished;
        record.write(pair.target())
    }

    /// Copies everything that an earlier run has not copied.
    fn copy_data(&self, pair: &mut Pair, run: i64, concern: Option<&DocumentBuf>) -> Result<(), ToolError> {
        let listed = listing::all(pair.source(), &self.scope)?;
        let apart: Vec<_> = listed.into_iter().filter(|listed| is_copied_apart(listed, concern)).collect();
        bulk::copy_all(self, run, &apart, concern)?;
        for listed in &apart {
            if listed.is_series() {
                series::copy(self, pair, listed, concern)?;
            } else {
                self.note(format!("{}: capped, so it is copied as it is now", listed.namespace()));
                definitions::copy_anew(self, pair, listed)?;
            }
        }
        self.copy_users()
    }

    /// As [`Self::copy_data`]. A collection that the source renames or drops while it is read breaks the copy off; the
    /// collections that are copied then are not copied again.
    fn copy_data_of_changing_source(&self, pair: &mut Pair, run: i64, concern: &DocumentBuf) -> Result<(), ToolError> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            match self.copy_data(pair, run, Some(concern)) {
                Err(error) if may_pass(&error) && attempts < ATTEMPTS_MAX => {
                    self.note(format!("{error}: the collections that are left are tried again"));
                }
                ended => return ended,
            }
        }
    }

    /// Copies the data, and then follows the source's changes.
    fn live(&self, pair: &mut Pair, mut record: Record) -> Result<(), ToolError> {
        let noted = record.noted.ok_or_else(|| ToolError::Failed("the record of the copy has no time".into()))?;
        expiry::stop(self, pair, &mut record)?;
        if record.phase == Phase::Copying {
            self.copy_data_of_changing_source(pair, record.run, &majority_after(noted))?;
            record.phase = Phase::Following;
            record.write(pair.target())?;
        }
        let mut follower = follow::Follower::new(self, record);
        match self.options.mode {
            Mode::Finish => finish::finish(&mut follower, pair),
            _ => follower.follow_until_interrupted(),
        }
    }

    /// Users and roles belong to no database of their own, so a copy of some namespaces leaves them out.
    fn copy_users(&self) -> Result<(), ToolError> {
        if !self.options.filter.takes_everything() {
            return Ok(());
        }
        // A server without users, or a user who may not see or set them, does not end the copy.
        match bulk::copy_users(self) {
            Err(ToolError::Interrupted) => Err(ToolError::Interrupted),
            Err(error) => {
                self.note(format!("users and roles were not copied: {error}"));
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    fn note(&self, sentence: String) {
        (self.report)(&Notice::Note(sentence));
    }

    fn with_advice(error: ToolError) -> ToolError {
        match &error {
            ToolError::Server { cause, .. } if facts::is_snapshot_gone(cause) => ToolError::Failed(format!(
                "{error}: the source cannot show the moment of the copy any more: --follow --finish copies without one"
            )),
            _ => error,
        }
    }
}

/// Whether another attempt may succeed, because a rename or drop has broken this one off. A server's list may then show a
/// collection twice, so that its archive counts as damaged.
fn may_pass(error: &ToolError) -> bool {
    matches!(error, ToolError::Server { .. } | ToolError::Failed(_) | ToolError::Damaged { .. })
}

/// Whether a namespace is not copied with the others. Capped collections have no snapshots.
fn is_copied_apart(listed: &listing::Listed, concern: Option<&DocumentBuf>) -> bool {
    listed.is_series() || (listed.is_capped() && concern.is_some_and(is_snapshot))
}

fn is_snapshot(concern: &DocumentBuf) -> bool {
    concern.as_ref().get("atClusterTime").is_some()
}

/// The read concern of a state as of that time.
fn snapshot_at(at: Timestamp) -> DocumentBuf {
    DocumentBuf::new().with("level", "snapshot").with("atClusterTime", ValueRef::Timestamp(at))
}

/// The read concern of a state that has all changes until that time, and that no failover takes back.
fn majority_after(at: Timestamp) -> DocumentBuf {
    DocumentBuf::new().with("level", "majority").with("afterClusterTime", ValueRef::Timestamp(at))
}
