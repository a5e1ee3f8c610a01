//! The groups of a `$group` in memory, and the documents that wait on disk for room.
//!
//! When the memory is full, documents of new groups go to files, partitioned by the hash of their group. Existing
//! groups may still use a reserve; once it is used up, their documents go to files too. After the input has ended,
//! complete groups are returned. Then each partition is grouped on its own, starting from the state of its unfinished
//! groups. So every group sees its documents in input order, however much memory there was, and accumulators are never
//! merged.

use super::Group;
use super::integers::Integers;
use crate::Environment;
use crate::stages::stage_memory::too_large;
use bunko_bson::key_string::Direction;
use bunko_bson::{DocumentBuf, DocumentRef, Value, Writer};
use bunko_errors::Result;
use bunko_expression::{Accumulator, Dependencies, Evaluated, EvaluationContext, Number, Operand, Total};
use bunko_operation::Gatherer;
use bunko_scratch::{PARTITIONS, Partitions, RecordReader, Spilled};
use hashbrown::HashTable;
use std::collections::BTreeSet;
use std::hash::BuildHasher;
use std::sync::Arc;

/// Divisor for the reserve: the part of the memory left to existing groups once new groups go to disk.
const RESERVE_PART: usize = 16;

/// A group: its `_id` as it first came, and its accumulated state.
pub(super) struct Gathered {
    pub id: Value,
    pub totals: Box<[Total]>,
    pub accumulators: Vec<Box<dyn Accumulator>>,
}

/// A group in memory; the totals of all groups are kept together elsewhere.
struct Kept {
    id: Value,
    accumulators: Vec<Box<dyn Accumulator>>,
}

/// Documents on disk, and the unfinished groups that some of them belong to.
pub(super) struct Pending {
    documents: RecordReader,
    groups: Vec<(Box<[u8]>, Gathered)>,
    level: u32,
}

/// The result of one level: complete groups, partitions still to be grouped, and data put on disk.
type Finished = (Complete, Vec<Pending>, Spilled);

/// Groups that are complete: no document for them is to come.
#[derive(Default)]
pub(super) struct Complete {
    kept: std::vec::IntoIter<Kept>,
    totals: std::vec::IntoIter<Total>,
    /// Number of totals per group.
    each: usize,
}

/// A group's entry in the table: its key, and whether its documents wait on disk.
struct Slot {
    hash: u64,
    /// Start of its key.
    key_start: usize,
    key_bytes: u32,
    /// Whether the group has documents on disk: all later ones must follow them there.
    waits: bool,
}

/// The groups of one level, ordered by first document.
pub(super) struct Groups {
    stage: Arc<Group>,
    environment: Arc<Environment>,
    hasher: foldhash::fast::RandomState,
    /// Positions by key string of `_id`: 1 and 1.0 are one group.
    positions: HashTable<u32>,
    integers: Integers,
    slots: Vec<Slot>,
    keys: Vec<u8>,
    kept: Vec<Kept>,
    /// The totals of all groups, group by group.
    totals: Vec<Total>,
    memory_bytes: usize,
    /// Never grows: a key whose documents were put on disk must not find room later.
    bytes_max: usize,
    /// Bytes of groups brought from the previous level, in addition to the limit.
    brought_bytes: usize,
    level: u32,
    partitions: Option<Partitions>,
    /// Fields needed of a document that comes back from disk; `None` for all.
    needed: Option<BTreeSet<String>>,
    /// Reused between documents.
    key: Vec<u8>,
    document: Vec<u8>,
}

impl Groups {
    pub fn new(stage: Arc<Group>, environment: Arc<Environment>) -> Self {
        let bytes_max = environment.operation().stage_bytes_max(Gatherer::Group);
        let needed = stage.needed_fields();
        Self {
            stage,
            environment,
            hasher: foldhash::fast::RandomState::default(),
            positions: HashTable::new(),
            integers: Integers::default(),
            slots: Vec::new(),
            keys: Vec::new(),
            kept: Vec::new(),
            totals: Vec::new(),
            memory_bytes: 0,
            bytes_max,
            brought_bytes: 0,
            level: 0,
            partitions: None,
            needed,
            key: Vec::new(),
            document: Vec::new(),
        }
    }

    /// Groups a partition that the previous level put on disk, starting from its unfinished groups.
    pub fn resume(pending: Pending, stage: &Arc<Group>, environment: &Arc<Environment>) -> Result<Self> {
        let mut groups = Self::new(Arc::clone(stage), Arc::clone(environment));
        groups.level = pending.level;
        for (key, gathered) in pending.groups {
            groups.key = key.into_vec();
            groups.insert(Kept { id: gathered.id, accumulators: gathered.accumulators }, gathered.totals);
        }
        // The groups brought along get memory on top, so that each level makes progress.
        groups.brought_bytes = groups.memory_bytes;
        groups.bytes_max += groups.memory_bytes;
        let mut documents = pending.documents;
        while let Some((key, document)) = documents.next(environment.operation())? {
            groups.key.clear();
            groups.key.extend_from_slice(key);
            let document = DocumentRef::trusted(document);
            groups.take(stage, &environment.context(document).in_engine(stage.engine), None)?;
        }
        Ok(groups)
    }

    /// Adds the context's document. `stage` and `environment` are the table's own, passed separately since the table
    /// cannot lend them while it changes, and cloning them per document would cost more than the addition.
    pub fn add(&mut self, stage: &Group, environment: &Environment, context: &EvaluationContext<'_>) -> Result<()> {
        self.tighten(environment);
        let id = stage.id.operand(context)?;
        let integer = match id {
            Operand::Number(Number::Int32(integer)) => Some(i64::from(integer)),
            Operand::Number(Number::Int64(integer)) => Some(integer),
            _ => None,
        };
        let known = match integer {
            // A constant `_id` has only one group.
            _ if !self.slots.is_empty() && stage.id.as_literal().is_some() => Some(0),
            Some(integer) => self.integers.position(integer),
            None => None,
        };
        if let Some(position) = known.filter(|position| !self.waits(*position) && !self.is_too_full_to_grow()) {
            environment.operation().work(1)?;
            return self.feed(stage, context, position);
        }
        let id: Evaluated<'_> = id.into();
        self.key.clear();
        environment.strings().append_key(&mut self.key, id.or_null(), Direction::Ascending);
        environment.operation().work(1 + self.key.len() / 64)?;
        let position = self.take(stage, context, Some(id))?;
        if let (Some(integer), Some(position)) = (integer, position) {
            self.integers.note(integer, position);
        }
        Ok(())
    }

    /// Adds `count` documents that are alike to the stage, which reads nothing of them.
    pub fn add_alike(&mut self, stage: &Group, environment: &Environment, count: u64) -> Result<()> {
        for done in 0..count {
            let context = stage.context(DocumentRef::EMPTY, environment)?;
            self.add(stage, environment, &context)?;
            let is_one_group = done == 0 && self.totals.len() == stage.fields.len();
            let all = || self.totals.iter().map(|total| total.times(count)).collect::<Option<Vec<_>>>();
            if let Some(totals) = is_one_group.then(all).flatten() {
                self.totals = totals;
                break;
            }
        }
        Ok(())
    }

    /// Adds a document to the group of the current key. Evaluates `_id` if `id` is `None`. Returns the group's
    /// position; `None` if the document has to go to disk.
    fn take(
        &mut self,
        stage: &Group,
        context: &EvaluationContext<'_>,
        id: Option<Evaluated<'_>>,
    ) -> Result<Option<usize>> {
        let hash = self.hasher.hash_one(self.key.as_slice());
        let position = match self.find(hash) {
            Some(position) if self.waits(position) || self.is_too_full_to_grow() => {
                self.slots[position].waits = true;
                return self.put_off(hash, context).map(|()| None);
            }
            Some(position) => position,
            None if self.is_too_full_for_groups() => return self.put_off(hash, context).map(|()| None),
            None => self.open_group(id, context.root())?,
        };
        self.feed(stage, context, position)?;
        Ok(Some(position))
    }

    /// Adds a document to a group in field order: the first failing field decides the error.
    #[inline]
    fn feed(&mut self, stage: &Group, context: &EvaluationContext<'_>, position: usize) -> Result<()> {
        let mut totals = self.totals[position * stage.totals..][..stage.totals].iter_mut();
        let mut others = 0..;
        for (_, field) in &stage.fields {
            if field.keeps_total() {
                field.add_to(totals.next().expect("one each"), context)?;
                continue;
            }
            let accumulator = &mut self.kept[position].accumulators[others.next().expect("endless")];
            let before = accumulator.memory_bytes();
            field.feed(&mut **accumulator, context)?;
            self.memory_bytes = (self.memory_bytes + accumulator.memory_bytes()).saturating_sub(before);
        }
        if self.memory_bytes > self.bytes_max && self.environment.operation().scratch().is_none() {
            return Err(too_large(super::DEFINITION.facts.name));
        }
        Ok(())
    }

    /// Lowers the table's limit if the server's memory has become short.
    #[inline]
    fn tighten(&mut self, environment: &Environment) {
        let now = environment.operation().stage_bytes_now(Gatherer::Group);
        self.bytes_max = self.bytes_max.min(now.saturating_add(self.brought_bytes));
    }

    /// Whether the group has documents on disk.
    #[inline]
    fn waits(&self, position: usize) -> bool {
        self.partitions.is_some() && self.slots[position].waits
    }

    fn find(&self, hash: u64) -> Option<usize> {
        let is_it = |position: &u32| {
            let slot = &self.slots[*position as usize];
            slot.hash == hash && self.keys[slot.key_start..][..slot.key_bytes as usize] == *self.key
        };
        self.positions.find(hash, is_it).map(|position| *position as usize)
    }

    /// A single group cannot be partitioned, so it stays in memory. Its accumulators have limits of their own.
    fn is_too_full_to_grow(&self) -> bool {
        self.memory_bytes > self.bytes_max && self.slots.len() > 1 && self.level < Partitions::LEVEL_MAX
    }

    fn is_too_full_for_groups(&self) -> bool {
        let reserve = self.bytes_max / RESERVE_PART;
        self.memory_bytes > self.bytes_max - reserve
            && !self.slots.is_empty()
            && self.level < Partitions::LEVEL_MAX
            && self.environment.operation().scratch().is_some()
    }

    fn put_off(&mut self, hash: u64, context: &EvaluationContext<'_>) -> Result<()> {
        let changed = context.stand_in().map(|stand_in| stand_in.put_into(context.root()));
        let document = changed.as_ref().map_or(context.root(), DocumentBuf::as_ref);
        let mut bytes = document.as_bytes();
        if let Some(needed) = &self.needed {
            self.document.clear();
            let mut writer = Writer::new(&mut self.document);
            for element in document.iter().filter(|element| needed.contains(element.name)) {
                writer.append(element.name, element.value);
            }
            writer.end();
            bytes = &self.document;
        }
        let level = self.level;
        let partitions = self.partitions.get_or_insert_with(|| Partitions::new(level));
        if partitions.add(hash, &self.key, &[bytes], self.environment.operation())? {
            return Ok(());
        }
        Err(too_large(super::DEFINITION.facts.name))
    }

    fn open_group(&mut self, id: Option<Evaluated<'_>>, document: DocumentRef<'_>) -> Result<usize> {
        let (stage, environment) = (Arc::clone(&self.stage), Arc::clone(&self.environment));
        let id = match id {
            Some(id) => id.into_value(),
            None => stage.id.evaluate(&environment.context(document).in_engine(stage.engine))?.into_value(),
        };
        let id = id.unwrap_or(Value::Null);
        // Initial arguments of an accumulator may read the group's `_id`.
        let named = stage.id_name.as_ref().map(|name| DocumentBuf::new().with(name, &id));
        let whole = named.as_ref().map(DocumentBuf::as_ref).or_else(|| id.as_ref().as_document());
        let context = environment.context(whole.unwrap_or(DocumentRef::EMPTY)).in_engine(stage.engine);
        let others = stage.fields.iter().filter(|(_, field)| !field.keeps_total());
        let accumulators = others.map(|(_, field)| field.make(&context)).collect::<Result<Vec<_>>>()?;
        Ok(self.insert(Kept { id, accumulators }, std::iter::repeat_n(Total::default(), stage.totals)))
    }

    /// Inserts a group with the current key.
    fn insert(&mut self, group: Kept, totals: impl IntoIterator<Item = Total>) -> usize {
        let hash = self.hasher.hash_one(self.key.as_slice());
        let kept = group.accumulators.iter().map(|accumulator| accumulator.memory_bytes()).sum::<usize>();
        let pointers = group.accumulators.len() * size_of::<Box<dyn Accumulator>>();
        let beside =
            size_of::<Kept>() + size_of::<Slot>() + 2 * size_of::<u32>() + self.stage.totals * size_of::<Total>();
        // The key's size counts twice, as an estimate for `_id`.
        self.memory_bytes += kept + pointers + 2 * self.key.len() + beside;
        let position = self.kept.len();
        let slots = &self.slots;
        self.positions.insert_unique(hash, position as u32, |position| slots[*position as usize].hash);
        self.slots.push(Slot { hash, key_start: self.keys.len(), key_bytes: self.key.len() as u32, waits: false });
        self.keys.extend_from_slice(&self.key);
        self.kept.push(group);
        self.totals.extend(totals);
        position
    }

    /// Ends the input of this level; returns its complete groups, and the partitions that are still to be grouped.
    pub fn finish(self) -> Result<Finished> {
        let groups = Complete { kept: self.kept.into_iter(), totals: self.totals.into_iter(), each: self.stage.totals };
        let Some(partitions) = self.partitions else { return Ok((groups, Vec::new(), Spilled::default())) };
        let mut waiting: [Vec<(Box<[u8]>, Gathered)>; PARTITIONS] = std::array::from_fn(|_| Vec::new());
        let (mut kept, mut totals) = (Vec::new(), Vec::new());
        for (slot, group) in self.slots.iter().zip(groups) {
            if slot.waits {
                let key = self.keys[slot.key_start..][..slot.key_bytes as usize].into();
                waiting[partitions.partition_of(slot.hash)].push((key, group));
            } else {
                kept.push(Kept { id: group.id, accumulators: group.accumulators });
                totals.extend_from_slice(&group.totals);
            }
        }
        let complete = Complete { kept: kept.into_iter(), totals: totals.into_iter(), each: self.stage.totals };
        let (readers, spilled) = partitions.finish()?;
        let parts = readers.into_iter().zip(waiting);
        let level = self.level + 1;
        let pending = parts.filter_map(|(reader, groups)| Some(Pending { documents: reader?, groups, level }));
        Ok((complete, pending.collect(), spilled))
    }
}

impl Iterator for Complete {
    type Item = Gathered;

    fn next(&mut self) -> Option<Gathered> {
        let Kept { id, accumulators } = self.kept.next()?;
        Some(Gathered { id, totals: self.totals.by_ref().take(self.each).collect(), accumulators })
    }
}

impl Group {
    /// The top-level fields that the expressions read; `None` if they may read any.
    fn needed_fields(&self) -> Option<BTreeSet<String>> {
        let mut dependencies = Dependencies::default();
        self.id.add_dependencies(&mut dependencies);
        self.fields.iter().for_each(|(_, accumulator)| accumulator.add_dependencies(&mut dependencies));
        match dependencies {
            Dependencies::All => None,
            Dependencies::Fields(paths) => {
                Some(paths.iter().filter_map(|path| path.split('.').next()).map(ToOwned::to_owned).collect())
            }
        }
    }
}
