//! `$replaceRoot`, also `$replaceWith`: puts a document that an expression yields in each document's place.

use super::{Definition, Reads, Stage, Stages};
use crate::{DocumentStream, Environment, Flow};
use bunko_bson::{DocumentBuf, DocumentRef, Value, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::{Dependencies, Evaluated, Expression};
use std::sync::Arc;

pub(super) const DEFINITION: Definition = Definition { name: "$replaceRoot", parse };
pub(super) const REPLACE_WITH: Definition = Definition { name: "$replaceWith", parse: parse_replace_with };

struct ReplaceRoot {
    name: &'static str,
    new_root: Expression,
}

fn parse(value: ValueRef<'_>, environment: &Environment) -> Result<Stages> {
    let ValueRef::Document(specification) = value else {
        let message =
            format!("expected an object as specification for $replaceRoot stage, got {}", value.kind().alias());
        return Err(Failure::new(ErrorCode(40229), message));
    };
    if let Some(unknown) = specification.iter().find(|element| element.name != "newRoot") {
        let message = format!("BSON field '$replaceRoot.{}' is an unknown field.", unknown.name);
        return Err(Failure::new(ErrorCode::IDL_UNKNOWN_FIELD, message));
    }
    let Some(new_root) = specification.get("newRoot") else {
        let message = "BSON field '$replaceRoot.newRoot' is missing but a required field";
        return Err(Failure::new(ErrorCode::IDL_FAILED_TO_PARSE, message));
    };
    stage(DEFINITION.name, new_root, environment)
}

fn parse_replace_with(value: ValueRef<'_>, environment: &Environment) -> Result<Stages> {
    stage(REPLACE_WITH.name, value, environment)
}

fn stage(name: &'static str, new_root: ValueRef<'_>, environment: &Environment) -> Result<Stages> {
    let new_root = Expression::parse(new_root, &environment.scope.parse_scope())?;
    Ok(vec![Box::new(ReplaceRoot { name, new_root })])
}

impl ReplaceRoot {
    fn not_a_document(&self, found: &Evaluated<'_>, document: DocumentRef<'_>) -> Failure {
        let text = |value: ValueRef<'_>| bunko_bson::text::ValueText(value).to_string();
        let message = format!(
            "'{}' expression {}must evaluate to an object, but resulting value was: {}. Type of resulting value: '{}'. Input document: {}",
            if self.name == DEFINITION.name { "newRoot" } else { "replacement" },
            if self.name == DEFINITION.name { " " } else { "" },
            found.get().map_or("MISSING".to_owned(), text),
            found.type_name(),
            text(ValueRef::Document(document)),
        );
        Failure::new(ErrorCode(40228), message)
    }
}

impl Stage for ReplaceRoot {
    fn name(&self) -> &'static str {
        self.name
    }

    fn open(
        self: Arc<Self>,
        input: Box<dyn DocumentStream>,
        environment: &Arc<Environment>,
    ) -> Box<dyn DocumentStream> {
        Box::new(Replaced { stage: self, input, environment: Arc::clone(environment) })
    }

    fn add_dependencies(&self, dependencies: &mut Dependencies) -> Reads {
        self.new_root.add_dependencies(dependencies);
        Reads::OnlyThese
    }
}

struct Replaced {
    stage: Arc<ReplaceRoot>,
    input: Box<dyn DocumentStream>,
    environment: Arc<Environment>,
}

impl DocumentStream for Replaced {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        let Some(document) = self.input.next()? else { return Ok(None) };
        match self.stage.new_root.evaluate(&self.environment.context(document.as_ref()))? {
            Evaluated::Owned(Value::Document(replacement)) => Ok(Some(replacement)),
            Evaluated::Ref(ValueRef::Document(replacement)) => {
                self.environment.operation().work(1 + replacement.len_bytes() / 64)?;
                Ok(Some(replacement.to_owned()))
            }
            other => Err(self.stage.not_a_document(&other, document.as_ref())),
        }
    }

    fn visit(&mut self, visitor: &mut dyn FnMut(DocumentRef<'_>) -> Result<Flow>) -> Result<()> {
        let Self { stage, input, environment } = self;
        input.visit(&mut |document| {
            let evaluated = stage.new_root.evaluate(&environment.context(document))?;
            match evaluated.get() {
                Some(ValueRef::Document(replacement)) => visitor(replacement),
                _ => Err(stage.not_a_document(&evaluated, document)),
            }
        })
    }
}
