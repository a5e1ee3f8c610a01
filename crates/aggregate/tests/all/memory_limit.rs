//! Stages that keep documents and may not use the disk fail at their limit.

use bunko_aggregate::{Documents, Environment, Pipeline};
use bunko_bson::DocumentBuf;
use bunko_errors::{ErrorCode, Failure};
use bunko_operation::{Gatherer, Interruption, MemoryLimits, OperationContext};
use bunko_query::QueryScope;
use bunko_testkit::shell;
use std::sync::Arc;

/// Memory for a few documents, in bytes.
const FEW_BYTES: u64 = 4096;

struct Uninterrupted;

impl Interruption for Uninterrupted {
    fn reason(&self) -> Option<Failure> {
        None
    }
}

fn first(pipeline: &str) -> Result<Option<DocumentBuf>, ErrorCode> {
    let source = shell::parse_value(pipeline).expect("a value");
    let mut limits = MemoryLimits::none();
    for gatherer in Gatherer::ALL {
        limits.stages.set_bytes_max(gatherer, FEW_BYTES);
    }
    let operation = OperationContext::new(Arc::new(Uninterrupted), limits);
    let environment = Environment::new(Arc::new(QueryScope::new(0, operation)));
    let pipeline = Pipeline::parse(source.as_ref().as_array().expect("an array"), environment).expect("parses");
    let documents = (0..1000).map(|id| DocumentBuf::new().with("_id", id).with("text", "some text")).collect();
    pipeline.open(Box::new(Documents::new(documents))).next().map_err(|failure| failure.code())
}

#[test]
fn gathering_stops_at_the_limit() {
    let refused = ErrorCode::QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED;
    assert_eq!(first("[{$sort: {_id: -1}}]"), Err(refused));
    assert_eq!(first("[{$group: {_id: '$_id'}}]"), Err(refused));
    assert_eq!(first("[{$group: {_id: null, all: {$push: '$text'}}}]"), Err(refused));
}

#[test]
fn documents_that_a_limit_drops_take_no_memory() {
    let last = first("[{$sort: {_id: -1}}, {$limit: 3}]").expect("within the limit").expect("a document");
    assert_eq!(last, DocumentBuf::new().with("_id", 999).with("text", "some text"));
    assert!(first("[{$group: {_id: null, n: {$sum: 1}}}]").is_ok());
}
