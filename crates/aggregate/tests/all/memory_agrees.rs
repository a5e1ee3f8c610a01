//! Pipelines give equal results in memory, and with files when memory is small.

use bunko_aggregate::{Access, DocumentStream, Documents, Environment, Flow, Pipeline, SourceName, Sources, StageRun};
use bunko_bson::{ArrayRef, DocumentBuf, StringOrder, ValueRef};
use bunko_errors::{ErrorCode, Failure};
use bunko_operation::{DiskUse, Gatherer, Interruption, MemoryLimits, OperationContext};
use bunko_query::QueryScope;
use bunko_scratch::ScratchDirectory;
use bunko_testkit::shell;
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Memory for a few dozen documents, in bytes.
const LITTLE_BYTES: u64 = 4096;

struct Uninterrupted;

impl Interruption for Uninterrupted {
    fn reason(&self) -> Option<Failure> {
        None
    }
}

/// The documents of every other collection.
#[derive(Debug)]
struct Other(Vec<DocumentBuf>);

impl Sources for Other {
    fn note(&self, _: &SourceName, _: &StringOrder) -> Result<(), Failure> {
        Ok(())
    }

    fn open(
        &self,
        _: &SourceName,
        pipeline: ArrayRef<'_>,
        environment: &Environment,
    ) -> Result<Box<dyn DocumentStream>, Failure> {
        Ok(Pipeline::parse_extended(pipeline, environment.clone())?.open(Box::new(Documents::new(self.0.clone()))))
    }

    fn access(&self, _: &SourceName, _: &str, _: &StringOrder) -> Access {
        Access::Scan
    }
}

struct World {
    _data: tempfile::TempDir,
    limits: MemoryLimits,
}

impl World {
    fn with_memory(bytes_max: u64) -> Self {
        let data = tempfile::tempdir().expect("a directory");
        let scratch = ScratchDirectory::open(&data.path().join("scratch")).expect("a directory").leaving(0);
        let mut limits = MemoryLimits::none();
        limits.stages.scratch = Some(Arc::new(scratch));
        for gatherer in Gatherer::ALL {
            limits.stages.set_bytes_max(gatherer, bytes_max);
        }
        Self { _data: data, limits }
    }

    fn operation(&self, interruption: Arc<dyn Interruption>) -> Arc<OperationContext> {
        OperationContext::new(interruption, self.limits.clone())
    }

    fn pipeline(source: &str, operation: &Arc<OperationContext>, other: Vec<DocumentBuf>) -> Pipeline {
        let environment = Environment::new(Arc::new(QueryScope::new(0, Arc::clone(operation))));
        let source = shell::parse_value(source).expect("a value");
        let stages = source.as_ref().as_array().expect("an array");
        Pipeline::parse(stages, environment.with_sources(Arc::new(Other(other)))).expect("parses")
    }

    fn run(&self, source: &str, input: &[DocumentBuf]) -> Result<Vec<DocumentBuf>, ErrorCode> {
        let operation = self.operation(Arc::new(Uninterrupted));
        let pipeline = Self::pipeline(source, &operation, input.iter().take(150).cloned().collect());
        let mut found = Vec::new();
        let mut visitor = |document: bunko_bson::DocumentRef<'_>| {
            found.push(document.to_owned());
            Ok(Flow::More)
        };
        let mut stream = pipeline.open(Box::new(Documents::new(input.to_vec())));
        stream.visit(&mut visitor).map_err(|failure| failure.code())?;
        Ok(found)
    }
}

impl World {
    /// As `run`, with counted stages, which lend each other nothing.
    fn run_counted(&self, source: &str, input: &[DocumentBuf]) -> Result<Vec<DocumentBuf>, ErrorCode> {
        let operation = self.operation(Arc::new(Uninterrupted));
        let pipeline = Self::pipeline(source, &operation, input.iter().take(150).cloned().collect());
        let (mut stream, _) = pipeline.open_counted(Box::new(Documents::new(input.to_vec())));
        let mut found = Vec::new();
        while let Some(document) = stream.next().map_err(|failure| failure.code())? {
            found.push(document);
        }
        Ok(found)
    }
}

/// More documents than the small memory holds, made from four numbers each.
fn documents(numbers: &[(u8, i16, u8, u8)]) -> Vec<DocumentBuf> {
    let document = |(position, (key, number, length, kind)): (usize, &(u8, i16, u8, u8))| {
        let mut document = DocumentBuf::new().with("_id", position as i32).with("k", i32::from(*key));
        match kind % 4 {
            0 => document.append("n", f64::from(*number) / 3.0),
            1 => document.append("n", i64::from(*number)),
            2 => document.append("n", ValueRef::Null),
            _ => &mut document,
        };
        document.append("t", "x".repeat(usize::from(*length) % 40).as_str());
        document
    };
    numbers.iter().enumerate().map(document).collect()
}

/// Stages whose results have an order. A sort drops the order of an earlier one, so its keys are all different.
fn stage() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "{$sort: {n: 1, t: -1, _id: 1}}",
        "{$sort: {k: -1, _id: 1}}",
        "{$sort: {t: 1, _id: 1}}, {$limit: 40}",
        "{$sort: {n: 1, _id: 1}}, {$skip: 20}, {$limit: 300}",
        "{$match: {n: {$gt: 0}}}",
        "{$addFields: {n: {$ifNull: ['$n', '$k']}}}",
        "{$group: {_id: '$k', n: {$sum: '$n'}, t: {$first: '$t'}, k: {$max: '$k'}}}, {$sort: {_id: 1}}",
        "{$group: {_id: '$t', n: {$avg: '$n'}, k: {$last: '$k'}, t: {$min: '$t'}, d: {$stdDevPop: '$n'}}}, {$sort: {_id: 1}}",
        "{$group: {_id: '$_id', k: {$first: '$k'}, n: {$push: '$n'}, t: {$first: '$t'}}}, {$sort: {_id: 1}}",
        "{$group: {_id: '$k', all: {$push: '$$ROOT'}, k: {$first: '$k'}}}, {$sort: {_id: 1}}",
        "{$group: {_id: null, all: {$push: '$n'}, distinct: {$addToSet: '$t'}}}",
        "{$group: {_id: {$mod: ['$k', 3]}, n: {$topN: {n: 50, sortBy: {n: 1}, output: '$t'}}, k: {$count: {}}}}, {$sort: {_id: 1}}",
        "{$bucketAuto: {groupBy: '$k', buckets: 5, output: {n: {$sum: '$n'}, k: {$first: '$k'}}}}",
        "{$facet: {one: [{$sort: {n: 1}}, {$limit: 9}], other: [{$group: {_id: '$k'}}, {$sort: {_id: 1}}]}}",
        "{$lookup: {from: 'other', localField: 'k', foreignField: 'k', as: 'found'}}, {$set: {found: {$size: '$found'}}}",
        "{$lookup: {from: 'other', pipeline: [{$match: {k: 3}}], as: 'found'}}, {$set: {found: {$size: '$found'}}}",
        "{$setWindowFields: {partitionBy: '$_id', sortBy: {_id: 1}, output: {r: {$sum: '$k'}}}}",
        "{$setWindowFields: {output: {r: {$sum: '$k'}}}}",
        "{$setWindowFields: {sortBy: {_id: 1}, output: {r: {$sum: '$n', window: {documents: [-20, 30]}}, s: {$shift: {output: '$t', by: -100}}}}}",
        "{$setWindowFields: {sortBy: {t: 1}, output: {r: {$rank: {}}, d: {$denseRank: {}}, n: {$documentNumber: {}}, l: {$locf: '$n'}}}}",
        "{$setWindowFields: {partitionBy: {$mod: ['$k', 3]}, sortBy: {k: 1}, output: {r: {$avg: '$n', window: {range: [-9, 9]}}, c: {$covarianceSamp: ['$k', '$n'], window: {documents: [-5, 'current']}}}}}",
        "{$setWindowFields: {sortBy: {k: 1}, output: {i: {$integral: {input: '$k'}, window: {documents: [-200, 0]}}, d: {$derivative: {input: '$k'}, window: {documents: [-3, 3]}}, e: {$expMovingAvg: {input: '$n', N: 4}}, m: {$minMaxScaler: {input: '$k'}, window: {documents: [-10, 10]}}}}}",
        "{$setWindowFields: {sortBy: {_id: 1}, output: {f: {$linearFill: '$n'}, d: {$stdDevPop: '$n', window: {documents: [-100, 0]}}, x: {$max: '$t', window: {documents: [0, 60]}}}}}",
        "{$unwind: {path: '$n', preserveNullAndEmptyArrays: true}}",
        "{$set: {a: {b: ['$k', '$n', {c: '$t'}, []], z: '$k'}}}, {$unwind: '$a.b'}, {$group: {_id: '$a.b', n: {$sum: '$n'}, k: {$first: '$a.z'}, t: {$max: '$a.b.c'}}}, {$sort: {_id: 1, k: 1}}",
        "{$set: {a: {b: [1, '$k'], z: '$k'}}}, {$unwind: '$a.b'}, {$group: {_id: '$k', n: {$sum: '$a.b'}, all: {$push: '$a.b'}, k: {$last: '$a.z'}, t: {$first: '$t'}}}, {$sort: {_id: 1}}",
        "{$set: {a: {b: ['$n', '$k'], z: '$k'}}}, {$unwind: '$a.b'}, {$group: {_id: '$a', n: {$sum: 1}, t: {$first: '$t'}}}, {$sort: {_id: 1}}",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn results_do_not_depend_on_the_memory(
        numbers in prop::collection::vec(any::<(u8, i16, u8, u8)>(), 1..600),
        stages in prop::collection::vec(stage(), 1..4),
    ) {
        let pipeline = format!("[{}]", stages.join(", "));
        let input = documents(&numbers);
        let much = World::with_memory(100 << 20).run(&pipeline, &input);
        let little = World::with_memory(LITTLE_BYTES).run(&pipeline, &input);
        // Counted stages pass each other whole documents.
        let apart = World::with_memory(100 << 20).run_counted(&pipeline, &input);
        prop_assert_eq!(&much, &apart, "{} apart", pipeline);
        prop_assert_eq!(much, little, "{}", pipeline);
    }
}

fn many() -> Vec<DocumentBuf> {
    let numbers: Vec<_> = (0..3000_u32).map(|n| ((n * 7) as u8, (n * 131) as i16, n as u8, n as u8)).collect();
    documents(&numbers)
}

#[test]
fn spilled_data_is_reported() {
    let world = World::with_memory(LITTLE_BYTES);
    for stage in [
        "{$sort: {n: 1}}",
        "{$group: {_id: '$_id'}}",
        "{$group: {_id: '$k', all: {$push: '$t'}}}",
        "{$facet: {a: []}}",
        "{$setWindowFields: {output: {n: {$sum: '$k'}}}}",
        "{$setWindowFields: {sortBy: {k: 1}, output: {n: {$documentNumber: {}}}}}",
    ] {
        let operation = world.operation(Arc::new(Uninterrupted));
        let pipeline = World::pipeline(&format!("[{stage}]"), &operation, Vec::new());
        let (mut stream, runs) = pipeline.open_counted(Box::new(Documents::new(many())));
        while stream.next().expect("there is a disk").is_some() {}
        drop(stream);
        let facts: Vec<DocumentBuf> = runs.iter().map(|run: &Arc<StageRun>| run.facts()).collect();
        let fact = |name| facts[0].as_ref().get(name);
        assert!(matches!(fact("usedDisk"), Some(ValueRef::Boolean(true))), "{stage}");
        let is_some = |name| fact(name).and_then(bunko_bson::number::as_i64_exact) > Some(0);
        for name in ["spills", "spilledRecords", "spilledBytes", "spilledDataStorageSize"] {
            assert!(is_some(name), "{stage}: {name} of {facts:?}");
        }
    }
}

#[test]
fn without_leave_nothing_goes_on_disk() {
    let world = World::with_memory(LITTLE_BYTES);
    for stage in [
        "{$sort: {n: 1}}",
        "{$group: {_id: '$_id'}}",
        "{$bucketAuto: {groupBy: '$k', buckets: 2}}",
        "{$facet: {a: []}}",
        "{$setWindowFields: {sortBy: {k: 1}, output: {n: {$documentNumber: {}}}}}",
    ] {
        let operation = world.operation(Arc::new(Uninterrupted));
        operation.set_disk_use(DiskUse::Refused);
        let pipeline = World::pipeline(&format!("[{stage}]"), &operation, Vec::new());
        let failure = pipeline.open(Box::new(Documents::new(many()))).next().expect_err("too little memory");
        assert_eq!(failure.code(), ErrorCode::QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED, "{stage}");
    }
}

/// A partition of `$setWindowFields` and the values that its functions hold have separate error codes.
#[test]
fn a_partition_without_leave_and_a_window_without_room_end() {
    let world = World::with_memory(LITTLE_BYTES);
    let fails = |source: &str, disk_use| {
        let operation = world.operation(Arc::new(Uninterrupted));
        operation.set_disk_use(disk_use);
        let pipeline = World::pipeline(source, &operation, Vec::new());
        let mut stream = pipeline.open(Box::new(Documents::new(many())));
        stream.visit(&mut |_| Ok(Flow::More)).map_err(|failure| failure.code())
    };
    let number = "[{$setWindowFields: {output: {n: {$sum: '$k'}}}}]";
    assert_eq!(fails(number, DiskUse::Refused), Err(ErrorCode(5_643_011)));
    assert_eq!(fails(number, DiskUse::Allowed), Ok(()));
    for (field, ends) in [
        ("$push: '$t'", Err(ErrorCode(5_414_201))),
        ("$push: '$t', window: {documents: [-9, 0]}", Ok(())),
        ("$minMaxScaler: {input: '$_id'}, window: {documents: [0, 'unbounded']}", Err(ErrorCode(5_414_201))),
    ] {
        let stage = format!("[{{$setWindowFields: {{sortBy: {{_id: 1}}, output: {{n: {{{field}}}}}}}}}]");
        assert_eq!(fails(&stage, DiskUse::Allowed), ends, "{field}");
    }
}

/// Interrupts after this many checks.
struct After(AtomicU64);

impl Interruption for After {
    fn reason(&self) -> Option<Failure> {
        let left = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        left.is_err().then(|| Failure::new(ErrorCode::INTERRUPTED, "operation was interrupted"))
    }
}

#[test]
fn an_operation_that_spills_is_interrupted() {
    let world = World::with_memory(LITTLE_BYTES);
    for stage in [
        "{$sort: {n: 1}}",
        "{$group: {_id: '$_id'}}",
        "{$setWindowFields: {output: {n: {$sum: '$k'}}}}",
        "{$setWindowFields: {sortBy: {k: 1}, output: {n: {$max: '$k', window: {documents: ['unbounded', 'current']}}}}}",
    ] {
        for questions in [0, 1, 5, 9] {
            let operation = world.operation(Arc::new(After(AtomicU64::new(questions))));
            let pipeline = World::pipeline(&format!("[{stage}]"), &operation, Vec::new());
            let mut stream = pipeline.open(Box::new(Documents::new(many())));
            let failure = stream.visit(&mut |_| Ok(Flow::More)).expect_err("interrupted");
            assert_eq!(failure.code(), ErrorCode::INTERRUPTED, "{stage} after {questions}");
        }
    }
}
