//! `$documents`: documents from an expression, without a collection.

use super::{Definition, Reads, Stage, Stages};
use crate::metadata::Carried;
use crate::{DocumentStream, Documents, Environment};
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentBuf, DocumentRef, StringUse, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::{Dependencies, Expression};
use std::sync::Arc;

pub(super) const DEFINITION: Definition =
    Definition { facts: &bunko_stages::DOCUMENTS, strings: StringUse::AsBytes, parse };

/// The expression; it sees no document, only variables.
struct InPlace(Expression);

fn parse(value: ValueRef<'_>, environment: &Environment) -> Result<Stages> {
    Ok(vec![Box::new(InPlace(Expression::parse(value, &environment.scope.parse_scope())?))])
}

impl InPlace {
    /// Errors: 5858203 if the expression yields no array, 40228 for an element that is not a document.
    fn documents(&self, environment: &Environment) -> Result<Vec<DocumentBuf>> {
        let context = environment.context(DocumentRef::EMPTY);
        let evaluated = self.0.evaluate(&context)?;
        let Some(ValueRef::Array(array)) = evaluated.get() else {
            let message = format!("$documents needs an array of objects, found: {}", evaluated.type_name());
            return Err(Failure::new(ErrorCode(5_858_203), message));
        };
        let documents = array.iter().map(|element| {
            environment.operation().work(1)?;
            element.as_document().map(DocumentRef::to_owned).ok_or_else(|| {
                let (text, kind) = (ValueText(element), element.kind().alias());
                let message = format!("$documents needs an array of objects, found in it: {text} of type {kind}");
                Failure::new(ErrorCode(40228), message)
            })
        });
        documents.collect()
    }
}

impl Stage for InPlace {
    fn name(&self) -> &'static str {
        DEFINITION.facts.name
    }

    fn open(self: Arc<Self>, _: Box<dyn DocumentStream>, environment: &Arc<Environment>) -> Box<dyn DocumentStream> {
        Box::new(Evaluating { stage: self, environment: Arc::clone(environment), documents: None })
    }

    fn brings_documents(&self) -> bool {
        true
    }

    fn metadata(&self) -> Carried {
        Carried::Lost
    }

    fn add_dependencies(&self, _: &mut Dependencies) -> Reads {
        Reads::OnlyThese
    }
}

struct Evaluating {
    stage: Arc<InPlace>,
    environment: Arc<Environment>,
    /// `None` until the first document is requested.
    documents: Option<Documents>,
}

impl DocumentStream for Evaluating {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        if self.documents.is_none() {
            self.documents = Some(Documents::new(self.stage.documents(&self.environment)?));
        }
        self.documents.as_mut().map_or(Ok(None), Documents::next)
    }
}
