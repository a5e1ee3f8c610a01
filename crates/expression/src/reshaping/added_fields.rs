//! `$addFields`, also `$set`: computes fields beside those that are there.

use super::Change;
use crate::{ParseScope, Projection};
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentRef, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) fn parse(name: &'static str, value: ValueRef<'_>, scope: &ParseScope) -> Result<Change> {
    let ValueRef::Document(specification) = value else {
        let message = format!("{name} specification stage must be an object, got {}", value.kind().alias());
        return Err(Failure::new(ErrorCode(40272), message));
    };
    let projection = PathCheck { specification, seen: BTreeSet::new(), scope }
        .fields(specification, "")
        .and_then(|()| Projection::parse_addition(specification, scope))
        .map_err(|failure| failure.with_prefix(&format!("Invalid {name} :: caused by :: ")))?;
    Ok(Change::Fields(Arc::new(projection)))
}

/// Refuses paths that cannot be added: dots in nested names, and paths of which one begins with another.
struct PathCheck<'s> {
    specification: DocumentRef<'s>,
    seen: BTreeSet<String>,
    scope: &'s ParseScope,
}

impl PathCheck<'_> {
    fn fields(&mut self, fields: DocumentRef<'_>, prefix: &str) -> Result<()> {
        for field in fields {
            self.scope.work(1)?;
            if !prefix.is_empty() && field.name.contains('.') {
                let message = format!("cannot use dotted field name '{}' in a sub object", field.name);
                return Err(Failure::new(ErrorCode(40183), message));
            }
            let path = format!("{prefix}{}", field.name);
            match field.value {
                ValueRef::Document(nested) if nested.first().is_some_and(|first| !first.name.starts_with('$')) => {
                    self.fields(nested, &format!("{path}."))?;
                }
                ValueRef::Document(nested) if nested.count() > 1 => {
                    let message =
                        "an expression specification must contain exactly one field, the name of the expression";
                    return Err(Failure::new(ErrorCode(40181), message));
                }
                _ => self.add(path)?,
            }
        }
        Ok(())
    }

    fn add(&mut self, path: String) -> Result<()> {
        let dots = path.match_indices('.').map(|(dot, _)| dot);
        let above = dots.chain([path.len()]).find_map(|end| self.seen.get(&path[..end]));
        let below = || {
            let start = format!("{path}.");
            self.seen.range(start.clone()..).next().filter(|seen| seen.starts_with(&start))
        };
        if let Some(other) = above.or_else(below) {
            let specification = ValueText(ValueRef::Document(self.specification));
            let message = format!(
                "specification contains two conflicting paths. Cannot specify both '{path}' and '{other}': {specification}"
            );
            return Err(Failure::new(ErrorCode(40176), message));
        }
        self.seen.insert(path);
        Ok(())
    }
}
