//! PROJECTION_COVERED: the needed fields, decoded from the keys of one index.

use super::index_scan::Scan;
use super::{DecidedByKeys, DocumentStage, Documents, IndexScan, RecordStage, Records, Row, Stage, StageNumber};
use crate::effort::Effort;
use crate::explain::Facts;
use crate::find_query::FindQuery;
use crate::run::{Run, StageStatistics};
use crate::wanted_fields::including;
use bunko_bson::key_string::{Direction, decode};
use bunko_bson::{DocumentBuf, DocumentRef, Value, Writer};
use bunko_catalog::{KeyTypes, ReadBack, from_storage};
use bunko_errors::Result;
use bunko_store::{RecordId, View};
use std::sync::Arc;

/// Builds documents from the needed fields, in index order, as MongoDB does.
pub(crate) struct Covered {
    number: StageNumber,
    shown: Shown,
    scan: IndexScan,
    /// Positions of the fields in the index, ascending.
    fields: Vec<usize>,
}

/// The stage that explain shows for this one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// A projection.
    AsProjection,
    /// The index scan: a stage above returns keys, sorts, or computes fields.
    AsScan,
}

impl Covered {
    pub fn new((number, shown): (StageNumber, Shown), scan: IndexScan, fields: Vec<usize>, _: DecidedByKeys) -> Self {
        Self { number, shown, scan, fields }
    }

    /// The scan, if explain shows it in place of this stage.
    fn shown_scan(&self) -> Option<&IndexScan> {
        (self.shown == Shown::AsScan).then_some(&self.scan)
    }
}

impl Stage for Covered {
    fn name(&self, query: &FindQuery) -> &'static str {
        self.shown_scan().map_or("PROJECTION_COVERED", |scan| scan.name(query))
    }

    fn number(&self) -> StageNumber {
        self.shown_scan().map_or(self.number, IndexScan::number)
    }

    fn inputs(&self) -> Vec<&dyn Stage> {
        if self.shown_scan().is_some() { Vec::new() } else { vec![&self.scan] }
    }

    fn describe(&self, query: &FindQuery, facts: &mut Facts<'_>) {
        if let Some(scan) = self.shown_scan() {
            return scan.describe(query, facts);
        }
        if !query.projection_document.as_ref().is_empty() {
            facts.append("transformBy", &query.projection_document);
            return;
        }
        facts.append("transformBy", &including(query.needed.as_deref().unwrap_or_default()));
    }

    fn describe_run(&self, statistics: &StageStatistics, facts: &mut DocumentBuf) {
        if let Some(scan) = self.shown_scan() {
            scan.describe_run(statistics, facts);
        }
    }

    fn effort(&self) -> Effort {
        self.scan.effort()
    }
}

impl DocumentStage for Covered {
    fn open(&self, _run: &Run) -> Box<dyn Documents> {
        let bounds = self.scan.bounds();
        let last = self.fields.last().copied().unwrap_or(0);
        let fields =
            self.fields.iter().map(|&position| (position, Arc::<str>::from(bounds.pattern[position].path.as_str())));
        Box::new(Covering {
            number: self.number,
            scan: self.scan.open_scan().keeping_keys(),
            directions: bounds.pattern[..=last].iter().map(|field| field.direction).collect(),
            fields: fields.collect(),
            types: bounds.multikey.types(),
            document: Vec::new(),
        })
    }

    fn decided_by_keys(&self) -> Option<&dyn RecordStage> {
        Some(&self.scan)
    }
}

struct Covering {
    number: StageNumber,
    scan: Scan,
    /// Directions of the fields up to the last needed one.
    directions: Vec<Direction>,
    /// Positions and paths of the needed fields.
    fields: Vec<(usize, Arc<str>)>,
    types: KeyTypes,
    document: Vec<u8>,
}

impl Covering {
    fn search(&mut self, run: &mut Run) -> Result<Option<RecordId>> {
        while let Some(record) = self.scan.next(run)? {
            if self.write().is_some() {
                self.hold(run);
                return Ok(Some(record));
            }
            // If the key cannot be decoded, the document is read.
            let records = run.collection.records();
            if run.snapshot.record(records, record, &mut self.document).map_err(from_storage)?.is_some() {
                run.at(self.number).docs_examined += 1;
                self.hold(run);
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// Puts the metadata into the document, for the stages above.
    fn hold(&mut self, run: &Run) {
        if run.holds_metadata {
            let document = DocumentRef::trusted(&self.document);
            self.document = run.query.scope.at_hand.hold(document).into_bytes();
        }
    }

    /// Writes the document of the last key; `None` if the key does not hold all of it.
    fn write(&mut self) -> Option<()> {
        let mut values = decode(self.scan.key(), &self.directions)?;
        self.document.clear();
        let mut writer = Writer::new(&mut self.document);
        for (position, path) in &self.fields {
            let told = std::mem::replace(&mut values[*position], Value::Null);
            match self.types.read_back(*position, told) {
                ReadBack::Value(value) => append(&mut writer, path, &value),
                ReadBack::Missing => {}
                ReadBack::Unknown => return None,
            }
        }
        writer.end();
        Some(())
    }
}

/// Appends a value at a dotted path.
pub(super) fn append(writer: &mut Writer<'_>, path: &str, value: &Value) {
    match path.split_once('.') {
        None => {
            writer.append(path, value);
        }
        Some((top, below)) => {
            writer.begin_document(top);
            append(writer, below, value);
            writer.end();
        }
    }
}

impl Documents for Covering {
    fn next<'s>(&'s mut self, run: &mut Run) -> Result<Option<Row<'s>>> {
        let found = self.search(run)?;
        Ok(Row::found(run, self.number, found, &self.document))
    }
}
