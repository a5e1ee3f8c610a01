//! `$rankFusion`: combines several pipelines over one collection by the ranks of documents.
//! Source: MongoDB manual, "$rankFusion".

use super::inputs::{self, Input, Rules, searches};
use super::{Details, Fused, Fusion, Measure, RANK};
use crate::Environment;
use crate::stage::Stages;
use crate::stage_fields::StageFields;
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, ValueRef, number};
use bunko_errors::Result;
use bunko_expression::{Offered, SortPattern};
use bunko_stages::{GEO_NEAR, SAMPLE, SORT};

/// Constant added to ranks, so that the first ranks do not outweigh all others.
/// Source: MongoDB manual, "Reciprocal Rank Fusion (RRF) Formula".
const RANK_CONSTANT: f64 = 60.0;
/// Source: MongoDB manual, "$rankFusion", "scoreDetails".
const DESCRIPTION: &str = "value output by reciprocal rank fusion algorithm, computed as sum of (weight * (1 / (60 + \
                           rank))) across input pipelines from which this document is output, from:";

const RULES: Rules = Rules {
    stage: RANK.facts.name,
    also: &[],
    is_enough: are_ranked,
    refusal: (
        9_191_100,
        "either begin with a stage that orders documents, such as $geoNear, or contain an explicit $sort",
    ),
};

struct RankFusion {
    rankings: Vec<Ranking>,
}

/// The documents that share a rank.
enum Ranking {
    /// Documents that are equal in this sort order.
    Order(SortPattern),
    /// Documents at one distance.
    Distance,
    /// No documents: each has its own rank.
    Position,
}

/// Errors: `FailedToParse` if it is not a document; IDL errors for fields; errors of the pipelines.
pub(super) fn parse(value: ValueRef<'_>, environment: &Environment) -> Result<Stages> {
    let specification = super::specification(RANK.facts.name, value)?;
    let fields = StageFields::new(RANK.facts.name, specification, &["input", "combination", "scoreDetails"])?;
    let details = Details::asked(&fields)?;
    let input = fields.required("input", fields.document("input")?)?;
    let input = StageFields::new("$rankFusion.input", input, &["pipelines"])?;
    input.required("pipelines", input.document("pipelines")?)?;
    let weights = match fields.document("combination")? {
        None => DocumentRef::EMPTY,
        Some(combination) => {
            let combination = StageFields::new("$rankFusion.combination", combination, &["weights"])?;
            combination.required("weights", combination.document("weights")?)?
        }
    };
    let mut inputs = inputs::parse(&RULES, &input, environment)?;
    inputs::weigh(RANK.facts.name, &mut inputs, weights)?;
    let rankings = inputs.iter().map(ranking).collect::<Result<_>>()?;
    super::stage(RANK.facts.name, RankFusion { rankings }, inputs, details, environment)
}

fn are_ranked(stages: ArrayRef<'_>) -> bool {
    let mut names = super::names(stages);
    names.next().is_some_and(|first| first == SORT.name || searches(first)) || names.any(|name| name == SORT.name)
}

/// Finds the order by which the last ordering stage of the pipeline ranks documents.
fn ranking(input: &Input) -> Result<Ranking> {
    let scope = &input.inside.scope;
    let mut ranking = Ranking::Position;
    for stage in input.stages.as_ref().iter().filter_map(|stage| stage.as_document()?.first()) {
        if let (true, ValueRef::Document(pattern)) = (stage.name == SORT.name, stage.value) {
            // Metadata that is not available was refused when the pipeline was parsed.
            let scope = scope.offering(Offered::ANY).parse_scope();
            ranking = Ranking::Order(SortPattern::parse_in(pattern, &scope)?);
        } else if stage.name == GEO_NEAR.name {
            ranking = Ranking::Distance;
        } else if stage.name == SAMPLE.name {
            ranking = Ranking::Position;
        }
    }
    let reads_metadata = match &ranking {
        Ranking::Order(pattern) => pattern.reads_metadata(),
        Ranking::Distance => true,
        Ranking::Position => false,
    };
    if reads_metadata {
        scope.at_hand.want();
    }
    Ok(ranking)
}

impl Ranking {
    /// The key that documents of one rank share; `None` if each has its own rank.
    fn key(&self, input: &Input, document: DocumentRef<'_>) -> Result<Option<Vec<u8>>> {
        let scope = &input.inside.scope;
        match self {
            Ranking::Position => Ok(None),
            Ranking::Order(pattern) => {
                let held;
                let mut source = document;
                if pattern.reads_metadata() {
                    held = scope.at_hand.hold(document);
                    source = held.as_ref();
                }
                let mut key = Vec::new();
                pattern.append_key(&mut key, source, &scope.operation, &scope.strings)?;
                Ok(Some(key))
            }
            Ranking::Distance => {
                let metadata = scope.at_hand.current();
                let distance = metadata.as_ref().and_then(|known| known.as_ref().as_ref().get("geoNearDistance"));
                Ok(distance.and_then(number::as_f64).map(|distance| distance.to_be_bytes().to_vec()))
            }
        }
    }
}

/// Ranks the documents of one pipeline.
struct Ranks<'r> {
    ranking: &'r Ranking,
    count: u64,
    rank: u64,
    last: Option<Vec<u8>>,
}

impl Measure for Ranks<'_> {
    fn measure(&mut self, input: &Input, document: DocumentRef<'_>) -> Result<f64> {
        self.count += 1;
        let key = self.ranking.key(input, document)?;
        if key.is_none() || key != self.last {
            self.rank = self.count;
        }
        self.last = key;
        Ok(self.rank as f64)
    }
}

impl Fusion for RankFusion {
    fn measure(&self, number: usize) -> Box<dyn Measure + '_> {
        Box::new(Ranks { ranking: &self.rankings[number], count: 0, rank: 0, last: None })
    }

    fn score(&self, fused: &mut [Fused], inputs: &[Input], _: &Environment) -> Result<()> {
        for one in fused {
            let ranks = one.measured.iter().zip(inputs);
            // An empty `sum` of floats is -0.0, so the sum starts at 0.0.
            one.score = ranks
                .filter_map(|(rank, input)| Some(input.weight * (1.0 / (RANK_CONSTANT + (*rank)?))))
                .fold(0.0, |sum, part| sum + part);
        }
        Ok(())
    }

    fn details(&self, fused: &Fused, inputs: &[Input]) -> DocumentBuf {
        let mut details = ArrayBuf::new();
        for (input, rank) in inputs.iter().zip(&fused.measured) {
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
        DocumentBuf::new().with("value", fused.score).with("description", DESCRIPTION).with("details", &details)
    }
}
