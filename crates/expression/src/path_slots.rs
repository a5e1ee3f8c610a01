//! The paths that expressions read, found in one walk over each document.

use crate::expression::Node;
use crate::path_values::{PathSlot, PathValue, PathValues, SLOTS_MAX};
use crate::variables::Variable;
use crate::{Expression, FieldPath, StandIn};
use bunko_bson::{DocumentRef, EncodedValue, FieldNames, ValueRef};
use std::ops::{ControlFlow, Range};

/// The paths that some expressions read. Values found for one set are valid only for the expressions of that set.
#[derive(Debug, Default)]
pub struct PathSlots {
    /// Sorted so that paths with the same first name are adjacent.
    paths: Vec<FieldPath>,
    /// The distinct first names, and for each the slots of its paths.
    names: FieldNames,
    beginning: Vec<Range<usize>>,
}

impl PathSlots {
    /// Gives a slot to each path that these expressions read.
    pub fn of<'e>(expressions: impl IntoIterator<Item = &'e mut Expression>) -> Self {
        let mut expressions: Vec<_> = expressions.into_iter().collect();
        let mut slots = Self::default();
        for expression in &mut expressions {
            each_path(expression, &mut |path, _| slots.add(path));
        }
        slots.paths.sort_by(|one, other| one.components()[0].cmp(&other.components()[0]));
        for expression in &mut expressions {
            each_path(expression, &mut |path, slot| {
                let number = slots.paths.iter().position(|known| known == path);
                *slot = number.map(|number| PathSlot(number as u8));
            });
        }
        let mut start = 0;
        let groups = slots.paths.chunk_by(|one, other| one.components()[0] == other.components()[0]);
        for paths in groups.clone() {
            slots.beginning.push(start..start + paths.len());
            start += paths.len();
        }
        slots.names = FieldNames::new(groups.map(|paths| &*paths[0].components()[0])).unwrap_or_default();
        slots
    }

    fn add(&mut self, path: &FieldPath) {
        if self.paths.len() < SLOTS_MAX && !self.paths.contains(path) {
            self.paths.push(path.clone());
        }
    }

    /// Looks up the paths in a document, in one walk.
    #[inline]
    pub fn read<'d>(&self, document: DocumentRef<'d>) -> PathValues<'d> {
        let mut values = PathValues([PathValue::Missing; SLOTS_MAX]);
        self.names.find(document, |name, value| {
            for slot in self.beginning[name].clone() {
                values.0[slot] = match value {
                    None => PathValue::Missing,
                    Some(value) => followed(value, &self.paths[slot].components()[1..]),
                };
            }
            ControlFlow::Continue(())
        });
        values
    }

    /// The slots for documents in which a stand-in will be [`Self::put`] at `path`. First names that only lead to the
    /// stand-in are not looked up.
    #[must_use]
    pub fn beside(&self, path: &FieldPath) -> Self {
        let leading = self.leading_to(path);
        let needed =
            self.beginning.iter().filter(|slots| (slots.start..slots.end).any(|slot| !leading.contains(&slot)));
        let beginning: Vec<_> = needed.cloned().collect();
        let names = beginning.iter().map(|slots| &*self.paths[slots.start].components()[0]);
        let names = FieldNames::new(names).unwrap_or_default();
        Self { paths: self.paths.clone(), names, beginning }
    }

    /// The slots of `path` and of the paths below it.
    pub fn leading_to(&self, path: &FieldPath) -> Vec<usize> {
        let leads = |slot: &usize| self.paths[*slot].components().starts_with(path.components());
        (0..self.paths.len()).filter(leads).collect()
    }

    /// Puts a stand-in's value in place of the document's own; `leading` are the slots from [`Self::leading_to`].
    #[inline]
    pub fn put<'d>(&self, values: &mut PathValues<'d>, stand_in: &StandIn<'d>, leading: &[usize]) {
        let own = stand_in.path().components().len();
        for &slot in leading {
            values.0[slot] = followed(stand_in.encoded(), &self.paths[slot].components()[own..]);
        }
    }
}

/// Calls `show` with each path that an expression reads of the document, and its slot.
fn each_path(expression: &mut Expression, show: &mut dyn FnMut(&FieldPath, &mut Option<PathSlot>)) {
    match &mut expression.node {
        Node::Path { variable: Variable::Root, path, slot } if !path.is_empty() => show(path, slot),
        Node::Path { .. } | Node::Literal(_) | Node::Absent => {}
        Node::Document(fields) => fields.iter_mut().for_each(|(_, field)| each_path(field, show)),
        Node::Array(elements) => elements.iter_mut().for_each(|element| each_path(element, show)),
        Node::Call(call) => call.arguments.iter_mut().for_each(|argument| each_path(argument, show)),
    }
}

/// Follows the last components of a path from `value`.
#[inline]
fn followed<'d>(value: EncodedValue<'d>, components: &[Box<str>]) -> PathValue<'d> {
    let mut value = value;
    for name in components {
        value = match value.value() {
            Some(ValueRef::Document(document)) => match document.get_encoded(name) {
                Some(value) => value,
                None => return PathValue::Missing,
            },
            Some(ValueRef::Array(_)) => return PathValue::Unknown,
            _ => return PathValue::Missing,
        };
    }
    PathValue::Found(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EvaluationContext, ParseScope, Variables};
    use bunko_operation::OperationContext;
    use bunko_testkit::shell;

    const PATHS: [&str; 12] =
        ["a.b", "a.b.c", "a.b.c.d", "a.y", "x", "b", "ab", "none.b", "a", "a.none", "a.b.none", "x.y"];
    const DOCUMENTS: [&str; 7] = [
        "{x: 1, a: {y: 2, b: [{c: 1}, {c: [2]}, 7, null], z: {b: 5}}, b: 9, ab: 3}",
        "{a: {b: {c: {d: 4}}}, x: {y: null}, a: 5}",
        "{a: [{b: 1, y: 2}, {b: {c: 3}}, 4], x: [[{y: 1}]]}",
        "{a: 7, b: undefined, x: 'text'}",
        "{a: {b: []}}",
        "{}",
        "{none: {b: {}}}",
    ];

    fn expressions() -> Vec<Expression> {
        let parse = |path: &&str| Expression::parse(ValueRef::String(&format!("${path}")), &ParseScope::default());
        PATHS.iter().map(|path| parse(path).expect("parses")).collect()
    }

    fn shown(expression: &Expression, context: &EvaluationContext<'_>) -> String {
        format!("{:?}", expression.evaluate(context).expect("evaluates").get())
    }

    #[test]
    fn slots_hold_the_values_that_each_path_leads_to() {
        let (variables, operation) = (Variables::new(), OperationContext::unlimited());
        // More paths than slots, with a different path first each time.
        for begin in 0..PATHS.len() {
            let mut with_slots = expressions();
            with_slots.rotate_left(begin);
            let slots = PathSlots::of(&mut with_slots);
            let mut alone = expressions();
            alone.rotate_left(begin);
            for document in DOCUMENTS.map(|text| shell::parse_document(text).expect("a document")) {
                let found = slots.read(document.as_ref());
                let context = EvaluationContext::new(document.as_ref(), &variables, 0, &operation);
                for (with_slot, alone) in with_slots.iter().zip(&alone) {
                    let together = shown(with_slot, &context.with_found(&found));
                    assert_eq!(together, shown(alone, &context), "{:?} of {document:?}", alone.as_field());
                }
            }
        }
    }

    #[test]
    fn a_stand_in_takes_the_place_of_what_was_found() {
        let (variables, operation) = (Variables::new(), OperationContext::unlimited());
        let document = shell::parse_document(DOCUMENTS[0]).expect("a document");
        let path = FieldPath::parse("a.b").expect("a path");
        // With and without other paths that begin with the same name.
        for kept in [PATHS.len(), 3] {
            let mut with_slots = expressions();
            with_slots.truncate(kept);
            let slots = PathSlots::of(&mut with_slots);
            let leading = slots.leading_to(&path);
            for value in ["7", "{c: {d: 1}}", "{c: [{d: 1}]}", "[{c: 1}]", "null"] {
                let holder = shell::parse_document(&format!("{{value: {value}}}")).expect("a document");
                let encoded = holder.as_ref().get_encoded("value").expect("a value");
                let stand_in = StandIn::new(&path, encoded);
                let mut found = slots.beside(&path).read(document.as_ref());
                slots.put(&mut found, &stand_in, &leading);
                let context =
                    EvaluationContext::new(document.as_ref(), &variables, 0, &operation).with_stand_in(&stand_in);
                for (with_slot, alone) in with_slots.iter().zip(expressions()) {
                    let together = shown(with_slot, &context.with_found(&found));
                    assert_eq!(together, shown(&alone, &context), "{:?} with {value:?}", alone.as_field());
                }
            }
        }
    }
}
