//! Where a stage goes in a pipeline: behind the stages before it, or before some of them if the result is the same.

use crate::stages::Plannable;
use crate::{Rewrites, Stage};
use bunko_bson::{DocumentRef, ValueRef};
use std::collections::HashSet;

/// Parsed stages in the order in which they run.
#[derive(Default)]
pub(super) struct Placement {
    pub(super) stages: Vec<Box<dyn Stage>>,
    /// A number for each stage that stays with it wherever it goes.
    pub(super) numbers: Vec<usize>,
    next: usize,
}

impl Placement {
    /// Adds a stage, unless another one absorbs it. Returns the number of the stage that does its work.
    pub(super) fn push(&mut self, stage: Box<dyn Stage>, rewrites: Rewrites) -> usize {
        let place = match rewrites {
            Rewrites::Applied => self.place_of(&*stage),
            Rewrites::Off => self.stages.len(),
        };
        if let (Some(before), Rewrites::Applied) = (place.checked_sub(1), rewrites)
            && self.stages[before].absorb(&*stage)
        {
            return self.numbers[before];
        }
        let number = self.next;
        self.next += 1;
        self.stages.insert(place, stage);
        self.numbers.insert(place, number);
        number
    }

    /// Takes off the last stage.
    pub(super) fn pop(&mut self) -> Option<Box<dyn Stage>> {
        self.numbers.pop();
        self.stages.pop()
    }

    /// A skip or limit goes before stages that make one document of each, and a filter before stages that do not change
    /// the fields that it reads: fewer documents reach those, and the planner may take it.
    fn place_of(&self, stage: &dyn Stage) -> usize {
        let last_that = |stays: &dyn Fn(&dyn Stage) -> bool| {
            self.stages.iter().rposition(|earlier| stays(&**earlier)).map_or(0, |position| position + 1)
        };
        match stage.plannable() {
            Plannable::Skip(_) | Plannable::Limit(_) => last_that(&|earlier| !earlier.makes_one_of_each()),
            Plannable::Filter(filter) => {
                let mut fields = HashSet::new();
                if !gather_fields(filter, &mut fields) {
                    return self.stages.len();
                }
                last_that(&|earlier| earlier.changes().touch(&fields))
            }
            _ => self.stages.len(),
        }
    }
}

/// Gathers the top-level fields that a filter reads; returns whether it reads nothing else.
fn gather_fields<'f>(filter: DocumentRef<'f>, fields: &mut HashSet<&'f str>) -> bool {
    filter.iter().all(|element| match (element.name, element.value) {
        ("$and" | "$or" | "$nor", ValueRef::Array(clauses)) => {
            clauses.iter().filter_map(ValueRef::as_document).all(|clause| gather_fields(clause, fields))
        }
        ("$comment", _) => true,
        (operator, _) if operator.starts_with('$') => false,
        (path, _) => {
            fields.insert(path.split('.').next().unwrap_or_default());
            true
        }
    })
}
