//! The sorter beside the standard library's sort, in much memory and in little.

use bunko_errors::{ErrorCode, Failure};
use bunko_operation::{DiskUse, Gatherer, Interruption, MemoryLimits, OperationContext};
use bunko_scratch::{ScratchDirectory, Sorter};
use proptest::prelude::*;
use std::sync::Arc;

struct Uninterrupted;

impl Interruption for Uninterrupted {
    fn reason(&self) -> Option<Failure> {
        None
    }
}

fn operation(data: &tempfile::TempDir, bytes_max: u64) -> Arc<OperationContext> {
    let scratch = ScratchDirectory::open(&data.path().join("scratch")).expect("a directory").leaving(0);
    let mut limits = MemoryLimits::none();
    limits.stages.scratch = Some(Arc::new(scratch));
    limits.stages.set_bytes_max(Gatherer::Sort, bytes_max);
    OperationContext::new(Arc::new(Uninterrupted), limits)
}

type Record = (Vec<u8>, Vec<u8>);

fn sorted(records: &[Record], wanted: Option<u64>, operation: &OperationContext) -> (Vec<Record>, u64) {
    let mut sorter = Sorter::new().first(wanted);
    for (key, value) in records {
        let (first, second) = value.split_at(value.len() / 2);
        sorter.add(key, &[first, second], operation).expect("there is a disk");
    }
    let mut sorted = sorter.finish(operation).expect("there is a disk");
    let mut found = Vec::new();
    while let Some((key, value)) = sorted.next(operation).expect("there is a disk") {
        found.push((key.to_vec(), value.to_vec()));
    }
    assert!(sorted.next(operation).expect("nothing fails at the end").is_none());
    (found, sorted.spilled().spills)
}

proptest! {
    #[test]
    fn records_come_out_in_the_order_of_their_keys_and_of_the_input(
        keys in prop::collection::vec(prop::collection::vec(0_u8..4, 0..12), 0..400),
        wanted in prop::option::of(1_u64..500),
        bytes_max in prop::sample::select(vec![400_u64, 5000, 100 << 20]),
    ) {
        let data = tempfile::tempdir().expect("a directory");
        let records: Vec<Record> =
            keys.into_iter().enumerate().map(|(position, key)| (key, position.to_string().into_bytes())).collect();
        let mut expected = records.clone();
        expected.sort_by(|(one, _), (other, _)| one.cmp(other));
        expected.truncate(wanted.map_or(usize::MAX, |wanted| wanted as usize));
        let (found, _) = sorted(&records, wanted, &operation(&data, bytes_max));
        prop_assert_eq!(found, expected);
    }
}

/// Enough runs that the runs of one level are merged before the end of the input.
#[test]
fn many_runs_become_few() {
    let data = tempfile::tempdir().expect("a directory");
    let operation = operation(&data, 4000);
    let record = |n: u32| (n.wrapping_mul(0x9E37_79B9).to_be_bytes().to_vec(), vec![0; 200]);
    let records: Vec<Record> = (0..20_000).map(record).collect();
    let mut expected = records.clone();
    expected.sort();
    let (found, spills) = sorted(&records, None, &operation);
    assert!(found == expected && spills > 1024, "{spills} runs");
}

#[test]
fn more_than_one_run_between_two_questions_is_sorted_in_memory() {
    let data = tempfile::tempdir().expect("a directory");
    let record = |n: u32| (n.wrapping_mul(0x9E37_79B9).to_be_bytes().to_vec(), Vec::new());
    let records: Vec<Record> = (0..50_001).map(record).collect();
    let mut expected = records.clone();
    expected.sort();
    assert!(sorted(&records, None, &operation(&data, 100 << 20)) == (expected, 0));
}

#[test]
fn a_limit_keeps_what_it_needs_in_memory() {
    let data = tempfile::tempdir().expect("a directory");
    let operation = operation(&data, 50_000);
    operation.set_disk_use(DiskUse::Refused);
    let records: Vec<Record> = (0..20_000_u32).rev().map(|n| (n.to_be_bytes().to_vec(), vec![0; 100])).collect();
    let (found, _) = sorted(&records, Some(10), &operation);
    assert_eq!(found.first().map(|(key, _)| key.clone()), Some(0_u32.to_be_bytes().to_vec()));
    let mut all = Sorter::new();
    let failure = records.iter().find_map(|(key, value)| all.add(key, &[value], &operation).err());
    assert_eq!(failure.map(|failure| failure.code()), Some(ErrorCode::QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED));
}
