//! Merging and encoding of histograms from many generators: nothing is lost, and invalid texts are refused.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bunko_statistics::{HistogramError, LatencyHistogram};
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use proptest::prelude::*;
use std::io::{Read, Write};
use std::time::Duration;

fn of_nanoseconds(latencies: &[u64]) -> LatencyHistogram {
    let mut histogram = LatencyHistogram::default();
    for &ns in latencies {
        histogram.record(Duration::from_nanos(ns));
    }
    histogram
}

/// Values from below the lowest to above the highest, evenly over the orders of magnitude.
fn latencies() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec((0_u32..45, any::<u64>()).prop_map(|(bits, random)| random & ((1 << bits) - 1)), 0..300)
}

/// Inflates the encoding in a text.
fn inflated(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    ZlibDecoder::new(&STANDARD.decode(text).unwrap()[8..]).read_to_end(&mut bytes).unwrap();
    bytes
}

/// Makes a text from an inflated encoding.
fn deflated(bytes: &[u8]) -> String {
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
    zlib.write_all(bytes).unwrap();
    let zlib = zlib.finish().unwrap();
    let frame = [&0x1c84_9314_u32.to_be_bytes()[..], &(zlib.len() as u32).to_be_bytes(), &zlib].concat();
    STANDARD.encode(frame)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn merged_from_four_equals_one_fed_all(parts in prop::collection::vec(latencies(), 4)) {
        let mut merged = LatencyHistogram::default();
        for part in &parts {
            merged.merge(&LatencyHistogram::decode(&of_nanoseconds(part).encode()).unwrap());
        }
        let all = of_nanoseconds(&parts.concat());
        prop_assert_eq!(&merged, &all);
        prop_assert_eq!((merged.summary(), merged.curve()), (all.summary(), all.curve()));
    }

    #[test]
    fn one_sample_more_or_elsewhere_is_another_histogram(latencies in latencies()) {
        let histogram = of_nanoseconds(&latencies);
        let mut more = histogram.clone();
        more.record(Duration::from_millis(7));
        let mut elsewhere = histogram.clone();
        elsewhere.record(Duration::from_millis(8));
        prop_assert_ne!(&histogram, &more);
        prop_assert_ne!(&more, &elsewhere);
    }

    #[test]
    fn garbage_is_refused(text in "[A-Za-z0-9+/]{0,400}", bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(LatencyHistogram::decode(&text).is_err());
        let with_cookie = ["HISTFA", &text].concat();
        prop_assert!(LatencyHistogram::decode(&with_cookie).is_err());
        prop_assert!(LatencyHistogram::decode(&deflated(&bytes)).is_err());
    }

    /// Any counts may be a valid histogram, but neither decoding nor later use may panic.
    #[test]
    fn damaged_counts_are_survived(counts in prop::collection::vec(prop_oneof![any::<u8>(), Just(0xff), Just(0)], 0..60)) {
        let mut bytes = inflated(&LatencyHistogram::default().encode());
        bytes.truncate(40);
        bytes[4..8].copy_from_slice(&(counts.len() as u32).to_be_bytes());
        bytes.extend(counts);
        if let Ok(histogram) = LatencyHistogram::decode(&deflated(&bytes)) {
            let mut twice = histogram.clone();
            twice.merge(&histogram);
            let _ = (twice.summary(), twice.curve());
            prop_assert_eq!(LatencyHistogram::decode(&twice.encode()).is_ok(), twice.len() <= 1 << 53);
        }
    }
}

#[test]
fn every_bucket_fits_into_the_limit_of_a_text() {
    let mut histogram = LatencyHistogram::default();
    let mut ns = 1_000_u64;
    while ns < 3_600_000_000_000 {
        (0..200).for_each(|_| histogram.record(Duration::from_nanos(ns)));
        ns += (ns / 2_048).max(256);
    }
    assert_eq!(LatencyHistogram::decode(&histogram.encode()), Ok(histogram));
}

#[test]
fn truncated_texts_are_refused() {
    let text = of_nanoseconds(&[1_000, 5_000_000, 3_000_000_000]).encode();
    for length in 0..text.len() {
        assert!(LatencyHistogram::decode(&text[..length]).is_err(), "{length}");
    }
    assert_eq!(LatencyHistogram::decode("no base64!"), Err(HistogramError::NotBase64));
}

#[test]
fn other_bounds_are_refused() {
    for (lowest, highest, digits) in
        [(1, 3_600_000_000_000, 3), (1_000, 60_000_000_000, 3), (1_000, 3_600_000_000_000, 2)]
    {
        let mut bytes = Vec::new();
        let other = Histogram::<u64>::new_with_bounds(lowest, highest, digits).unwrap();
        V2DeflateSerializer::new().serialize(&other, &mut bytes).unwrap();
        let expected = HistogramError::OtherBounds { lowest, highest, digits: u32::from(digits) };
        assert_eq!(LatencyHistogram::decode(&STANDARD.encode(bytes)), Err(expected));
    }
}

#[test]
fn a_small_text_that_inflates_to_much_is_refused() {
    let mut bytes = inflated(&LatencyHistogram::default().encode());
    bytes.truncate(40);
    bytes[4..8].copy_from_slice(&(64_u32 << 20).to_be_bytes());
    bytes.resize(40 + (64 << 20), 0);
    assert_eq!(LatencyHistogram::decode(&deflated(&bytes)), Err(HistogramError::Corrupt));
}
