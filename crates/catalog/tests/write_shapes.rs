//! Memory of documents with many keys until they are written, and whether their writes can be stopped meanwhile.
//!
//! The operation is checked every few microseconds. Each check measures the memory that its thread has taken so far.

use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef};
use bunko_catalog::{Catalog, Collection, IndexSpec, Namespace, Order, Target, Verdict};
use bunko_engines::EngineOptions;
use bunko_errors::{ErrorCode, Failure};
use bunko_heap::{Counting, taken_bytes};
use bunko_operation::{Interruption, MemoryLimits, OperationContext};
use bunko_store::{RecordId, Store, StoreOptions};
use bunko_testkit::shell;
use std::alloc::System;
use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

// A program has one allocator for all its tests, so this file is a program of its own.
#[global_allocator]
static ALLOCATOR: Counting<System> = Counting(System);

/// Maximum number of bytes that a write may take for each byte sent and each index.
const BYTES_PER_BYTE: i64 = 40;
/// Bytes that any write may take in addition.
const BYTES_BESIDES: i64 = 2 << 20;

/// Indexes, and a document with many keys in them.
struct Shape {
    name: &'static str,
    keys: &'static [&'static str],
    options: &'static str,
    document: fn() -> DocumentBuf,
}

const SHAPES: &[Shape] = &[
    Shape { name: "paths", keys: &["{'$**': 1}"], options: "", document: paths },
    Shape {
        name: "paths of several indexes",
        keys: &["{'$**': 1}", "{'$**': -1}", "{b: 1, '$**': 1}", "{'$**': 1, b: 1}"],
        options: "wildcardProjection: {b: 0}, ",
        document: paths,
    },
    Shape { name: "elements", keys: &["{a: 1}", "{a: -1}", "{a: 1, b: 1}"], options: "", document: elements },
    Shape { name: "unique elements", keys: &["{a: 1}"], options: "unique: true, ", document: elements },
    Shape { name: "elements of documents", keys: &["{'a.b': 1}"], options: "", document: nested },
    Shape { name: "words", keys: &["{a: 'text'}"], options: "", document: words },
];

fn paths() -> DocumentBuf {
    (0..30_000).fold(DocumentBuf::new(), |all, number| all.with(&format!("path{number}"), number))
}

fn elements() -> DocumentBuf {
    DocumentBuf::new().with("a", &(0..60_000).collect::<ArrayBuf>())
}

fn nested() -> DocumentBuf {
    let mut elements = ArrayBuf::new();
    for number in 0..30_000 {
        elements.push(&DocumentBuf::new().with("b", number));
    }
    DocumentBuf::new().with("a", &elements)
}

fn words() -> DocumentBuf {
    let text = (0..60_000).fold(String::new(), |mut text, number| {
        write!(text, "word{number} ").expect("a string");
        text
    });
    DocumentBuf::new().with("a", text.as_str())
}

/// Measures memory at each check of the operation, and ends it after a number of checks.
struct Watch {
    peak: AtomicI64,
    questions: AtomicU64,
    questions_max: u64,
}

impl Interruption for Watch {
    fn reason(&self) -> Option<Failure> {
        self.peak.fetch_max(taken_bytes(), Ordering::Relaxed);
        let asked = self.questions.fetch_add(1, Ordering::Relaxed);
        (asked >= self.questions_max).then(|| Failure::new(ErrorCode::INTERRUPTED, "operation was interrupted"))
    }
}

fn watch(questions_max: u64) -> Arc<Watch> {
    Arc::new(Watch { peak: AtomicI64::new(i64::MIN), questions: AtomicU64::new(0), questions_max })
}

struct Opened {
    catalog: Arc<Catalog>,
    collection: Arc<Collection>,
    _directory: tempfile::TempDir,
}

impl Opened {
    fn new(shape: &Shape) -> Self {
        let engine = bunko_engines::find("lsm").expect("an engine of the table");
        let directory = tempfile::tempdir().expect("a temporary directory");
        let table = bunko_engines::table(engine, &EngineOptions::default());
        let store = Store::open(directory.path(), StoreOptions::at_rest(), table).expect("opens");
        let catalog = Catalog::open(store, Box::new(|| [7; 16])).expect("opens");
        let operation = OperationContext::unlimited();
        let collection = catalog.collection_or_create(&namespace(), &*operation).expect("created");
        for (number, key) in shape.keys.iter().enumerate() {
            let options = shape.options;
            let spec = shell::parse_document(&format!("{{key: {key}, {options}name: 'i{number}'}}"));
            let spec = IndexSpec::parse(spec.expect("shell syntax").as_ref()).expect("a specification");
            catalog.create_indexes(&collection, &[spec], &*operation).expect("created");
        }
        Self { catalog, collection, _directory: directory }
    }

    fn insert(&self, document: &DocumentBuf, operation: &OperationContext) -> Result<(), ErrorCode> {
        let documents = [Cow::Borrowed(document.as_ref().as_bytes())];
        let inserted = self.catalog.insert(&namespace(), &documents, Order::Ordered, operation);
        let inserted = inserted.map_err(|failure| failure.code())?;
        inserted.failures.first().map_or(Ok(()), |(_, failure)| Err(failure.code()))
    }

    fn replace(&self, record: RecordId, document: &DocumentBuf, operation: &OperationContext) -> Result<(), ErrorCode> {
        let replaced = self.catalog.change(&self.collection, Target::Record(record), operation, &mut |_| {
            Ok(Verdict::Replace(document.clone()))
        });
        replaced.map(drop).map_err(|failure| failure.code())
    }

    fn holds(&self, records: u64, what: &str) {
        let validation = self.collection.validate(&*OperationContext::unlimited()).expect("readable");
        assert!(validation.is_valid() && validation.records == records, "{what}: {validation:?}");
    }
}

fn namespace() -> Namespace {
    Namespace::new("db", "c").expect("valid")
}

fn with_id(document: &DocumentBuf) -> DocumentBuf {
    let mut with_id = DocumentBuf::new().with("_id", 1);
    with_id.extend(document.as_ref());
    with_id
}

#[test]
fn keys_take_a_bounded_multiple_of_what_was_sent() {
    for shape in SHAPES {
        let opened = Opened::new(shape);
        let document = with_id(&(shape.document)());
        let bound = BYTES_BESIDES + BYTES_PER_BYTE * (document.as_ref().len_bytes() * shape.keys.len()) as i64;
        let watch = watch(u64::MAX);
        let operation = OperationContext::new(Arc::clone(&watch) as _, MemoryLimits::none());
        let before = taken_bytes();
        opened.insert(&document, &operation).unwrap_or_else(|code| panic!("{}: {code:?}", shape.name));
        let peak = watch.peak.load(Ordering::Relaxed) - before;
        let questions = watch.questions.load(Ordering::Relaxed);
        assert!(peak <= bound, "{}: {peak} bytes, and {bound} are enough", shape.name);
        assert!(questions > 50, "{}: asked {questions} times", shape.name);
        opened.holds(1, shape.name);
    }
}

#[test]
fn a_write_that_ends_among_its_keys_leaves_nothing() {
    for shape in SHAPES {
        let opened = Opened::new(shape);
        let document = with_id(&(shape.document)());
        let limits = MemoryLimits { operation_bytes_max: 1 << 20, ..MemoryLimits::none() };
        let refused = |watch: Arc<Watch>, limits: &MemoryLimits, code: ErrorCode| {
            let operation = OperationContext::new(watch, limits.clone());
            assert_eq!(opened.insert(&document, &operation), Err(code), "{}", shape.name);
        };
        refused(watch(u64::MAX), &limits, ErrorCode::EXCEEDED_MEMORY_LIMIT);
        refused(watch(20), &MemoryLimits::none(), ErrorCode::INTERRUPTED);
        opened.holds(0, shape.name);
        opened.insert(&DocumentBuf::new().with("_id", 1), &OperationContext::unlimited()).expect("inserted");
        let found = opened.collection.find_latest(ValueRef::Int32(1), &mut Vec::new());
        let record = found.expect("readable").expect("inserted");
        let operation = OperationContext::new(watch(20), MemoryLimits::none());
        assert_eq!(opened.replace(record, &document, &operation), Err(ErrorCode::INTERRUPTED), "{}", shape.name);
        opened.holds(1, shape.name);
        opened.replace(record, &document, &OperationContext::unlimited()).expect("replaced");
        opened.holds(1, shape.name);
    }
}
