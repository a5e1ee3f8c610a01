//! Histograms of consecutive intervals as an HdrHistogram log (`.hlog`), for HistogramLogAnalyzer and other public
//! viewers.

use crate::LatencyHistogram;
use std::io::{self, Write};
use std::time::Duration;

/// Writes an HdrHistogram log, one line per interval.
///
/// The `hdrhistogram` crate has a writer too, but it borrows its output for its whole life and repeats the header
/// whenever it is created again. A line is one `format!`, and the tests read it back with that crate's parser.
/// Source: class HistogramLogWriter of HdrHistogram, log format 1.3.
pub struct IntervalLogWriter<W: Write> {
    output: W,
}

/// Viewers expect the readable maximum in milliseconds if values are nanoseconds; they calculate with the histogram.
const NANOSECONDS_PER_MAXIMUM_UNIT: f64 = 1_000_000.0;

impl<W: Write> IntervalLogWriter<W> {
    /// Writes the header. `comment` becomes its first lines. Times of intervals count from `started_at_ms`, in
    /// milliseconds since 1970.
    pub fn begin(mut output: W, comment: &str, started_at_ms: u64) -> io::Result<Self> {
        for line in comment.lines() {
            writeln!(output, "#{line}")?;
        }
        writeln!(output, "#[Histogram log format version 1.3]")?;
        let (seconds, milliseconds) = (started_at_ms / 1_000, started_at_ms % 1_000);
        // The second line makes the intervals' times relative; without it, some readers guess.
        for name in ["StartTime", "BaseTime"] {
            writeln!(output, "#[{name}: {seconds}.{milliseconds:03} (seconds since epoch)]")?;
        }
        let columns = ["StartTimestamp", "Interval_Length", "Interval_Max", "Interval_Compressed_Histogram"];
        writeln!(output, "{}", columns.map(|column| format!("\"{column}\"")).join(","))?;
        Ok(Self { output })
    }

    /// Writes one interval that began `at` after the start and took `length`. A tag distinguishes intervals of
    /// different kinds.
    /// # Errors
    /// As writing to the output; `InvalidInput` for a tag with a comma, a space or a line's end.
    pub fn write(
        &mut self,
        tag: Option<&str>,
        at: Duration,
        length: Duration,
        histogram: &LatencyHistogram,
    ) -> io::Result<()> {
        if let Some(tag) = tag {
            if tag.contains([',', ' ', '\r', '\n']) {
                let message = format!("the tag {tag:?} has a comma, a space or a line's end");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
            }
            write!(self.output, "Tag={tag},")?;
        }
        let maximum = histogram.max_ns() as f64 / NANOSECONDS_PER_MAXIMUM_UNIT;
        let (at, length) = (at.as_secs_f64(), length.as_secs_f64());
        writeln!(self.output, "{at:.3},{length:.3},{maximum:.3},{}", histogram.encode())
    }

    /// Flushes and returns the output.
    pub fn finish(mut self) -> io::Result<W> {
        self.output.flush()?;
        Ok(self.output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    fn one_latency(us: u64) -> LatencyHistogram {
        let mut histogram = LatencyHistogram::default();
        histogram.record(Duration::from_micros(us));
        histogram
    }

    fn log() -> String {
        let mut log = IntervalLogWriter::begin(Vec::new(), "first\nsecond", 1_700_000_000_007).unwrap();
        log.write(Some("insert"), Duration::ZERO, Duration::from_secs(1), &one_latency(1_500)).unwrap();
        log.write(None, Duration::from_secs(1), Duration::from_millis(250), &LatencyHistogram::default()).unwrap();
        String::from_utf8(log.finish().unwrap()).unwrap()
    }

    #[test]
    fn the_lines_are_those_of_the_format() {
        let log = log();
        let lines: Vec<&str> = log.lines().collect();
        let header = [
            "#first",
            "#second",
            "#[Histogram log format version 1.3]",
            "#[StartTime: 1700000000.007 (seconds since epoch)]",
            "#[BaseTime: 1700000000.007 (seconds since epoch)]",
            r#""StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram""#,
        ];
        assert_eq!(lines[..6], header);
        assert!(lines[6].starts_with("Tag=insert,0.000,1.000,1.500,HISTFAAAA"), "{}", lines[6]);
        assert!(lines[7].starts_with("1.000,0.250,0.000,HISTFAAAA"), "{}", lines[7]);
        assert_eq!(lines.len(), 8);
    }

    #[test]
    fn a_public_parser_reads_the_log_back() {
        let log = log();
        let entries: Vec<LogEntry<'_>> = IntervalLogIterator::new(log.as_bytes()).map(Result::unwrap).collect();
        let start = Duration::from_millis(1_700_000_000_007);
        let [LogEntry::StartTime(first), LogEntry::BaseTime(second), LogEntry::Interval(a), LogEntry::Interval(b)] =
            entries.as_slice()
        else {
            panic!("{entries:?}");
        };
        assert_eq!((*first, *second), (start, start));
        assert_eq!(a.tag().map(|tag| tag.as_str()), Some("insert"));
        assert_eq!((a.start_timestamp(), a.duration()), (Duration::ZERO, Duration::from_secs(1)));
        assert_eq!(LatencyHistogram::decode(a.encoded_histogram()), Ok(one_latency(1_500)));
        assert_eq!(b.tag(), None);
        assert_eq!((b.start_timestamp(), b.duration()), (Duration::from_secs(1), Duration::from_millis(250)));
        assert_eq!(LatencyHistogram::decode(b.encoded_histogram()), Ok(LatencyHistogram::default()));
    }

    #[test]
    fn a_tag_that_would_break_the_line_is_refused() {
        for tag in ["a,b", "a b", "a\nb"] {
            let mut log = IntervalLogWriter::begin(Vec::new(), "", 0).unwrap();
            let error = log.write(Some(tag), Duration::ZERO, Duration::ZERO, &LatencyHistogram::default());
            assert_eq!(error.unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
    }
}
