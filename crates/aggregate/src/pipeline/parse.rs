//! Reads pipelines. Stages that hold pipelines read them by [`Pipeline::parse`], which knows the table of stages.

use super::{Pipeline, stage_field};
use crate::metadata::Carried;
use crate::rewrite::{LogicalPipeline, Rewritten};
use crate::stage::{Plannable, Reads, Stage};
use crate::stages::{self, OverMeasurements, position};
use crate::thread_stack::{check_stack, counted_bytes};
use crate::{Environment, Rewrites};
use bunko_bson::ArrayRef;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::{Dependencies, Engine};
use bunko_stages::StageEngine;
use std::sync::Arc;

/// Maximum number of stages in a pipeline. Source: MongoDB limits, "Number of Stages".
const STAGES_MAX: usize = 1000;

impl Pipeline {
    /// Parses a pipeline. Expressions may use the environment's variables.
    /// # Errors
    /// `TypeMismatch` for a stage that is not a document, 40323 for a stage without exactly one field, 40324 for an
    /// unknown stage, 40602 for a source stage that is not first, 7749501 for too many stages, 17313 for a text search
    /// that is not first; errors of the stages.
    pub fn parse(pipeline: ArrayRef<'_>, environment: Environment) -> Result<Self> {
        let steps_left = if environment.depth == 0 { Arc::default() } else { Arc::clone(&environment.steps_left) };
        let read = ReadStages::read(pipeline, Environment { steps_left, ..environment })?;
        read.check_length()?;
        read.rewritten()
    }

    /// As [`Self::parse`], for a pipeline that was checked as it was sent, and to which filters may have been added since:
    /// it may have more stages than a client may send. It is about to be opened on this thread.
    /// # Errors
    /// As [`Self::parse`], but for 7749501; `ExceededMemoryLimit` if this thread's stack has no room for the stages.
    pub fn parse_extended(pipeline: ArrayRef<'_>, environment: Environment) -> Result<Self> {
        let read = ReadStages::read(pipeline, Environment { steps_left: Arc::default(), ..environment })?;
        check_stack(read.stages.len())?;
        read.rewritten()
    }

    /// Checks a pipeline inside a stage, which is parsed again for each opening. It need not be rewritten.
    /// # Errors
    /// As [`Self::parse`].
    pub(crate) fn check(pipeline: ArrayRef<'_>, environment: Environment) -> Result<()> {
        ReadStages::read(pipeline, environment.with_rewrites(Rewrites::Off))?.check_length()
    }
}

/// A pipeline's stages as a client sent them.
struct ReadStages {
    /// Each with the position, as sent, of the one that it comes from.
    stages: Vec<(usize, Box<dyn Stage>)>,
    /// Number of stages as sent.
    sent: usize,
    environment: Environment,
}

impl ReadStages {
    fn read(pipeline: ArrayRef<'_>, mut environment: Environment) -> Result<Self> {
        let mut stages: Vec<(usize, Box<dyn Stage>)> = Vec::new();
        let mut names = Vec::new();
        let mut leads = environment.depth == 0;
        for stage in pipeline.iter() {
            let element = stage_field(stage)?;
            names.push(element.name);
            leads &= engine_of(element.name) != StageEngine::Classic;
            let engine = if leads { Engine::SlotBased } else { Engine::Classic };
            let mut parsed = stages::parse(element, &environment.in_engine(engine))?;
            if let Some(Plannable::Near(near)) = parsed.first().map(|stage| stage.plannable())
                && let Some(unpacking) = last_but_filters(&stages)
                && let Some(series) = stages[unpacking].1.unpacked()
            {
                match near.over_measurements(series, &environment)? {
                    OverMeasurements::Behind(behind) => parsed = behind,
                    OverMeasurements::Before(near, added) if unpacking + 1 == stages.len() => {
                        stages[unpacking].1.keep(added);
                        let unpacking = stages.pop().map(|(_, stage)| stage);
                        parsed = std::iter::once(near).chain(unpacking).collect();
                    }
                    // Filters of measurements come in between, so the search cannot move before the unpacking.
                    OverMeasurements::Before(..) => {}
                }
            }
            for stage in parsed {
                if stage.searches_text() && !stages.is_empty() {
                    let message = "$match with $text is only allowed as the first pipeline stage";
                    return Err(Failure::new(ErrorCode(17313), message));
                }
                if stage.brings_documents() && names.len() > 1 {
                    let message = format!("{} is only valid as the first stage in a pipeline.", stage.name());
                    return Err(Failure::new(ErrorCode(40602), message));
                }
                let carried = match stage.metadata() {
                    made @ Carried::Made(_) => made,
                    _ if stage.brings_documents() => Carried::Lost,
                    carried => carried,
                };
                environment = carried.behind(environment);
                stages.push((names.len() - 1, stage));
            }
        }
        position::check(&names)?;
        check_near(&stages)?;
        Ok(Self { stages, sent: names.len(), environment })
    }

    fn check_length(&self) -> Result<()> {
        if self.stages.len() > STAGES_MAX {
            let message = format!("Pipeline length must be no longer than {STAGES_MAX} stages.");
            return Err(Failure::new(ErrorCode(7_749_501), message));
        }
        Ok(())
    }

    fn rewritten(self) -> Result<Pipeline> {
        let Self { stages, sent, environment } = self;
        environment.operation().will_take(counted_bytes(stages.len()))?;
        if environment.depth == 0 {
            environment.scope.constant_failure.check("Failed to optimize pipeline")?;
        }
        let (sent, Rewritten { mut stages, numbers, fired }) = rewritten(stages, sent, &environment)?;
        if environment.depth == 0 {
            note_handover(&mut stages);
        }
        if environment.rewrites.are_applied() {
            tell_what_is_read(&mut stages);
        }
        let stages = stages.into_iter().map(Arc::from).collect();
        Ok(Pipeline { stages, numbers, sent, rewrites: fired, environment: Arc::new(environment) })
    }
}

/// Rewrites stages, each with the position in the client's pipeline of the stage that it comes from. Also returns, for
/// each of these positions, the number of the rewritten stage that does the last of its work.
fn rewritten(
    stages: Vec<(usize, Box<dyn Stage>)>,
    count: usize,
    environment: &Environment,
) -> Result<(Vec<usize>, Rewritten)> {
    let mut logical = LogicalPipeline::new(environment);
    let mut sent: Vec<Option<usize>> = vec![None; count];
    for (position, stage) in stages {
        sent[position] = Some(logical.push(stage)?);
    }
    let mut last = 0;
    let sent = sent.into_iter().map(|number| {
        // If a stage expands to no stage, the stage before it does its work.
        last = number.unwrap_or(last);
        last
    });
    Ok((sent.collect(), logical.finish()?))
}

/// The engine of MongoDB that runs a stage at the start of a pipeline.
fn engine_of(stage: &str) -> StageEngine {
    bunko_stages::find(stage).map_or(StageEngine::Classic, |entry| entry.engine)
}

/// If MongoDB's slot-based engine would end with a `$group` or `$lookup` that stages of the classic engine follow,
/// tells that stage that it hands its documents over.
fn note_handover(stages: &mut [Box<dyn Stage>]) {
    let leading = stages.iter().map_while(|stage| match engine_of(stage.name()) {
        StageEngine::SlotBased => Some(false),
        StageEngine::SlotBasedWithHandover => Some(true),
        StageEngine::Classic | StageEngine::Grouping => None,
    });
    let leading: Vec<bool> = leading.collect();
    let last = leading.iter().rposition(|hands_over| *hands_over);
    if let Some(last) = last.filter(|last| last + 1 < stages.len()) {
        stages[last].hand_over();
    }
}

/// Position of the last stage that is not a filter.
fn last_but_filters(stages: &[(usize, Box<dyn Stage>)]) -> Option<usize> {
    stages.iter().rposition(|(_, stage)| !matches!(stage.plannable(), Plannable::Filter(_)))
}

/// Refuses a search by distance after anything but empty filters.
fn check_near(stages: &[(usize, Box<dyn Stage>)]) -> Result<()> {
    let is_near = |stage: &dyn Stage| matches!(stage.plannable(), Plannable::Near(_));
    let is_nothing = |stage: &dyn Stage| match stage.plannable() {
        Plannable::Filter(filter) => filter.is_empty(),
        _ => false,
    };
    let first = stages.iter().position(|(_, stage)| !is_nothing(&**stage)).unwrap_or(0);
    if !stages.iter().skip(first + 1).any(|(_, stage)| is_near(&**stage)) {
        return Ok(());
    }
    let message = "$geoNear was not the first stage in the pipeline after optimization. Is optimization disabled or \
                   inhibited?";
    Err(Failure::new(ErrorCode(40603), message))
}

/// Tells each stage the fields that later stages read, if a later stage cuts the others off.
fn tell_what_is_read(stages: &mut [Box<dyn Stage>]) {
    let mut read = Dependencies::All;
    for stage in stages.iter_mut().rev() {
        if let Dependencies::Fields(fields) = &read {
            stage.read_only(fields);
        }
        // From the cutting stage down to the source, each stage's fields are added to those of later stages.
        let mut own = Dependencies::default();
        if stage.add_dependencies(&mut own) == Reads::OnlyThese {
            read = own;
        } else if let Dependencies::Fields(_) = &read {
            stage.add_dependencies(&mut read);
        }
    }
}
