//! The queue between the threads that end operations and the exporter.

use crate::span::Span;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Maximum number of spans that wait. A span is about 1 KiB of memory.
/// Source: MongoDB's parameter `openTelemetryTracingMaxQueueSize`, its default.
pub const SPANS_MAX: usize = 2048;
/// Maximum number of spans in a request.
/// Source: MongoDB's parameter `openTelemetryTracingMaxBatchSize`, its default.
pub(crate) const BATCH_SPANS_MAX: usize = 512;
/// How long the first span of a batch waits for others.
/// Source: MongoDB's parameter `openTelemetryTracingBatchExportIntervalMillis`, its default.
const BATCH_TIME_MAX: Duration = Duration::from_secs(1);

/// Spans on their way to the exporter.
#[derive(Debug, Default)]
pub struct SpanQueue {
    waiting: Mutex<Waiting>,
    /// Notified at the first span of a batch and at the last one that fits, and when the server stops.
    arrived: Condvar,
    /// Notified when the server stops.
    ending: Condvar,
    /// Notified when the exporter's thread has ended.
    ended: Condvar,
    sent: AtomicU64,
    dropped: [AtomicU64; 3],
}

#[derive(Debug, Default)]
struct Waiting {
    spans: VecDeque<Span>,
    /// Whether the server stops: the exporter sends the rest without retries.
    is_ending: bool,
    has_ended: bool,
}

/// Why a span is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DropReason {
    /// The queue is full.
    QueueFull,
    /// The collector did not take the span's batch within the attempts.
    NotDelivered,
    /// The collector answered that it does not take the span.
    Rejected,
}

/// Counts since the start of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanCounts {
    /// Spans that wait now.
    pub queued: u64,
    /// Spans that the collector has taken.
    pub sent: u64,
    /// Spans that found the queue full.
    pub dropped_queue_full: u64,
    /// Spans that were given up because the collector could not be reached or did not answer.
    pub dropped_not_delivered: u64,
    /// Spans that the collector refused.
    pub dropped_rejected: u64,
}

impl SpanQueue {
    /// Puts a span into the queue, or drops it if the queue is full.
    pub fn put(&self, span: Span) {
        let mut waiting = self.waiting.lock();
        if waiting.spans.len() == SPANS_MAX {
            drop(waiting);
            return self.count_dropped(DropReason::QueueFull, 1);
        }
        waiting.spans.push_back(span);
        if [1, BATCH_SPANS_MAX].contains(&waiting.spans.len()) {
            self.arrived.notify_one();
        }
    }

    /// The counts.
    pub fn counts(&self) -> SpanCounts {
        let dropped = |reason: DropReason| self.dropped[reason as usize].load(Ordering::Relaxed);
        SpanCounts {
            queued: self.waiting.lock().spans.len() as u64,
            sent: self.sent.load(Ordering::Relaxed),
            dropped_queue_full: dropped(DropReason::QueueFull),
            dropped_not_delivered: dropped(DropReason::NotDelivered),
            dropped_rejected: dropped(DropReason::Rejected),
        }
    }

    pub(crate) fn count_sent(&self, spans: u64) {
        self.sent.fetch_add(spans, Ordering::Relaxed);
    }

    pub(crate) fn count_dropped(&self, reason: DropReason, spans: u64) {
        self.dropped[reason as usize].fetch_add(spans, Ordering::Relaxed);
    }

    /// Waits for spans, and takes a batch of them. `None` at the end, once no span waits.
    pub(crate) fn take_batch(&self) -> Option<Vec<Span>> {
        let mut waiting = self.waiting.lock();
        while waiting.spans.is_empty() {
            if waiting.is_ending {
                return None;
            }
            self.arrived.wait(&mut waiting);
        }
        if waiting.spans.len() < BATCH_SPANS_MAX && !waiting.is_ending {
            self.arrived.wait_for(&mut waiting, BATCH_TIME_MAX);
        }
        let count = waiting.spans.len().min(BATCH_SPANS_MAX);
        Some(waiting.spans.drain(..count).collect())
    }

    /// Waits for that time, or until the server stops. Returns whether the server still runs.
    pub(crate) fn rest(&self, time: Duration) -> bool {
        let mut waiting = self.waiting.lock();
        if !waiting.is_ending {
            self.ending.wait_for(&mut waiting, time);
        }
        !waiting.is_ending
    }

    /// Drops all spans that wait, and counts them.
    pub(crate) fn give_up(&self) {
        let given_up = std::mem::take(&mut self.waiting.lock().spans);
        self.count_dropped(DropReason::NotDelivered, given_up.len() as u64);
    }

    /// Tells the exporter that the server stops.
    pub(crate) fn end(&self) {
        self.waiting.lock().is_ending = true;
        self.arrived.notify_one();
        self.ending.notify_one();
    }

    /// Notes that the exporter's thread has ended.
    pub(crate) fn note_end(&self) {
        self.waiting.lock().has_ended = true;
        self.ended.notify_all();
    }

    /// Waits until the exporter's thread has ended, but no longer than that time.
    pub(crate) fn wait_for_end(&self, time: Duration) {
        let mut waiting = self.waiting.lock();
        if !waiting.has_ended {
            self.ended.wait_for(&mut waiting, time);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation_trace::OperationTrace;
    use crate::span::SpanKind;

    fn span(number: u64) -> Span {
        Span {
            context: OperationTrace::begin(None, &|| number).of_command(),
            name: "ping admin".to_owned(),
            kind: SpanKind::Server,
            start_ns: number,
            end_ns: number + 1,
            attributes: Vec::new(),
            error: None,
        }
    }

    #[test]
    fn a_full_queue_drops_what_comes() {
        let queue = SpanQueue::default();
        (0..SPANS_MAX as u64 + 3).for_each(|number| queue.put(span(number)));
        let expected = SpanCounts { queued: SPANS_MAX as u64, dropped_queue_full: 3, ..SpanCounts::default() };
        assert_eq!(queue.counts(), expected);
        let batch = queue.take_batch().expect("spans wait");
        assert_eq!((batch.len(), batch[0].start_ns), (BATCH_SPANS_MAX, 0));
        queue.put(span(7));
        assert_eq!(queue.counts().queued, (SPANS_MAX - BATCH_SPANS_MAX + 1) as u64);
    }

    #[test]
    fn the_end_hands_out_the_rest() {
        let queue = SpanQueue::default();
        queue.put(span(1));
        queue.end();
        assert!(!queue.rest(Duration::from_hours(1)));
        assert_eq!(queue.take_batch().expect("one waits").len(), 1);
        assert!(queue.take_batch().is_none());
    }

    #[test]
    fn spans_that_are_given_up_are_counted() {
        let queue = SpanQueue::default();
        queue.put(span(1));
        queue.put(span(2));
        queue.give_up();
        assert_eq!(queue.counts(), SpanCounts { dropped_not_delivered: 2, ..SpanCounts::default() });
    }
}
