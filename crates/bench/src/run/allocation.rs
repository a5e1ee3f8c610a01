//! Measures how long files take to allocate, without any server: the raw part of experiment E5.

use super::{AllocationPlace, RunOptions};
use crate::BenchError;
use crate::measure::LoopUse;
use crate::observer::Observer;
use crate::scenario::AllocationSettings;
use bunko_host::LoopDevice;
use bunko_host::allocation::{Method, trial};
use bunko_report::result::AllocationRecord;
use std::sync::atomic::Ordering;

/// Allocates every size by every method in every place. For a method that a filesystem refuses, the reason is recorded.
pub(super) fn run(
    settings: &AllocationSettings,
    options: &RunOptions,
    observer: &mut dyn Observer,
) -> Result<Vec<AllocationRecord>, BenchError> {
    let methods = settings.methods().map_err(|detail| BenchError::Option { name: "set", detail })?;
    let mut records = Vec::new();
    for place in &options.allocation_places {
        for bytes in &settings.sizes {
            for &method in &methods {
                if options.stop.load(Ordering::Relaxed) {
                    return Ok(records);
                }
                observer.note(&format!("allocating {bytes} by {method} in {}", place.name));
                records.push(measure(place, bytes.0, method, settings.repetitions));
            }
        }
    }
    Ok(records)
}

fn measure(place: &AllocationPlace, bytes: u64, method: Method, repetitions: u32) -> AllocationRecord {
    let filesystem = bunko_host::filesystem_of(&place.directory);
    let mut record = AllocationRecord {
        directory: place.name.clone(),
        filesystem: filesystem.map_or("unknown".to_owned(), |found| found.kind),
        method: method.to_string(),
        bytes,
        seconds: Vec::new(),
        sync_seconds: Vec::new(),
        refused: None,
        loop_device: None,
    };
    let loop_use = LoopDevice::below(&place.directory).map(LoopUse::begin);
    for _ in 0..repetitions {
        match trial(&place.directory, bytes, method) {
            Ok(trial) => {
                record.seconds.push(trial.seconds);
                record.sync_seconds.push(trial.sync_seconds);
            }
            Err(error) => {
                record.refused = Some(error.to_string());
                break;
            }
        }
    }
    record.loop_device = loop_use.map(LoopUse::end);
    record
}
