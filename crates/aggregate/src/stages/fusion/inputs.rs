//! The pipelines that `$rankFusion` combines: which stages may stand in them, and by what each ranks its documents.

use crate::stage_fields::StageFields;
use crate::stages::{self, facet, known};
use crate::{Environment, Pipeline};
use bunko_bson::{ArrayBuf, ArrayRef, DocumentRef, Element, ValueRef, number};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::{Offered, SortPattern};
use std::sync::Arc;

/// Stages that order documents where they begin a pipeline.
const RANKING: &[&str] = &["$geoNear", "$search", "$vectorSearch"];
/// Stages that choose or order documents, and leave them as they are.
const SELECTING: &[&str] = &["$geoNear", "$limit", "$match", "$sample", "$search", "$skip", "$sort", "$vectorSearch"];
/// Stages that combine pipelines themselves.
const FUSIONS: &[&str] = &["$rankFusion", "$scoreFusion"];

/// One of the pipelines.
pub(super) struct Input {
    pub(super) name: String,
    pub(super) weight: f64,
    pub(super) stages: ArrayBuf,
    pub(super) ranking: Ranking,
    /// The world that it runs in.
    pub(super) inside: Environment,
}

/// Which documents share a rank.
pub(super) enum Ranking {
    /// Those that this order does not tell apart.
    Order(SortPattern),
    /// Those at the same distance.
    Distance,
    /// None.
    Position,
}

fn failure(code: i32, message: String) -> Failure {
    Failure::new(ErrorCode(code), message)
}

/// Reads `input` and `combination`.
/// # Errors
/// `BadValue` without any pipeline, those of a name and of a weight, 9834300 for a pipeline without stages, 9191103 for a
/// stage that changes documents, 9191100 for a pipeline that does not rank them, 10473002 and 10170100 for a fusion inside;
/// those of the stages.
pub(super) fn parse(fields: &StageFields<'_>, environment: &Environment) -> Result<Vec<Input>> {
    let input = fields.required("input", fields.document("input")?)?;
    let input = StageFields::new("$rankFusion.input", input, &["pipelines"])?;
    let pipelines = input.required("pipelines", input.document("pipelines")?)?;
    let weights = match fields.document("combination")? {
        None => DocumentRef::EMPTY,
        Some(combination) => {
            let combination = StageFields::new("$rankFusion.combination", combination, &["weights"])?;
            combination.required("weights", combination.document("weights")?)?
        }
    };
    if pipelines.is_empty() {
        return Err(Failure::bad_value(
            "$rankFusion input pipeline must not be empty. Expected at least one pipeline.",
        ));
    }
    let mut inputs = Vec::new();
    for pipeline in pipelines {
        facet::check_name(pipeline.name)?;
        if pipelines.iter().filter(|other| other.name == pipeline.name).count() > 1 {
            let message =
                format!("$rankFusion pipeline names must be unique, but found duplicate name '{}'.", pipeline.name);
            return Err(Failure::bad_value(message));
        }
        inputs.push(read(pipeline, environment, &input)?);
    }
    weigh(&mut inputs, weights)?;
    Ok(inputs)
}

fn read(pipeline: Element<'_>, environment: &Environment, fields: &StageFields<'_>) -> Result<Input> {
    let name = pipeline.name;
    let Some(stages) = pipeline.value.as_array() else {
        return Err(fields.mismatch(&format!("pipelines.{name}"), pipeline.value, "array"));
    };
    check(name, stages)?;
    let inside = environment.nested()?;
    Pipeline::parse(stages, inside.clone())?;
    let ranking = ranking(stages, &inside)?;
    let reads_metadata = match &ranking {
        Ranking::Order(pattern) => pattern.reads_metadata(),
        Ranking::Distance => true,
        Ranking::Position => false,
    };
    if reads_metadata {
        inside.scope.at_hand.want();
    }
    Ok(Input { name: name.to_owned(), weight: 1.0, stages: stages.iter().collect(), ranking, inside })
}

/// Checks which stages there are.
fn check(name: &str, stages: ArrayRef<'_>) -> Result<()> {
    if stages.is_empty() {
        let message = format!("$rankFusion input pipeline cannot be empty: '{name}'");
        return Err(failure(9_834_300, message));
    }
    let mut is_ranked = false;
    for (position, stage) in stages.iter().enumerate() {
        let Some(stage) = stage.as_document() else {
            return Err(Failure::type_mismatch("Each element of the 'pipeline' array must be an object"));
        };
        let (Some(stage), 1) = (stage.first(), stage.count()) else {
            let message = "A pipeline stage specification object must contain exactly one field.";
            return Err(failure(40323, message.to_owned()));
        };
        if !stages::is_stage(stage.name) && !known::is_known(stage.name) {
            let message = format!("Unrecognized pipeline stage name: '{}'", stage.name);
            return Err(failure(40324, message));
        }
        check_stage(name, position, stage)?;
        is_ranked |= stage.name == "$sort" || (position == 0 && RANKING.contains(&stage.name));
    }
    if is_ranked {
        return Ok(());
    }
    let message = format!(
        "Input pipeline '{name}' of $rankFusion must either begin with a stage that orders documents, such as $geoNear, \
         or contain an explicit $sort"
    );
    Err(failure(9_191_100, message))
}

fn check_stage(name: &str, position: usize, stage: Element<'_>) -> Result<()> {
    if FUSIONS.contains(&stage.name) {
        return Err(if position == 0 {
            let message = format!("{} is not allowed within an input pipeline of $rankFusion: '{name}'", stage.name);
            failure(10_473_002, message)
        } else {
            failure(10_170_100, format!("{} must be the first stage of a pipeline", stage.name))
        });
    }
    let writes = |field: &str| stage.value.as_document().is_some_and(|options| options.get(field).is_some());
    let changes = !SELECTING.contains(&stage.name)
        || (stage.name == "$geoNear" && (writes("distanceField") || writes("includeLocs")));
    if changes {
        let message = format!(
            "Input pipeline '{name}' of $rankFusion may only choose and order documents, but {} changes them",
            stage.name
        );
        return Err(failure(9_191_103, message));
    }
    Ok(())
}

/// What the last stage that orders documents orders them by.
fn ranking(stages: ArrayRef<'_>, inside: &Environment) -> Result<Ranking> {
    let mut ranking = Ranking::Position;
    for stage in stages.iter().filter_map(|stage| stage.as_document()?.first()) {
        match (stage.name, stage.value) {
            ("$sort", ValueRef::Document(pattern)) => {
                // What is not known of documents was refused when the pipeline was read.
                let scope = inside.scope.offering(Offered::ANY).parse_scope();
                ranking = Ranking::Order(SortPattern::parse_in(pattern, &scope)?);
            }
            ("$geoNear", _) => ranking = Ranking::Distance,
            ("$sample", _) => ranking = Ranking::Position,
            _ => {}
        }
    }
    Ok(ranking)
}

/// Gives each pipeline its weight.
fn weigh(inputs: &mut [Input], weights: DocumentRef<'_>) -> Result<()> {
    let given = weights.count();
    if given > inputs.len() {
        let message = format!("$rankFusion got {given} weights for {} pipelines", inputs.len());
        return Err(failure(9_460_301, message));
    }
    for weight in weights {
        let Some(input) = inputs.iter_mut().find(|input| input.name == weight.name) else {
            let message = format!("$rankFusion got a weight for '{}', which is the name of no pipeline", weight.name);
            return Err(failure(9_967_500, message));
        };
        let Some(number) = number::as_f64(weight.value).filter(|_| weight.value.is_number()) else {
            let kind = weight.value.kind().alias();
            let message = format!("$rankFusion's weight of '{}' must be a number, but is {kind}", weight.name);
            return Err(failure(13118, message));
        };
        // NaN is no weight either.
        if number.is_nan() || number < 0.0 {
            let message = format!("$rankFusion's weight of '{}' must not be negative, but is {number}", weight.name);
            return Err(failure(9_460_300, message));
        }
        input.weight = number;
    }
    Ok(())
}

impl Input {
    /// The bytes that are the same for documents of the same rank; none where each has its own.
    pub(super) fn rank_key(&self, document: DocumentRef<'_>) -> Result<Option<Vec<u8>>> {
        let scope = &self.inside.scope;
        match &self.ranking {
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
                let metadata: Option<Arc<bunko_bson::DocumentBuf>> = scope.at_hand.current();
                let distance = metadata.as_ref().and_then(|known| known.as_ref().as_ref().get("geoNearDistance"));
                Ok(distance.and_then(number::as_f64).map(|distance| distance.to_be_bytes().to_vec()))
            }
        }
    }
}
