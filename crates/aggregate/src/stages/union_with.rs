//! `$unionWith`: appends the documents of another collection, through a pipeline of their own.

use super::{Definition, Reads, Stage, Stages, position};
use crate::effect::Effect;
use crate::stage_fields::StageFields;
use crate::sub_pipeline::SubPipeline;
use crate::{DocumentStream, Environment, Flow, SourceName};
use bunko_bson::{ArrayRef, DocumentBuf, DocumentRef, StringUse, ValueRef};
use bunko_errors::{Failure, Result};
use bunko_expression::{CurrentMetadata, Dependencies};
use std::sync::Arc;

pub(super) const DEFINITION: Definition =
    Definition { facts: &bunko_stages::UNION_WITH, strings: StringUse::AsBytes, parse };

struct UnionWith {
    other: SubPipeline,
    inside: Environment,
}

/// Errors: `FailedToParse`, `TypeMismatch`, `IDLUnknownField` for the specification; 31441 for stages not allowed in
/// it; errors of the pipeline.
fn parse(value: ValueRef<'_>, environment: &Environment) -> Result<Stages> {
    let inside = environment.nested()?;
    let (source, stages) = match value {
        ValueRef::String(collection) => (Some(SourceName::here(collection)), ArrayRef::EMPTY),
        ValueRef::Document(specification) => {
            let fields = StageFields::new("$unionWith", specification, &["coll", "pipeline"])?;
            let stages = fields.pipeline("pipeline")?.unwrap_or(ArrayRef::EMPTY);
            let source = fields.string("coll")?.map(SourceName::here);
            let begins_with_documents = stages
                .iter()
                .next()
                .and_then(ValueRef::as_document)
                .is_some_and(|first| first.get(bunko_stages::DOCUMENTS.name).is_some());
            if source.is_none() && !begins_with_documents {
                return Err(Failure::failed_to_parse(
                    "$unionWith stage without explicit collection must have a pipeline with $documents as first stage",
                ));
            }
            (source, stages)
        }
        other => {
            let kind = other.kind().alias();
            let message = format!("the $unionWith stage specification must be an object or string, but found {kind}");
            return Err(Failure::failed_to_parse(message));
        }
    };
    position::refuse_outermost(stages, 31441, "$unionWith")?;
    Ok(vec![Box::new(UnionWith { other: SubPipeline::parse(source, stages, &inside)?, inside })])
}

impl Stage for UnionWith {
    fn name(&self) -> &'static str {
        DEFINITION.facts.name
    }

    fn open(
        self: Arc<Self>,
        input: Box<dyn DocumentStream>,
        environment: &Arc<Environment>,
    ) -> Box<dyn DocumentStream> {
        Box::new(United { part: UnionSide::Input(input), stage: self, at_hand: Arc::clone(&environment.scope.at_hand) })
    }

    fn effect(&self) -> Effect {
        Effect::Unites
    }

    fn take_inside(&mut self, filter: DocumentRef<'_>) -> Result<()> {
        self.other.add_filter(filter);
        Ok(())
    }

    fn add_dependencies(&self, dependencies: &mut Dependencies) -> Reads {
        dependencies.add_all();
        Reads::OthersToo
    }
}

struct United {
    stage: Arc<UnionWith>,
    part: UnionSide,
    /// Cleared before the other collection, whose documents have no metadata for later stages.
    at_hand: Arc<CurrentMetadata>,
}

enum UnionSide {
    Input(Box<dyn DocumentStream>),
    Other(Box<dyn DocumentStream>),
}

impl United {
    /// Moves on from the input to the other collection; returns false if it has done so before.
    fn go_on(&mut self) -> Result<bool> {
        if matches!(self.part, UnionSide::Other(_)) {
            return Ok(false);
        }
        self.at_hand.set(None);
        self.part = UnionSide::Other(self.stage.other.open(&[], &self.stage.inside)?);
        Ok(true)
    }

    fn current(&mut self) -> &mut dyn DocumentStream {
        match &mut self.part {
            UnionSide::Input(stream) | UnionSide::Other(stream) => stream.as_mut(),
        }
    }
}

impl DocumentStream for United {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        loop {
            if let Some(document) = self.current().next()? {
                return Ok(Some(document));
            }
            if !self.go_on()? {
                return Ok(None);
            }
        }
    }

    fn visit(&mut self, visitor: &mut dyn FnMut(DocumentRef<'_>) -> Result<Flow>) -> Result<()> {
        let mut has_enough = false;
        loop {
            self.current().visit(&mut |document| {
                let flow = visitor(document)?;
                has_enough = flow == Flow::Stop;
                Ok(flow)
            })?;
            if has_enough || !self.go_on()? {
                return Ok(());
            }
        }
    }
}
