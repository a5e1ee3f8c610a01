//! Published figures of other people for the same experiments.

mod transfer;

pub(crate) use transfer::TransferKey;

use bunko_report::result::{ReferenceFigure, StorageReference};

/// One machine's row of experiment E1's table.
struct E1Row {
    /// The cloud provider's name for the machine.
    instance: &'static str,
    /// Number of virtual CPUs.
    cores: usize,
    /// Documents per second, in the order of [`E1_CELLS`].
    documents_per_second: [u32; E1_CELLS.len()],
}

/// Connections and requests in flight on each. The original calls them sessions and goroutines per session.
const E1_CELLS: [(usize, usize); 4] = [(1, 1), (1, 100), (100, 1), (100, 100)];

/// E1: 200,000 inserts of `{_id, d: "0" x 970}` into MongoDB 3.2 with WiredTiger, journal on, client and server on
/// two machines of that kind.
const E1: &[E1Row] = &[
    E1Row { instance: "t2.small", cores: 1, documents_per_second: [2_014, 24_547, 9_917, 10_293] },
    E1Row { instance: "t2.medium", cores: 2, documents_per_second: [2_716, 23_114, 21_986, 18_665] },
    E1Row { instance: "t2.xlarge", cores: 4, documents_per_second: [3_671, 18_623, 59_356, 33_101] },
    E1Row { instance: "t2.2xlarge", cores: 8, documents_per_second: [3_727, 21_828, 84_428, 58_290] },
    E1Row { instance: "m4.4xlarge", cores: 16, documents_per_second: [4_629, 19_986, 74_102, 69_072] },
];

/// One engine of experiment E3.
struct E3Engine {
    /// Bunko's engine in the same role.
    ours: &'static str,
    /// MongoDB's name.
    name: &'static str,
    documents_per_second: f64,
    data_size: f64,
    storage_size: f64,
    index_size: f64,
    file_size: Option<f64>,
}

/// E3: 5,000,000 documents of 1 KB over 100 connections into MongoDB Enterprise 3.4.6 with caches of 10 GB, journal on,
/// snappy; then `db.stats()`.
const E3: &[E3Engine] = &[
    E3Engine {
        ours: "memory",
        name: "inMemory",
        documents_per_second: 49_530.0,
        data_size: 5_000_000_000.0,
        storage_size: 5_000_000_000.0,
        index_size: 90_579_120.0,
        file_size: None,
    },
    E3Engine {
        ours: "lsm",
        name: "wiredTiger",
        documents_per_second: 45_397.0,
        data_size: 5_000_000_000.0,
        storage_size: 736_706_560.0,
        index_size: 50_180_096.0,
        file_size: None,
    },
    E3Engine {
        ours: "mmap",
        name: "mmapv1",
        documents_per_second: 19_224.0,
        data_size: 5_040_000_256.0,
        storage_size: 5_297_836_032.0,
        index_size: 168_695_408.0,
        file_size: Some(8_519_680_000.0),
    },
];
const E3_DOCUMENTS: f64 = 5_000_000.0;

/// The engine of experiment E3 with that name, or with the same role as the engine of that name.
fn e3_engine(engine: &str) -> Option<&'static E3Engine> {
    E3.iter().find(|published| published.ours == engine || published.name.eq_ignore_ascii_case(engine))
}

/// E4: MongoDB 2.4 on a virtual server of 2 GB. Document bytes, phase, connections, documents per second. The article
/// gives numbers only for the smallest and the largest size.
const E4: &[(&str, &str, usize, f64)] = &[
    ("400", "insert", 1, 11_045.0),
    ("400", "insert", 10, 21_903.0),
    ("400", "index", 1, 50_657.0),
    ("400", "update-number", 10, 109_377.0),
    ("400", "update-type", 10, 29_524.0),
    ("400", "update-text30", 10, 108_312.0),
    ("400", "fetch-random", 1, 376.0),
    ("400", "fetch-random", 100, 34_351.0),
    ("4MB", "insert", 1, 50.3),
    ("4MB", "insert", 10, 22.2),
    ("4MB", "index", 1, 143.0),
    ("4MB", "update-number", 10, 206.0),
    ("4MB", "update-type", 10, 18.9),
    ("4MB", "update-text30", 10, 194.5),
];

/// Properties by which a step is matched with a published one.
pub(crate) struct StepKey<'a> {
    pub experiment: Option<&'a str>,
    pub engine: &'a str,
    pub variant: &'a [(String, String)],
    pub phase: &'a str,
    pub connections: usize,
    pub in_flight: usize,
    /// Only for steps that dump or restore.
    pub transfer: Option<TransferKey>,
}

/// The published figure for a step, if there is one. `cores` is the number of this machine's.
pub(crate) fn figure(step: &StepKey<'_>, cores: usize) -> Option<ReferenceFigure> {
    match step.experiment? {
        "E1" if step.phase == "insert" => {
            let row = E1.iter().min_by_key(|row| row.cores.abs_diff(cores))?;
            let cell = E1_CELLS.iter().position(|&cell| cell == (step.connections, step.in_flight))?;
            let source = format!("MongoDB 3.2 on {}, client on a second machine", row.instance);
            Some(of_documents(row.documents_per_second[cell].into(), source))
        }
        "E2" => step.transfer.as_ref()?.figure(),
        "E3" if step.phase == "insert" => {
            let E3Engine { name, documents_per_second, .. } = *e3_engine(step.engine)?;
            let source = format!("MongoDB Enterprise 3.4.6 {name}, 4 virtual CPUs");
            Some(of_documents(documents_per_second, source))
        }
        "E4" => {
            let size = step.variant.iter().find(|(name, _)| name == "dataset.document-bytes")?.1.as_str();
            let is_it = |(bytes, phase, connections, _): &&(&str, &str, usize, f64)| {
                *bytes == size && *phase == step.phase && *connections == step.connections
            };
            let documents_per_second = E4.iter().find(is_it)?.3;
            Some(of_documents(documents_per_second, "MongoDB 2.4, virtual server of 2 GB".into()))
        }
        _ => None,
    }
}

fn of_documents(documents_per_second: f64, source: String) -> ReferenceFigure {
    ReferenceFigure { documents_per_second, bytes_per_second: None, source }
}

/// The published sizes for an engine's role, if they exist.
pub(crate) fn storage(experiment: Option<&str>, engine: Option<&str>) -> Option<StorageReference> {
    let published = e3_engine(engine.filter(|_| experiment == Some("E3"))?)?;
    Some(StorageReference {
        source: format!("MongoDB 3.4.6 {}", published.name),
        documents_per_second: published.documents_per_second,
        objects: E3_DOCUMENTS,
        data_size: published.data_size,
        storage_size: published.storage_size,
        index_size: published.index_size,
        file_size: published.file_size,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_where_the_step_is_the_same() {
        let size = [("dataset.document-bytes".to_owned(), "4MB".to_owned())];
        let found = |experiment, engine, phase, connections, cores| {
            let key = StepKey { experiment, engine, variant: &size, phase, connections, in_flight: 1, transfer: None };
            figure(&key, cores).map(|figure| figure.documents_per_second)
        };
        assert_eq!(found(Some("E1"), "lsm", "insert", 100, 2), Some(21_986.0));
        assert_eq!(found(Some("E1"), "lsm", "insert", 100, 200), Some(74_102.0));
        assert_eq!(found(Some("E1"), "lsm", "insert", 10, 2), None);
        assert_eq!(found(Some("E3"), "mmap", "insert", 100, 2), Some(19_224.0));
        assert_eq!(found(Some("E4"), "lsm", "update-type", 10, 2), Some(18.9));
        assert_eq!(found(None, "lsm", "insert", 100, 2), None);
    }

    #[test]
    fn sizes_are_those_of_the_engine_of_the_same_role() {
        let source = |experiment, engine| storage(experiment, engine).map(|reference| reference.source);
        assert_eq!(source(Some("E3"), Some("memory")).as_deref(), Some("MongoDB 3.4.6 inMemory"));
        assert_eq!(source(Some("E3"), Some("wiredTiger")).as_deref(), Some("MongoDB 3.4.6 wiredTiger"));
        assert_eq!(source(Some("E3"), Some("mmap")), source(Some("E3"), Some("mmapv1")));
        for (experiment, engine) in [(None, Some("lsm")), (Some("E1"), Some("lsm")), (Some("E3"), None)] {
            assert_eq!(source(experiment, engine), None);
        }
    }
}
