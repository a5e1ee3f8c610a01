//! The logical pipeline: parsed stages in the order in which they run, while rules rewrite them.

use super::steps::Steps;
use super::{Condition, Effect, Kind, Passage, RULES, Rule, STOPPED, allows};
use crate::stage::Plannable;
use crate::{Environment, Stage, stages};
use bunko_errors::Result;

/// Stages that have been placed so far.
pub(crate) struct LogicalPipeline<'e> {
    pub(super) stages: Vec<LogicalStage>,
    pub(super) environment: &'e Environment,
    next_number: usize,
    steps: Steps<'e>,
    /// Names of the rules that fired, in order, each once.
    fired: Vec<&'static str>,
}

/// A stage with its effect.
pub(super) struct LogicalStage {
    pub(super) stage: Box<dyn Stage>,
    /// Numbers of the parsed stages whose work this stage does; they stay with it when it moves.
    pub(super) numbers: Vec<usize>,
    pub(super) effect: Option<Effect>,
}

/// The rewritten pipeline.
pub(crate) struct Rewritten {
    pub(crate) stages: Vec<Box<dyn Stage>>,
    /// The numbers of each stage.
    pub(crate) numbers: Vec<Vec<usize>>,
    /// Names of the rules that fired, each once.
    pub(crate) fired: Vec<&'static str>,
}

/// A condition that has its place.
struct Settled {
    /// Number of stages before the condition.
    place: usize,
    condition: Condition,
    /// Whether the condition is as the client sent it.
    is_as_sent: bool,
}

impl LogicalStage {
    fn new(stage: Box<dyn Stage>, number: usize) -> Self {
        Self { stage, numbers: vec![number], effect: None }
    }

    /// A stage that does no work of a stage that was sent.
    pub(super) fn added(stage: Box<dyn Stage>) -> Self {
        Self { stage, numbers: Vec::new(), effect: None }
    }

    pub(super) fn effect(&mut self) -> &Effect {
        self.effect.get_or_insert_with(|| self.stage.effect())
    }

    pub(super) fn is_filter(&self) -> bool {
        matches!(self.stage.plannable(), Plannable::Filter(_))
    }
}

impl<'e> LogicalPipeline<'e> {
    pub(crate) fn new(environment: &'e Environment) -> Self {
        let steps = Steps::new(&environment.steps_left, environment.operation());
        Self { stages: Vec::new(), environment, next_number: 0, steps, fired: Vec::new() }
    }

    /// Adds the next parsed stage where the rules put it. Returns the number of the stage that does its work.
    /// # Errors
    /// Errors of counting work.
    pub(crate) fn push(&mut self, stage: Box<dyn Stage>) -> Result<usize> {
        if !self.environment.rewrites.are_applied() || !self.takes(1)? {
            let place = self.stages.len();
            return Ok(self.insert(place, stage));
        }
        match stage.plannable() {
            // A filter with nothing but filters before it is where it should be.
            Plannable::Filter(_) if self.stages.iter().any(|stage| !stage.is_filter()) => self.push_filter(stage),
            Plannable::Skip(_) | Plannable::Limit(_) => {
                let place = self.place_of_cut()?;
                Ok(self.join(place, stage))
            }
            _ => {
                let place = self.stages.len();
                Ok(self.join(place, stage))
            }
        }
    }

    /// Applies the rules about whole pipelines.
    /// # Errors
    /// Errors of counting work.
    pub(crate) fn finish(mut self) -> Result<Rewritten> {
        if self.environment.rewrites.are_applied() {
            self.move_sorts()?;
            for rule in self.allowed() {
                let has_fired = match &rule.kind {
                    Kind::Whole(change) => change(&mut self.stages, self.environment, &mut self.steps)?,
                    Kind::Tell(tell) => tell(&mut self.stages),
                    _ => false,
                };
                if has_fired {
                    self.note(rule.name);
                }
            }
        }
        if self.steps.are_used_up() {
            self.note(STOPPED);
        }
        let (numbers, stages) = self.stages.into_iter().map(|one| (one.numbers, one.stage)).unzip();
        Ok(Rewritten { stages, numbers, fired: self.fired })
    }

    pub(super) fn note(&mut self, name: &'static str) {
        if !self.fired.contains(&name) {
            self.fired.push(name);
        }
    }

    /// Takes steps off the limit; returns whether enough were left.
    pub(super) fn takes(&mut self, steps: usize) -> Result<bool> {
        self.steps.takes(steps)
    }

    pub(super) fn allowed(&self) -> impl Iterator<Item = &'static Rule> + use<> {
        let rewrites = self.environment.rewrites;
        RULES.iter().copied().filter(move |rule| allows(rewrites, rule))
    }

    fn insert(&mut self, place: usize, stage: Box<dyn Stage>) -> usize {
        let number = self.next_number;
        self.next_number += 1;
        self.stages.insert(place, LogicalStage::new(stage, number));
        number
    }

    /// Inserts a stage, or lets the stage before do its work too. Returns the number of the stage that does it.
    fn join(&mut self, place: usize, stage: Box<dyn Stage>) -> usize {
        let Some(before) = place.checked_sub(1) else { return self.insert(place, stage) };
        for rule in self.allowed() {
            let Kind::Pair(does_both) = &rule.kind else { continue };
            if does_both(&mut *self.stages[before].stage, &*stage) {
                self.stages[before].effect = None;
                self.note(rule.name);
                return self.stages[before].numbers[0];
            }
        }
        self.insert(place, stage)
    }

    /// Finds the place of a new `$skip` or `$limit`: before all stages that it may pass.
    fn place_of_cut(&mut self) -> Result<usize> {
        let mut place = self.stages.len();
        while place > 0 {
            let rule = self.allowed().find(|rule| match &rule.kind {
                Kind::Cut(goes_before) => goes_before(&*self.stages[place - 1].stage),
                _ => false,
            });
            let Some(rule) = rule else { break };
            if !self.takes(1)? {
                break;
            }
            self.note(rule.name);
            place -= 1;
        }
        Ok(place)
    }

    /// Places the conditions of a filter. Returns the number of the last of them.
    fn push_filter(&mut self, stage: Box<dyn Stage>) -> Result<usize> {
        let Plannable::Filter(filter) = stage.plannable() else { return Ok(self.join(self.stages.len(), stage)) };
        let splits = self.allowed().find(|rule| matches!(rule.kind, Kind::Split));
        let conditions = match splits {
            Some(_) if !filter.is_empty() => Condition::conjuncts(filter),
            _ => vec![Condition::whole(filter)],
        };
        let (count, mut settled) = (conditions.len(), Vec::new());
        for condition in conditions {
            self.settle(condition, &mut settled)?;
        }
        // A filter that stayed or moved as a whole need not be parsed again.
        let place = settled.first().map_or(self.stages.len(), |one| one.place);
        if settled.len() == count && settled.iter().all(|one| one.is_as_sent && one.place == place) {
            return Ok(self.insert(place, stage));
        }
        settled.sort_by_key(|one| one.place);
        if let Some(rule) = splits.filter(|_| count > 1 && settled.iter().any(|one| one.place != settled[0].place)) {
            self.note(rule.name);
        }
        let mut last = None;
        for group in settled.chunk_by(|one, other| one.place == other.place).rev() {
            let conditions: Vec<_> = group.iter().map(|one| one.condition.clone()).collect();
            let filter = stages::filtering(Condition::all(&conditions).filter.as_ref(), self.environment)?;
            let number = self.insert(group[0].place, filter);
            last.get_or_insert(number);
        }
        // Other stages may have taken all of the conditions.
        Ok(last.unwrap_or_else(|| {
            self.next_number += 1;
            self.next_number - 1
        }))
    }

    /// Moves a condition as far forward as rules prove, and adds the places of it and of its copy to `settled`.
    fn settle(&mut self, mut condition: Condition, settled: &mut Vec<Settled>) -> Result<()> {
        let (mut is_as_sent, mut is_copy) = (true, false);
        let mut place = self.stages.len();
        while place > 0 {
            if self.stages[place - 1].is_filter() {
                // Filters may change places: a condition that moves cannot fail.
                if !self.takes(1)? {
                    break;
                }
                place -= 1;
                continue;
            }
            let Some((passage, rule)) = self.passage(place - 1, &condition)? else { break };
            self.note(rule.name);
            let before = &mut self.stages[place - 1];
            if let Some(inside) = &passage.inside {
                before.stage.take_inside(inside.filter.as_ref())?;
                before.effect = None;
            }
            // The exact condition stays after the first stage that it cannot pass. A copy need not stay anywhere on its way:
            // many stages and many conditions would make a copy for each pair of them.
            if passage.stays && !is_copy {
                settled.push(Settled { place: self.after_filters(place), condition: condition.clone(), is_as_sent });
            }
            let Some(before) = passage.before else { return Ok(()) };
            is_copy |= passage.stays;
            is_as_sent &= !passage.stays && before.filter == condition.filter;
            (condition, place) = (before, place - 1);
        }
        settled.push(Settled { place: self.after_filters(place), condition, is_as_sent });
        Ok(())
    }

    /// The place after the filters at a place: filters that need not change their order keep it.
    fn after_filters(&self, place: usize) -> usize {
        place + self.stages[place..].iter().take_while(|stage| stage.is_filter()).count()
    }

    /// Finds the rule by which a condition passes the stage `before` it; `None` if no rule does, or no steps are left.
    fn passage(&mut self, before: usize, condition: &Condition) -> Result<Option<(Passage, &'static Rule)>> {
        let steps = condition.steps() * self.stages[before].effect().steps_of_path();
        if !self.takes(steps)? {
            return Ok(None);
        }
        let (allowed, environment) = (self.allowed(), self.environment);
        let effect = self.stages[before].effect();
        let decided = allowed.into_iter().find_map(|rule| match &rule.kind {
            Kind::Passage(decide) => Some((decide(effect, condition, environment)?, rule)),
            _ => None,
        });
        Ok(decided)
    }
}
