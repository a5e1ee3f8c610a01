//! Renders progress as text and as JSON lines: pure functions of snapshots.

use super::{Activity, NamespaceSnapshot, Snapshot};
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::Duration;

/// Maximum number of namespaces that [`lines`] shows. Few are worked on at a time.
const NAMESPACES_MAX: usize = 16;

/// One line for each namespace in progress, and one for all; pace since `before`.
pub fn lines(before: &Snapshot, now: &Snapshot) -> String {
    let current: Vec<_> =
        now.namespaces.iter().filter(|namespace| is_current(namespace)).take(NAMESPACES_MAX).collect();
    let width = current.iter().map(|namespace| namespace.name.chars().count()).max().unwrap_or(0).max("total".len());
    let mut text = String::new();
    for namespace in current {
        let (documents, bytes) = (namespace.documents, namespace.bytes);
        line(&mut text, width, &namespace.name, namespace.fraction(), documents, bytes);
        text.push('\n');
    }
    line(&mut text, width, "total", now.fraction(), now.documents(), now.bytes());
    let pace = Pace::between(before, now);
    let _ = write!(text, "  {:.1} MB/s  {} documents/s", pace.megabytes, grouped(pace.documents as u64));
    if let Some(remaining) = now.remaining_time(before) {
        let _ = write!(text, "  {} left", duration(remaining));
    }
    if let Some((activity, share)) = now.bottleneck(before) {
        let _ = write!(text, "  limited by {} ({:.0} %)", activity.label(), share * 100.0);
    }
    text.push('\n');
    text
}

/// As [`lines`], as one JSON object and a newline.
pub fn json_line(before: &Snapshot, now: &Snapshot) -> String {
    let namespaces: Vec<_> =
        now.namespaces.iter().filter(|namespace| is_current(namespace)).map(namespace_json).collect();
    let pace = Pace::between(before, now);
    let line = json!({
        "event": "progress",
        "elapsedSeconds": rounded(now.elapsed.as_secs_f64()),
        "documents": now.documents(),
        "bytes": now.bytes(),
        "failures": now.failures(),
        "fraction": now.fraction().map(rounded),
        "remainingSeconds": now.remaining_time(before).map(|remaining| rounded(remaining.as_secs_f64())),
        "bytesPerSecond": (pace.megabytes * 1e6) as u64,
        "documentsPerSecond": pace.documents as u64,
        "bottleneck": now.bottleneck(before).map(|(activity, _)| activity.name()),
        "namespaces": namespaces,
    });
    format!("{line}\n")
}

/// A sentence for the user, as one JSON object and a newline.
pub fn note_json(sentence: &str) -> String {
    format!("{}\n", json!({ "event": "note", "text": sentence }))
}

/// The amount of work and its duration, how the time was spent, and the bottleneck.
pub fn end_report(end: &Snapshot) -> String {
    let start = Snapshot::default();
    let pace = Pace::between(&start, end);
    let mut text = format!(
        "{} documents, {} in {} ({:.1} MB/s, {} documents/s)\n",
        grouped(end.documents()),
        size(end.bytes()),
        duration(end.elapsed),
        pace.megabytes,
        grouped(pace.documents as u64),
    );
    let earlier = end.documents() - end.done_now().0.min(end.documents());
    if earlier > 0 {
        let _ = writeln!(text, "{} of them by an earlier run", grouped(earlier));
    }
    if end.failures() > 0 {
        let _ = writeln!(text, "{} documents were refused", grouped(end.failures()));
    }
    let shares: Vec<_> =
        shares(end).map(|(activity, share)| format!("{} {:.0} %", activity.label(), share * 100.0)).collect();
    if let Some((activity, _)) = end.bottleneck(&start) {
        let _ = writeln!(text, "time of all threads: {}", shares.join(", "));
        let _ = writeln!(text, "the limit was: {}", activity.label());
    }
    text
}

/// As [`end_report`], as one JSON object and a newline.
pub fn end_report_json(end: &Snapshot) -> String {
    let start = Snapshot::default();
    let pace = Pace::between(&start, end);
    let spent: serde_json::Map<_, _> =
        shares(end).map(|(activity, share)| (activity.name().to_owned(), json!(rounded(share)))).collect();
    let line = json!({
        "event": "end",
        "elapsedSeconds": rounded(end.elapsed.as_secs_f64()),
        "documents": end.documents(),
        "bytes": end.bytes(),
        "failures": end.failures(),
        "bytesPerSecond": (pace.megabytes * 1e6) as u64,
        "documentsPerSecond": pace.documents as u64,
        "shareOfTime": spent,
        "limit": end.bottleneck(&start).map(|(activity, _)| activity.name()),
        "namespaces": end.namespaces.iter().map(namespace_json).collect::<Vec<_>>(),
    });
    format!("{line}\n")
}

/// Work done per second.
struct Pace {
    megabytes: f64,
    documents: f64,
}

impl Pace {
    fn between(before: &Snapshot, now: &Snapshot) -> Self {
        let seconds = now.elapsed.saturating_sub(before.elapsed).as_secs_f64().max(1e-3);
        let per_second = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
        let ((documents, bytes), (documents_before, bytes_before)) = (now.done_now(), before.done_now());
        Self { megabytes: per_second(bytes, bytes_before) / 1e6, documents: per_second(documents, documents_before) }
    }
}

fn is_current(namespace: &NamespaceSnapshot) -> bool {
    namespace.bytes > 0 && !namespace.is_finished
}

fn namespace_json(namespace: &NamespaceSnapshot) -> Value {
    json!({
        "namespace": namespace.name,
        "documents": namespace.documents,
        "bytes": namespace.bytes,
        "failures": namespace.failures,
        "fraction": namespace.fraction().map(rounded),
    })
}

/// The activities that took time, in falling order of time.
fn shares(end: &Snapshot) -> impl Iterator<Item = (Activity, f64)> {
    let total: f64 = end.spent.iter().map(Duration::as_secs_f64).sum();
    let spent = |activity: Activity| end.spent[activity as usize].as_secs_f64();
    let mut shares: Vec<_> = Activity::ALL
        .into_iter()
        .filter(|&activity| spent(activity) > 0.0)
        .map(|activity| (activity, spent(activity) / total))
        .collect();
    shares.sort_by(|left, right| right.1.total_cmp(&left.1));
    shares.into_iter()
}

fn line(text: &mut String, width: usize, name: &str, fraction: Option<f64>, documents: u64, bytes: u64) {
    let percent = fraction.map_or_else(|| "?".to_owned(), |fraction| format!("{:.1} %", fraction * 100.0));
    let (documents, bytes) = (grouped(documents), size(bytes));
    let _ = write!(text, "{name:<width$}  {percent:>7}  {documents:>13} documents  {bytes:>9}");
}

/// A number with separated thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Bytes in the largest decimal unit that leaves a number of at least 1.
fn size(bytes: u64) -> String {
    let units = [("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)];
    match units.into_iter().find(|(_, unit)| bytes as f64 >= *unit) {
        Some((name, unit)) => format!("{:.1} {name}", bytes as f64 / unit),
        None => format!("{bytes} B"),
    }
}

fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", time.as_secs_f64()),
        10..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// Rounds to three decimals, which is as exact as any of these figures.
fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests;
