//! `$rank`, `$denseRank`, `$documentNumber`: positions in the sort order.

use super::partition::Partition;
use super::{Call, Function, Running};
use crate::Environment;
use bunko_bson::Value;
use bunko_errors::{ErrorCode, Failure, Result};
use std::sync::Arc;

/// The ranking of documents with equal sort values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rank {
    /// Equal documents share a rank, and the next rank skips as many.
    Standard,
    /// Equal documents share a rank, and the next rank follows.
    Dense,
    /// Each document has its own rank.
    Number,
}

pub(super) fn parse(call: &Call<'_>) -> Result<Arc<dyn Function>> {
    let refusal = |code, what: &str| Err(Failure::new(ErrorCode(code), format!("{} {what}", call.name)));
    let rank = match call.name {
        "$rank" => Rank::Standard,
        "$denseRank" => Rank::Dense,
        _ => Rank::Number,
    };
    if call.argument.as_document().is_none_or(|argument| !argument.is_empty()) {
        return refusal(5_371_603, "must be specified with '{}' as the value");
    }
    if call.directions().len() != 1 {
        return refusal(5_371_602, "must be specified with a top level sortBy expression with exactly one element");
    }
    Ok(Arc::new(rank))
}

impl Function for Rank {
    fn begin(self: Arc<Self>) -> Box<dyn Running> {
        Box::new(Counting { rank: *self, place: 0, distinct: 0 })
    }
}

struct Counting {
    rank: Rank,
    /// Ranks of the last document, by each way of counting.
    place: usize,
    distinct: usize,
}

impl Running for Counting {
    fn value(&mut self, partition: &Partition, position: usize, environment: &Environment) -> Result<Value> {
        let at = |position| partition.at(position, environment);
        // Document numbers do not depend on the documents.
        if self.rank != Rank::Number && (position == 0 || at(position)?.order() != at(position - 1)?.order()) {
            self.place = position + 1;
            self.distinct += 1;
        }
        let place = match self.rank {
            Rank::Standard => self.place,
            Rank::Dense => self.distinct,
            Rank::Number => position + 1,
        };
        Ok(i32::try_from(place).map_or(Value::Int64(place as i64), Value::Int32))
    }
}
