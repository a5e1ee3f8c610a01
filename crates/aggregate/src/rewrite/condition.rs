//! Conditions: the conjuncts of a `$match`, and their form on the input of a stage.

use super::expr_paths;
use super::operand::{compares_values, needs_a_scalar, needs_a_value};
use super::origin::Origin;
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, Element, ValueRef};
use bunko_matcher::planted::{Fault, active};
use std::collections::HashSet;

/// A condition that documents must satisfy, as a filter.
///
/// Conditions move only if they cannot fail, whatever the document is. So `$where`, `$text`, `$jsonSchema` and
/// expressions with operators that may fail stay where the client put them.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    pub(super) filter: DocumentBuf,
}

/// The form of a condition on the input of a stage.
pub(super) struct Mapped {
    pub(super) condition: Condition,
    pub(super) proof: Proof,
}

/// The strength of the proof about a mapped condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Proof {
    /// A document after the stage satisfies the condition only if its input satisfies the mapped one.
    Implied,
    /// A document after the stage satisfies the condition if and only if its input satisfies the mapped one.
    Equivalent,
}

impl Condition {
    /// The conjuncts of a filter, in order.
    pub(super) fn conjuncts(filter: DocumentRef<'_>) -> Vec<Self> {
        let mut all = Vec::new();
        add_conjuncts(filter, &mut all);
        all
    }

    /// A whole filter.
    pub(super) fn whole(filter: DocumentRef<'_>) -> Self {
        Self { filter: filter.to_owned() }
    }

    /// A condition that no document satisfies.
    pub(super) fn never() -> Self {
        Self { filter: DocumentBuf::new().with("$alwaysFalse", 1_i32) }
    }

    /// The conjunction of these conditions.
    pub(super) fn all(conditions: &[Self]) -> Self {
        let mut names = HashSet::new();
        let are_distinct = conditions.iter().flat_map(|one| one.filter.as_ref()).all(|field| names.insert(field.name));
        let filter = if are_distinct {
            conditions.iter().fold(DocumentBuf::new(), |mut all, one| {
                all.extend(one.filter.as_ref());
                all
            })
        } else {
            DocumentBuf::new().with("$and", &conditions.iter().map(|one| &one.filter).collect::<ArrayBuf>())
        };
        Self { filter }
    }

    /// Number of rewrite steps that mapping the condition takes.
    pub(super) fn steps(&self) -> usize {
        1 + self.filter.len_bytes() / 16
    }

    /// Whether the form of the condition shows that no document satisfies it.
    pub(super) fn is_never(&self) -> bool {
        self.filter.as_ref().iter().any(|field| match (field.name, field.value) {
            ("$alwaysFalse", _) => true,
            ("$expr", constant) => matches!(constant, ValueRef::Boolean(false) | ValueRef::Null),
            (path, ValueRef::Document(operators)) if !path.starts_with('$') => {
                operators.get("$in").and_then(ValueRef::as_array).is_some_and(ArrayRef::is_empty)
            }
            _ => false,
        })
    }

    /// Whether the condition consists of conditions on paths, none of them negated.
    pub(super) fn is_positive(&self) -> bool {
        is_positive(self.filter.as_ref())
    }

    /// Whether the condition contains an `$expr`.
    pub(super) fn holds_expression(&self) -> bool {
        holds_expression(self.filter.as_ref())
    }

    /// The condition on a stage's input that corresponds to this one on the stage's output; `None` if there is none.
    pub(super) fn mapped(&self, origin: &dyn Fn(&str) -> Origin) -> Option<Mapped> {
        let (filter, proof) = mapped(self.filter.as_ref(), origin)?;
        Some(Mapped { condition: Self { filter }, proof })
    }

    /// As [`Self::mapped`], if the condition is equivalent.
    pub(super) fn equivalent(&self, origin: &dyn Fn(&str) -> Origin) -> Option<Self> {
        self.mapped(origin).filter(|mapped| mapped.proof == Proof::Equivalent).map(|mapped| mapped.condition)
    }
}

fn add_conjuncts(filter: DocumentRef<'_>, all: &mut Vec<Condition>) {
    for field in filter {
        match (field.name, field.value) {
            ("$and", ValueRef::Array(clauses)) => {
                clauses.iter().filter_map(ValueRef::as_document).for_each(|clause| add_conjuncts(clause, all));
            }
            (name, value) => all.push(Condition { filter: DocumentBuf::new().with(name, value) }),
        }
    }
}

fn is_positive(filter: DocumentRef<'_>) -> bool {
    let mut fields = filter.iter().peekable();
    fields.peek().is_some()
        && fields.all(|field| match (field.name, field.value) {
            ("$and" | "$or", ValueRef::Array(clauses)) => {
                clauses.iter().all(|clause| clause.as_document().is_some_and(is_positive))
            }
            (name, _) => !name.starts_with('$'),
        })
}

fn holds_expression(filter: DocumentRef<'_>) -> bool {
    filter.iter().any(|field| match (field.name, field.value) {
        ("$expr", _) => true,
        ("$and" | "$or" | "$nor", ValueRef::Array(clauses)) => {
            clauses.iter().filter_map(ValueRef::as_document).any(holds_expression)
        }
        _ => false,
    })
}

fn mapped(filter: DocumentRef<'_>, origin: &dyn Fn(&str) -> Origin) -> Option<(DocumentBuf, Proof)> {
    let mut whole = Proof::Equivalent;
    let mut mapped = DocumentBuf::new();
    for field in filter {
        let proof = match (field.name, field.value) {
            ("$and" | "$or", ValueRef::Array(clauses)) => add_clauses(&mut mapped, field.name, clauses, origin)?,
            ("$nor", ValueRef::Array(clauses)) => {
                // The negation of an implied condition implies nothing.
                let proof = add_clauses(&mut mapped, field.name, clauses, origin)?;
                Some(proof).filter(|proof| *proof == Proof::Equivalent || active(Fault::ImpliedNegated))?
            }
            ("$comment" | "$alwaysFalse" | "$alwaysTrue", value) => {
                mapped.append(field.name, value);
                Proof::Equivalent
            }
            ("$expr", expression) => {
                mapped.append("$expr", expr_paths::mapped(expression, origin)?.as_ref());
                Proof::Equivalent
            }
            (name, _) if name.starts_with('$') => return None,
            _ => add_path(&mut mapped, field, origin)?,
        };
        whole = whole.min(proof);
    }
    Some((mapped, whole))
}

fn add_clauses(
    mapped_filter: &mut DocumentBuf,
    operator: &str,
    clauses: ArrayRef<'_>,
    origin: &dyn Fn(&str) -> Origin,
) -> Option<Proof> {
    let mut whole = Proof::Equivalent;
    let mut all = ArrayBuf::new();
    for clause in clauses.iter() {
        let (clause, proof) = mapped(clause.as_document()?, origin)?;
        all.push(&clause);
        whole = whole.min(proof);
    }
    mapped_filter.append(operator, &all);
    Some(whole)
}

fn add_path(mapped: &mut DocumentBuf, field: Element<'_>, origin: &dyn Fn(&str) -> Origin) -> Option<Proof> {
    let (source, proof) = match origin(field.name) {
        Origin::Exact(source) => (source, Proof::Equivalent),
        Origin::Equal(source) if compares_values(field.value) || active(Fault::EqualsAnswerAlike) => {
            (source, Proof::Equivalent)
        }
        Origin::Found(source) if needs_a_value(field.value) || active(Fault::NoValueNeeded) => {
            (source, Proof::Equivalent)
        }
        Origin::Implied(source) if needs_a_scalar(field.value) && active(Fault::ImpliedReplaces) => {
            (source, Proof::Equivalent)
        }
        Origin::Implied(source) if needs_a_scalar(field.value) => (source, Proof::Implied),
        _ => return None,
    };
    mapped.append(&source, field.value);
    Some(proof)
}
