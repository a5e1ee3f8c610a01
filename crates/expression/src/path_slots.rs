//! The paths that expressions read of each document, found in one walk over it.

use crate::expression::Node;
use crate::variables::Variable;
use crate::{Evaluated, Expression, FieldPath, StandIn};
use bunko_bson::{DocumentRef, FieldNames, ValueRef};
use std::ops::ControlFlow;

/// So many paths are found together; those beyond are looked for one by one.
const SLOTS_MAX: usize = 8;

/// Which of the paths that are found together an expression reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathSlot(u8);

/// The paths that some expressions read. What is found for one such set means nothing to the expressions of another.
#[derive(Debug, Default)]
pub struct PathSlots {
    paths: Vec<FieldPath>,
    /// The different first names of the paths, and which slots each of them begins.
    names: FieldNames,
    beginning: Vec<Vec<usize>>,
}

/// What stands at the paths of one document.
#[derive(Clone, Copy, Debug)]
pub struct PathValues<'a>([PathValue<'a>; SLOTS_MAX]);

#[derive(Clone, Copy, Debug)]
enum PathValue<'a> {
    Missing,
    Found(ValueRef<'a>),
    /// It leads through an array: its value has to be made.
    Made,
}

impl PathSlots {
    /// Gives the paths that these expressions read their slots.
    pub fn of<'e>(expressions: impl IntoIterator<Item = &'e mut Expression>) -> Self {
        let mut slots = Self::default();
        expressions.into_iter().for_each(|expression| slots.assign(expression));
        let mut names: Vec<&str> = Vec::new();
        for (slot, path) in slots.paths.iter().enumerate() {
            let first = &*path.components()[0];
            let name = names.iter().position(|name| *name == first).unwrap_or_else(|| {
                names.push(first);
                slots.beginning.push(Vec::new());
                names.len() - 1
            });
            slots.beginning[name].push(slot);
        }
        slots.names = FieldNames::new(names).unwrap_or_default();
        slots
    }

    fn assign(&mut self, expression: &mut Expression) {
        match &mut expression.node {
            Node::Path { variable: Variable::Root, path, slot } if !path.is_empty() => {
                let known = self.paths.iter().position(|known| known == path);
                let number = known.unwrap_or(self.paths.len());
                if number == SLOTS_MAX {
                    return;
                }
                if known.is_none() {
                    self.paths.push(path.clone());
                }
                *slot = Some(PathSlot(number as u8));
            }
            Node::Path { .. } | Node::Literal(_) | Node::Absent => {}
            Node::Document(fields) => fields.iter_mut().for_each(|(_, field)| self.assign(field)),
            Node::Array(elements) => elements.iter_mut().for_each(|element| self.assign(element)),
            Node::Call(call) => call.arguments.iter_mut().for_each(|argument| self.assign(argument)),
        }
    }

    /// What a document has at the paths.
    #[inline]
    pub fn read<'d>(&self, document: DocumentRef<'d>) -> PathValues<'d> {
        let mut values = PathValues([PathValue::Missing; SLOTS_MAX]);
        self.names.find(document, |name, value| {
            for &slot in &self.beginning[name] {
                values.0[slot] = match value {
                    None => PathValue::Missing,
                    Some(value) => followed(value, &self.paths[slot].components()[1..]),
                };
            }
            ControlFlow::Continue(())
        });
        values
    }

    /// The slots of the paths that lead to what stands at `path`, or into it.
    pub fn leading_to(&self, path: &FieldPath) -> Vec<usize> {
        let leads = |slot: &usize| self.paths[*slot].components().starts_with(path.components());
        (0..self.paths.len()).filter(leads).collect()
    }

    /// Puts a stand-in's value in the place of the document's own, for the slots [`Self::leading_to`] its path.
    #[inline]
    pub fn put<'d>(&self, values: &mut PathValues<'d>, stand_in: &StandIn<'d>, leading: &[usize]) {
        let own = stand_in.path().components().len();
        for &slot in leading {
            values.0[slot] = followed(stand_in.value(), &self.paths[slot].components()[own..]);
        }
    }
}

/// The value at the last components of a path.
#[inline]
fn followed<'d>(value: ValueRef<'d>, components: &[Box<str>]) -> PathValue<'d> {
    let mut value = value;
    for name in components {
        value = match value {
            ValueRef::Document(document) => match document.get(name) {
                Some(value) => value,
                None => return PathValue::Missing,
            },
            ValueRef::Array(_) => return PathValue::Made,
            _ => return PathValue::Missing,
        };
    }
    PathValue::Found(value)
}

impl<'a> PathValues<'a> {
    /// The value in a slot; nothing where it has to be made.
    #[inline]
    pub(crate) fn at(&self, slot: PathSlot) -> Option<Evaluated<'a>> {
        match self.0[usize::from(slot.0)] {
            PathValue::Missing => Some(Evaluated::Missing),
            PathValue::Found(value) => Some(Evaluated::Ref(value)),
            PathValue::Made => None,
        }
    }
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
    fn what_is_found_together_is_what_each_path_leads_to() {
        let (variables, operation) = (Variables::new(), OperationContext::unlimited());
        // More paths than there are slots, and other ones first each time.
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
        let mut with_slots = expressions();
        let slots = PathSlots::of(&mut with_slots);
        let document = shell::parse_document(DOCUMENTS[0]).expect("a document");
        let path = FieldPath::parse("a.b").expect("a path");
        let leading = slots.leading_to(&path);
        for value in ["7", "{c: {d: 1}}", "{c: [{d: 1}]}", "[{c: 1}]", "null"] {
            let value = shell::parse_value(value).expect("a value");
            let stand_in = StandIn::new(&path, value.as_ref());
            let mut found = slots.read(document.as_ref());
            slots.put(&mut found, &stand_in, &leading);
            let context = EvaluationContext::new(document.as_ref(), &variables, 0, &operation).with_stand_in(&stand_in);
            for (with_slot, alone) in with_slots.iter().zip(expressions()) {
                let together = shown(with_slot, &context.with_found(&found));
                assert_eq!(together, shown(&alone, &context), "{:?} with {value:?}", alone.as_field());
            }
        }
    }
}
