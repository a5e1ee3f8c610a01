//! Pipelines: stages in their order.

use crate::metadata::{Carried, Holding, Releasing, TellingSortKeys};
use crate::stage_run::Counted;
use crate::stages::{self, OverMeasurements, Plannable, position};
use crate::{DocumentStream, Environment, Flow, Rewrites, Stage, StageRun, WriteStage};
use bunko_bson::{ArrayRef, DocumentBuf, DocumentRef, Element, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::{Dependencies, Engine, Offered, SortPattern, check_document_bytes};
use bunko_query::Distinct;
use std::sync::Arc;

/// Most stages of a pipeline. Source: MongoDB limits, "Number of Stages".
const STAGES_MAX: usize = 1000;

/// The stages that MongoDB hands to its slot-based engine, or to the planner before it, where they lead a pipeline.
const SLOT_BASED: [&str; 6] = ["$group", "$limit", "$lookup", "$match", "$skip", "$sort"];
/// The stages that become `$group`, and `$sort` behind it.
const GROUPING: [&str; 2] = ["$bucket", "$sortByCount"];

/// A parsed pipeline.
pub struct Pipeline {
    stages: Vec<Arc<dyn Stage>>,
    /// For each stage that was sent, how many there were when it had been parsed.
    ends: Vec<usize>,
    /// Of the parsed stages.
    taken_by_planner: usize,
    environment: Arc<Environment>,
}

/// What the query planner can do of a pipeline, in this order: filter by all, sort, skip, limit.
#[derive(Clone, Default)]
pub struct PlannerPart {
    /// Filters that all must match.
    pub filters: Vec<DocumentBuf>,
    /// The search by distance, if there is one.
    pub near: Option<Arc<dyn Stage>>,
    /// The order, if one is asked for.
    pub sort: Option<SortPattern>,
    /// How many documents to leave out.
    pub skip: u64,
    /// How many documents at most; never 0.
    pub limit: Option<u64>,
}

/// The one field of a stage: its name, and what it is told.
/// # Errors
/// `TypeMismatch` for a stage that is no document, 40323 for one without exactly one field.
pub fn stage_field(stage: ValueRef<'_>) -> Result<Element<'_>> {
    let ValueRef::Document(specification) = stage else {
        return Err(Failure::type_mismatch("Each element of the 'pipeline' array must be an object"));
    };
    let (Some(element), 1) = (specification.first(), specification.count()) else {
        let message = "A pipeline stage specification object must contain exactly one field.";
        return Err(Failure::new(ErrorCode(40323), message));
    };
    Ok(element)
}

impl Pipeline {
    /// Reads a pipeline. Expressions may name the environment's variables.
    /// # Errors
    /// `TypeMismatch` for a stage that is no document, 40323 for one without exactly one field, 40324 for an unknown
    /// one, 40602 for one with documents of its own that is not the first, 7749501 for too many, 17313 for a search of texts
    /// that is not the first; those of the stages.
    pub fn parse(pipeline: ArrayRef<'_>, mut environment: Environment) -> Result<Self> {
        let mut stages: Vec<Box<dyn Stage>> = Vec::new();
        let (mut names, mut ends) = (Vec::new(), Vec::new());
        let mut leads = environment.depth == 0;
        for stage in pipeline.iter() {
            let element = stage_field(stage)?;
            names.push(element.name);
            leads &= SLOT_BASED.contains(&element.name) || GROUPING.contains(&element.name);
            let engine = if leads { Engine::SlotBased } else { Engine::Classic };
            let mut parsed = stages::parse(element, &environment.in_engine(engine))?;
            if let Some(Plannable::Near(near)) = parsed.first().map(|stage| stage.plannable())
                && let Some(unpacking) = last_but_filters(&stages)
                && let Some(series) = stages[unpacking].unpacked()
            {
                match near.over_measurements(series, &environment)? {
                    OverMeasurements::Behind(behind) => parsed = behind,
                    OverMeasurements::Before(near, added) if unpacking + 1 == stages.len() => {
                        stages[unpacking].keep(added);
                        let unpacking = stages.pop();
                        parsed = std::iter::once(near).chain(unpacking).collect();
                    }
                    // What filters measurements cannot come behind the search.
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
                match environment.rewrites {
                    Rewrites::Applied => push(&mut stages, stage),
                    Rewrites::Off => stages.push(stage),
                }
            }
            ends.push(stages.len());
        }
        position::check(&names)?;
        check_near(&stages)?;
        if stages.len() > STAGES_MAX {
            let message = format!("Pipeline length must be no longer than {STAGES_MAX} stages.");
            return Err(Failure::new(ErrorCode(7_749_501), message));
        }
        if environment.depth == 0 {
            environment.scope.constant_failure.check("Failed to optimize pipeline")?;
        }
        if environment.rewrites == Rewrites::Applied {
            limit_sorts(&mut stages);
        }
        if environment.depth == 0 {
            note_handover(&mut stages);
        }
        if environment.rewrites == Rewrites::Applied {
            tell_what_is_read(&mut stages);
        }
        let stages = stages.into_iter().map(Arc::from).collect();
        Ok(Self { stages, ends, taken_by_planner: 0, environment: Arc::new(environment) })
    }

    /// Whether no stage is left.
    pub fn is_empty(&self) -> bool {
        self.stages.is_empty()
    }

    /// Whether its first stage has documents of its own, so that nothing is read of what it is over.
    pub fn brings_documents(&self) -> bool {
        self.stages.first().is_some_and(|stage| stage.brings_documents())
    }

    /// What the last stage writes; whoever opens the pipeline has to.
    pub fn write(&self) -> Option<WriteStage> {
        self.stages.last()?.write()
    }

    /// The world that the pipeline was parsed in.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Of how many stages that were sent [`Self::split_for_planner`] has left nothing: of one that is short for several it may
    /// have taken the first alone.
    pub fn taken_by_planner(&self) -> usize {
        self.ends.iter().take_while(|end| **end <= self.taken_by_planner).count()
    }

    /// The stages in their order, for `explain`.
    pub fn stages(&self) -> impl Iterator<Item = &dyn Stage> {
        self.stages.iter().map(|stage| &**stage)
    }

    /// Takes off what the query planner can do: leading filters, then a sort, a skip and a limit in that order.
    #[must_use]
    pub fn split_for_planner(mut self) -> (PlannerPart, Self) {
        let mut part = PlannerPart::default();
        let mut taken = 0;
        let only_planner =
            |stage: &Arc<dyn Stage>| stage.searches_text() || matches!(stage.plannable(), Plannable::Near(_));
        if self.environment.rewrites == Rewrites::Off && !self.stages.first().is_some_and(only_planner) {
            return (part, self);
        }
        for stage in &self.stages {
            let sorted = part.sort.is_some() || part.near.is_some();
            match stage.plannable() {
                Plannable::Filter(filter) if !sorted && part.skip == 0 => part.filters.push(filter.to_owned()),
                Plannable::Near(near) if !sorted && part.skip == 0 => {
                    part.filters.push(near.query().to_owned());
                    part.near = Some(Arc::clone(stage));
                }
                Plannable::Sort(pattern) if !sorted && part.skip == 0 => part.sort = Some(pattern.clone()),
                Plannable::Skip(count) if part.skip == 0 => part.skip = count,
                // A limit is the last that the planner does: what follows would have to come before it.
                Plannable::Limit(count) => {
                    part.limit = Some(count);
                    taken += 1;
                    break;
                }
                Plannable::Nothing if !sorted && part.skip == 0 => {
                    let behind = self.stages[taken + 1..].iter().map_while(|stage| match stage.plannable() {
                        Plannable::Filter(filter) => Some(filter),
                        _ => None,
                    });
                    part.filters.extend(behind.filter_map(|filter| stage.bucket_filter(filter)));
                    break;
                }
                _ => break,
            }
            taken += 1;
            if self.environment.rewrites == Rewrites::Off {
                break;
            }
        }
        self.stages.drain(..taken);
        self.taken_by_planner = taken;
        (part, self)
    }

    /// Whether a stage of it sorts.
    pub fn sorts(&self) -> bool {
        self.stages.iter().any(|stage| stage.name() == "$sort")
    }

    /// Whether it begins with a search for words, which only the planner does.
    pub fn searches_text(&self) -> bool {
        self.stages.first().is_some_and(|stage| stage.searches_text())
    }

    /// The distinct values of its input that its first stage needs, where that needs no more than one document of each.
    pub fn distinct(&self) -> Option<Distinct> {
        self.stages.first()?.distinct()
    }

    /// The fields of its input that the result depends on.
    pub fn dependencies(&self) -> Dependencies {
        if self.environment.rewrites == Rewrites::Off {
            return Dependencies::All;
        }
        let mut dependencies = Dependencies::default();
        for stage in &self.stages {
            if stage.add_dependencies(&mut dependencies) == stages::Reads::OnlyThese {
                return dependencies;
            }
        }
        // What no stage cuts off reaches the result.
        Dependencies::All
    }

    /// Puts the stages on top of a source. A document that comes out larger than can be answered is `BSONObjectTooLarge`.
    pub fn open(&self, source: Box<dyn DocumentStream>) -> Box<dyn DocumentStream> {
        Box::new(Answers(self.open_large(source)))
    }

    /// The same where documents may be too large to be answered: whoever reads them makes them smaller.
    pub fn open_large(&self, source: Box<dyn DocumentStream>) -> Box<dyn DocumentStream> {
        self.stages.iter().fold(source, |input, stage| {
            let stream = self.open_stage(stage, input);
            match self.environment.rewrites {
                Rewrites::Applied => stream,
                Rewrites::Off => Box::new(Apart(stream)),
            }
        })
    }

    /// A stage on top of its input. One that keeps documents back gets them with their metadata, if anything reads it.
    fn open_stage(&self, stage: &Arc<dyn Stage>, input: Box<dyn DocumentStream>) -> Box<dyn DocumentStream> {
        let at_hand = &self.environment.scope.at_hand;
        if !matches!(stage.metadata(), Carried::Inside | Carried::Sorted) || !at_hand.is_wanted() {
            return Arc::clone(stage).open(input, &self.environment);
        }
        let input = Box::new(Holding { input, at_hand: Arc::clone(at_hand) });
        let input = Arc::clone(stage).open(input, &self.environment);
        let input = Box::new(Releasing { input, at_hand: Arc::clone(at_hand) });
        match stage.plannable() {
            Plannable::Sort(pattern) if at_hand.wants(Offered::SORT_KEY) => Box::new(TellingSortKeys {
                input,
                pattern: pattern.clone(),
                environment: Arc::clone(&self.environment),
            }),
            _ => input,
        }
    }

    /// The same, with what each stage that was sent, and that the planner has left, does while it runs.
    pub fn open_counted(&self, source: Box<dyn DocumentStream>) -> (Box<dyn DocumentStream>, Vec<Arc<StageRun>>) {
        let mut runs = Vec::new();
        let top = self.stages.iter().fold(source, |input, stage| {
            let input = self.open_stage(stage, input);
            let run = Arc::<StageRun>::default();
            runs.push(Arc::clone(&run));
            Box::new(Counted { input, run })
        });
        let taken = self.taken_by_planner;
        let left =
            self.ends.iter().skip(self.taken_by_planner()).filter_map(|end| runs.get((end - taken).checked_sub(1)?));
        let left = left.cloned().collect();
        (Box::new(Answers(top)), left)
    }

    /// The same for a source that is a stage of its own, which was counted first.
    pub fn open_counted_from(&self, source: Box<dyn DocumentStream>) -> (Box<dyn DocumentStream>, Vec<Arc<StageRun>>) {
        let run = Arc::<StageRun>::default();
        let (stream, mut runs) = self.open_counted(Box::new(Counted { input: source, run: Arc::clone(&run) }));
        runs.insert(0, run);
        (stream, runs)
    }
}

/// Tells the last stage that MongoDB's slot-based engine runs, where it is a `$group` with stages of the classic engine
/// behind it.
fn note_handover(stages: &mut [Box<dyn Stage>]) {
    let leading = stages.iter().take_while(|stage| SLOT_BASED.contains(&stage.name())).count();
    let last = stages[..leading].iter().rposition(|stage| matches!(stage.name(), "$group" | "$lookup"));
    if let Some(last) = last.filter(|last| last + 1 < stages.len()) {
        stages[last].hand_over();
    }
}

/// The documents that come out of a pipeline. Between its stages they may be larger.
struct Answers(Box<dyn DocumentStream>);

impl DocumentStream for Answers {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        let document = self.0.next()?;
        check_document_bytes(document.as_ref().map_or(0, DocumentBuf::len_bytes))?;
        Ok(document)
    }

    fn visit(&mut self, visitor: &mut dyn FnMut(DocumentRef<'_>) -> Result<Flow>) -> Result<()> {
        self.0.visit(&mut |document| {
            check_document_bytes(document.len_bytes())?;
            visitor(document)
        })
    }
}

/// A stage's documents, one by one and whole, whatever else it could do for the next.
struct Apart(Box<dyn DocumentStream>);

impl DocumentStream for Apart {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        self.0.next()
    }

    fn describe_run(&self, facts: &mut DocumentBuf) {
        self.0.describe_run(facts);
    }
}

/// Puts a stage behind those that are there, unless the last of them does its work too.
fn push(stages: &mut Vec<Box<dyn Stage>>, stage: Box<dyn Stage>) {
    if !stages.last_mut().is_some_and(|last| last.absorb(&*stage)) {
        stages.push(stage);
    }
}

/// The last stage that is no filter.
fn last_but_filters(stages: &[Box<dyn Stage>]) -> Option<usize> {
    stages.iter().rposition(|stage| !matches!(stage.plannable(), Plannable::Filter(_)))
}

/// Refuses a search by distance behind anything but filters that let everything through.
fn check_near(stages: &[Box<dyn Stage>]) -> Result<()> {
    let is_near = |stage: &dyn Stage| matches!(stage.plannable(), Plannable::Near(_));
    let is_nothing = |stage: &dyn Stage| match stage.plannable() {
        Plannable::Filter(filter) => filter.is_empty(),
        _ => false,
    };
    let first = stages.iter().position(|stage| !is_nothing(&**stage)).unwrap_or(0);
    if !stages.iter().skip(first + 1).any(|stage| is_near(&**stage)) {
        return Ok(());
    }
    let message = "$geoNear was not the first stage in the pipeline after optimization. Is optimization disabled or \
                   inhibited?";
    Err(Failure::new(ErrorCode(40603), message))
}

/// Tells each stage which fields are read behind it, where a stage cuts the others off.
fn tell_what_is_read(stages: &mut [Box<dyn Stage>]) {
    let mut read = Dependencies::All;
    for stage in stages.iter_mut().rev() {
        if let Dependencies::Fields(fields) = &read {
            stage.read_only(fields);
        }
        // From the stage that cuts off down to the source, each one's fields are added to those behind.
        let mut own = Dependencies::default();
        if stage.add_dependencies(&mut own) == stages::Reads::OnlyThese {
            read = own;
        } else if let Dependencies::Fields(_) = &read {
            stage.add_dependencies(&mut read);
        }
    }
}

/// Tells each sort how many documents of its result are read, so that it keeps no more.
fn limit_sorts(stages: &mut [Box<dyn Stage>]) {
    for sort in 0..stages.len() {
        let mut needed = 0_u64;
        let limit = stages[sort + 1..].iter().find_map(|stage| match stage.plannable() {
            Plannable::Skip(count) => {
                needed = needed.saturating_add(count);
                None
            }
            Plannable::Limit(count) => Some(Some(needed.saturating_add(count))),
            _ => Some(None),
        });
        if let Some(Some(limit)) = limit {
            stages[sort].read_at_most(limit);
        }
    }
}
