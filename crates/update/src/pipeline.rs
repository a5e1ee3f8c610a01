//! Updates that are pipelines: a few stages make the next document from the original.

use crate::context::{ApplyContext, ParseContext};
use crate::{nesting, replacement};
use bunko_bson::{ArrayRef, DocumentBuf, DocumentRef, StringOrder, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::{EvaluationContext, ParseScope, Reshaping, Variables};
use bunko_operation::OperationContext;
use std::sync::Arc;

/// A parsed pipeline with its variables.
pub(crate) struct UpdatePipeline {
    stages: Vec<Reshaping>,
    variables: Variables,
    strings: StringOrder,
}

impl std::fmt::Debug for UpdatePipeline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.stages.iter().map(Reshaping::name)).finish()
    }
}

impl UpdatePipeline {
    /// # Errors
    /// `TypeMismatch` for a stage that is not a document, 40323 for a stage without exactly one field, 40324 for an
    /// unknown stage, `InvalidOptions` for a stage that updates do not allow; errors of the stages.
    pub fn parse(stages: ArrayRef<'_>, context: &ParseContext<'_>) -> Result<Self> {
        let mut variables = context.variables.clone();
        for constant in context.constants.unwrap_or(DocumentRef::EMPTY) {
            variables.define(constant.name, Some(constant.value.to_value()))?;
        }
        // Constant expressions use the update's string order. Their failures are reported when a document is changed.
        let mut scope = ParseScope::new(&variables).folding(context.strings, &Arc::default());
        if let Some(operation) = context.operation {
            scope = scope.counted_for(operation);
        }
        if let Some(scripts) = context.scripts {
            scope = scope.with_scripts(scripts);
        }
        let parsed: Vec<_> = stages.iter().map(|stage| parse_stage(stage, &scope)).collect::<Result<_>>()?;
        // As on MongoDB, errors within any stage come before the refusal of stages that updates do not allow.
        let stages = parsed.into_iter().collect::<Result<_>>()?;
        Ok(Self { stages, variables, strings: context.strings.clone() })
    }

    /// The new document with `_id` in front: its own, or the original's.
    /// # Errors
    /// Errors of the stages; as [`replacement::replaced`].
    pub fn apply(&self, original: DocumentRef<'_>, context: &ApplyContext<'_>) -> Result<DocumentBuf> {
        let mut document: Option<DocumentBuf> = None;
        for stage in &self.stages {
            let before = document.as_ref().map_or(original, DocumentBuf::as_ref);
            document = Some(stage.apply(&self.context(before, context.now_ms, context.operation))?);
        }
        match document {
            Some(document) => {
                nesting::check(ValueRef::from(&document), 0)?;
                replacement::replaced(original, document.as_ref())
            }
            None => Ok(original.to_owned()),
        }
    }

    fn context<'a>(
        &'a self,
        document: DocumentRef<'a>,
        now_ms: i64,
        operation: &'a OperationContext,
    ) -> EvaluationContext<'a> {
        EvaluationContext::new(document, &self.variables, now_ms, operation).with_strings(&self.strings)
    }
}

/// Parses one stage. The inner failure refuses a stage that updates do not allow.
fn parse_stage(stage: ValueRef<'_>, scope: &ParseScope) -> Result<Result<Reshaping>> {
    let ValueRef::Document(specification) = stage else {
        return Err(Failure::type_mismatch("Each element of the 'pipeline' array must be an object"));
    };
    let (Some(element), 1) = (specification.first(), specification.count()) else {
        let message = "A pipeline stage specification object must contain exactly one field.";
        return Err(Failure::new(ErrorCode(40323), message));
    };
    let name = element.name;
    match Reshaping::parse(name, element.value, scope) {
        Some(stage) => stage.map(Ok),
        // The error says that the stage is not allowed instead of calling it unknown.
        None if bunko_stages::find(name).is_some() => {
            let message = format!("{name} is not allowed to be used within an update");
            Ok(Err(Failure::new(ErrorCode::INVALID_OPTIONS, message)))
        }
        None => Err(Failure::new(ErrorCode(40324), format!("Unrecognized pipeline stage name: '{name}'"))),
    }
}
