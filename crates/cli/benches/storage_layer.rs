//! Cost of an insert, a point read and a scan in each engine's storage layer alone, without sockets and commands.
//!
//! ```sh
//! cargo bench -p bunko-cli --bench storage_layer -- --documents 1000000
//! cargo bench -p bunko-cli --bench storage_layer -- --engines lsm --compressor zstd --json storage-layer.json
//! ```
//! Each round gives every engine a fresh store, one after the other (A B C A B C); the figures are the medians of the
//! rounds. One thread writes. Processor time is that of the whole process, background threads included. An insert puts
//! a document and its primary key, as for a collection without further indexes. After every `--group` inserts the log
//! is handed to the kernel, which stands for connections that write at the same time. *Settled* adds the work that the
//! inserts left behind: a checkpoint, then the store's own threads until they have been quiet for two seconds. Point
//! reads look up a random primary key and read its document; everything was read once before.

use bunko_bson::key_string;
use bunko_dataset::{Dataset, DatasetOptions, KeyOrder};
use bunko_engines::{Compression, ENGINES, EngineOptions, Entry};
use bunko_store::{
    Batch, Clock, Direction, KeyspaceId, LogOptions, Presence, RecordId, RecordRange, Store, StoreOptions, View,
};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use rustix::time::{ClockId, clock_gettime};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: bunko_heap::Mimalloc = bunko_heap::Mimalloc;

const RECORDS: KeyspaceId = KeyspaceId(1);
const PRIMARY_KEYS: KeyspaceId = KeyspaceId(2);
const SEED: u64 = 1;
/// The defaults of `bunko serve`.
const COMMIT_INTERVAL: Duration = Duration::from_millis(100);
const CHECKPOINT_INTERVAL: Duration = Duration::from_mins(1);
const UNFLUSHED_BYTES_MAX: u64 = 64 << 20;
/// Background threads have settled once they take at most [`QUIET_SHARE`] of a processor for this long.
const QUIET: Duration = Duration::from_secs(2);
const QUIET_SHARE: f64 = 0.02;
const SETTLING_MAX: Duration = Duration::from_mins(5);

struct Options {
    engines: Vec<&'static Entry>,
    documents: u64,
    document_bytes: usize,
    ratio: f64,
    rounds: usize,
    group: u64,
    reads: u64,
    cache_bytes: u64,
    memory_bytes: u64,
    compression: Compression,
    directory: PathBuf,
    json: Option<PathBuf>,
}

fn parse_options() -> Result<Options, Box<dyn Error>> {
    let mut options = Options {
        engines: ENGINES.iter().collect(),
        documents: 500_000,
        document_bytes: 1_000,
        ratio: 2.6,
        rounds: 5,
        group: 100,
        reads: 500_000,
        cache_bytes: 1 << 30,
        memory_bytes: 8 << 30,
        compression: Compression::Lz4,
        directory: std::env::temp_dir(),
        json: None,
    };
    // `cargo bench` passes this flag, and it has no effect here.
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} has no value"))?;
        match name.as_str() {
            "--engines" => options.engines = value.split(',').map(engine).collect::<Result<_, _>>()?,
            "--documents" => options.documents = value.parse()?,
            "--document-bytes" => options.document_bytes = value.parse()?,
            "--ratio" => options.ratio = value.parse()?,
            "--rounds" => options.rounds = value.parse()?,
            "--group" => options.group = value.parse()?,
            "--reads" => options.reads = value.parse()?,
            "--cache-mb" => options.cache_bytes = value.parse::<u64>()? << 20,
            "--memory-mb" => options.memory_bytes = value.parse::<u64>()? << 20,
            "--compressor" => options.compression = Compression::parse(&value, None)?,
            "--directory" => options.directory = value.into(),
            "--json" => options.json = Some(value.into()),
            _ => return Err(format!("unknown option {name}").into()),
        }
    }
    if options.documents == 0 || options.rounds == 0 || options.group == 0 || options.reads == 0 {
        return Err("--documents, --rounds, --group and --reads are at least 1".into());
    }
    Ok(options)
}

fn engine(name: &str) -> Result<&'static Entry, String> {
    bunko_engines::find(name).ok_or_else(|| format!("there is no storage engine '{name}'"))
}

/// Figures of one engine in one round.
#[derive(Clone, Copy, Default)]
struct Figures {
    insert_us: f64,
    settled_us: f64,
    settling_seconds: f64,
    inserts_per_second: f64,
    read_us: f64,
    scan_us: f64,
    scanned_per_second: f64,
    /// Disk space of documents and primary keys, divided by the documents' encoded size.
    storage_share: f64,
}

/// A column's heading and its figure.
type Column = (&'static str, fn(&Figures) -> f64);

const COLUMNS: [Column; 8] = [
    ("insert us", |figures| figures.insert_us),
    ("settled us", |figures| figures.settled_us),
    ("settling s", |figures| figures.settling_seconds),
    ("inserts/s", |figures| figures.inserts_per_second),
    ("read us", |figures| figures.read_us),
    ("scan us/doc", |figures| figures.scan_us),
    ("scan docs/s", |figures| figures.scanned_per_second),
    ("storage/data", |figures| figures.storage_share),
];

fn main() -> Result<(), Box<dyn Error>> {
    let options = parse_options()?;
    let dataset = Dataset::new(&DatasetOptions {
        seed: SEED,
        shape: "plain".to_owned(),
        documents: options.documents,
        document_bytes: Some(options.document_bytes),
        compressible: options.ratio.to_string().parse()?,
        key_order: KeyOrder::Ascending,
        id: None,
    })?;
    let mut rounds: Vec<Vec<Figures>> = vec![Vec::new(); options.engines.len()];
    for round in 1..=options.rounds {
        for (engine, of_engine) in options.engines.iter().zip(&mut rounds) {
            let figures = measure(engine, &dataset, &options)?;
            eprintln!("round {round} {}: {}", engine.name, shown(&figures).join("  "));
            of_engine.push(figures);
        }
    }
    let medians: Vec<Figures> = rounds.iter().map(|rounds| median(rounds)).collect();
    print_table(&options, &medians);
    if let Some(path) = &options.json {
        std::fs::write(path, json(&options, &rounds, &medians)?)?;
    }
    Ok(())
}

fn measure(engine: &Entry, dataset: &Dataset, options: &Options) -> Result<Figures, Box<dyn Error>> {
    let directory = tempfile::Builder::new().prefix("bunko-storage-layer-").tempdir_in(&options.directory)?;
    let store = open(engine, directory.path(), options)?;
    let mut figures = Figures::default();
    insert(&store, engine, dataset, options, &mut figures)?;
    let data_bytes = (options.documents * options.document_bytes as u64) as f64;
    let used: u64 = store.space(&[RECORDS, PRIMARY_KEYS]).iter().map(|space| space.used_bytes).sum();
    figures.storage_share = used as f64 / data_bytes;
    // Reads everything once, so that the measured reads are warm.
    scan(&store, options)?;
    let (seconds, cpu) = timed(|| scan(&store, options))?;
    figures.scan_us = cpu * 1e6 / options.documents as f64;
    figures.scanned_per_second = options.documents as f64 / seconds;
    let (mut keys, mut buffers) = (Xoshiro256PlusPlus::seed_from_u64(SEED), Buffers::default());
    (0..options.documents).try_for_each(|index| read(&store, dataset, index, &mut buffers))?;
    let mut read_any = |_| read(&store, dataset, keys.random_range(0..options.documents), &mut buffers);
    let (_, cpu) = timed(|| (0..options.reads).try_for_each(&mut read_any))?;
    figures.read_us = cpu * 1e6 / options.reads as f64;
    store.close()?;
    Ok(figures)
}

fn open(engine: &Entry, directory: &Path, options: &Options) -> Result<Arc<Store>, Box<dyn Error>> {
    let engines = EngineOptions {
        cache_bytes: options.cache_bytes,
        compression: options.compression,
        memory_limit_bytes: options.memory_bytes,
    };
    let store_options = StoreOptions {
        log: LogOptions {
            commit_interval: COMMIT_INTERVAL,
            history_bytes_max: None,
            on_failure: Arc::new(|error| panic!("the log: {error}")),
        },
        checkpoint_interval: CHECKPOINT_INTERVAL,
        unflushed_bytes_max: UNFLUSHED_BYTES_MAX,
        clock: Clock::machine(),
        on_background_error: Arc::new(|what, error| panic!("{what}: {error}")),
        on_commit_passed: Arc::new(|_, _| ()),
        reserve: bunko_store::ReserveOptions::none(),
    };
    Ok(Store::open(directory, store_options, bunko_engines::table(engine, &engines))?)
}

/// Inserts all documents. The time to generate them is not measured.
fn insert(
    store: &Store,
    engine: &Entry,
    dataset: &Dataset,
    options: &Options,
    figures: &mut Figures,
) -> Result<(), Box<dyn Error>> {
    let mut batch = Batch::new();
    for keyspace in [RECORDS, PRIMARY_KEYS] {
        batch.create_keyspace(keyspace, engine.name, &[]);
    }
    store.commit(&batch)?;
    let (began, began_cpu) = (Instant::now(), cpu_seconds());
    let (mut making, mut making_cpu) = (0.0, 0.0);
    let (mut documents, mut key) = (Vec::new(), Vec::new());
    let mut next = 0;
    while next < options.documents {
        let group = next..(next + options.group).min(options.documents);
        // Generating documents is subtracted as this thread's time only: work of other threads meanwhile counts.
        let (since, thread) = (Instant::now(), thread_cpu_seconds());
        documents.clear();
        for index in group.clone() {
            dataset.write(index, &mut documents);
        }
        making_cpu += thread_cpu_seconds() - thread;
        making += since.elapsed().as_secs_f64();
        let mut last = None;
        for (index, document) in group.clone().zip(documents.chunks_exact(options.document_bytes)) {
            primary_key(dataset, index, &mut key);
            let (record, mut batch) = (RecordId(index + 1), Batch::new());
            batch.insert_record(RECORDS, record, document);
            batch.put_primary_key(PRIMARY_KEYS, &key, record, Presence::New);
            last = Some(store.commit(&batch)?);
        }
        if let Some(last) = last {
            store.write(last)?;
        }
        next = group.end;
    }
    let count = options.documents as f64;
    figures.inserts_per_second = count / (began.elapsed().as_secs_f64() - making);
    figures.insert_us = (cpu_seconds() - began_cpu - making_cpu) * 1e6 / count;
    figures.settling_seconds = settle(store)?;
    figures.settled_us = (cpu_seconds() - began_cpu - making_cpu) * 1e6 / count;
    Ok(())
}

/// Seconds until the store's threads have no more work.
fn settle(store: &Store) -> Result<f64, Box<dyn Error>> {
    let began = Instant::now();
    store.checkpoint()?;
    let (mut quiet_since, mut before) = (Instant::now(), cpu_seconds());
    while quiet_since.elapsed() < QUIET {
        std::thread::sleep(QUIET / 10);
        let now = cpu_seconds();
        if now - before > QUIET_SHARE * (QUIET / 10).as_secs_f64() {
            quiet_since = Instant::now();
        }
        before = now;
        if began.elapsed() > SETTLING_MAX {
            return Err(format!("not settled after {SETTLING_MAX:?}").into());
        }
    }
    Ok(quiet_since.duration_since(began).as_secs_f64())
}

fn scan(store: &Store, options: &Options) -> Result<(), Box<dyn Error>> {
    let snapshot = store.snapshot();
    let mut records = snapshot.records(RECORDS, RecordRange::ALL, Direction::Forward);
    let (mut count, mut bytes) = (0, 0);
    while let Some((_, _, document)) = records.next()? {
        count += 1;
        bytes += document.len() as u64;
    }
    if (count, bytes) == (options.documents, options.documents * options.document_bytes as u64) {
        return Ok(());
    }
    Err(format!("a scan found {count} documents of {bytes} bytes").into())
}

/// Reusable buffers of a point read.
#[derive(Default)]
struct Buffers {
    key: Vec<u8>,
    document: Vec<u8>,
}

fn read(store: &Store, dataset: &Dataset, index: u64, buffers: &mut Buffers) -> Result<(), Box<dyn Error>> {
    primary_key(dataset, index, &mut buffers.key);
    let found = store.latest().record_by_primary_key(PRIMARY_KEYS, RECORDS, &buffers.key, &mut buffers.document)?;
    match found {
        Some((record, _)) if record == RecordId(index + 1) => Ok(()),
        found => Err(format!("document {index}: {found:?}").into()),
    }
}

fn primary_key(dataset: &Dataset, index: u64, key: &mut Vec<u8>) {
    key.clear();
    key_string::append(key, dataset.id(index).as_value(), key_string::Direction::Ascending);
}

/// Elapsed seconds, and processor seconds of the process.
fn timed(work: impl FnOnce() -> Result<(), Box<dyn Error>>) -> Result<(f64, f64), Box<dyn Error>> {
    let (began, cpu) = (Instant::now(), cpu_seconds());
    work()?;
    Ok((began.elapsed().as_secs_f64(), cpu_seconds() - cpu))
}

/// Processor seconds of all threads, including those that have ended.
fn cpu_seconds() -> f64 {
    seconds(ClockId::ProcessCPUTime)
}

fn thread_cpu_seconds() -> f64 {
    seconds(ClockId::ThreadCPUTime)
}

fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn median(rounds: &[Figures]) -> Figures {
    let of = |figure: fn(&Figures) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(figure).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    Figures {
        insert_us: of(|figures| figures.insert_us),
        settled_us: of(|figures| figures.settled_us),
        settling_seconds: of(|figures| figures.settling_seconds),
        inserts_per_second: of(|figures| figures.inserts_per_second),
        read_us: of(|figures| figures.read_us),
        scan_us: of(|figures| figures.scan_us),
        scanned_per_second: of(|figures| figures.scanned_per_second),
        storage_share: of(|figures| figures.storage_share),
    }
}

fn shown(figures: &Figures) -> Vec<String> {
    COLUMNS.iter().map(|(heading, figure)| format!("{heading} {}", digits(figure(figures)))).collect()
}

fn digits(value: f64) -> String {
    if value >= 1_000.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

fn print_table(options: &Options, medians: &[Figures]) {
    let Options { documents, document_bytes, ratio, rounds, group, compression, .. } = options;
    println!(
        "{documents} documents of {document_bytes} bytes that compress {ratio} to 1, one index, compressor {}, log written \
         every {group} inserts; medians of {rounds} rounds",
        compression.name()
    );
    let right = |text: String| format!("{text:>13}");
    let headings: Vec<_> = COLUMNS.iter().map(|(heading, _)| right((*heading).to_owned())).collect();
    println!("{:<8} {}", "engine", headings.join(" "));
    for (engine, figures) in options.engines.iter().zip(medians) {
        let cells: Vec<_> = COLUMNS.iter().map(|(_, figure)| right(digits(figure(figures)))).collect();
        println!("{:<8} {}", engine.name, cells.join(" "));
    }
}

fn json(options: &Options, rounds: &[Vec<Figures>], medians: &[Figures]) -> Result<String, serde_json::Error> {
    let figures = |figures: &Figures| -> serde_json::Value {
        COLUMNS.iter().map(|(heading, figure)| ((*heading).to_owned(), serde_json::json!(figure(figures)))).collect()
    };
    let engines: serde_json::Map<String, serde_json::Value> = options
        .engines
        .iter()
        .zip(rounds.iter().zip(medians))
        .map(|(engine, (rounds, median))| {
            let rounds: Vec<_> = rounds.iter().map(figures).collect();
            (engine.name.to_owned(), serde_json::json!({ "median": figures(median), "rounds": rounds }))
        })
        .collect();
    serde_json::to_string_pretty(&serde_json::json!({
        "documents": options.documents,
        "document_bytes": options.document_bytes,
        "ratio": options.ratio,
        "compressor": options.compression.name(),
        "group": options.group,
        "reads": options.reads,
        "cache_bytes": options.cache_bytes,
        "engines": engines,
    }))
}
