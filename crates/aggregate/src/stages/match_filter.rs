//! `$match`: passes on the documents that match a filter, unchanged.

use super::{Definition, Plannable, Reads, Stage, Stages};
use crate::effect::Effect;
use crate::metadata::Carried;
use crate::{DocumentStream, Environment, Flow};
use bunko_bson::{DocumentBuf, DocumentRef, StringUse, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::{Dependencies, Offered};
use bunko_matcher::Filter;
use std::sync::Arc;

pub(super) const DEFINITION: Definition =
    Definition { facts: &bunko_stages::MATCH, strings: StringUse::Collated, parse };

struct Match {
    source: DocumentBuf,
    filter: Filter,
}

fn parse(value: ValueRef<'_>, environment: &Environment) -> Result<Stages> {
    let ValueRef::Document(filter) = value else {
        return Err(Failure::new(ErrorCode(15959), "the match filter must be an expression in an object"));
    };
    Ok(vec![filtering(filter, environment)?])
}

/// The stage with this filter.
pub(crate) fn filtering(filter: DocumentRef<'_>, environment: &Environment) -> Result<Box<dyn Stage>> {
    let parsed = bunko_query::parse_stage_filter(filter, &environment.scope)?;
    Ok(Box::new(Match { source: filter.to_owned(), filter: parsed }))
}

impl Stage for Match {
    fn name(&self) -> &'static str {
        DEFINITION.facts.name
    }

    fn open(self: Arc<Self>, input: Box<dyn DocumentStream>, _: &Arc<Environment>) -> Box<dyn DocumentStream> {
        Box::new(Matched { stage: self, input })
    }

    fn plannable(&self) -> Plannable<'_> {
        Plannable::Filter(self.source.as_ref())
    }

    fn effect(&self) -> Effect {
        Effect::Filters
    }

    fn metadata(&self) -> Carried {
        if self.searches_text() { Carried::Made(Offered::TEXT) } else { Carried::Along }
    }

    fn searches_text(&self) -> bool {
        self.filter.holds_text()
    }

    fn add_dependencies(&self, dependencies: &mut Dependencies) -> Reads {
        add_filter_fields(self.source.as_ref(), dependencies);
        Reads::OthersToo
    }
}

/// Adds the fields that a filter names. At `$expr` and other operators without a field, all fields are added.
fn add_filter_fields(filter: DocumentRef<'_>, dependencies: &mut Dependencies) {
    for element in filter {
        match (element.name, element.value) {
            ("$and" | "$or" | "$nor", ValueRef::Array(clauses)) => {
                clauses.iter().filter_map(ValueRef::as_document).for_each(|clause| {
                    add_filter_fields(clause, dependencies);
                });
            }
            ("$comment", _) => {}
            (operator, _) if operator.starts_with('$') => dependencies.add_all(),
            (path, _) => dependencies.add(path),
        }
    }
}

struct Matched {
    stage: Arc<Match>,
    input: Box<dyn DocumentStream>,
}

impl DocumentStream for Matched {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        if self.input.lends_parts() {
            let mut found = None;
            self.visit_part(&mut |document| {
                found = Some(document.to_owned());
                Ok(Flow::Stop)
            })?;
            return Ok(found);
        }
        while let Some(document) = self.input.next()? {
            if self.stage.filter.try_matches(document.as_ref())? {
                return Ok(Some(document));
            }
        }
        Ok(None)
    }

    fn visit(&mut self, visitor: &mut dyn FnMut(DocumentRef<'_>) -> Result<Flow>) -> Result<()> {
        let filter = &self.stage.filter;
        self.input.visit(&mut |document| if filter.try_matches(document)? { visitor(document) } else { Ok(Flow::More) })
    }

    fn lends_parts(&self) -> bool {
        self.input.lends_parts()
    }

    fn visit_part(&mut self, visitor: &mut dyn FnMut(DocumentRef<'_>) -> Result<Flow>) -> Result<()> {
        let filter = &self.stage.filter;
        let mut seen =
            |document: DocumentRef<'_>| if filter.try_matches(document)? { visitor(document) } else { Ok(Flow::More) };
        self.input.visit_part(&mut seen)
    }
}
