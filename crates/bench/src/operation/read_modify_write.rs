//! A find, then an update of the found document: YCSB's workload F. Its latency covers both.

use super::find::{FindRequests, found_one};
use super::increment::matched_one;
use super::update::{NewValue, Update, UpdateRequests};
use super::{Answer, Assignment, Effect, Operation, Requests};
use bunko_client::Reply;
use bunko_dataset::{Dataset, Distribution};
use serde::{Deserialize, Serialize};

/// Settings of the operation `read-modify-write`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ReadModifyWrite {
    /// The fields; each request sets one of them.
    pub fields: Vec<String>,
    /// The type of the new value.
    pub to: NewValue,
    /// Characters of a new string.
    #[serde(default)]
    pub length: usize,
    /// Distribution of the documents that are changed.
    pub keys: Distribution,
}

impl ReadModifyWrite {
    fn update(&self) -> Update {
        Update { fields: self.fields.clone(), to: self.to, length: self.length, keys: self.keys, share: None }
    }
}

impl Operation for ReadModifyWrite {
    fn effects(&self) -> Vec<Effect> {
        vec![Effect::Reads, Effect::Changes(self.fields.clone())]
    }

    fn check(&self, dataset: &Dataset) -> Result<(), String> {
        self.update().check(dataset)
    }

    fn start(&self, assignment: &Assignment<'_>) -> Result<Box<dyn Requests>, String> {
        let find = FindRequests::new(assignment, self.keys);
        let update = UpdateRequests::new(&self.update(), assignment);
        Ok(Box::new(ReadModifyWriteRequests { find, update }))
    }
}

struct ReadModifyWriteRequests {
    find: FindRequests,
    update: UpdateRequests,
}

/// Set in the tag of an update; the other bits of a tag are the document's place.
const UPDATING: u64 = 1 << 63;

impl Requests for ReadModifyWriteRequests {
    fn next(&mut self, request_id: i32, out: &mut Vec<u8>) -> Option<u64> {
        let index = self.find.choose();
        self.find.ask(index, request_id, out);
        Some(index)
    }

    fn on_reply(&mut self, tag: u64, reply: Reply<'_>) -> Result<Answer, String> {
        if tag & UPDATING != 0 {
            return matched_one(reply);
        }
        found_one(reply).map(|_| Answer::More { documents: 0, step: tag })
    }

    fn follow(&mut self, step: u64, request_id: i32, out: &mut Vec<u8>) -> u64 {
        self.update.update(step, request_id, out);
        step | UPDATING
    }
}
