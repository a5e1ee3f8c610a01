//! The pipelines that a fusion combines: the stages allowed in them, and their weights.

use crate::is_known_stage;
use crate::stage_fields::StageFields;
use crate::stages::facet;
use crate::{Environment, Pipeline, stage_field};
use bunko_bson::{ArrayBuf, ArrayRef, DocumentRef, Element, number};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_stages::{FusionUse, Source};

/// The rules of a fusion for its pipelines.
pub(super) struct Rules {
    /// The fusion's name, with its `$`.
    pub(super) stage: &'static str,
    /// Stages allowed besides those that select or order documents.
    pub(super) also: &'static [&'static str],
    /// Whether a pipeline gives each document a value to combine; its stages are documents with one field.
    pub(super) is_enough: fn(ArrayRef<'_>) -> bool,
    /// Error code and end of the message for a pipeline that gives no such value.
    pub(super) refusal: (i32, &'static str),
}

/// One pipeline of a fusion.
pub(super) struct Input {
    pub(super) name: String,
    pub(super) weight: f64,
    pub(super) stages: ArrayBuf,
    /// The environment that it runs in.
    pub(super) inside: Environment,
}

fn failure(code: i32, message: String) -> Failure {
    Failure::new(ErrorCode(code), message)
}

/// Parses the pipelines.
/// # Errors
/// `BadValue` without any pipeline; errors of a name; 9834300 for an empty pipeline; 9191103 for a stage that changes
/// documents; the error of `rules` for a pipeline without values to combine; 10473002 and 10170100 for a fusion inside;
/// errors of the stages.
pub(super) fn parse(rules: &Rules, input: &StageFields<'_>, environment: &Environment) -> Result<Vec<Input>> {
    let stage = rules.stage;
    let pipelines = input.required("pipelines", input.document("pipelines")?)?;
    if pipelines.is_empty() {
        let message = format!("{stage} input pipeline must not be empty. Expected at least one pipeline.");
        return Err(Failure::bad_value(message));
    }
    let mut inputs = Vec::new();
    for pipeline in pipelines {
        facet::check_name(pipeline.name)?;
        if pipelines.iter().filter(|other| other.name == pipeline.name).count() > 1 {
            let name = pipeline.name;
            let message = format!("{stage} pipeline names must be unique, but found duplicate name '{name}'.");
            return Err(Failure::bad_value(message));
        }
        inputs.push(read(rules, pipeline, environment, input)?);
    }
    Ok(inputs)
}

fn read(rules: &Rules, pipeline: Element<'_>, environment: &Environment, fields: &StageFields<'_>) -> Result<Input> {
    let name = pipeline.name;
    let Some(stages) = pipeline.value.as_array() else {
        return Err(fields.mismatch(&format!("pipelines.{name}"), pipeline.value, "array"));
    };
    check(rules, name, stages)?;
    let inside = environment.nested()?;
    Pipeline::check(stages, inside.clone())?;
    Ok(Input { name: name.to_owned(), weight: 1.0, stages: stages.iter().collect(), inside })
}

/// Checks which stages a pipeline has.
fn check(rules: &Rules, name: &str, stages: ArrayRef<'_>) -> Result<()> {
    if stages.is_empty() {
        return Err(failure(9_834_300, format!("{} input pipeline cannot be empty: '{name}'", rules.stage)));
    }
    for (position, stage) in stages.iter().enumerate() {
        let stage = stage_field(stage)?;
        if !is_known_stage(stage.name) {
            let message = format!("Unrecognized pipeline stage name: '{}'", stage.name);
            return Err(failure(40324, message));
        }
        check_stage(rules, name, position, stage)?;
    }
    if (rules.is_enough)(stages) {
        return Ok(());
    }
    let (code, end) = rules.refusal;
    Err(failure(code, format!("Input pipeline '{name}' of {} must {end}", rules.stage)))
}

/// Whether a stage orders and scores documents at the start of a pipeline.
pub(super) fn searches(stage: &str) -> bool {
    bunko_stages::find(stage).is_some_and(|entry| entry.fusion == FusionUse::Searches)
}

fn check_stage(rules: &Rules, name: &str, position: usize, stage: Element<'_>) -> Result<()> {
    let entry = bunko_stages::find(stage.name);
    if entry.is_some_and(|entry| entry.source == Source::Fusion) {
        return Err(if position == 0 {
            let fusion = rules.stage;
            let message = format!("{} is not allowed within an input pipeline of {fusion}: '{name}'", stage.name);
            failure(10_473_002, message)
        } else {
            failure(10_170_100, format!("{} must be the first stage of a pipeline", stage.name))
        });
    }
    let writes = |field: &str| stage.value.as_document().is_some_and(|options| options.get(field).is_some());
    let is_refused = entry.is_none_or(|entry| entry.fusion == FusionUse::Refused);
    let changes = is_refused && !rules.also.contains(&stage.name)
        || (stage.name == bunko_stages::GEO_NEAR.name && (writes("distanceField") || writes("includeLocs")));
    if changes {
        let (fusion, stage) = (rules.stage, stage.name);
        let message = format!(
            "Input pipeline '{name}' of {fusion} may only choose and order documents, but {stage} changes them"
        );
        return Err(failure(9_191_103, message));
    }
    Ok(())
}

/// Gives each pipeline its weight; the default is 1.
/// # Errors
/// 9460301 for too many weights, 9967500 for a weight without pipeline, 13118 and 9460300 for an invalid weight.
pub(super) fn weigh(fusion: &str, inputs: &mut [Input], weights: DocumentRef<'_>) -> Result<()> {
    let given = weights.count();
    if given > inputs.len() {
        let message = format!("{fusion} got {given} weights for {} pipelines", inputs.len());
        return Err(failure(9_460_301, message));
    }
    for weight in weights {
        let Some(input) = inputs.iter_mut().find(|input| input.name == weight.name) else {
            let message = format!("{fusion} got a weight for '{}', which is the name of no pipeline", weight.name);
            return Err(failure(9_967_500, message));
        };
        let Some(number) = number::as_f64(weight.value).filter(|_| weight.value.is_number()) else {
            let kind = weight.value.kind().alias();
            let message = format!("{fusion}'s weight of '{}' must be a number, but is {kind}", weight.name);
            return Err(failure(13118, message));
        };
        // NaN is refused too.
        if number.is_nan() || number < 0.0 {
            let message = format!("{fusion}'s weight of '{}' must not be negative, but is {number}", weight.name);
            return Err(failure(9_460_300, message));
        }
        input.weight = number;
    }
    Ok(())
}
