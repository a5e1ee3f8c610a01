//! `$rankFusion`: the documents of several pipelines over one collection, by the ranks that they have in them.
//! Source: MongoDB manual, "$rankFusion".

mod inputs;

use super::stage_memory::StageMemory;
use super::{Definition, Reads, Stage, Stages};
use crate::metadata::Carried;
use crate::stage_fields::StageFields;
use crate::{DocumentStream, Environment, SourceName};
use bunko_bson::key_string::Direction;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::{AtHand, Dependencies, Offered};
use bunko_operation::Gatherer;
use foldhash::HashMap;
use inputs::Input;
use std::sync::Arc;

pub(super) const DEFINITION: Definition = Definition { name: "$rankFusion", parse };

/// What ranks are added to, so that the first of them do not outweigh all others.
/// Source: MongoDB manual, "Reciprocal Rank Fusion (RRF) Formula".
const RANK_CONSTANT: f64 = 60.0;
/// Source: MongoDB manual, "$rankFusion", "scoreDetails".
const DESCRIPTION: &str = "value output by reciprocal rank fusion algorithm, computed as sum of (weight * (1 / (60 + \
                           rank))) across input pipelines from which this document is output, from:";

struct RankFusion {
    source: SourceName,
    inputs: Vec<Input>,
    details: Details,
}

/// Whether scores are explained.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Details {
    Told,
    Untold,
}

/// Errors: `FailedToParse` for what is no document, those of IDL for its fields; those of the pipelines.
fn parse(value: ValueRef<'_>, environment: &Environment) -> Result<Stages> {
    let ValueRef::Document(specification) = value else {
        let message = format!("The $rankFusion stage specification must be an object, found {}", value.kind().alias());
        return Err(Failure::failed_to_parse(message));
    };
    let fields = StageFields::new("$rankFusion", specification, &["input", "combination", "scoreDetails"])?;
    let details = match fields.boolean("scoreDetails")? {
        Some(true) => Details::Told,
        _ => Details::Untold,
    };
    let inputs = inputs::parse(&fields, environment)?;
    let Some(source) = environment.over.clone() else {
        let message = "$rankFusion needs a collection";
        return Err(Failure::new(ErrorCode::INVALID_NAMESPACE, message));
    };
    environment.sources.note(&source)?;
    Ok(vec![Box::new(RankFusion { source, inputs, details })])
}

impl Stage for RankFusion {
    fn name(&self) -> &'static str {
        DEFINITION.name
    }

    /// The pipelines read the collection themselves.
    fn open(self: Arc<Self>, _: Box<dyn DocumentStream>, environment: &Arc<Environment>) -> Box<dyn DocumentStream> {
        let at_hand = Arc::clone(&environment.scope.at_hand);
        Box::new(Ranked { stage: self, environment: Arc::clone(environment), at_hand, fused: None })
    }

    fn metadata(&self) -> Carried {
        Carried::Made(match self.details {
            Details::Told => Offered::SCORE.and(Offered::SCORE_DETAILS),
            Details::Untold => Offered::SCORE,
        })
    }

    fn add_dependencies(&self, dependencies: &mut Dependencies) -> Reads {
        dependencies.add_all();
        Reads::OthersToo
    }
}

/// A document that came out of some of the pipelines.
struct Fused {
    /// The key string of its `_id`.
    id: Vec<u8>,
    document: DocumentBuf,
    score: f64,
    /// Its rank in each of the pipelines.
    ranks: Vec<Option<u64>>,
}

impl Fused {
    fn memory_bytes(document: DocumentRef<'_>, id: &[u8], inputs: usize) -> usize {
        document.len_bytes() + 2 * id.len() + inputs * size_of::<Option<u64>>() + 2 * size_of::<Self>()
    }
}

struct Ranked {
    stage: Arc<RankFusion>,
    environment: Arc<Environment>,
    at_hand: Arc<AtHand>,
    /// None before the pipelines have run.
    fused: Option<std::vec::IntoIter<Fused>>,
}

impl RankFusion {
    /// Runs all pipelines.
    fn fuse(&self, environment: &Environment) -> Result<Vec<Fused>> {
        let mut memory = StageMemory::new(DEFINITION.name, Gatherer::Group, environment);
        let mut fused: Vec<Fused> = Vec::new();
        let mut positions: HashMap<Vec<u8>, usize> = HashMap::default();
        for (number, input) in self.inputs.iter().enumerate() {
            let mut stream = environment.sources.open(&self.source, input.stages.as_ref(), &input.inside)?;
            let (mut rank, mut count) = (0, 0);
            let mut last = None;
            while let Some(document) = stream.next()? {
                environment.operation().work(1 + document.len_bytes() / 64)?;
                count += 1;
                let key = input.rank_key(document.as_ref())?;
                if key.is_none() || key != last {
                    rank = count;
                }
                last = key;
                let mut id = Vec::new();
                let value = document.as_ref().get("_id").unwrap_or(ValueRef::Undefined);
                environment.strings().append_key(&mut id, value, Direction::Ascending);
                let position = match positions.get(&id) {
                    Some(position) => *position,
                    None => {
                        memory.keep(Fused::memory_bytes(document.as_ref(), &id, self.inputs.len()))?;
                        positions.insert(id.clone(), fused.len());
                        let ranks = vec![None; self.inputs.len()];
                        fused.push(Fused { id, document, score: 0.0, ranks });
                        fused.len() - 1
                    }
                };
                let one = &mut fused[position];
                one.score += input.weight * (1.0 / (RANK_CONSTANT + rank as f64));
                one.ranks[number] = Some(rank);
            }
        }
        environment
            .operation()
            .sort_by(fused, |one, other| other.score.total_cmp(&one.score).then_with(|| one.id.cmp(&other.id)))
    }

    /// What `$meta` says of a document.
    fn told(&self, fused: &Fused) -> DocumentBuf {
        let mut told = DocumentBuf::new().with("score", fused.score);
        if self.details == Details::Untold {
            return told;
        }
        let mut details = ArrayBuf::new();
        for (input, rank) in self.inputs.iter().zip(&fused.ranks) {
            let mut detail = DocumentBuf::new().with("inputPipelineName", input.name.as_str());
            match rank {
                Some(rank) => detail.append("rank", *rank as i64),
                None => detail.append("rank", "NA"),
            };
            detail.append("weight", input.weight);
            if rank.is_some() {
                detail.append("details", &ArrayBuf::new());
            }
            details.push(&detail);
        }
        let explained =
            DocumentBuf::new().with("value", fused.score).with("description", DESCRIPTION).with("details", &details);
        told.append("scoreDetails", &explained);
        told
    }
}

impl DocumentStream for Ranked {
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
