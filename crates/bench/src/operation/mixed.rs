//! Several operations at once, each with a weight, as in YCSB's workloads.

use super::{Answer, Assignment, Effect, Moves, Operation, OperationSettings, Requests};
use bunko_client::{CommandError, Reply};
use bunko_dataset::Dataset;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};
use slab::Slab;

/// Settings of the operation `mixed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Mixed {
    /// The operations.
    pub parts: Vec<Part>,
}

/// One operation of a mix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Part {
    /// How often the operation is chosen, relative to the others' weights.
    pub weight: u32,
    /// The operation.
    pub operation: Box<OperationSettings>,
}

impl Operation for Mixed {
    fn effects(&self) -> Vec<Effect> {
        self.parts.iter().flat_map(|part| part.operation.operation().effects()).collect()
    }

    fn moves(&self) -> Moves {
        let whole = |part: &Part| part.operation.operation().moves() == Moves::WholeDocuments;
        if self.parts.iter().all(whole) { Moves::WholeDocuments } else { Moves::Parts }
    }

    fn has_sessions(&self) -> bool {
        self.parts.iter().any(|part| part.operation.operation().has_sessions())
    }

    fn check(&self, dataset: &Dataset) -> Result<(), String> {
        if self.parts.is_empty() {
            return Err("parts: at least one is needed".into());
        }
        for part in &self.parts {
            let operation = part.operation.operation();
            let name = part.operation.name();
            if matches!(
                *part.operation,
                OperationSettings::Mixed(_)
                    | OperationSettings::Load(_)
                    | OperationSettings::Index(_)
                    | OperationSettings::Verify(_)
                    | OperationSettings::Dump(_)
                    | OperationSettings::Restore(_)
            ) {
                return Err(format!("parts: '{name}' cannot be part of a mix"));
            }
            if part.weight == 0 {
                return Err(format!("parts: {name}: weight: 0 means that it is never done; leave it out"));
            }
            operation.check(dataset).map_err(|error| format!("parts: {name}: {error}"))?;
        }
        Ok(())
    }

    fn start(&self, assignment: &Assignment<'_>) -> Result<Box<dyn Requests>, String> {
        let mut chosen_below = 0;
        let mut parts = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            chosen_below += u64::from(part.weight);
            parts.push((chosen_below, part.operation.operation().start(assignment)?));
        }
        let random = Xoshiro256PlusPlus::seed_from_u64(assignment.seed ^ assignment.stream.rotate_left(16));
        Ok(Box::new(MixedRequests { parts, weights: chosen_below, random, open: Slab::new() }))
    }
}

struct MixedRequests {
    /// Each part with the sum of the weights up to its own.
    parts: Vec<(u64, Box<dyn Requests>)>,
    weights: u64,
    random: Xoshiro256PlusPlus,
    /// Part and its tag or step; the key in this slab is the tag or step of the mix.
    open: Slab<(usize, u64)>,
}

impl MixedRequests {
    fn remember(&mut self, part: usize, tag: u64) -> u64 {
        self.open.insert((part, tag)) as u64
    }

    fn recall(&mut self, place: u64) -> (usize, u64) {
        self.open.remove(place as usize)
    }
}

impl Requests for MixedRequests {
    fn next(&mut self, request_id: i32, out: &mut Vec<u8>) -> Option<u64> {
        let chosen = self.random.next_u64() % self.weights;
        let part = self.parts.iter().position(|(below, _)| chosen < *below).unwrap_or_default();
        let tag = self.parts[part].1.next(request_id, out)?;
        Some(self.remember(part, tag))
    }

    fn on_reply(&mut self, tag: u64, reply: Reply<'_>) -> Result<Answer, String> {
        let (part, tag) = self.recall(tag);
        Ok(match self.parts[part].1.on_reply(tag, reply)? {
            Answer::More { documents, step } => Answer::More { documents, step: self.remember(part, step) },
            done @ Answer::Done { .. } => done,
        })
    }

    fn follow(&mut self, step: u64, request_id: i32, out: &mut Vec<u8>) -> u64 {
        let (part, step) = self.recall(step);
        let tag = self.parts[part].1.follow(step, request_id, out);
        self.remember(part, tag)
    }

    fn part(&self, tag: u64) -> usize {
        self.open[tag as usize].0
    }

    fn sent(&mut self, _tag: u64) -> u64 {
        unreachable!("a plan refuses a mix of unacknowledged writes")
    }

    fn again(&mut self, tag: u64, error: &CommandError) -> Option<u64> {
        let (part, own) = self.open[tag as usize];
        let step = self.parts[part].1.again(own, error)?;
        self.recall(tag);
        Some(self.remember(part, step))
    }

    fn on_failure(&mut self, tag: u64) {
        let (part, tag) = self.recall(tag);
        self.parts[part].1.on_failure(tag);
    }
}
