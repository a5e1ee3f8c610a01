//! `$addFields`, `$project`, `$unset`, `$replaceRoot` and their aliases: each makes one document from another.

use super::{Definition, Plannable, Reads, Stage, Stages};
use crate::effect::Effect;
use crate::{DocumentStream, Environment, Flow};
use bunko_bson::{DocumentBuf, DocumentRef, StringUse, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::{Dependencies, Reshaping};
use bunko_query::Inclusion;
use std::sync::Arc;

pub(super) const ADD_FIELDS: Definition = Definition {
    facts: &bunko_stages::ADD_FIELDS,
    strings: StringUse::AsBytes,
    parse: |value, environment| parse("$addFields", value, environment),
};
pub(super) const PROJECT: Definition = Definition {
    facts: &bunko_stages::PROJECT,
    strings: StringUse::AsBytes,
    parse: |value, environment| parse("$project", value, environment),
};
pub(super) const REPLACE_ROOT: Definition = Definition {
    facts: &bunko_stages::REPLACE_ROOT,
    strings: StringUse::AsBytes,
    parse: |value, environment| parse("$replaceRoot", value, environment),
};
pub(super) const REPLACE_WITH: Definition = Definition {
    facts: &bunko_stages::REPLACE_WITH,
    strings: StringUse::AsBytes,
    parse: |value, environment| parse("$replaceWith", value, environment),
};
pub(super) const SET: Definition = Definition {
    facts: &bunko_stages::SET,
    strings: StringUse::AsBytes,
    parse: |value, environment| parse("$set", value, environment),
};
pub(super) const UNSET: Definition = Definition {
    facts: &bunko_stages::UNSET,
    strings: StringUse::AsBytes,
    parse: |value, environment| parse("$unset", value, environment),
};

pub(super) fn parse(name: &str, value: ValueRef<'_>, environment: &Environment) -> Result<Stages> {
    let unknown = || Failure::new(ErrorCode(40324), format!("Unrecognized pipeline stage name: '{name}'"));
    let reshaping = Reshaping::parse(name, value, &environment.scope.parse_scope()).ok_or_else(unknown)??;
    let inclusion = match (reshaping.inclusion(), value) {
        (Some(projection), ValueRef::Document(sent)) => {
            Some(Inclusion { projection: Arc::clone(projection), sent: sent.to_owned() })
        }
        _ => None,
    };
    Ok(vec![Box::new(Reshaped { reshaping, inclusion })])
}

struct Reshaped {
    reshaping: Reshaping,
    /// The projection, if it leaves out all fields that it does not name.
    inclusion: Option<Inclusion>,
}

impl Stage for Reshaped {
    fn name(&self) -> &'static str {
        self.reshaping.name()
    }

    fn effect(&self) -> Effect {
        match (self.reshaping.path_changes(), self.reshaping.new_root_path()) {
            (Some(changes), _) => Effect::Reshapes(changes),
            (None, Some(path)) => Effect::ReplacesBy(path),
            (None, None) => Effect::Opaque,
        }
    }

    fn makes_one_of_each(&self) -> bool {
        true
    }

    fn only_changes_documents(&self) -> bool {
        self.reshaping.cannot_fail()
    }

    fn plannable(&self) -> Plannable<'_> {
        self.inclusion.as_ref().map_or(Plannable::Nothing, Plannable::Projection)
    }

    fn open(
        self: Arc<Self>,
        input: Box<dyn DocumentStream>,
        environment: &Arc<Environment>,
    ) -> Box<dyn DocumentStream> {
        Box::new(Reshapes { stage: self, input, environment: Arc::clone(environment), buffer: Vec::new() })
    }

    fn add_dependencies(&self, dependencies: &mut Dependencies) -> Reads {
        self.reshaping.add_dependencies(dependencies);
        if self.reshaping.leaves_nothing_else() { Reads::OnlyThese } else { Reads::OthersToo }
    }
}

struct Reshapes {
    stage: Arc<Reshaped>,
    input: Box<dyn DocumentStream>,
    environment: Arc<Environment>,
    /// Reused between visited documents.
    buffer: Vec<u8>,
}

impl DocumentStream for Reshapes {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        let Some(document) = self.input.next()? else { return Ok(None) };
        self.stage.reshaping.apply(&self.environment.context(document.as_ref())).map(Some)
    }

    fn visit(&mut self, visitor: &mut dyn FnMut(DocumentRef<'_>) -> Result<Flow>) -> Result<()> {
        let Self { stage, input, environment, buffer } = self;
        input.visit(&mut |document| stage.reshaping.lend(&environment.context(document), buffer, &mut *visitor))
    }

    fn lends_parts(&self) -> bool {
        self.input.lends_parts()
    }

    fn visit_part(&mut self, visitor: &mut dyn FnMut(DocumentRef<'_>) -> Result<Flow>) -> Result<()> {
        let Self { stage, input, environment, buffer } = self;
        input.visit_part(&mut |document| stage.reshaping.lend(&environment.context(document), buffer, &mut *visitor))
    }
}
