//! `$facet`: one document with the results of several pipelines over one input.

use super::{Definition, Reads, Stage, Stages, position};
use crate::metadata::{Carried, Holding, Releasing};
use crate::thread_stack::check_stack;
use crate::{DocumentStream, Environment, Flow, Pipeline};
use bunko_bson::text::ValueText;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, StringUse, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::{CurrentMetadata, Dependencies, FieldPath};
use bunko_operation::Gatherer;
use bunko_query::append_spilled;
use bunko_scratch::{Spilled, Spool, SpoolReader};
use std::sync::Arc;

pub(super) const DEFINITION: Definition =
    Definition { facts: &bunko_stages::FACET, strings: StringUse::AsBytes, parse };

/// Maximum size in bytes of the output of all pipelines together.
/// Source: MongoDB 8.2, parameter `internalQueryFacetMaxOutputDocSizeBytes`.
const OUTPUT_BYTES_MAX: usize = 100 * 1024 * 1024;

/// Keeps the input while the pipelines run over it, one after the other.
struct Facet {
    facets: Vec<(String, Pipeline)>,
    /// The metadata of the documents that the facets read.
    at_hand: Arc<CurrentMetadata>,
}

fn failure(code: i32, message: String) -> Failure {
    Failure::new(ErrorCode(code), message)
}

/// Errors: 40169 to 40171 if it is not a document of pipelines; errors of field names; 40600 and `InvalidNamespace` for
/// a stage not allowed in a facet; errors of the pipelines.
fn parse(value: ValueRef<'_>, environment: &Environment) -> Result<Stages> {
    let Some(specification) = value.as_document().filter(|specification| !specification.is_empty()) else {
        return Err(failure(40169, "the $facet specification must be a non-empty object".to_owned()));
    };
    let mut inside = environment.nested()?;
    inside.scope = Arc::new(inside.scope.offering(environment.scope.offered));
    let mut facets = Vec::new();
    for element in specification {
        check_name(element.name)?;
        let Some(stages) = element.value.as_array() else {
            let kind = element.value.kind().alias();
            return Err(failure(40170, format!("arguments to $facet must be arrays, {} is type {kind}", element.name)));
        };
        if let Some(other) = stages.iter().find(|stage| stage.as_document().is_none()) {
            let message = format!(
                "elements of arrays in $facet spec must be non-empty objects, {} argument contained an element of type \
                 {}: {}",
                element.name,
                other.kind().alias(),
                ValueText(other)
            );
            return Err(failure(40171, message));
        }
        position::check_facet(stages, &inside)?;
        let pipeline = Pipeline::parse(stages, inside.clone())?;
        if pipeline.stages().any(Stage::searches_text) {
            let message = "$match with $text is only allowed as the first pipeline stage";
            return Err(failure(17313, message.to_owned()));
        }
        facets.push((element.name.to_owned(), pipeline));
    }
    if inside.scope.at_hand.is_wanted() {
        environment.scope.at_hand.want_as(&inside.scope.at_hand);
    }
    Ok(vec![Box::new(Facet { facets, at_hand: Arc::clone(&inside.scope.at_hand) })])
}

pub(super) fn check_name(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(failure(15998, "FieldPath field names may not be empty strings.".to_owned()));
    }
    if name.contains('.') {
        return Err(failure(
            16412,
            format!(
                "FieldPath field names may not contain '.'. Consider using $getField or $setField. Field name: '{name}'"
            ),
        ));
    }
    FieldPath::parse(name).map(drop)
}

impl Stage for Facet {
    fn name(&self) -> &'static str {
        DEFINITION.facts.name
    }

    fn open(
        self: Arc<Self>,
        input: Box<dyn DocumentStream>,
        environment: &Arc<Environment>,
    ) -> Box<dyn DocumentStream> {
        let input: Box<dyn DocumentStream> = if self.at_hand.is_wanted() {
            Box::new(Holding { input, at_hand: Arc::clone(&environment.scope.at_hand) })
        } else {
            input
        };
        let environment = Arc::clone(environment);
        Box::new(Faceted { stage: self, input: Some(input), environment, spilled: Spilled::default() })
    }

    fn metadata(&self) -> Carried {
        Carried::Lost
    }

    fn add_dependencies(&self, dependencies: &mut Dependencies) -> Reads {
        for (_, pipeline) in &self.facets {
            match pipeline.dependencies() {
                Dependencies::All => dependencies.add_all(),
                Dependencies::Fields(fields) => fields.into_iter().for_each(|field| dependencies.add(field)),
            }
        }
        Reads::OnlyThese
    }
}

impl Facet {
    /// The input of one facet.
    fn lent(&self, documents: SpoolReader, environment: &Arc<Environment>) -> Box<dyn DocumentStream> {
        let input = Box::new(Held { documents, environment: Arc::clone(environment) });
        if !self.at_hand.is_wanted() {
            return input;
        }
        Box::new(Releasing { input, at_hand: Arc::clone(&self.at_hand) })
    }
}

struct Faceted {
    stage: Arc<Facet>,
    /// `None` once the result has been made.
    input: Option<Box<dyn DocumentStream>>,
    environment: Arc<Environment>,
    spilled: Spilled,
}

impl DocumentStream for Faceted {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        let Some(mut input) = self.input.take() else { return Ok(None) };
        let operation = self.environment.operation();
        let mut held = Spool::new(Gatherer::Facet, DEFINITION.facts.name);
        input.visit(&mut |document| held.add(document.as_bytes(), operation).map(|()| Flow::More))?;
        drop(input);
        let held = held.finish()?;
        self.spilled = held.spilled();
        let mut result = DocumentBuf::new();
        let mut result_bytes = 0;
        for (name, pipeline) in &self.stage.facets {
            check_stack(pipeline.stages().count())?;
            let mut documents = ArrayBuf::new();
            pipeline.open(self.stage.lent(held.again(), &self.environment)).visit(&mut |document| {
                result_bytes += document.len_bytes();
                operation.work(1 + document.len_bytes() / 64)?;
                if result_bytes > OUTPUT_BYTES_MAX {
                    let message =
                        format!("document constructed by $facet exceeds the limit of {OUTPUT_BYTES_MAX} bytes");
                    return Err(failure(4_031_700, message));
                }
                documents.push(document);
                Ok(Flow::More)
            })?;
            result.append(name, &documents);
        }
        Ok(Some(result))
    }

    fn describe_run(&self, facts: &mut DocumentBuf) {
        append_spilled(facts, self.spilled);
    }
}

/// The kept input, for one of the pipelines.
struct Held {
    documents: SpoolReader,
    environment: Arc<Environment>,
}

impl DocumentStream for Held {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        let document = self.documents.next(self.environment.operation())?;
        Ok(document.map(|document| DocumentRef::trusted(document).to_owned()))
    }

    fn visit(&mut self, visitor: &mut dyn FnMut(DocumentRef<'_>) -> Result<Flow>) -> Result<()> {
        while let Some(document) = self.documents.next(self.environment.operation())? {
            if visitor(DocumentRef::trusted(document))? == Flow::Stop {
                break;
            }
        }
        Ok(())
    }
}
