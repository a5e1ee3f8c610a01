//! Parses a filter document into the tree. Operators parse their own operands; see [`crate::operators`].

use crate::expression::Expression;
use crate::operators;
use crate::parser::{Operand, Parser, holds_operators, is_operator};
use crate::path::Path;
use bunko_bson::{DocumentRef, Element, ValueRef};
use bunko_errors::{Failure, Result};

impl Parser<'_> {
    /// Parses a filter: all of its fields and top-level operators.
    pub fn filter(&self, filter: DocumentRef<'_>) -> Result<Expression> {
        let children = self.gathered(filter.iter().map(|element| self.entry(element)))?;
        Ok(Expression::and(children))
    }

    fn entry(&self, entry: Element<'_>) -> Result<Expression> {
        self.count_condition()?;
        // The filter keeps a copy of each operand beside its parsed form.
        self.will_take(entry.value.content_bytes())?;
        if is_operator(entry.name) {
            return match operators::top_level(entry.name) {
                Some(operator) => (operator.parse)(self, entry.value),
                None => Err(unknown_top_level(entry.name)),
            };
        }
        let path = Path::parse(entry.name)?;
        match entry.value {
            ValueRef::Document(condition) if holds_operators(condition) => self.operators(&path, condition),
            value => operators::literal(&path, value),
        }
    }

    /// Parses all operators of `{$gt: 1, $lt: 5}`, applied to one path.
    pub fn operators(&self, path: &Path, condition: DocumentRef<'_>) -> Result<Expression> {
        if operators::is_near(condition) {
            return operators::parse_near(self, path, condition);
        }
        let children = self.gathered(condition.iter().map(|element| {
            self.count_condition()?;
            let Some(operator) = operators::on_field(element.name) else {
                return Err(operators::refused_on_field(element.name));
            };
            let operand = Operand { name: operator.name, path, value: element.value, siblings: condition };
            (operator.parse)(self, &operand)
        }))?;
        Ok(Expression::and(children))
    }
}

fn unknown_top_level(name: &str) -> Failure {
    let advice = if name == "$not" {
        "If you are trying to negate an entire expression, use $nor."
    } else {
        "If you have a field name that starts with a '$' symbol, consider using $getField or $setField."
    };
    Failure::bad_value(format!("unknown top level operator: {name}. {advice}"))
}
