//! The reply of `serverStatus` as OpenMetrics text.

use super::families::FAMILIES;
use super::family::{Family, Kind, Source};
use super::histogram::Histogram;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, number};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    CounterValueEncoder, DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, GaugeValueEncoder, MetricEncoder,
    NoLabelSet, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use std::borrow::Cow;
use std::fmt::Error;

/// The format of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics, for scrapers that ask for it.
    OpenMetrics,
    /// The older text format of Prometheus.
    Prometheus,
}

impl Format {
    /// The format for a scraper that sent this header `Accept`.
    pub fn accepted(header: Option<&str>) -> Self {
        if header.is_some_and(|header| header.contains("application/openmetrics-text")) {
            Self::OpenMetrics
        } else {
            Self::Prometheus
        }
    }

    /// Value of the HTTP header `Content-Type`.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// All families that the reply has values for.
pub fn encode(status: DocumentBuf, format: Format) -> String {
    let text = encode_open_metrics(status);
    match format {
        Format::OpenMetrics => text,
        Format::Prometheus => text.lines().filter_map(older_line).fold(String::new(), |text, line| text + &line + "\n"),
    }
}

/// A line of OpenMetrics as the older format has it, which knows no units and describes a counter by its whole name.
fn older_line(line: &str) -> Option<Cow<'_, str>> {
    let Some(comment) = line.strip_prefix("# ") else { return Some(Cow::Borrowed(line)) };
    let mut words = comment.splitn(3, ' ');
    let (keyword, name, rest) = (words.next()?, words.next()?, words.next().unwrap_or_default());
    let is_counter = FAMILIES.iter().any(|family| family.kind == Kind::Counter && family.full_name() == name);
    match keyword {
        "HELP" | "TYPE" if is_counter => Some(Cow::Owned(format!("# {keyword} {name}_total {rest}"))),
        "HELP" | "TYPE" => Some(Cow::Borrowed(line)),
        _ => None,
    }
}

fn encode_open_metrics(status: DocumentBuf) -> String {
    let mut registry = Registry::with_prefix("bunko");
    registry.register_collector(Box::new(Status(status)));
    let mut out = String::with_capacity(32 << 10);
    text::encode(&mut out, &registry).expect("a string takes all text");
    out
}

#[derive(Debug)]
struct Status(DocumentBuf);

impl Collector for Status {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        for family in FAMILIES {
            let samples = samples(family, self.0.as_ref());
            if samples.is_empty() {
                continue;
            }
            let kind = match family.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
                Kind::Histogram => MetricType::Histogram,
            };
            let unit = (!family.unit.is_empty()).then(|| Unit::Other(family.unit.to_owned()));
            let mut metric = encoder.encode_descriptor(family.name, family.help, unit.as_ref(), kind)?;
            for (labels, sample) in samples {
                if labels.is_empty() {
                    sample.encode(family.kind, &mut metric)?;
                } else {
                    sample.encode(family.kind, &mut metric.encode_family(&labels)?)?;
                }
            }
        }
        Ok(())
    }
}

type Labels = Vec<(&'static str, String)>;

enum Sample {
    Number(f64),
    Histogram(Histogram),
}

impl Sample {
    fn encode(&self, kind: Kind, metric: &mut MetricEncoder<'_>) -> Result<(), Error> {
        match self {
            Self::Histogram(histogram) => {
                metric.encode_histogram::<NoLabelSet>(histogram.sum, histogram.count, &histogram.buckets, None)
            }
            Self::Number(number) if kind == Kind::Counter => {
                metric.encode_counter::<NoLabelSet, _, f64>(&Plain(*number), None)
            }
            Self::Number(number) => metric.encode_gauge(&Plain(*number)),
        }
    }
}

/// A number that is written without a fraction where it has none.
#[derive(Debug)]
struct Plain(f64);

impl Plain {
    fn whole(&self) -> Option<i64> {
        (self.0.fract() == 0.0 && self.0.abs() < 9e15).then_some(self.0 as i64)
    }
}

impl EncodeGaugeValue for Plain {
    fn encode(&self, encoder: &mut GaugeValueEncoder<'_>) -> Result<(), Error> {
        match self.whole() {
            Some(whole) => EncodeGaugeValue::encode(&whole, encoder),
            None => EncodeGaugeValue::encode(&self.0, encoder),
        }
    }
}

impl EncodeCounterValue for Plain {
    fn encode(&self, encoder: &mut CounterValueEncoder<'_>) -> Result<(), Error> {
        match self.whole().and_then(|whole| u64::try_from(whole).ok()) {
            Some(whole) => EncodeCounterValue::encode(&whole, encoder),
            None => EncodeCounterValue::encode(&self.0, encoder),
        }
    }
}

fn samples(family: &Family, status: DocumentRef<'_>) -> Vec<(Labels, Sample)> {
    let labelled = |label, values: &'static [(&'static str, &'static str)]| {
        values.iter().filter_map(move |(value, path)| {
            let labels = if value.is_empty() { Vec::new() } else { vec![(label, (*value).to_owned())] };
            Some((labels, at(status, path)?))
        })
    };
    match family.source {
        Source::Value { path, factor } => at(status, path)
            .and_then(numeric)
            .map(|number| (Vec::new(), Sample::Number(number * factor)))
            .into_iter()
            .collect(),
        Source::Labelled { label, values } => labelled(label, values)
            .filter_map(|(labels, value)| Some((labels, Sample::Number(numeric(value)?))))
            .collect(),
        Source::Each { path, field, label } => at(status, path)
            .and_then(ValueRef::as_document)
            .into_iter()
            .flat_map(DocumentRef::iter)
            .filter_map(|element| {
                let value = element.value.as_document()?.get(field).and_then(numeric)?;
                Some((vec![(label, element.name.to_owned())], Sample::Number(value)))
            })
            .collect(),
        Source::Latencies { label, values } => labelled(label, values)
            .filter_map(|(labels, value)| Some((labels, Sample::Histogram(Histogram::read(value.as_document()?)))))
            .collect(),
        Source::Text { labels } => {
            let labels: Labels = labels
                .iter()
                .filter_map(|(label, path)| Some((*label, at(status, path)?.as_str()?.to_owned())))
                .collect();
            if labels.is_empty() { Vec::new() } else { vec![(labels, Sample::Number(1.0))] }
        }
    }
}

/// A number, a boolean as 0 or 1, or a date in milliseconds since 1970.
fn numeric(value: ValueRef<'_>) -> Option<f64> {
    match value {
        ValueRef::Boolean(boolean) => Some(f64::from(u8::from(boolean))),
        ValueRef::DateTime(ms) => Some(ms as f64),
        value => number::as_f64(value),
    }
}

/// The value at a path.
fn at<'a>(status: DocumentRef<'a>, path: &str) -> Option<ValueRef<'a>> {
    let (parents, last) = path.rsplit_once('.').map_or((None, path), |(parents, last)| (Some(parents), last));
    let mut document = status;
    for name in parents.into_iter().flat_map(|parents| parents.split('.')) {
        document = document.get(name)?.as_document()?;
    }
    document.get(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status() -> DocumentBuf {
        let command = DocumentBuf::new().with("total", 3_i64).with("failed", 1_i64);
        let commands = DocumentBuf::new().with("<UNKNOWN>", 2_i64).with("find", &command);
        let expiry = ValueRef::DateTime(1_900_000_000_500);
        let security = DocumentBuf::new().with("SSLServerCertificateExpirationDate", expiry);
        DocumentBuf::new()
            .with("uptimeMillis", 1500_i64)
            .with("repl", &DocumentBuf::new().with("isWritablePrimary", true).with("setName", "a\"b\\"))
            .with("network", &DocumentBuf::new().with("bytesIn", 12_i64))
            .with("metrics", &DocumentBuf::new().with("commands", &commands))
            .with("security", &security)
    }

    #[test]
    fn both_formats_describe_each_family_that_has_a_value() {
        let text = encode(status(), Format::OpenMetrics);
        assert!(
            text.contains("# TYPE bunko_network_received_bytes counter\n# UNIT bunko_network_received_bytes bytes\n")
        );
        assert!(text.contains("\nbunko_network_received_bytes_total 12\n"), "{text}");
        assert!(
            text.contains("\nbunko_commands_failed_total{command=\"find\"} 1\n") && !text.contains("UNKNOWN"),
            "{text}"
        );
        assert!(text.contains("\nbunko_uptime_seconds 1.5\n") && text.contains("\nbunko_primary 1\n"), "{text}");
        assert!(text.contains("\nbunko_tls_certificate_expiry_timestamp_seconds 1900000000.5\n"), "{text}");
        assert!(text.contains(r#"bunko_server_info{set="a\"b\\"} 1"#), "{text}");
        assert!(!text.contains("bunko_lsm") && text.ends_with("# EOF\n"), "{text}");
        let older = encode(status(), Format::Prometheus);
        assert!(
            older
                .contains("# TYPE bunko_network_received_bytes_total counter\nbunko_network_received_bytes_total 12\n")
        );
        assert!(!older.contains("# UNIT") && !older.contains("# EOF"), "{older}");
        let samples =
            |text: &str| text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(samples(&older), samples(&text));
    }

    #[test]
    fn names_are_unique_and_say_their_unit() {
        let mut names: Vec<String> = FAMILIES.iter().map(Family::full_name).collect();
        names.sort();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
        for family in FAMILIES {
            assert!(matches!(family.unit, "" | "bytes" | "seconds"), "{}", family.name);
            assert!(!family.help.is_empty() && !family.help.ends_with('.'), "{}", family.name);
        }
    }
}
