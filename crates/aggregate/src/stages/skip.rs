//! `$skip`: drops the first documents.

use super::{Definition, Plannable, Reads, Stage, Stages};
use crate::rewrite::Effect;
use crate::{DocumentStream, Environment, Flow};
use bunko_bson::{DocumentBuf, DocumentRef, StringUse, ValueRef, number};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::Dependencies;
use std::sync::Arc;

pub(super) const DEFINITION: Definition = Definition { facts: &bunko_stages::SKIP, strings: StringUse::AsBytes, parse };

struct Skip(u64);

fn parse(value: ValueRef<'_>, _: &Environment) -> Result<Stages> {
    let refusal = |what: &str| {
        let message = format!("invalid argument to $skip stage: {what}");
        Failure::new(ErrorCode(5_107_200), message)
    };
    let Some(count) = number::as_i64_exact(value) else {
        let found = bunko_bson::text::ValueText(value);
        let what = if value.is_number() { "Expected an integer" } else { "Expected a number in" };
        return Err(refusal(&format!("{what}: $skip: {found}")));
    };
    let count =
        u64::try_from(count).map_err(|_| refusal(&format!("Expected a non-negative number in: $skip: {count}")))?;
    Ok(vec![Box::new(Skip(count))])
}

impl Stage for Skip {
    fn name(&self) -> &'static str {
        DEFINITION.facts.name
    }

    fn open(self: Arc<Self>, input: Box<dyn DocumentStream>, _: &Arc<Environment>) -> Box<dyn DocumentStream> {
        Box::new(Skipping { left: self.0, input })
    }

    fn plannable(&self) -> Plannable<'_> {
        Plannable::Skip(self.0)
    }

    fn effect(&self) -> Effect {
        Effect::Cuts
    }

    fn absorb(&mut self, next: &dyn Stage) -> bool {
        let Plannable::Skip(more) = next.plannable() else { return false };
        let sum = self.0.checked_add(more).filter(|sum| i64::try_from(*sum).is_ok());
        self.0 = sum.unwrap_or(self.0);
        sum.is_some()
    }

    fn add_dependencies(&self, _: &mut Dependencies) -> Reads {
        Reads::OthersToo
    }
}

struct Skipping {
    left: u64,
    input: Box<dyn DocumentStream>,
}

impl DocumentStream for Skipping {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        while self.left > 0 {
            self.left -= 1;
            if self.input.next()?.is_none() {
                return Ok(None);
            }
        }
        self.input.next()
    }

    fn visit(&mut self, visitor: &mut dyn FnMut(DocumentRef<'_>) -> Result<Flow>) -> Result<()> {
        let Self { left, input } = self;
        input.visit(&mut |document| {
            if *left > 0 {
                *left -= 1;
                return Ok(Flow::More);
            }
            visitor(document)
        })
    }
}
