//! Latencies of the operations of one class: their sum, and a histogram.

use bunko_bson::Writer;

/// Time spent and operations run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// Total time, in microseconds.
    pub micros: u64,
    /// Number of operations.
    pub operations: u64,
}

impl Latency {
    /// Adds the operations of `other`.
    pub fn add(&mut self, other: Self) {
        self.micros += other.micros;
        self.operations += other.operations;
    }
}

/// Lower bounds of the histogram's buckets, in microseconds. Each bucket ends where the next begins. From 2,048
/// microseconds to two seconds there are two buckets for each doubling.
/// Source: MongoDB manual 8.2, "$collStats", `latencyStats`.
const BUCKETS: [u64; 51] = buckets();

const fn buckets() -> [u64; 51] {
    let mut buckets = [0; 51];
    let (mut position, mut micros) = (1, 2);
    while position < buckets.len() {
        buckets[position] = micros;
        position += 1;
        if micros >= 2048 && micros < 1 << 21 {
            buckets[position] = micros + micros / 2;
            position += 1;
        }
        micros *= 2;
    }
    buckets
}

/// The latencies of one class.
#[derive(Clone, Debug, Default)]
pub struct ClassLatency {
    sum: Latency,
    /// The buckets that have operations, with their counts. Most collections need few buckets, and there may be many
    /// collections.
    met: Vec<(u8, u64)>,
}

impl ClassLatency {
    /// Counts one operation.
    pub fn note(&mut self, latency: Latency) {
        self.sum.add(latency);
        // The first bucket begins at 0.
        let bucket = BUCKETS.partition_point(|&begin| begin <= latency.micros) - 1;
        self.count(bucket as u8, latency.operations);
    }

    /// Adds the latencies of another instance.
    pub fn add(&mut self, other: &Self) {
        self.sum.add(other.sum);
        other.met.iter().for_each(|&(bucket, operations)| self.count(bucket, operations));
    }

    /// Total time and number of operations.
    pub fn sum(&self) -> Latency {
        self.sum
    }

    /// Appends the sums, and the histogram if requested.
    pub fn write(&self, out: &mut Writer<'_>, histograms: bool) {
        if histograms {
            let mut met = self.met.clone();
            met.sort_unstable();
            out.begin_array("histogram");
            for (position, (bucket, operations)) in met.into_iter().enumerate() {
                out.begin_document_at(position)
                    .append("micros", BUCKETS[usize::from(bucket)] as i64)
                    .append("count", operations as i64)
                    .end();
            }
            out.end();
        }
        out.append("latency", self.sum.micros as i64).append("ops", self.sum.operations as i64);
    }

    fn count(&mut self, bucket: u8, operations: u64) {
        match self.met.iter_mut().find(|met| met.0 == bucket) {
            Some((_, sum)) => *sum += operations,
            None => self.met.push((bucket, operations)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::DocumentRef;

    #[test]
    fn buckets_double_and_have_halves_in_the_middle() {
        assert_eq!(BUCKETS[..4], [0, 2, 4, 8]);
        assert_eq!(BUCKETS[10..16], [1024, 2048, 3072, 4096, 6144, 8192]);
        assert_eq!(BUCKETS[29..34], [1 << 20, 3 << 19, 1 << 21, 1 << 22, 1 << 23]);
        assert_eq!(BUCKETS[50], 1 << 40);
    }

    #[test]
    fn each_operation_is_in_the_bucket_that_begins_before_it() {
        let mut latency = ClassLatency::default();
        for micros in [3000, 0, 1, 2, 3071, 3072, u64::MAX >> 16] {
            latency.note(Latency { micros, operations: 1 });
        }
        let mut both = latency.clone();
        both.add(&latency);
        let mut written = Vec::new();
        let mut out = Writer::new(&mut written);
        both.write(&mut out, true);
        out.end();
        let found: Vec<(i64, i64)> = DocumentRef::trusted(&written)
            .get("histogram")
            .and_then(bunko_bson::ValueRef::as_array)
            .expect("it was asked for")
            .iter()
            .filter_map(bunko_bson::ValueRef::as_document)
            .map(|entry| {
                let number = |name| bunko_bson::number::as_i64_exact(entry.get(name)?);
                (number("micros").expect("a number"), number("count").expect("a number"))
            })
            .collect();
        assert_eq!(found, [(0, 4), (2, 2), (2048, 4), (3072, 2), (1 << 40, 2)]);
    }
}
