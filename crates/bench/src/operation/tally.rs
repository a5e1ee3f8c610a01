//! Counting what a load's replies say.

use super::Requests;
use crate::histogram::LatencyHistogram;
use bunko_client::load::{Next, Workload};
use bunko_client::{CommandError, Reply};
use std::time::Instant;

/// What the replies of a load added up to.
#[derive(Default)]
pub(crate) struct Tally {
    pub latency: LatencyHistogram,
    /// Documents that successful replies stand for.
    pub acknowledged: u64,
    /// Requests that failed.
    pub errors: u64,
    /// What the first of them said.
    pub first_error: Option<String>,
}

impl Tally {
    fn fail(&mut self, error: String) {
        self.errors += 1;
        self.first_error.get_or_insert(error);
    }

    /// Both threads' tallies as one.
    pub fn merged(mut self, other: Self) -> Self {
        self.latency.merge(&other.latency);
        self.acknowledged += other.acknowledged;
        self.errors += other.errors;
        self.first_error = self.first_error.or(other.first_error);
        self
    }
}

/// One thread's requests with their tally.
pub(crate) struct Measured {
    requests: Box<dyn Requests>,
    pub tally: Tally,
}

impl Measured {
    pub fn new(requests: Box<dyn Requests>) -> Self {
        Self { requests, tally: Tally::default() }
    }
}

impl Workload for Measured {
    fn next_request(&mut self, request_id: i32, out: &mut Vec<u8>) -> Next {
        self.requests.next(request_id, out)
    }

    fn on_reply(&mut self, reply: Result<Reply<'_>, CommandError>, started_at: Instant, now: Instant) {
        self.tally.latency.record(now.saturating_duration_since(started_at));
        match reply.map_err(|error| error.to_string()).and_then(|reply| self.requests.acknowledged(reply)) {
            Ok(documents) => self.tally.acknowledged += documents,
            Err(error) => self.tally.fail(error),
        }
    }
}
