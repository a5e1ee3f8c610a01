//! The columns of a step's figures, on the terminal and in HTML.

use crate::number::figure;
use crate::result::Measurement;
use crate::step_summary::{StepSummary, rate};
use bunko_statistics::Trend;

/// A column of the step tables; omitted if no row has a figure.
pub(crate) struct Column {
    pub(crate) heading: &'static str,
    /// The meaning of the figure, in words.
    pub(crate) about: &'static str,
    pub(crate) cell: fn(&StepSummary<'_>) -> Option<String>,
}

/// Throughput. The ratio to the baseline comes next.
pub(crate) const THROUGHPUT: &[Column] = &[
    Column {
        heading: "docs/s",
        about: "documents per second; with three repetitions and more their median, with two the middle between them",
        cell: |summary| summary.documents_per_second.as_ref().map(|rate| figure(rate.median)),
    },
    Column {
        heading: "95 % of docs/s",
        about: "95 % confidence interval of documents per second",
        cell: |summary| summary.interval().map(|(low, high)| format!("{}..{}", figure(low), figure(high))),
    },
    Column {
        heading: "docs/s seen",
        about: "lowest and highest documents per second of the repetitions: fewer than three, or one without documents, \
                give no confidence interval",
        cell: |summary| summary.range().map(|(low, high)| format!("{}..{}", figure(low), figure(high))),
    },
];

/// Columns after the ratio.
pub(crate) const FIGURES: &[Column] = &[
    Column {
        heading: "reference docs/s",
        about: "what others published for the same step",
        cell: |summary| summary.step.reference.as_ref().map(|reference| figure(reference.documents_per_second)),
    },
    Column {
        heading: "MB/s",
        about: "megabytes of documents per second",
        cell: |summary| {
            let bytes_per_second = |run: &Measurement| rate(run.document_bytes? as f64, run.elapsed_seconds);
            summary.median(bytes_per_second).map(|bytes| figure(bytes / 1e6))
        },
    },
    Column {
        heading: "reference MB/s",
        about: "megabytes of documents per second that others published for the same step",
        cell: |summary| summary.step.reference.as_ref()?.bytes_per_second.map(|bytes| figure(bytes / 1e6)),
    },
    Column {
        heading: "seconds",
        about: "how long dumping or restoring took, from the tool's first connection to its end",
        cell: |summary| summary.median(|run| run.transfer.as_ref().map(|_| run.elapsed_seconds)).map(figure),
    },
    Column {
        heading: "bottleneck",
        about: "what the tool's threads spent most of their time on or waited for, and its share of that time",
        cell: |summary| {
            let bottleneck = summary.bottleneck()?;
            Some(format!("{} {:.0} %", bottleneck.activity, bottleneck.share * 100.0))
        },
    },
    Column {
        heading: "tool us/doc",
        about: "processor time of the dumping or restoring tool per document, in microseconds",
        cell: |summary| {
            let cost = |run: &Measurement| {
                run.transfer.as_ref()?;
                rate(run.generator_cpu_seconds * 1e6, run.documents as f64)
            };
            summary.median(cost).map(figure)
        },
    },
    Column {
        heading: "dump MB",
        about: "megabytes that the dump takes on its filesystem",
        cell: |summary| {
            let bytes = |run: &Measurement| run.transfer.as_ref().map(|transfer| transfer.archive_bytes as f64);
            summary.median(bytes).map(|bytes| figure(bytes / 1e6))
        },
    },
    Column {
        heading: "requests/s",
        about: "requests answered per second, where a request is not a document",
        cell: |summary| {
            let batched = summary.of_requests()?.measurements().any(|run| run.requests != run.documents);
            batched.then(|| summary.median(|run| Some(run.achieved_rate)).map(figure))?
        },
    },
    Column {
        heading: "offered/s",
        about: "requests per second that the open loop offered",
        cell: |summary| summary.median(|run| run.offered_rate).map(figure),
    },
    Column {
        heading: "p50 us",
        about: "median latency in microseconds",
        cell: |summary| summary.latency.as_ref()?.p50_us.map(figure),
    },
    Column {
        heading: "p99 us",
        about: "99 of 100 requests were faster",
        cell: |summary| summary.latency.as_ref()?.p99_us.map(figure),
    },
    Column {
        heading: "p99.9 us",
        about: "999 of 1,000 requests were faster",
        cell: |summary| summary.latency.as_ref()?.p999_us.map(figure),
    },
    Column {
        heading: "p99.99 us",
        about: "9,999 of 10,000 requests were faster",
        cell: |summary| summary.latency.as_ref()?.p9999_us.map(figure),
    },
    Column {
        heading: "max us",
        about: "the slowest request",
        cell: |summary| {
            summary.of_requests()?;
            summary.latency.as_ref()?.max_us.map(figure)
        },
    },
    Column {
        heading: "machine p99.9 us",
        about: "how late the generator's machine woke threads that only slept: in 999 of 1,000 milliseconds no later",
        cell: |summary| {
            summary.of_requests()?;
            summary.pauses.as_ref()?.p999_us.map(figure)
        },
    },
    Column {
        heading: "machine max us",
        about: "its longest pause",
        cell: |summary| {
            summary.of_requests()?;
            summary.pauses.as_ref()?.max_us.map(figure)
        },
    },
    Column {
        heading: "p99.9 drift",
        about: "how far p99.9 moved from the beginning of a run to its end, by Theil and Sen's line, and its 99 % \
                interval; of several runs, the figures of the one whose p99.9 rose most",
        cell: |summary| {
            let trends = summary.step.measurements().filter_map(|run| run.p999_trend);
            trends.max_by(|one, other| one.change().total_cmp(&other.change())).map(|trend| drift(&trend))
        },
    },
    Column {
        heading: "conflicts %",
        about: "percentage of attempts that met a conflict and began anew; empty if there were none",
        cell: |summary| summary.median(|run| run.vain_share().map(|share| share * 100.0)).map(figure),
    },
    Column {
        heading: "server us/doc",
        about: "processor time of the server per document, in microseconds",
        cell: |summary| {
            let cost = |run: &Measurement| rate(run.server_cpu_seconds? * 1e6, run.documents as f64);
            summary.median(cost).map(figure)
        },
    },
    Column {
        heading: "settled us/doc",
        about: "the same with the server's work after the last reply: flushes and other work that was left",
        cell: |summary| {
            let cost = |run: &Measurement| rate(run.settled_cpu_seconds()? * 1e6, run.documents as f64);
            summary.median(cost).map(figure)
        },
    },
    Column {
        heading: "settled after s",
        about: "seconds from the last reply until the server had no more work",
        cell: |summary| summary.median(|run| run.settling.map(|settling| settling.seconds)).map(figure),
    },
    Column {
        heading: "server CPU %",
        about: "processor time of the server, 100 = one processor",
        cell: |summary| {
            let busy = |run: &Measurement| rate(run.server_cpu_seconds? * 100.0, run.elapsed_seconds);
            summary.median(busy).map(figure)
        },
    },
    Column {
        heading: "loop CPU %",
        about: "processor time of kernel threads while they worked for the loop device alone that the server's files lie \
                on, 100 = one processor",
        cell: |summary| {
            let busy = |run: &Measurement| rate(run.loop_device()?.cpu_seconds? * 100.0, run.elapsed_seconds);
            summary.median(busy).map(figure)
        },
    },
    Column {
        heading: "shared CPU %",
        about: "processor time of kernel threads that worked for that loop device and for others: the loop device's \
                share of it is unknown",
        cell: |summary| {
            let busy = |run: &Measurement| rate(run.loop_device()?.shared_cpu_seconds? * 100.0, run.elapsed_seconds);
            summary.median(busy).map(figure)
        },
    },
    Column {
        heading: "RSS MB",
        about: "resident memory of the server at the end, in megabytes",
        cell: |summary| summary.median(|run| run.server_resident_bytes.map(|bytes| bytes as f64 / 1e6)).map(figure),
    },
    Column {
        heading: "max RSS MB",
        about: "resident memory of the server in the second in which it had most, in megabytes",
        cell: |summary| {
            let most = summary.step.measurements().filter_map(Measurement::server_resident_max_bytes).max();
            most.map(|bytes| figure(bytes as f64 / 1e6))
        },
    },
    Column {
        heading: "syncs/s",
        about: "syncs of the journal per second, as the server counts them",
        cell: |summary| {
            let syncs = |run: &Measurement| rate(run.journal_syncs? as f64, run.elapsed_seconds);
            summary.median(syncs).map(figure)
        },
    },
    Column {
        heading: "generator us/request",
        about: "processor time of the generator per request, in microseconds",
        cell: |summary| {
            summary.of_requests()?;
            let cost = |run: &Measurement| rate(run.generator_cpu_seconds * 1e6, run.requests as f64);
            summary.median(cost).map(figure)
        },
    },
];

/// `+2 % (-5..+9 %)`.
fn drift(trend: &Trend) -> String {
    let percent = |share: f64| format!("{:+.0}", share * 100.0);
    let (low, high) = (trend.change_low / trend.from, trend.change_high / trend.from);
    format!("{} % ({}..{} %)", percent(trend.change()), percent(low), percent(high))
}
