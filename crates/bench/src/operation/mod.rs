//! Operations of phases. An operation is one file here and one line in the table below.

mod aggregate;
mod dump;
mod find;
mod find_in;
mod increment;
mod index;
mod insert;
mod load;
mod mixed;
mod progress;
mod range;
mod read_modify_write;
mod reply_cursor;
mod restore;
mod scan;
mod sessions;
mod template;
mod transaction;
mod transfer;
mod update;
mod verify;

pub(crate) use dump::Dump;
pub(crate) use index::{check_keys, create_index};
pub(crate) use mixed::Part as MixedPart;
pub(crate) use progress::{Budget, Insertions, Share};
pub(crate) use restore::Restore;
pub use sessions::SessionUse;
pub(crate) use transfer::{ArchiveCache, BulkSetting, CompressionSetting, Form, Transfer, Workers};

use crate::database::Collections;
use bunko_client::frame::ReplyMode;
use bunko_client::{CommandError, Reply, WriteConcern};
use bunko_dataset::Dataset;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The table: name in scenario files, settings, description.
macro_rules! operations {
    ($($variant:ident($settings:ty) = $name:literal, $about:literal;)*) => {
        /// An operation with its settings: `operation.NAME = { ... }` in a scenario.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        pub enum OperationSettings {
            $(#[doc = $about] #[serde(rename = $name)] $variant($settings),)*
        }

        /// Name and description of every operation.
        pub const OPERATIONS: &[(&str, &str)] = &[$(($name, $about)),*];

        impl OperationSettings {
            /// Its name in scenario files.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name,)* }
            }

            pub(crate) fn operation(&self) -> &dyn Operation {
                match self { $(Self::$variant(settings) => settings,)* }
            }
        }
    };
}

operations! {
    Load(load::Load) = "load", "insert the whole dataset into an empty collection";
    Insert(insert::Insert) = "insert", "insert further documents of the dataset";
    Index(index::Index) = "index", "build an index on the documents that are there";
    Find(find::Find) = "find", "find one document by _id";
    FindIn(find_in::FindIn) = "find-in", "find several documents by _id with $in";
    Range(range::Range) = "range", "read documents that follow one another in the order of _id";
    Scan(scan::Scan) = "scan", "read the whole collection";
    Update(update::Update) = "update", "set a field of one document found by _id";
    Increment(increment::Increment) = "increment", "add 1 to a field of one document found by _id";
    ReadModifyWrite(read_modify_write::ReadModifyWrite) = "read-modify-write", "find one document by _id, then set a field of it";
    Transaction(transaction::Transaction) = "transaction", "change and insert a few documents in one transaction";
    Aggregate(aggregate::Aggregate) = "aggregate", "run an aggregation pipeline";
    Verify(verify::Verify) = "verify", "read every document back and compare it with what was generated";
    Dump(Dump) = "dump", "dump all collections to files";
    Restore(Restore) = "restore", "drop all collections and restore them from the dump";
    Mixed(mixed::Mixed) = "mixed", "several operations at once, each with a weight";
}

/// Effect of an operation on the collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Changes nothing.
    Reads,
    /// Fills an empty collection.
    Fills,
    /// Adds documents.
    Inserts,
    /// Builds an object that exists only once. With several generators, the first one builds it.
    Builds,
    /// Drops everything and restores it.
    Restores,
    /// Changes these top-level fields.
    Changes(Vec<String>),
}

impl Effect {
    /// Whether a write concern decides if the server replies. Building an index always gives a reply.
    pub fn obeys_write_concern(&self) -> bool {
        !matches!(self, Self::Reads | Self::Builds)
    }
}

/// Whether requests move whole documents, so that bytes per second mean something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moves {
    WholeDocuments,
    Parts,
}

/// Settings of an operation, which can run it.
pub(crate) trait Operation {
    fn effects(&self) -> Vec<Effect>;

    fn moves(&self) -> Moves {
        Moves::Parts
    }

    /// Number of requests after which the operation is complete; `None` if it has no end of its own.
    fn natural_requests(&self, documents: u64, slots: u64) -> Option<u64> {
        let _ = (documents, slots);
        self.transfer().map(|_| 1)
    }

    /// Checks the settings against the dataset.
    fn check(&self, dataset: &Dataset) -> Result<(), String> {
        let _ = dataset;
        Ok(())
    }

    /// The transfer, if the operation dumps or restores, which is not made of the lab's own requests.
    fn transfer(&self) -> Option<Transfer<'_>> {
        None
    }

    /// Whether it uses sessions of its own, so that its requests cannot be put into other ones.
    fn has_sessions(&self) -> bool {
        false
    }

    /// Whether it supports a dataset that is spread over several collections.
    fn takes_collections(&self) -> bool {
        self.transfer().is_some()
    }

    /// Makes one thread's requests. Only operations with a [`Self::transfer`] have none.
    fn start(&self, assignment: &Assignment<'_>) -> Result<Box<dyn Requests>, String> {
        let _ = assignment;
        Err("it is not made of single requests".to_owned())
    }
}

/// Checks a share of the collection that completes an operation. More than 1 reads documents again.
fn check_share(share: Option<f64>) -> Result<(), String> {
    match share {
        Some(share) if !(share > 0.0 && share.is_finite()) => Err(format!("share: {share} is not above 0")),
        _ => Ok(()),
    }
}

/// Number of requests that together ask for a share of the documents, with a given number in each; `None` without a
/// share.
fn requests_for_share(share: Option<f64>, documents: u64, documents_per_request: u64) -> Option<u64> {
    let wanted = (documents as f64 * share?).ceil() as u64;
    Some(wanted.div_ceil(documents_per_request).max(1))
}

/// Refuses a field that documents of the dataset lack, because work on it would measure nothing. `setting` names the
/// setting in the error.
pub(crate) fn check_field(dataset: &Dataset, setting: &str, field: &str) -> Result<(), String> {
    if dataset.has_field(field) {
        return Ok(());
    }
    let (shape, names) = (dataset.shape().name, dataset.field_names());
    Err(format!("{setting}: documents of '{shape}' have no field '{field}'; they have {names}"))
}

/// Data and parameters of one thread.
#[derive(Clone, Copy)]
pub(crate) struct Assignment<'a> {
    pub dataset: &'a Arc<Dataset>,
    pub database: &'a str,
    /// The collection of operations that use only one.
    pub collection: &'a str,
    pub collections: Collections,
    pub write_concern: &'a WriteConcern,
    /// Documents that exist and those that are being added; shared by all threads.
    pub insertions: &'a Arc<Insertions>,
    /// Numbers that threads take in turn.
    pub sequence: &'a Arc<Budget>,
    /// Top-level fields that no longer have the dataset's values.
    pub changed: &'a BTreeSet<String>,
    pub seed: u64,
    /// Number of this thread's random stream.
    pub stream: u64,
}

impl Assignment<'_> {
    pub fn reply_mode(&self) -> ReplyMode {
        if self.write_concern.expects_reply() { ReplyMode::Expected } else { ReplyMode::Silent }
    }
}

/// One thread's requests.
pub(crate) trait Requests: Send {
    /// Appends a request and returns its tag; `None` when there are no more.
    fn next(&mut self, request_id: i32, out: &mut Vec<u8>) -> Option<u64>;

    /// Handles a successful reply.
    /// # Errors
    /// A description of a wrong reply.
    fn on_reply(&mut self, tag: u64, reply: Reply<'_>) -> Result<Answer, String>;

    /// Appends the request that an [`Answer::More`] asked for and returns its tag.
    fn follow(&mut self, step: u64, request_id: i32, out: &mut Vec<u8>) -> u64 {
        let _ = (step, request_id, out);
        unreachable!("only an operation that answers More is asked to follow")
    }

    /// The part of a mix that a tag belongs to; 0 if the phase is not mixed.
    fn part(&self, tag: u64) -> usize {
        let _ = tag;
        0
    }

    /// Notes a request that will not be answered; returns its number of documents.
    fn sent(&mut self, tag: u64) -> u64 {
        let _ = tag;
        1
    }

    /// After a transient failure of a request, returns the step with which its operation begins anew; `None` if the
    /// failure is final.
    fn again(&mut self, tag: u64, error: &CommandError) -> Option<u64> {
        let _ = (tag, error);
        None
    }

    /// Removes a request that failed.
    fn on_failure(&mut self, tag: u64) {
        let _ = tag;
    }
}

/// Meaning of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The operation is complete.
    Done {
        /// Documents to count with this reply.
        documents: u64,
    },
    /// The operation needs another request.
    More {
        /// Documents to count with this reply.
        documents: u64,
        /// Passed to [`Requests::follow`].
        step: u64,
    },
}
