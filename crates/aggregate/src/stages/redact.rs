//! `$redact`: keeps, prunes or descends into each document inside a document.

use super::{Definition, Reads, Stage, Stages};
use crate::rewrite::Effect;
use crate::{DocumentStream, Environment};
use bunko_bson::{DocumentBuf, StringUse, ValueRef};
use bunko_errors::Result;
use bunko_expression::{Dependencies, Redaction};
use std::sync::Arc;

pub(super) const DEFINITION: Definition =
    Definition { facts: &bunko_stages::REDACT, strings: StringUse::AsBytes, parse };

struct Redact(Redaction);

fn parse(value: ValueRef<'_>, environment: &Environment) -> Result<Stages> {
    Ok(vec![Box::new(Redact(Redaction::parse(value, &environment.scope.parse_scope())?))])
}

impl Stage for Redact {
    fn name(&self) -> &'static str {
        DEFINITION.facts.name
    }

    fn open(
        self: Arc<Self>,
        input: Box<dyn DocumentStream>,
        environment: &Arc<Environment>,
    ) -> Box<dyn DocumentStream> {
        Box::new(Redacted { stage: self, input, environment: Arc::clone(environment) })
    }

    fn effect(&self) -> Effect {
        Effect::Prunes
    }

    fn add_dependencies(&self, dependencies: &mut Dependencies) -> Reads {
        dependencies.add_all();
        Reads::OthersToo
    }
}

struct Redacted {
    stage: Arc<Redact>,
    input: Box<dyn DocumentStream>,
    environment: Arc<Environment>,
}

impl DocumentStream for Redacted {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        while let Some(document) = self.input.next()? {
            if let Some(left) = self.stage.0.apply(&self.environment.context(document.as_ref()))? {
                return Ok(Some(left));
            }
        }
        Ok(None)
    }
}
