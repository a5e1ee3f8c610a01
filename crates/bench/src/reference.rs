//! Figures that others published for the same experiments.

use bunko_report::result::ReferenceFigure;

/// One machine's row of experiment E1's table.
struct E1Row {
    /// The cloud provider's name for the machine.
    instance: &'static str,
    /// Its virtual CPUs.
    cores: usize,
    /// Documents per second, in the order of [`E1_CELLS`].
    documents_per_second: [u32; E1_CELLS.len()],
}

/// Connections and requests in flight on each: sessions and goroutines per session of the original.
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

/// E3: 5,000,000 documents of 1 KB over 100 connections into MongoDB Enterprise 3.4.6; by the engine of the same role.
const E3: &[(&str, &str, f64)] =
    &[("lsm", "wiredTiger", 45_397.0), ("memory", "inMemory", 49_530.0), ("mmap", "mmapv1", 19_224.0)];

/// E4: MongoDB 2.4 on a virtual server of 2 GB. Document bytes, phase, connections, documents per second; the article
/// gives the smallest and the largest size in numbers.
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

/// What a step must have in common with a published one.
pub(crate) struct StepKey<'a> {
    pub experiment: Option<&'a str>,
    pub engine: &'a str,
    pub variant: &'a [(String, String)],
    pub phase: &'a str,
    pub connections: usize,
    pub in_flight: usize,
}

/// The published figure for a step, if there is one. `cores` are this machine's.
pub(crate) fn figure(step: &StepKey<'_>, cores: usize) -> Option<ReferenceFigure> {
    match step.experiment? {
        "E1" if step.phase == "insert" => {
            let row = E1.iter().min_by_key(|row| row.cores.abs_diff(cores))?;
            let cell = E1_CELLS.iter().position(|&cell| cell == (step.connections, step.in_flight))?;
            let source = format!("MongoDB 3.2 on {}, client on a second machine", row.instance);
            Some(ReferenceFigure { documents_per_second: row.documents_per_second[cell].into(), source })
        }
        "E3" if step.phase == "insert" => {
            let (_, theirs, figure) = E3.iter().find(|(ours, _, _)| *ours == step.engine)?;
            let source = format!("MongoDB Enterprise 3.4.6 {theirs}, 4 virtual CPUs");
            Some(ReferenceFigure { documents_per_second: *figure, source })
        }
        "E4" => {
            let size = step.variant.iter().find(|(name, _)| name == "dataset.document-bytes")?.1.as_str();
            let is_it = |(bytes, phase, connections, _): &&(&str, &str, usize, f64)| {
                *bytes == size && *phase == step.phase && *connections == step.connections
            };
            let documents_per_second = E4.iter().find(is_it)?.3;
            Some(ReferenceFigure { documents_per_second, source: "MongoDB 2.4, virtual server of 2 GB".into() })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_where_the_step_is_the_same() {
        let size = [("dataset.document-bytes".to_owned(), "4MB".to_owned())];
        let found = |experiment, engine, phase, connections, cores| {
            let key = StepKey { experiment, engine, variant: &size, phase, connections, in_flight: 1 };
            figure(&key, cores).map(|figure| figure.documents_per_second)
        };
        assert_eq!(found(Some("E1"), "lsm", "insert", 100, 2), Some(21_986.0));
        assert_eq!(found(Some("E1"), "lsm", "insert", 100, 200), Some(74_102.0));
        assert_eq!(found(Some("E1"), "lsm", "insert", 10, 2), None);
        assert_eq!(found(Some("E3"), "mmap", "insert", 100, 2), Some(19_224.0));
        assert_eq!(found(Some("E4"), "lsm", "update-type", 10, 2), Some(18.9));
        assert_eq!(found(None, "lsm", "insert", 100, 2), None);
    }
}
