//! `$rankFusion` and `$scoreFusion`: combine several pipelines over one collection, and score each document by its
//! place or score in each pipeline.

mod inputs;
mod rank;
mod score;

use super::stage_memory::StageMemory;
use super::{Definition, Reads, Stage, Stages};
use crate::metadata::Carried;
use crate::stage_fields::StageFields;
use crate::{DocumentStream, Environment, SourceName};
use bunko_bson::key_string::Direction;
use bunko_bson::{ArrayRef, DocumentBuf, DocumentRef, StringUse, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::{CurrentMetadata, Dependencies, Offered};
use bunko_operation::Gatherer;
use foldhash::HashMap;
use inputs::Input;
use std::sync::Arc;

pub(super) const RANK: Definition =
    Definition { facts: &bunko_stages::RANK_FUSION, strings: StringUse::Collated, parse: rank::parse };
pub(super) const SCORE: Definition =
    Definition { facts: &bunko_stages::SCORE_FUSION, strings: StringUse::Collated, parse: score::parse };

/// The part in which the two fusions differ.
trait Fusion: Send + Sync {
    /// Measures the documents of pipeline `number`, in their order.
    fn measure(&self, number: usize) -> Box<dyn Measure + '_>;

    /// Computes each document's score from its measures.
    /// # Errors
    /// Errors of expressions.
    fn score(&self, fused: &mut [Fused], inputs: &[Input], environment: &Environment) -> Result<()>;

    /// The `scoreDetails` of a document.
    fn details(&self, fused: &Fused, inputs: &[Input]) -> DocumentBuf;
}

/// Measures the documents of one pipeline.
trait Measure {
    /// The measure of the pipeline's next document.
    /// # Errors
    /// Errors of computing the keys that order the documents.
    fn measure(&mut self, input: &Input, document: DocumentRef<'_>) -> Result<f64>;
}

/// Whether scores have details.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Details {
    Told,
    Untold,
}

impl Details {
    /// The value of the field `scoreDetails`.
    /// # Errors
    /// `TypeMismatch`.
    pub(super) fn asked(fields: &StageFields<'_>) -> Result<Self> {
        Ok(if fields.boolean("scoreDetails")? == Some(true) { Self::Told } else { Self::Untold })
    }

    /// The metadata that the stage produces.
    pub(super) fn made(self) -> Carried {
        Carried::Made(match self {
            Self::Told => Offered::SCORE.and(Offered::SCORE_DETAILS),
            Self::Untold => Offered::SCORE,
        })
    }
}

struct FusionStage<F> {
    name: &'static str,
    fusion: F,
    source: SourceName,
    inputs: Vec<Input>,
    details: Details,
}

/// The specification of a stage that takes a document.
/// # Errors
/// `FailedToParse`.
pub(super) fn specification<'a>(name: &str, value: ValueRef<'a>) -> Result<DocumentRef<'a>> {
    value.as_document().ok_or_else(|| {
        let found = value.kind().alias();
        Failure::failed_to_parse(format!("The {name} stage specification must be an object, found {found}"))
    })
}

fn stage(
    name: &'static str,
    fusion: impl Fusion + 'static,
    inputs: Vec<Input>,
    details: Details,
    environment: &Environment,
) -> Result<Stages> {
    let Some(source) = environment.over.clone() else {
        return Err(Failure::new(ErrorCode::INVALID_NAMESPACE, format!("{name} needs a collection")));
    };
    environment.sources.note(&source, &environment.scope.strings)?;
    Ok(vec![Box::new(FusionStage { name, fusion, source, inputs, details })])
}

/// The names of the stages; a stage that is not a document is passed over.
fn names(stages: ArrayRef<'_>) -> impl Iterator<Item = &str> {
    stages.iter().filter_map(|stage| Some(stage.as_document()?.first()?.name))
}

impl<F: Fusion + 'static> Stage for FusionStage<F> {
    fn name(&self) -> &'static str {
        self.name
    }

    /// The input is unused: the pipelines read the collection themselves.
    fn open(self: Arc<Self>, _: Box<dyn DocumentStream>, environment: &Arc<Environment>) -> Box<dyn DocumentStream> {
        let at_hand = Arc::clone(&environment.scope.at_hand);
        Box::new(Combined { stage: self, environment: Arc::clone(environment), at_hand, fused: None })
    }

    fn metadata(&self) -> Carried {
        self.details.made()
    }

    fn add_dependencies(&self, dependencies: &mut Dependencies) -> Reads {
        dependencies.add_all();
        Reads::OthersToo
    }
}

/// A document that at least one pipeline returned.
struct Fused {
    /// The key string of its `_id`.
    id: Vec<u8>,
    document: DocumentBuf,
    score: f64,
    /// The document's measure in each pipeline.
    measured: Vec<Option<f64>>,
    /// The weighted measures, if they are weighted before they are combined.
    weighed: Vec<f64>,
}

impl Fused {
    fn memory_bytes(document: DocumentRef<'_>, id: &[u8], inputs: usize) -> usize {
        document.len_bytes() + 2 * id.len() + inputs * size_of::<(Option<f64>, f64)>() + 2 * size_of::<Self>()
    }
}

struct Combined<F> {
    stage: Arc<FusionStage<F>>,
    environment: Arc<Environment>,
    at_hand: Arc<CurrentMetadata>,
    /// `None` until the pipelines have run.
    fused: Option<std::vec::IntoIter<Fused>>,
}

impl<F: Fusion> FusionStage<F> {
    /// Runs all pipelines.
    fn fuse(&self, environment: &Environment) -> Result<Vec<Fused>> {
        let mut memory = StageMemory::new(self.name, Gatherer::Group, environment);
        let mut fused: Vec<Fused> = Vec::new();
        let mut positions: HashMap<Vec<u8>, usize> = HashMap::default();
        for (number, input) in self.inputs.iter().enumerate() {
            let mut stream = environment.sources.open(&self.source, input.stages.as_ref(), &input.inside)?;
            let mut measure = self.fusion.measure(number);
            while let Some(document) = stream.next()? {
                environment.operation().work(1 + document.len_bytes() / 64)?;
                let measured = measure.measure(input, document.as_ref())?;
                let mut id = Vec::new();
                let value = document.as_ref().get("_id").unwrap_or(ValueRef::Undefined);
                environment.strings().append_key(&mut id, value, Direction::Ascending);
                let position = match positions.get(&id) {
                    Some(position) => *position,
                    None => {
                        memory.keep(Fused::memory_bytes(document.as_ref(), &id, self.inputs.len()))?;
                        positions.insert(id.clone(), fused.len());
                        let measured = vec![None; self.inputs.len()];
                        fused.push(Fused { id, document, score: 0.0, measured, weighed: Vec::new() });
                        fused.len() - 1
                    }
                };
                fused[position].measured[number] = Some(measured);
            }
        }
        self.fusion.score(&mut fused, &self.inputs, environment)?;
        environment
            .operation()
            .sort_by(fused, |one, other| other.score.total_cmp(&one.score).then_with(|| one.id.cmp(&other.id)))
    }

    /// Makes the `$meta` values of a document.
    fn told(&self, fused: &Fused) -> DocumentBuf {
        let told = DocumentBuf::new().with("score", fused.score);
        match self.details {
            Details::Untold => told,
            Details::Told => told.with("scoreDetails", &self.fusion.details(fused, &self.inputs)),
        }
    }
}

impl<F: Fusion> DocumentStream for Combined<F> {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        if self.fused.is_none() {
            self.fused = Some(self.stage.fuse(&self.environment)?.into_iter());
        }
        let Some(fused) = self.fused.as_mut().and_then(Iterator::next) else { return Ok(None) };
        if self.at_hand.is_wanted() {
            self.at_hand.set(Some(Arc::new(self.stage.told(&fused))));
        }
        Ok(Some(fused.document))
    }
}
