//! Figures that others published for the same experiment.

/// One machine's row of a published table.
#[derive(Debug, PartialEq, Eq)]
pub struct ReferenceRow {
    /// The cloud provider's name for the machine.
    pub instance: &'static str,
    /// Its virtual CPUs.
    pub cores: usize,
    /// Documents per second, in the order of [`CELLS`].
    documents_per_second: [u32; CELLS.len()],
}

/// Connections and requests in flight on each: sessions and goroutines per session of the original.
const CELLS: [(usize, usize); 4] = [(1, 1), (1, 100), (100, 1), (100, 100)];

/// E1: 200,000 inserts of `{_id, d: "0" x 970}` into MongoDB 3.2 with WiredTiger, journal on, client and server on
/// two machines of that kind.
pub const E1: &[ReferenceRow] = &[
    ReferenceRow { instance: "t2.small", cores: 1, documents_per_second: [2_014, 24_547, 9_917, 10_293] },
    ReferenceRow { instance: "t2.medium", cores: 2, documents_per_second: [2_716, 23_114, 21_986, 18_665] },
    ReferenceRow { instance: "t2.xlarge", cores: 4, documents_per_second: [3_671, 18_623, 59_356, 33_101] },
    ReferenceRow { instance: "t2.2xlarge", cores: 8, documents_per_second: [3_727, 21_828, 84_428, 58_290] },
    ReferenceRow { instance: "m4.4xlarge", cores: 16, documents_per_second: [4_629, 19_986, 74_102, 69_072] },
];

impl ReferenceRow {
    /// The row of the machine whose cores are nearest to `cores`, the smaller of two that are equally near.
    pub fn nearest(cores: usize) -> &'static Self {
        E1.iter().min_by_key(|row| row.cores.abs_diff(cores)).expect("the table is not empty")
    }

    /// Documents per second with that many connections and requests in flight on each, if it was measured.
    pub fn documents_per_second(&self, connections: usize, in_flight: usize) -> Option<u32> {
        let cell = CELLS.iter().position(|&cell| cell == (connections, in_flight))?;
        Some(self.documents_per_second[cell])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_machine_is_chosen() {
        let chosen = |cores| ReferenceRow::nearest(cores).instance;
        assert_eq!(
            [1, 2, 3, 5, 12, 200].map(chosen),
            ["t2.small", "t2.medium", "t2.medium", "t2.xlarge", "t2.2xlarge", "m4.4xlarge"]
        );
        assert_eq!(ReferenceRow::nearest(2).documents_per_second(100, 1), Some(21_986));
        assert_eq!(ReferenceRow::nearest(2).documents_per_second(10, 1), None);
    }
}
