//! `$limit`: the first documents only.

use super::{Definition, Plannable, Reads, Stage, Stages};
use crate::effect::Effect;
use crate::{DocumentStream, Environment, Flow};
use bunko_bson::{DocumentBuf, DocumentRef, StringUse, ValueRef, number};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::Dependencies;
use std::sync::Arc;

pub(super) const DEFINITION: Definition =
    Definition { facts: &bunko_stages::LIMIT, strings: StringUse::AsBytes, parse };

struct Limit(u64);

/// A stage that passes on this many documents at most; not 0.
pub(crate) fn limiting(count: u64) -> Box<dyn Stage> {
    Box::new(Limit(count))
}

fn parse(value: ValueRef<'_>, _: &Environment) -> Result<Stages> {
    let refusal = |what: &str| {
        let message = format!("invalid argument to $limit stage: {what}");
        Failure::new(ErrorCode(5_107_201), message)
    };
    let Some(count) = number::as_i64_exact(value) else {
        let found = bunko_bson::text::ValueText(value);
        let what = if value.is_number() { "Expected an integer" } else { "Expected a number in" };
        return Err(refusal(&format!("{what}: $limit: {found}")));
    };
    match u64::try_from(count) {
        Ok(0) => Err(Failure::new(ErrorCode(15958), "the limit must be positive")),
        Ok(count) => Ok(vec![Box::new(Limit(count))]),
        Err(_) => Err(refusal(&format!("Expected a non-negative number in: $limit: {count}"))),
    }
}

impl Stage for Limit {
    fn name(&self) -> &'static str {
        DEFINITION.facts.name
    }

    fn open(self: Arc<Self>, input: Box<dyn DocumentStream>, _: &Arc<Environment>) -> Box<dyn DocumentStream> {
        Box::new(Limited { left: self.0, input })
    }

    fn plannable(&self) -> Plannable<'_> {
        Plannable::Limit(self.0)
    }

    fn effect(&self) -> Effect {
        Effect::Cuts
    }

    fn absorb(&mut self, next: &dyn Stage) -> bool {
        let Plannable::Limit(other) = next.plannable() else { return false };
        self.0 = self.0.min(other);
        true
    }

    fn add_dependencies(&self, _: &mut Dependencies) -> Reads {
        Reads::OthersToo
    }
}

struct Limited {
    left: u64,
    input: Box<dyn DocumentStream>,
}

impl DocumentStream for Limited {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        self.input.next()
    }

    fn visit(&mut self, visitor: &mut dyn FnMut(DocumentRef<'_>) -> Result<Flow>) -> Result<()> {
        let Self { left, input } = self;
        if *left == 0 {
            return Ok(());
        }
        input.visit(&mut |document| {
            *left -= 1;
            let flow = visitor(document)?;
            Ok(if *left == 0 { Flow::Stop } else { flow })
        })
    }
}
