//! The thread that sends spans to the collector.
//!
//! A batch is sent up to [`ATTEMPTS_MAX`] times, with pauses in between. The collector decides by its answer: it took the
//! batch, it refuses it for good, or the batch may be sent again later. The log tells the first failure and the next success.

use crate::backoff::Backoff;
use crate::encoding::{self, Origin};
use crate::endpoint::Endpoint;
use crate::http::HttpClient;
use crate::queue::{DropReason, SpanQueue};
use crate::response::Response;
use crate::span::{Attribute, Span};
use bunko_client::ByteDialer;
use bunko_host::Clock;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How often a batch is sent before it is dropped.
const ATTEMPTS_MAX: u32 = 5;
/// How long the stop of the server waits for the last batches.
const END_PATIENCE: Duration = Duration::from_secs(2);
/// Statuses after which a batch is sent again. Source: OTLP specification, "Retryable Response Codes".
const RETRYABLE: [u16; 4] = [429, 502, 503, 504];

/// Options of an exporter.
pub struct ExporterOptions {
    /// The collector.
    pub endpoint: Endpoint,
    /// Opens connections to the collector.
    pub dialer: ByteDialer,
    /// Limits how long a request takes.
    pub clock: Clock,
    /// Facts about the server.
    pub resource: Vec<Attribute>,
    /// Facts that each span repeats.
    pub of_each_span: Vec<Attribute>,
    /// Random bits, which spread the attempts of several servers.
    pub random: Arc<dyn Fn() -> u64 + Send + Sync>,
}

/// The thread's owner. When it is dropped, the thread sends the spans that wait, without retries, for a limited time.
pub struct Exporter {
    queue: Arc<SpanQueue>,
}

impl Exporter {
    /// Starts the thread.
    /// # Errors
    /// If the system starts no thread.
    pub fn start(options: ExporterOptions) -> io::Result<Self> {
        let queue: Arc<SpanQueue> = Arc::default();
        let delivery = Delivery {
            queue: Arc::clone(&queue),
            http: HttpClient::new(&options.endpoint, options.dialer, options.clock),
            url: options.endpoint.url(),
            origin: Origin {
                resource: options.resource,
                of_each_span: options.of_each_span,
                scope: ("bunko", env!("CARGO_PKG_VERSION")),
            },
            random: options.random,
            backoff: Backoff::default(),
            is_failing: false,
        };
        std::thread::Builder::new().name("traces".into()).spawn(move || delivery.run())?;
        Ok(Self { queue })
    }

    /// The queue for the spans.
    pub fn queue(&self) -> &Arc<SpanQueue> {
        &self.queue
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.queue.end();
        // A collector that does not answer must not hold the server's stop: the process's end ends the thread.
        self.queue.wait_for_end(END_PATIENCE);
    }
}

struct Delivery {
    queue: Arc<SpanQueue>,
    http: HttpClient,
    url: String,
    origin: Origin,
    random: Arc<dyn Fn() -> u64 + Send + Sync>,
    backoff: Backoff,
    /// Whether the log has told of a failure since the last success.
    is_failing: bool,
}

/// Whether a batch that was not taken may be sent again.
enum Retry {
    Never,
    /// After a pause, which the collector may have given.
    Later(Option<Duration>),
}

/// Why a batch was not taken.
struct Refusal {
    why: String,
    retry: Retry,
}

impl Delivery {
    fn run(mut self) {
        while let Some(batch) = self.queue.take_batch() {
            self.deliver(&batch);
        }
        self.queue.note_end();
    }

    fn deliver(&mut self, batch: &[Span]) {
        let body = encoding::request(&self.origin, batch);
        let count = batch.len() as u64;
        for _ in 0..ATTEMPTS_MAX {
            let refusal = match verdict(self.http.post(&body)) {
                Ok(rejected) => return self.note_success(count, rejected.min(count)),
                Err(refusal) => refusal,
            };
            self.tell_failure(&refusal.why);
            let Retry::Later(asked) = refusal.retry else {
                return self.queue.count_dropped(DropReason::Rejected, count);
            };
            let pause = self.backoff.after_failure(asked, (self.random)());
            if !self.queue.rest(pause) {
                self.queue.give_up();
                break;
            }
        }
        self.queue.count_dropped(DropReason::NotDelivered, count);
    }

    fn note_success(&mut self, count: u64, rejected: u64) {
        self.queue.count_sent(count - rejected);
        self.queue.count_dropped(DropReason::Rejected, rejected);
        self.backoff.reset();
        if std::mem::take(&mut self.is_failing) {
            let counts = self.queue.counts();
            let dropped = counts.dropped_queue_full + counts.dropped_not_delivered + counts.dropped_rejected;
            let url = self.url.as_str();
            tracing::info!(target: "NETWORK", id = 171, ctx = "traces", url, dropped, "The collector takes spans of slow operations again");
        }
    }

    fn tell_failure(&mut self, error: &str) {
        if !std::mem::replace(&mut self.is_failing, true) {
            let url = self.url.as_str();
            tracing::warn!(target: "NETWORK", id = 170, ctx = "traces", url, error, "The collector does not take spans of slow operations");
        }
    }
}

/// The number of spans that the collector rejected of a batch that it took, or why it took none.
fn verdict(answer: io::Result<Response>) -> Result<u64, Refusal> {
    match answer {
        Ok(Response { status: 200..=299, rejected_spans, .. }) => Ok(rejected_spans),
        Ok(Response { status, retry_after, .. }) => {
            let is_retryable = RETRYABLE.contains(&status);
            let retry = if is_retryable { Retry::Later(retry_after) } else { Retry::Never };
            Err(Refusal { why: format!("the answer's status is {status}"), retry })
        }
        Err(error) => Err(Refusal { why: error.to_string(), retry: Retry::Later(None) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The verdict on an answer with that status, as text.
    fn outcome(status: u16, retry_after: Option<u64>) -> String {
        let retry_after = retry_after.map(Duration::from_secs);
        match verdict(Ok(Response { status, retry_after, rejected_spans: 2, keeps_connection: true })) {
            Ok(rejected) => format!("taken but {rejected}"),
            Err(Refusal { retry: Retry::Never, .. }) => "dropped".to_owned(),
            Err(Refusal { retry: Retry::Later(pause), .. }) => format!("again after {pause:?}"),
        }
    }

    #[test]
    fn the_answer_decides() {
        assert_eq!(outcome(200, None), "taken but 2");
        for status in RETRYABLE {
            assert_eq!(outcome(status, Some(9)), "again after Some(9s)");
            assert_eq!(outcome(status, None), "again after None");
        }
        for status in [301, 400, 401, 404, 413, 500, 501] {
            assert_eq!(outcome(status, Some(9)), "dropped", "{status}");
        }
        let refusal = verdict(Err(io::ErrorKind::ConnectionRefused.into())).expect_err("no answer");
        assert!(matches!(refusal.retry, Retry::Later(None)));
    }
}
