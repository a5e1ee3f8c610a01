//! Follows the source: reads events, applies them, and records how far.

use super::changes::{self, Changes};
use super::definitions::{self, Missing, Settled};
use super::events::{Batch, Event, Stream};
use super::listing::{self, Kind};
use super::pair::Pair;
use super::record::{self, Record};
use super::{Copy, Notice, expiry};
use crate::retry::{self, Backoff};
use crate::{ToolError, is_transient};
use bunko_bson::Timestamp;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Time between two lines on the lag.
const REPORT_INTERVAL: Duration = Duration::from_secs(2);
/// Time between two records of the position while nothing changes.
const IDLE_RECORD_INTERVAL: Duration = Duration::from_secs(10);
/// Time between two attempts to build indexes that the target has refused.
const SETTLE_INTERVAL: Duration = Duration::from_secs(10);

/// When to stop following.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// The user interrupts.
    Interrupted,
    /// The source had nothing new for a moment, or is less than a second ahead.
    Near,
    /// All events until that time are applied.
    Time(Timestamp),
}

impl Until {
    /// How long the source waits for an event: briefly for the last ones, because clients' writes wait for them.
    fn awaited(self) -> Duration {
        match self {
            Self::Interrupted | Self::Near => Duration::from_millis(500),
            Self::Time(_) => Duration::from_millis(10),
        }
    }
}

/// A copy that follows.
pub(super) struct Follower<'c> {
    pub(super) copy: &'c Copy<'c>,
    pub(super) record: Record,
    /// A pair of links for each thread that applies changes.
    pairs: Vec<Pair>,
    stream: Option<Stream>,
    /// Collections whose indexes the target has refused for now.
    unsettled: BTreeSet<(String, String)>,
    /// Whether all definitions have to be compared, because an earlier run may not have followed some.
    is_unsure: bool,
    changes: u64,
    reported: Instant,
    recorded: Instant,
    settled: Instant,
    backoff: Backoff,
}

impl<'c> Follower<'c> {
    pub(super) fn new(copy: &'c Copy<'c>, record: Record) -> Self {
        let now = copy.progress.clock().now();
        Self {
            copy,
            record,
            pairs: Vec::new(),
            stream: None,
            unsettled: BTreeSet::new(),
            is_unsure: true,
            changes: 0,
            reported: now,
            recorded: now,
            settled: now,
            backoff: Backoff::default(),
        }
    }

    /// Follows until the user interrupts, which ends without an error.
    /// # Errors
    /// As [`Self::follow`].
    pub(super) fn follow_until_interrupted(&mut self) -> Result<(), ToolError> {
        match self.follow(Until::Interrupted) {
            Err(ToolError::Interrupted) => {
                self.copy.note("stopped: the same command goes on, and --finish ends the copy".to_owned());
                Ok(())
            }
            ended => ended,
        }
    }

    /// Applies events. A server that is gone is tried again for about a minute.
    /// # Errors
    /// The servers', the connections'; `Failed` if the source no longer has the events; `Interrupted`.
    pub(super) fn follow(&mut self, until: Until) -> Result<(), ToolError> {
        loop {
            match self.try_follow(until) {
                Err(ToolError::Server { namespace, cause }) if is_transient(&cause) => {
                    self.copy.note(format!("{namespace}: {cause}: trying again"));
                    self.stream = None;
                    self.pairs.clear();
                    self.backoff.wait(&namespace, *cause, self.copy.interrupted)?;
                }
                ended => return ended,
            }
        }
    }

    fn try_follow(&mut self, until: Until) -> Result<(), ToolError> {
        if self.pairs.is_empty() {
            self.connect()?;
        }
        loop {
            retry::check(self.copy.interrupted)?;
            let batch = self.read(until.awaited())?;
            let (now, at, is_empty) = (batch.now, batch.until, batch.events.is_empty());
            self.apply(batch)?;
            self.backoff.reset();
            let lag = if is_empty { 0 } else { now.seconds.saturating_sub(at.seconds) };
            self.report(lag);
            if is_empty {
                self.settle()?;
            }
            let is_reached = match until {
                Until::Interrupted => false,
                Until::Near => lag < 1,
                // A batch may end between events of one transaction, which have one time.
                Until::Time(time) => at > time || (is_empty && at == time),
            };
            if is_reached {
                return self.write_record();
            }
        }
    }

    fn connect(&mut self) -> Result<(), ToolError> {
        while self.pairs.len() < self.copy.options.threads.get() {
            self.pairs.push(Pair::connect(self.copy)?);
        }
        let pair = &mut self.pairs[0];
        // Another run may have taken the copy over while this run had no connection. That run did not wait for this
        // one, so this one must end.
        record::check_run(pair.target(), self.record.run)?;
        // `ttlMonitorEnabled` is off on the former primary only: turn it off on the new one.
        expiry::stop(self.copy, pair, &mut self.record)?;
        for namespace in record::unfinished(pair.target())? {
            let Some((database, collection)) = namespace.split_once('.') else { continue };
            match listing::one(pair.source(), database, collection)? {
                Some(listed) if listed.kind == Kind::Collection => definitions::copy_anew(self.copy, pair, &listed)?,
                // The source has dropped or renamed the collection: the change stream brings that.
                _ => record::forget_unfinished(pair.target(), &namespace)?,
            }
        }
        Ok(())
    }

    fn read(&mut self, awaited: Duration) -> Result<Batch, ToolError> {
        let source = self.pairs[0].source();
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => {
                let noted = self.record.noted.expect("a copy that follows has noted a time");
                none.insert(Stream::open(source, self.record.token.as_ref(), noted)?)
            }
        };
        stream.next(source, awaited)
    }

    fn apply(&mut self, batch: Batch) -> Result<(), ToolError> {
        let is_empty = batch.events.is_empty();
        let mut changes = Changes::default();
        for event in batch.events {
            self.changes += 1;
            match event {
                Event::Document { database, collection, id } => changes.add(database, collection, id),
                other => {
                    changes::apply(self.copy, &mut self.pairs, std::mem::take(&mut changes), batch.until)?;
                    self.apply_definition(other)?;
                }
            }
        }
        changes::apply(self.copy, &mut self.pairs, changes, batch.until)?;
        let earlier = self.record.token.replace(batch.token);
        let clock = self.copy.progress.clock();
        if is_empty && clock.since(self.recorded) < IDLE_RECORD_INTERVAL {
            return Ok(());
        }
        let written = self.write_record();
        if written.is_err() {
            // A failover of the target may have taken the changes back: they are applied again.
            self.record.token = earlier;
        }
        written
    }

    fn write_record(&mut self) -> Result<(), ToolError> {
        self.recorded = self.copy.progress.clock().now();
        self.record.write(self.pairs[0].target())
    }

    fn apply_definition(&mut self, event: Event) -> Result<(), ToolError> {
        let scope = &self.copy.scope;
        match event {
            Event::Definition { database, collection } => self.follow_definition(database, collection, Missing::Create),
            Event::Dropped { database, collection } => {
                if scope.takes(&database, &collection) {
                    self.pairs[0].drop_on_target(&database, &collection)?;
                }
                Ok(())
            }
            Event::Renamed { database, collection, to_database, to } => {
                if scope.takes(&database, &collection) {
                    self.pairs[0].drop_on_target(&database, &collection)?;
                    self.follow_definition(database, collection, Missing::Create)?;
                }
                // The events until now were applied to its former name, which the source may no longer have.
                if scope.takes(&to_database, &to) {
                    self.pairs[0].drop_on_target(&to_database, &to)?;
                    self.follow_definition(to_database, to, Missing::Copy)?;
                }
                Ok(())
            }
            Event::DatabaseDropped { database } => {
                let there = listing::of_database(self.pairs[0].source(), scope, &database)?;
                for old in listing::of_database(self.pairs[0].target(), scope, &database)? {
                    if !there.iter().any(|listed| listed.name == old.name) {
                        self.pairs[0].drop_on_target(&database, &old.name)?;
                    }
                }
                Ok(())
            }
            Event::Document { .. } => Ok(()),
        }
    }

    fn follow_definition(&mut self, database: String, collection: String, missing: Missing) -> Result<(), ToolError> {
        if !self.copy.scope.takes(&database, &collection) {
            return Ok(());
        }
        match definitions::follow(self.copy, &mut self.pairs[0], (&database, &collection), missing)? {
            Settled::Yes => self.unsettled.remove(&(database, collection)),
            Settled::Later => self.unsettled.insert((database, collection)),
        };
        Ok(())
    }

    /// Builds the indexes that had to wait, now that no event waits.
    fn settle(&mut self) -> Result<(), ToolError> {
        if self.is_unsure {
            return self.follow_all_definitions();
        }
        if self.unsettled.is_empty() || self.copy.progress.clock().since(self.settled) < SETTLE_INTERVAL {
            return Ok(());
        }
        self.settled = self.copy.progress.clock().now();
        for (database, collection) in self.unsettled.clone() {
            self.follow_definition(database, collection, Missing::Create)?;
        }
        Ok(())
    }

    /// Compares all definitions, and follows each that differs.
    /// # Errors
    /// The servers', the connections', `Interrupted`.
    pub(super) fn follow_all_definitions(&mut self) -> Result<(), ToolError> {
        let pair = &mut self.pairs[0];
        let mut names = BTreeSet::new();
        for listed in listing::all(pair.source(), &self.copy.scope)? {
            names.insert((listed.database, listed.name));
        }
        for listed in listing::all(pair.target(), &self.copy.scope)? {
            if listed.kind != Kind::Series {
                names.insert((listed.database, listed.name));
            }
        }
        for (database, collection) in names {
            retry::check(self.copy.interrupted)?;
            self.follow_definition(database, collection, Missing::Copy)?;
        }
        self.is_unsure = false;
        Ok(())
    }

    fn report(&mut self, seconds: u32) {
        let clock = self.copy.progress.clock();
        if clock.since(self.reported) >= REPORT_INTERVAL {
            self.reported = clock.now();
            (self.copy.report)(&Notice::Lag { seconds, changes: self.changes });
        }
    }
}
