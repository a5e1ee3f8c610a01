//! Experiment E2: dumps and restores by write concern, workers and compression.

use crate::operation::{CompressionSetting, Transfer, Workers};
use crate::scenario::Scenario;
use bunko_client::{Acknowledgement, WriteConcern};
use bunko_report::result::ReferenceFigure;

/// Bytes of BSON that each run of E2 dumped or restored.
const E2_BYTES: f64 = 55e9;
const E2_SOURCE: &str = "MongoDB 3.4.10 and its tools, replica set, 8 cores, hard disk: 55 GB of BSON as one archive; \
                         docs/s are those MB/s in documents of this size";

/// Restores: compression, write concern, insertion workers per collection, seconds.
const E2_RESTORES: &[(CompressionSetting, &str, usize, f64)] = &[
    (CompressionSetting::Gzip, "1", 1, 1_318.0),
    (CompressionSetting::Gzip, "1", 4, 681.0),
    (CompressionSetting::Gzip, "1", 8, 598.0),
    (CompressionSetting::Gzip, "1", 16, 593.0),
    (CompressionSetting::Gzip, "0", 8, 599.0),
    (CompressionSetting::Gzip, "majority", 8, 834.0),
    (CompressionSetting::None, "1", 8, 827.0),
    (CompressionSetting::Zstd, "1", 8, 495.0),
    (CompressionSetting::Zstd, "1", 4, 533.0),
    (CompressionSetting::Zstd, "1", 2, 704.0),
];

/// Dumps: compression, seconds; the article gives minutes.
const E2_DUMPS: &[(CompressionSetting, f64)] =
    &[(CompressionSetting::Gzip, 1_800.0), (CompressionSetting::Zstd, 660.0)];

/// Properties by which a dump or a restore is matched with a published one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TransferKey {
    compression: CompressionSetting,
    /// `None` for a dump.
    restore: Option<(WriteConcern, Workers)>,
    document_bytes: usize,
}

impl TransferKey {
    /// The key of a step of the scenario, if it dumps or restores. A restore has the compression of the last dump
    /// before it.
    pub fn of(scenario: &Scenario, phase: &str, concern: Option<&str>, document_bytes: usize) -> Option<Self> {
        let place = scenario.phase.iter().position(|other| other.name == phase)?;
        let transfer = |place: usize| scenario.phase[place].operation.operation().transfer();
        let compression = (0..=place).rev().find_map(|place| match transfer(place) {
            Some(Transfer::Dump(dump)) => Some(dump.compression),
            _ => None,
        })?;
        let restore = match transfer(place)? {
            Transfer::Dump(_) => None,
            Transfer::Restore(restore) => Some((concern.unwrap_or("1").parse().ok()?, restore.workers)),
        };
        Some(Self { compression, restore, document_bytes })
    }

    /// The published figure.
    pub fn figure(&self) -> Option<ReferenceFigure> {
        let bytes_per_second = E2_BYTES / self.seconds()?;
        Some(ReferenceFigure {
            documents_per_second: bytes_per_second / self.document_bytes as f64,
            bytes_per_second: Some(bytes_per_second),
            source: E2_SOURCE.to_owned(),
        })
    }

    fn seconds(&self) -> Option<f64> {
        let Some((concern, workers)) = &self.restore else {
            return E2_DUMPS.iter().find(|(compression, _)| *compression == self.compression).map(|row| row.1);
        };
        let Workers::Number(workers) = workers else { return None };
        let concern = match (&concern.w, concern.journal) {
            (Acknowledgement::Majority, None) => "majority",
            (Acknowledgement::Members(1), None) => "1",
            (Acknowledgement::Members(0), None) => "0",
            _ => return None,
        };
        let is_it = |row: &&(CompressionSetting, &str, usize, f64)| {
            (row.0, row.1, row.2) == (self.compression, concern, workers.get())
        };
        E2_RESTORES.iter().find(is_it).map(|row| row.3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroUsize;

    fn seconds(compression: CompressionSetting, concern: &str, workers: Option<usize>) -> Option<f64> {
        let workers = workers.and_then(NonZeroUsize::new).map_or(Workers::Automatic, Workers::Number);
        let concern = concern.parse().expect("a write concern");
        TransferKey { compression, restore: Some((concern, workers)), document_bytes: 1_000 }.seconds()
    }

    #[test]
    fn restores_have_the_published_seconds() {
        assert_eq!(seconds(CompressionSetting::Gzip, "1", Some(8)), Some(598.0));
        assert_eq!(seconds(CompressionSetting::Gzip, "majority", Some(8)), Some(834.0));
        assert_eq!(seconds(CompressionSetting::Gzip, "0", Some(8)), Some(599.0));
        assert_eq!(seconds(CompressionSetting::None, "1", Some(8)), Some(827.0));
        assert_eq!(seconds(CompressionSetting::Zstd, "1", Some(2)), Some(704.0));
        assert_eq!(seconds(CompressionSetting::Lz4, "1", Some(8)), None);
        assert_eq!(seconds(CompressionSetting::Zstd, "j", Some(8)), None);
        assert_eq!(seconds(CompressionSetting::Zstd, "1", None), None);
    }

    #[test]
    fn seconds_become_rates() {
        let dump = TransferKey { compression: CompressionSetting::Zstd, restore: None, document_bytes: 1_000 };
        let figure = dump.figure().expect("published");
        assert_eq!(figure.bytes_per_second.map(f64::round), Some(83_333_333.0));
        assert_eq!(figure.documents_per_second.round(), 83_333.0);
    }
}
