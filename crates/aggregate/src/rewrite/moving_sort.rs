//! Finds the places of `$sort` stages once all other stages have theirs.
//!
//! A sort moves to the front of a pipeline, where an index may give its order, or as far as it can if a `$limit` comes
//! after it: later stages then work on few documents. Other sorts stay: moved before a `$project`, they would sort
//! larger documents.

use super::logical::{LogicalPipeline, LogicalStage};
use super::origin::{Origin, is_copy_of_other, of_path};
use super::{Kind, Rule};
use crate::stage::Plannable;
use crate::stages;
use bunko_bson::DocumentBuf;
use bunko_bson::key_string::Direction;
use bunko_errors::Result;
use bunko_expression::{PathChanges, SortPattern};
use bunko_matcher::planted::{Fault, active};

/// A sort on its way to the front.
pub(super) struct MovingSort {
    /// The dotted paths that it sorts by at its present place.
    pub paths: Vec<String>,
    /// Number of its documents that are read, if a `$limit` comes after it.
    pub limit: Option<u64>,
}

/// The paths of a sort before a stage that it has passed.
pub(super) enum Passed {
    /// The `$skip` and `$limit` stages after the sort go with it.
    WithCuts(Vec<String>),
    /// The `$skip` and `$limit` stages stay after the stage.
    WithoutCuts(Vec<String>),
}

/// The place of a sort, and of the stages after it that skip documents or limit their number.
struct Places {
    sort: usize,
    cuts: usize,
    paths: Vec<String>,
    fired: Vec<&'static str>,
}

impl MovingSort {
    /// The paths of the sort before a stage that changes documents; `None` if one of them has no exact origin, or if two of
    /// them lead to copies of one field.
    pub fn origins(&self, changes: &PathChanges) -> Option<Vec<String>> {
        let mut origins: Vec<String> = Vec::with_capacity(self.paths.len());
        for path in &self.paths {
            let source = match of_path(path, changes) {
                Origin::Exact(source) => source,
                _ if active(Fault::SortMovesWritten) => path.clone(),
                _ => return None,
            };
            let mut earlier = self.paths.iter().zip(&origins);
            if earlier.any(|(other, origin)| is_copy_of_other([path, other], [&source, origin])) {
                return None;
            }
            origins.push(source);
        }
        Some(origins)
    }
}

impl LogicalPipeline<'_> {
    /// Moves each sort as far as rules allow, if that pays.
    /// # Errors
    /// Errors of counting work.
    pub(super) fn move_sorts(&mut self) -> Result<()> {
        let rules: Vec<_> = self.allowed().filter(|rule| matches!(rule.kind, Kind::Order(_))).collect();
        if rules.is_empty() || self.environment.scope.at_hand.is_wanted() {
            return Ok(());
        }
        let mut position = 0;
        // A moved sort may add a `$limit`.
        while position + 1 < self.stages.len() {
            position += 1;
            let Plannable::Sort(pattern) = self.stages[position].stage.plannable() else { continue };
            let pattern = pattern.clone();
            let Some(places) = self.places_of_sort(position, &pattern, &rules)? else { continue };
            places.fired.iter().for_each(|name| self.note(name));
            self.place_sort(position, &pattern, &places)?;
        }
        Ok(())
    }

    /// The stages after a position that skip documents or limit their number.
    fn cuts_after(&self, position: usize) -> &[LogicalStage] {
        let after = &self.stages[position + 1..];
        let is_cut =
            |stage: &&LogicalStage| matches!(stage.stage.plannable(), Plannable::Skip(_) | Plannable::Limit(_));
        &after[..after.iter().take_while(is_cut).count()]
    }

    fn places_of_sort(
        &mut self,
        position: usize,
        pattern: &SortPattern,
        rules: &[&'static Rule],
    ) -> Result<Option<Places>> {
        let paths: Vec<_> = pattern.parts().map(|(path, _)| path.dotted()).collect();
        let mut sort = MovingSort { paths, limit: documents_read(self.cuts_after(position)) };
        let (mut place, mut cuts, mut fired) = (position, position, Vec::new());
        while place > 0 {
            let steps = sort.paths.len() * self.stages[place - 1].effect().steps_of_path();
            if !self.takes(steps)? {
                break;
            }
            let before = &mut self.stages[place - 1];
            let passed = rules.iter().find_map(|rule| match rule.kind {
                Kind::Order(passage) => Some((passage(before, &sort)?, rule.name)),
                _ => None,
            });
            let Some((passed, name)) = passed else { break };
            fired.push(name);
            place -= 1;
            sort.paths = match passed {
                Passed::WithCuts(paths) => {
                    cuts -= usize::from(cuts == place + 1);
                    paths
                }
                Passed::WithoutCuts(paths) => paths,
            };
        }
        let pays = sort.limit.is_some() || self.stages[..place].iter().all(LogicalStage::is_filter);
        Ok((place < position && pays).then_some(Places { sort: place, cuts, paths: sort.paths, fired }))
    }

    fn place_sort(&mut self, position: usize, pattern: &SortPattern, places: &Places) -> Result<()> {
        let cuts = self.cuts_after(position).len();
        let limit = documents_read(self.cuts_after(position)).filter(|_| places.cuts > places.sort);
        let mut moved: Vec<_> = self.stages.drain(position..=position + cuts).collect();
        let mut sort = moved.remove(0);
        let directions = pattern.parts().map(|(_, direction)| direction);
        if !pattern.parts().map(|(path, _)| path.dotted()).eq(places.paths.iter().cloned()) {
            sort = LogicalStage {
                stage: stages::sorting(document(&places.paths, directions).as_ref(), self.environment)?,
                ..sort
            };
        }
        self.stages.splice(places.cuts..places.cuts, moved);
        if let Some(limit) = limit {
            self.stages.insert(places.sort, LogicalStage::added(stages::limiting(limit)));
        }
        self.stages.insert(places.sort, sort);
        Ok(())
    }
}

/// The pattern of a sort by these paths.
fn document(paths: &[String], directions: impl Iterator<Item = Direction>) -> DocumentBuf {
    let sign = |direction| if direction == Direction::Ascending { 1_i32 } else { -1 };
    paths.iter().zip(directions).fold(DocumentBuf::new(), |all, (path, direction)| all.with(path, sign(direction)))
}

/// Number of documents that `cuts`, the stages after a sort, read of it; `None` without a `$limit`.
fn documents_read(cuts: &[LogicalStage]) -> Option<u64> {
    let mut skipped = 0_u64;
    cuts.iter().find_map(|stage| match stage.stage.plannable() {
        Plannable::Skip(count) => {
            skipped = skipped.saturating_add(count);
            None
        }
        Plannable::Limit(count) => Some(skipped.saturating_add(count)),
        _ => None,
    })
}
