//! Comparisons of a field with a constant that hold for every document for which an expression is true. A planner makes
//! bounds of them.
//!
//! The comparisons of an `$and` hold if the `$and` does. Other operators imply none.

use crate::Expression;
use crate::expression::Node;

/// How a field compares with a constant, in the order of all values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FieldComparison {
    Eq,
    Lt,
    Lte,
    Gt,
    Gte,
}

impl FieldComparison {
    fn of_operator(name: &str) -> Option<Self> {
        Some(match name {
            "$eq" => Self::Eq,
            "$lt" => Self::Lt,
            "$lte" => Self::Lte,
            "$gt" => Self::Gt,
            "$gte" => Self::Gte,
            _ => return None,
        })
    }

    /// Exchanges the sides of the comparison: `a < b` becomes `b > a`.
    fn exchanged(self) -> Self {
        match self {
            Self::Eq => Self::Eq,
            Self::Lt => Self::Gt,
            Self::Lte => Self::Gte,
            Self::Gt => Self::Lt,
            Self::Gte => Self::Lte,
        }
    }
}

/// A comparison of a field with a constant.
pub struct ImpliedComparison<'e> {
    /// The dotted path of the field.
    pub path: String,
    /// How the field compares with the constant.
    pub op: FieldComparison,
    /// Reads no document; it may read variables of the command and of `let`.
    pub constant: &'e Expression,
}

impl Expression {
    /// Returns comparisons that hold for every document for which the expression is true: each compares a field with a
    /// constant.
    pub fn implied_comparisons(&self) -> Vec<ImpliedComparison<'_>> {
        let mut found = Vec::new();
        self.add_implied(&mut found);
        found
    }

    fn add_implied<'e>(&'e self, found: &mut Vec<ImpliedComparison<'e>>) {
        let Node::Call(call) = &self.node else { return };
        if call.operator.name == "$and" {
            call.arguments.iter().for_each(|argument| argument.add_implied(found));
            return;
        }
        let (Some(op), [left, right]) = (FieldComparison::of_operator(call.operator.name), &*call.arguments) else {
            return;
        };
        let sides = [(left, op, right), (right, op.exchanged(), left)];
        found.extend(sides.into_iter().find_map(|(field, op, constant)| {
            Some(ImpliedComparison { path: field.as_field().filter(|_| constant.is_constant())?, op, constant })
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ParseScope, Variables};
    use bunko_bson::ValueRef;
    use bunko_testkit::shell;

    fn implied(expression: &str) -> String {
        let document = shell::parse_document(expression).expect("a document");
        let mut variables = Variables::new();
        variables.define("x", None).expect("a name");
        let scope = ParseScope::new(&variables);
        let expression = Expression::parse(ValueRef::Document(document.as_ref()), &scope).expect("an expression");
        let found = expression.implied_comparisons();
        found.iter().map(|found| format!("{} {:?}", found.path, found.op)).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn comparisons_with_constants_are_implied_by_themselves_and_by_conjunctions() {
        assert_eq!(implied("{$eq: ['$a', 1]}"), "a Eq");
        assert_eq!(implied("{$lt: [1, '$a.b']}"), "a.b Gt");
        assert_eq!(implied("{$gte: [{$literal: '$b'}, '$$ROOT.a']}"), "a Lte");
        assert_eq!(implied("{$gt: ['$a', '$$x.y']}"), "a Gt");
        assert_eq!(
            implied("{$and: [{$eq: ['$a', 1]}, {$and: [{$lte: ['$b', {$add: ['$$x', 1]}]}, '$c']}]}"),
            "a Eq, b Lte"
        );
        for none in [
            "{$eq: ['$a', '$b']}",
            "{$ne: ['$a', 1]}",
            "{$or: [{$eq: ['$a', 1]}, {$eq: ['$a', 2]}]}",
            "{$not: [{$eq: ['$a', 1]}]}",
            "{$eq: ['$$x.a', 1]}",
            "{$eq: ['$$ROOT', 1]}",
            "{$lt: ['$a', {$rand: {}}]}",
        ] {
            assert_eq!(implied(none), "", "{none}");
        }
    }
}
