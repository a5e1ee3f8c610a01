//! `$set` of a field of one document found by its `_id`: the five updates of experiment E4, and YCSB's.

use super::increment::{matched_one, update_command};
use super::template::Template;
use super::{Answer, Assignment, Budget, Effect, Insertions, Operation, Requests};
use bunko_bson::{DocumentBuf, ValueRef};
use bunko_client::Reply;
use bunko_client::frame::{FrameWriter, ReplyMode};
use bunko_dataset::{Dataset, Distribution, Id, KeyStream};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

const LENGTH_MAX: usize = 1 << 20;

/// Settings of the operation `update`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Update {
    /// The fields; each request sets one of them.
    pub fields: Vec<String>,
    /// The type of the new value.
    pub to: NewValue,
    /// Characters of a new string.
    #[serde(default)]
    pub length: usize,
    /// Distribution of the documents that are changed. In sequence, the operation is complete when every document has
    /// been changed once.
    #[serde(default)]
    pub keys: Distribution,
    /// Average number of updates for each document after which the operation is complete.
    #[serde(default)]
    pub share: Option<f64>,
}

/// The type of the new value; the value itself is random.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NewValue {
    /// A 32-bit integer.
    Int32,
    /// A 64-bit integer.
    Int64,
    /// A string of `length` characters.
    String,
}

impl Operation for Update {
    fn effects(&self) -> Vec<Effect> {
        vec![Effect::Changes(self.fields.clone())]
    }

    fn natural_requests(&self, documents: u64, _slots: u64) -> Option<u64> {
        let in_sequence = (self.keys == Distribution::Sequential).then_some(documents);
        in_sequence.or_else(|| super::requests_for_share(self.share, documents, 1))
    }

    fn check(&self, dataset: &Dataset) -> Result<(), String> {
        if self.fields.is_empty() {
            return Err("fields: at least one is needed".into());
        }
        self.fields.iter().try_for_each(|field| super::check_field(dataset, "fields", field))?;
        if self.share.is_some() && self.keys == Distribution::Sequential {
            return Err("share: in sequence each document is changed once".into());
        }
        super::check_share(self.share)?;
        match (self.to, self.length) {
            (NewValue::String, 1..=LENGTH_MAX) | (NewValue::Int32 | NewValue::Int64, 0) => Ok(()),
            (NewValue::String, length) => Err(format!("length: {length} is not in 1..{LENGTH_MAX}")),
            (_, length) => Err(format!("length: {length} is given, but a number has none")),
        }
    }

    fn start(&self, assignment: &Assignment<'_>) -> Result<Box<dyn Requests>, String> {
        self.check(assignment.dataset)?;
        Ok(Box::new(UpdateRequests::new(self, assignment)))
    }
}

pub(super) struct UpdateRequests {
    dataset: Arc<Dataset>,
    insertions: Arc<Insertions>,
    sequence: Option<Arc<Budget>>,
    commands: Vec<Template>,
    mode: ReplyMode,
    keys: KeyStream,
    random: Xoshiro256PlusPlus,
    value: Vec<u8>,
    to: NewValue,
}

impl UpdateRequests {
    pub fn new(settings: &Update, assignment: &Assignment<'_>) -> Self {
        let placeholder = Id::placeholder(assignment.dataset.id(0).kind());
        let value = match settings.to {
            NewValue::Int32 => 4,
            NewValue::Int64 => 8,
            NewValue::String => settings.length,
        };
        // Placeholder of the new value. `Template` finds it by its bytes, so they must occur nowhere else in the
        // command.
        let value = vec![0x7f_u8; value];
        let command = |field: &String| {
            let new = match settings.to {
                NewValue::Int32 => ValueRef::Int32(i32::from_le_bytes([0x7f; 4])),
                NewValue::Int64 => ValueRef::Int64(i64::from_le_bytes([0x7f; 8])),
                NewValue::String => ValueRef::String(std::str::from_utf8(&value).unwrap_or_default()),
            };
            let update = DocumentBuf::new().with("$set", &DocumentBuf::new().with(field, new));
            Template::new(update_command(assignment, &placeholder, &update), &placeholder).with_value(&value)
        };
        Self {
            dataset: Arc::clone(assignment.dataset),
            insertions: Arc::clone(assignment.insertions),
            sequence: (settings.keys == Distribution::Sequential).then(|| Arc::clone(assignment.sequence)),
            commands: settings.fields.iter().map(command).collect(),
            mode: assignment.reply_mode(),
            keys: KeyStream::new(settings.keys, assignment.seed, assignment.stream),
            random: Xoshiro256PlusPlus::seed_from_u64(assignment.seed ^ assignment.stream.rotate_left(32)),
            value,
            to: settings.to,
        }
    }

    /// Appends the update of the document at a place.
    pub fn update(&mut self, index: u64, request_id: i32, out: &mut Vec<u8>) {
        self.random.fill_bytes(&mut self.value);
        match self.to {
            // Never negative, like the generated documents.
            NewValue::Int32 | NewValue::Int64 => *self.value.last_mut().expect("four or eight bytes") &= 0x7f,
            NewValue::String => self.value.iter_mut().for_each(|byte| *byte = (*byte & 0x3f) + b' '),
        }
        let field = self.random.next_u32() as usize % self.commands.len();
        let command = self.commands[field].set_id(0, &self.dataset.id(index));
        command.value(self.value.len()).copy_from_slice(&self.value);
        let frame = FrameWriter::new(out, request_id, self.mode, command.command());
        frame.finish().expect("a value's length is limited");
    }
}

impl Requests for UpdateRequests {
    fn next(&mut self, request_id: i32, out: &mut Vec<u8>) -> Option<u64> {
        let index = match &self.sequence {
            Some(sequence) => self.insertions.of_share(sequence.take(1)?.start),
            None => self.insertions.readable(self.keys.next(self.insertions.readable_count())),
        };
        self.update(index, request_id, out);
        Some(0)
    }

    fn on_reply(&mut self, _tag: u64, reply: Reply<'_>) -> Result<Answer, String> {
        matched_one(reply)
    }
}
