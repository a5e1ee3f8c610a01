//! One generator thread's requests and their latencies, second by second.

use crate::operation::{Answer, Budget, Requests};
use bunko_client::load::{Next, Request, Then, Workload};
use bunko_client::{CommandError, Reply};
use bunko_statistics::LatencyHistogram;
use std::sync::mpsc::Sender;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// Totals of a thread's replies in one second.
pub(super) struct Second {
    /// Counted from 0 at the starting signal.
    pub number: u64,
    pub latency: LatencyHistogram,
    pub requests: u64,
    pub documents: u64,
    pub errors: u64,
    pub begun_anew: u64,
    pub first_error: Option<String>,
}

impl Second {
    fn new(number: u64) -> Self {
        Self {
            number,
            latency: LatencyHistogram::default(),
            requests: 0,
            documents: 0,
            errors: 0,
            begun_anew: 0,
            first_error: None,
        }
    }
}

/// Whether requests are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answered {
    Yes,
    /// Writes are unacknowledged: a sent request counts as done.
    No,
}

pub(super) struct Recorder {
    requests: Box<dyn Requests>,
    budget: Arc<Budget>,
    /// Due time of the first request of all threads.
    origin: Arc<OnceLock<Instant>>,
    answered: Answered,
    second: Second,
    seconds: Sender<Second>,
    /// A histogram for each part of a mix.
    pub parts: Vec<LatencyHistogram>,
}

impl Recorder {
    pub fn new(
        requests: Box<dyn Requests>,
        budget: &Arc<Budget>,
        origin: &Arc<OnceLock<Instant>>,
        answered: Answered,
        parts: usize,
        seconds: Sender<Second>,
    ) -> Self {
        Self {
            requests,
            budget: Arc::clone(budget),
            origin: Arc::clone(origin),
            answered,
            second: Second::new(0),
            seconds,
            parts: vec![LatencyHistogram::default(); parts],
        }
    }

    /// Sends the last second to the collector.
    pub fn finish(&mut self) {
        self.turn_to(u64::MAX);
    }

    /// Sends a second to the collector when another one begins.
    fn turn_to(&mut self, number: u64) {
        if number != self.second.number {
            let past = std::mem::replace(&mut self.second, Second::new(number));
            // The collector outlives the generator; an error would mean that no figures are needed.
            let _ = self.seconds.send(past);
        }
    }
}

impl Workload for Recorder {
    fn next_request(&mut self, request_id: i32, due: Instant, out: &mut Vec<u8>) -> Next {
        let origin = *self.origin.get_or_init(|| due);
        if self.budget.take(1).is_none() {
            return Next::Finished;
        }
        let Some(tag) = self.requests.next(request_id, out) else { return Next::Finished };
        if self.answered == Answered::No {
            self.turn_to(due.saturating_duration_since(origin).as_secs());
            self.second.requests += 1;
            self.second.documents += self.requests.sent(tag);
        }
        Next::Appended(Request { tag, started_at: due })
    }

    fn on_reply(&mut self, request: Request, reply: Result<Reply<'_>, CommandError>, now: Instant) -> Then {
        let origin = *self.origin.get_or_init(|| request.started_at);
        self.turn_to(now.saturating_duration_since(origin).as_secs());
        let part = self.requests.part(request.tag);
        let answer = match reply {
            Ok(reply) => self.requests.on_reply(request.tag, reply),
            Err(error) => match self.requests.again(request.tag, &error) {
                Some(step) => {
                    self.second.begun_anew += 1;
                    Ok(Answer::More { documents: 0, step })
                }
                None => {
                    self.requests.on_failure(request.tag);
                    Err(error.to_string())
                }
            },
        };
        match answer {
            Ok(Answer::More { documents, step }) => {
                self.second.documents += documents;
                return Then::Follow(Request { tag: step, ..request });
            }
            Ok(Answer::Done { documents }) => self.second.documents += documents,
            Err(error) => {
                self.second.errors += 1;
                self.second.first_error.get_or_insert(error);
            }
        }
        self.second.requests += 1;
        let latency = now.saturating_duration_since(request.started_at);
        self.second.latency.record(latency);
        if let Some(part) = self.parts.get_mut(part) {
            part.record(latency);
        }
        Then::Free
    }

    fn follow(&mut self, step: Request, request_id: i32, out: &mut Vec<u8>) -> Request {
        Request { tag: self.requests.follow(step.tag, request_id, out), ..step }
    }
}
