//! Histograms of the server, whose buckets begin at a duration, as OpenMetrics has them, whose buckets end at one.

use bunko_bson::{DocumentRef, ValueRef, number};

/// Ends of the buckets in microseconds. Each is a power of two, where a bucket of the server ends too.
const ENDS_MICROS: [u64; 10] = [1 << 6, 1 << 8, 1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24];

/// Counts by duration.
#[derive(Debug, PartialEq)]
pub struct Histogram {
    /// Sum of all durations, in seconds.
    pub sum: f64,
    /// Number of durations.
    pub count: u64,
    /// End of each bucket in seconds, with the bucket's own count.
    pub buckets: Vec<(f64, u64)>,
}

impl Histogram {
    /// Reads `latency`, and `histogram` as an array of `micros` and `count`, or as a document of counts whose names are
    /// the microseconds.
    pub fn read(document: DocumentRef<'_>) -> Self {
        let whole = |value: ValueRef<'_>| number::as_i64_exact(value).and_then(|value| u64::try_from(value).ok());
        let begins: Vec<(u64, u64)> = match document.get("histogram") {
            Some(ValueRef::Array(buckets)) => buckets
                .iter()
                .filter_map(|bucket| {
                    let bucket = bucket.as_document()?;
                    Some((bucket.get("micros").and_then(whole)?, bucket.get("count").and_then(whole)?))
                })
                .collect(),
            Some(ValueRef::Document(buckets)) => {
                buckets.iter().filter_map(|bucket| Some((bucket.name.parse().ok()?, whole(bucket.value)?))).collect()
            }
            _ => Vec::new(),
        };
        let mut counts = [0; ENDS_MICROS.len() + 1];
        for (begin, count) in begins {
            counts[ENDS_MICROS.partition_point(|end| *end <= begin)] += count;
        }
        let ends = ENDS_MICROS.iter().map(|micros| *micros as f64 / 1e6).chain([f64::INFINITY]);
        Self {
            sum: document.get("latency").and_then(number::as_f64).unwrap_or_default() / 1e6,
            count: counts.iter().sum(),
            buckets: ends.zip(counts).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::{ArrayBuf, DocumentBuf};

    #[test]
    fn buckets_of_both_forms_are_counted_where_they_end() {
        let of = |micros: i64, count: i64| DocumentBuf::new().with("micros", micros).with("count", count);
        let array: ArrayBuf = [&of(0, 1), &of(32, 2), &of(64, 3), &of(1 << 25, 4)].into_iter().collect();
        let fields = DocumentBuf::new().with("0", 1_i64).with("32", 2_i64).with("64", 3_i64).with("33554432", 4_i64);
        let latency = || DocumentBuf::new().with("latency", 2_500_000_i64);
        for document in [latency().with("histogram", &array), latency().with("histogram", &fields)] {
            let histogram = Histogram::read(document.as_ref());
            assert_eq!((histogram.sum, histogram.count), (2.5, 10));
            assert_eq!(histogram.buckets[..3], [(0.000_064, 3), (0.000_256, 3), (0.001_024, 0)]);
            assert_eq!(histogram.buckets.last(), Some(&(f64::INFINITY, 4)));
        }
    }
}
