//! Pipelines: sequences of stages.

mod parse;
mod planner_part;

pub use planner_part::PlannerPart;

use crate::metadata::{Carried, Holding, Releasing, TellingSortKeys};
use crate::stage::{Plannable, Reads};
use crate::stage_run::Counted;
use crate::thread_stack::{CountedStack, used_bytes};
use crate::{DocumentStream, Environment, Flow, Stage, StageRun, WriteStage};
use bunko_bson::{DocumentBuf, DocumentRef, Element, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::{Dependencies, Offered, check_document_bytes};
use bunko_query::Distinct;
use std::sync::Arc;

/// A parsed pipeline.
pub struct Pipeline {
    stages: Vec<Arc<dyn Stage>>,
    /// For each stage, the numbers of the parsed stages whose work it does.
    numbers: Vec<Vec<usize>>,
    /// For each stage as sent, the number of the stage that does the last of its work.
    sent: Vec<usize>,
    /// Names of the rules that rewrote the pipeline.
    rewrites: Vec<&'static str>,
    environment: Arc<Environment>,
}

/// The one field of a stage: its name and specification.
/// # Errors
/// `TypeMismatch` for a stage that is not a document, 40323 for a stage without exactly one field.
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
    /// Names of the rules that rewrote the pipeline, for `explain`.
    pub fn rewrites(&self) -> &[&'static str] {
        &self.rewrites
    }

    /// Number of steps that rewriting it took, with the pipelines inside its `$facet` stages.
    pub fn rewriting_steps(&self) -> usize {
        self.environment.steps_left.taken()
    }

    /// Whether the pipeline has no stages.
    pub fn is_empty(&self) -> bool {
        self.stages.is_empty()
    }

    /// Whether the first stage produces its own documents, so that the pipeline's collection is not read.
    pub fn brings_documents(&self) -> bool {
        self.stages.first().is_some_and(|stage| stage.brings_documents())
    }

    /// The write of the last stage; the caller that opens the pipeline must perform it.
    pub fn write(&self) -> Option<WriteStage> {
        self.stages.last()?.write()
    }

    /// The environment that the pipeline was parsed in.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Positions of the stages as sent that [`Self::split_for_planner`] has not taken whole.
    pub fn left_as_sent(&self) -> impl Iterator<Item = usize> {
        self.left().map(|(position, _)| position)
    }

    /// As [`Self::left_as_sent`], each with the position of the stage that does the last of its work.
    fn left(&self) -> impl Iterator<Item = (usize, usize)> {
        let stage_of = |sent: &usize| self.numbers.iter().position(|numbers| numbers.contains(sent));
        self.sent.iter().enumerate().filter_map(move |(position, sent)| Some((position, stage_of(sent)?)))
    }

    /// The remaining stages, for `explain`.
    pub fn stages(&self) -> impl Iterator<Item = &dyn Stage> {
        self.stages.iter().map(|stage| &**stage)
    }

    /// Whether the pipeline has a `$sort`.
    pub fn sorts(&self) -> bool {
        self.stages.iter().any(|stage| stage.name() == bunko_stages::SORT.name)
    }

    /// Whether the pipeline begins with a text search, which only the planner runs.
    pub fn searches_text(&self) -> bool {
        self.stages.first().is_some_and(|stage| stage.searches_text())
    }

    /// The distinct values that the first stage needs, if one document per value is enough for that stage.
    pub fn distinct(&self) -> Option<Distinct> {
        self.stages.first()?.distinct()
    }

    /// Number of documents that the first stage chooses at random, if it does.
    pub fn sample_size(&self) -> Option<u64> {
        let first = self.stages.first().filter(|_| self.environment.rewrites.are_applied());
        first?.sample_size()
    }

    /// Whether the first stage asks only for the number of documents.
    pub fn counts_alone(&self) -> bool {
        self.environment.rewrites.are_applied() && self.stages.first().is_some_and(|first| first.counts_alone())
    }

    /// Input fields that the result depends on.
    pub fn dependencies(&self) -> Dependencies {
        if !self.environment.rewrites.are_applied() {
            return Dependencies::All;
        }
        let mut dependencies = Dependencies::default();
        for stage in &self.stages {
            if stage.add_dependencies(&mut dependencies) == Reads::OnlyThese {
                return dependencies;
            }
        }
        // No stage cuts fields off, so all of them reach the result.
        Dependencies::All
    }

    /// Opens the stages on top of a source. A result too large for a reply fails with `BSONObjectTooLarge`.
    pub fn open(&self, source: Box<dyn DocumentStream>) -> Box<dyn DocumentStream> {
        Box::new(CheckedResults { results: self.open_large(source), _stack: CountedStack::of(self.stages.len()) })
    }

    /// As [`Self::open`], but results may be too large for a reply; the caller makes them smaller.
    pub fn open_large(&self, source: Box<dyn DocumentStream>) -> Box<dyn DocumentStream> {
        self.stages.iter().fold(source, |input, stage| {
            let stream = self.open_stage(stage, input);
            if self.environment.rewrites.are_applied() { stream } else { Box::new(Apart(stream)) }
        })
    }

    /// Opens a stage on its input. If metadata is read, a stage that keeps documents back gets them with their metadata
    /// inside.
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

    /// As [`Self::open_large`], and counts the runs of the remaining stages, one count for each stage as sent.
    pub fn open_counted(&self, source: Box<dyn DocumentStream>) -> (Box<dyn DocumentStream>, Vec<Arc<StageRun>>) {
        let mut runs = Vec::new();
        let top = self.stages.iter().fold(source, |input, stage| {
            let input = self.open_stage(stage, input);
            let run = Arc::<StageRun>::default();
            runs.push(Arc::clone(&run));
            Box::new(Counted { input, run, clock: self.environment.operation().clock().clone() })
        });
        let left = self.left().map(|(_, stage)| Arc::clone(&runs[stage])).collect();
        (Box::new(CheckedResults { results: top, _stack: CountedStack::of(self.stages.len()) }), left)
    }

    /// As [`Self::open_counted`], for a source that is a stage itself; its count comes first.
    pub fn open_counted_from(&self, source: Box<dyn DocumentStream>) -> (Box<dyn DocumentStream>, Vec<Arc<StageRun>>) {
        let run = Arc::<StageRun>::default();
        let clock = self.environment.operation().clock().clone();
        let source = Counted { input: source, run: Arc::clone(&run), clock };
        let (stream, mut runs) = self.open_counted(Box::new(source));
        runs.insert(0, run);
        (stream, runs)
    }
}

/// The results of a pipeline, with their size checked. Between stages documents may be larger.
struct CheckedResults {
    results: Box<dyn DocumentStream>,
    _stack: CountedStack,
}

impl DocumentStream for CheckedResults {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        used_bytes();
        let document = self.results.next()?;
        check_document_bytes(document.as_ref().map_or(0, DocumentBuf::len_bytes))?;
        Ok(document)
    }

    fn visit(&mut self, visitor: &mut dyn FnMut(DocumentRef<'_>) -> Result<Flow>) -> Result<()> {
        used_bytes();
        self.results.visit(&mut |document| {
            check_document_bytes(document.len_bytes())?;
            visitor(document)
        })
    }
}

/// Passes on a stage's documents one by one and whole: it offers no other way to read them.
struct Apart(Box<dyn DocumentStream>);

impl DocumentStream for Apart {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        self.0.next()
    }

    fn describe_run(&self, facts: &mut DocumentBuf) {
        self.0.describe_run(facts);
    }
}
