//! DISTINCT_SCAN: one document for each value of an index field, or for an extreme value.
//!
//! If the index records value types, most values can be decoded from keys without reading documents. Otherwise the
//! document is read, since keys do not distinguish equal numbers of different types, or null from a missing field.

use super::covered::append;
use super::index_scan::Scan;
use super::{DocumentStage, Documents, IndexScan, Row, Stage, StageNumber};
use crate::distinct_values::visit_values;
use crate::effort::Effort;
use crate::explain::Facts;
use crate::find_query::{Distinct, DistinctOf, FindQuery};
use crate::run::{Run, StageStatistics};
use bunko_bson::key_string::{Direction, decode, leading_bytes};
use bunko_bson::{DocumentBuf, DocumentRef, Value, Writer};
use bunko_catalog::{KeyTypes, ReadBack, from_storage};
use bunko_errors::Result;
use bunko_matcher::planted::{Fault, active};
use bunko_store::{RecordId, View};
use std::collections::HashSet;
use std::sync::Arc;

/// Keys of the current value to step over before the scan seeks past them, while most values have few keys: a step
/// costs a small part of a seek.
const STEPS_MAX: usize = 8;

/// While values have many keys, the scan seeks past each value at once, except past one in this many. If that one has
/// only one key, the scan steps again.
const VALUES_PER_PROBE: usize = 16;

/// Skips from value to value of one field of an index.
pub(crate) struct DistinctScan {
    scan: IndexScan,
    /// Position of the field in the index.
    position: usize,
    /// Position of a later field: keys with null there do not end the search for a group's document.
    valued: Option<usize>,
    of: DistinctOf,
    /// Documents needed of each value.
    count: usize,
    /// Types that the keys record; set if only values are needed and keys may decode to them.
    types: Option<KeyTypes>,
}

impl DistinctScan {
    /// A scan for the values of the field at `position`. See [`Self::valued`].
    pub fn new(scan: IndexScan, (position, valued): (usize, Option<usize>), asked: &Distinct) -> Self {
        let of = asked.of;
        let bounds = scan.bounds();
        let index = &bounds.index;
        let types = bounds.multikey.types();
        let is_told = index.tells_types
            && index.strings.is_bytes()
            && !matches!(of, DistinctOf::FirstOfGroups | DistinctOf::LastOfGroups | DistinctOf::FirstWithValue)
            && !bounds.is_multikey_at(position);
        Self { scan, position, valued, of, count: asked.count, types: is_told.then_some(types) }
    }

    /// Whether the scan reads documents, as far as that is known beforehand.
    fn is_fetching(&self) -> bool {
        let bounds = self.scan.bounds();
        let (path, kinds) = (&bounds.pattern[self.position].path, bounds.fields[self.position].kinds());
        !self.types.is_some_and(|types| types.are_exact_at(self.position, path, kinds))
    }
}

impl Stage for DistinctScan {
    fn name(&self, _query: &FindQuery) -> &'static str {
        "DISTINCT_SCAN"
    }

    fn number(&self) -> StageNumber {
        self.scan.number()
    }

    fn inputs(&self) -> Vec<&dyn Stage> {
        Vec::new()
    }

    fn describe(&self, query: &FindQuery, facts: &mut Facts<'_>) {
        self.scan.describe(query, facts);
        facts.append("isShardFiltering", false).append("isFetching", self.is_fetching());
    }

    fn describe_run(&self, statistics: &StageStatistics, facts: &mut DocumentBuf) {
        facts
            .append("keysExamined", statistics.keys_examined as i32)
            .append("docsExamined", statistics.docs_examined as i32);
    }

    fn effort(&self) -> Effort {
        self.scan.effort()
    }
}

impl DocumentStage for DistinctScan {
    fn open(&self, _run: &Run) -> Box<dyn Documents> {
        let bounds = self.scan.bounds();
        Box::new(Scanning {
            number: self.scan.number(),
            scan: self.scan.open_scan().keeping_keys(),
            directions: bounds.pattern[..=self.position].iter().map(|field| field.direction).collect(),
            to_valued: self
                .valued
                .map(|valued| bounds.pattern[..=valued].iter().map(|field| field.direction).collect()),
            path: Arc::from(bounds.pattern[self.position].path.as_str()),
            given: bounds.is_multikey_at(self.position).then(HashSet::new),
            position: self.position,
            of: self.of,
            count: self.count,
            value: Vec::new(),
            taken: 0,
            types: self.types,
            found: Vec::new(),
            steps: 0,
            steps_max: 1,
            values: 0,
            is_new: false,
            is_over: false,
            document: Vec::new(),
        })
    }
}

struct Scanning {
    number: StageNumber,
    scan: Scan,
    /// Directions of the fields up to the distinct one.
    directions: Vec<Direction>,
    /// Directions of the fields up to the one that must not be null, if there is one.
    to_valued: Option<Vec<Direction>>,
    path: Arc<str>,
    /// Records already returned with all of their values; set if a record may have several.
    given: Option<HashSet<RecordId>>,
    position: usize,
    of: DistinctOf,
    /// Documents needed of each value.
    count: usize,
    /// If more than one is needed: the leading key bytes of the last document's value, and how many it has had.
    value: Vec<u8>,
    taken: usize,
    /// See [`DistinctScan`].
    types: Option<KeyTypes>,
    /// The leading key bytes whose entries need not be examined any more.
    found: Vec<u8>,
    steps: usize,
    /// Keys of a value to step over at present, before a seek.
    steps_max: usize,
    /// Number of values found.
    values: usize,
    /// Whether a value was found since the last entry.
    is_new: bool,
    /// Whether the extreme value that is asked for was found.
    is_over: bool,
    document: Vec<u8>,
}

impl Scanning {
    fn search(&mut self, run: &mut Run) -> Result<Option<RecordId>> {
        while let Some(record) = self.next_entry(run)? {
            if !self.found.is_empty() && self.scan.key().starts_with(&self.found) {
                run.at(self.number).rejected += 1;
                self.steps += 1;
                if self.steps == self.steps_max {
                    self.steps_max = 0;
                    self.scan.skip(&self.found, run);
                }
                continue;
            }
            if self.steps == 0 && self.steps_max == 1 && self.values > 0 {
                // The value before had one key, so values may have few keys now: step again.
                self.steps_max = STEPS_MAX;
            }
            if self.given.as_ref().is_some_and(|given| given.contains(&record)) {
                // The record was returned for this value already. If the key is ambiguous, another document may still
                // have the value.
                if self.ambiguous_value().is_none() {
                    self.note_found();
                }
                run.at(self.number).rejected += 1;
                continue;
            }
            match self.read_key() {
                Some(true) => {
                    self.note_found();
                    return Ok(Some(record));
                }
                Some(false) => {
                    self.note_found();
                    run.at(self.number).rejected += 1;
                    continue;
                }
                None => {}
            }
            let records = run.collection.records();
            if run.snapshot.record(records, record, &mut self.document).map_err(from_storage)?.is_none() {
                continue;
            }
            run.at(self.number).docs_examined += 1;
            if self.of == DistinctOf::Elements && !self.has_value_of_key(run)? {
                run.at(self.number).rejected += 1;
                continue;
            }
            self.note_found();
            if let Some(given) = &mut self.given {
                given.insert(record);
            }
            return Ok(Some(record));
        }
        Ok(None)
    }

    /// Reads the next entry. If values have many keys, the scan first skips the other keys of the current value.
    fn next_entry(&mut self, run: &mut Run) -> Result<Option<RecordId>> {
        if self.is_new && self.steps_max == 0 {
            if self.values.is_multiple_of(VALUES_PER_PROBE) {
                self.steps_max = 1;
            } else {
                self.scan.skip(&self.found, run);
            }
        }
        self.is_new = false;
        self.scan.next_entry(run)
    }

    /// Decodes the key into a document of the value; returns whether there is a value. `None` if the document has to be
    /// read.
    fn read_key(&mut self) -> Option<bool> {
        let types = self.types?;
        let told = decode(self.scan.key(), &self.directions)?.pop()?;
        let is_null = matches!(told, Value::Null);
        let value = match types.read_back(self.position, told) {
            ReadBack::Value(value) => Some(value),
            ReadBack::Missing => None,
            // Null and missing form one group.
            ReadBack::Unknown if is_null && self.of != DistinctOf::Elements => None,
            ReadBack::Unknown => return None,
        };
        self.document.clear();
        let mut writer = Writer::new(&mut self.document);
        if let Some(value) = &value {
            append(&mut writer, &self.path, value);
        }
        writer.end();
        Some(value.is_some() || self.of != DistinctOf::Elements)
    }

    fn note_found(&mut self) {
        let key = self.scan.key();
        // A later key of the group may have a value where this one has null.
        let nulls = self.to_valued.as_ref().filter(|all| is_ambiguous(key, all));
        // For a key that cannot be decoded, only this key is skipped.
        let leading = leading_bytes(key, nulls.unwrap_or(&self.directions)).unwrap_or(key.len());
        if self.count > 1 && nulls.is_none() {
            if self.value != key[..leading] {
                self.value.clear();
                self.value.extend_from_slice(&key[..leading]);
                self.taken = 0;
            }
            self.taken += 1;
            if self.taken < self.count && !active(Fault::FirstIsEnough) {
                return;
            }
        }
        self.found.clear();
        self.found.extend_from_slice(&key[..leading]);
        self.steps = 0;
        self.values += 1;
        self.is_new = true;
    }

    /// The value of a key that documents without the value may have too: a missing field has the key of null, an empty
    /// array the key of undefined.
    fn ambiguous_value(&self) -> Option<Value> {
        let value = decode(self.scan.key(), &self.directions)?.pop()?;
        (matches!(value, Value::Null | Value::Undefined) && !active(Fault::NullIsDistinct)).then_some(value)
    }

    /// Whether the document really has the value of its key.
    fn has_value_of_key(&self, run: &Run) -> Result<bool> {
        let Some(named) = self.ambiguous_value() else { return Ok(true) };
        let mut has_it = false;
        let document = DocumentRef::trusted(&self.document);
        visit_values(&run.query.scope.operation, document, &self.path, &mut |value| {
            has_it |= value.kind() == named.as_ref().kind();
            Ok(())
        })?;
        Ok(has_it)
    }
}

impl Documents for Scanning {
    fn next<'s>(&'s mut self, run: &mut Run) -> Result<Option<Row<'s>>> {
        let found = if self.is_over { None } else { self.search(run)? };
        if matches!(self.of, DistinctOf::Least | DistinctOf::Greatest) {
            // Nulls come first, and a group of nothing else has null.
            self.is_over = found.is_some() && (self.ambiguous_value().is_none() || active(Fault::NullIsLeast));
        }
        Ok(Row::found(run, self.number, found, &self.document))
    }
}

/// Whether the last of the values that a key begins with is null or undefined.
fn is_ambiguous(key: &[u8], directions: &[Direction]) -> bool {
    let value = decode(key, directions).and_then(|mut values| values.pop());
    matches!(value, Some(Value::Null | Value::Undefined)) && !active(Fault::NullIsLeast)
}
