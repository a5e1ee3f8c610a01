//! The options of a read that set how its expressions are evaluated.

use crate::collation_option::Collation;
use crate::let_variables::Let;
use bunko_bson::DocumentRef;
use bunko_errors::Result;
use bunko_request::facts::CommandFacts;
use bunko_request::fields::Fields;

/// `collation` and `let`, and the command that query settings are looked up for.
#[derive(Clone, Copy)]
pub(crate) struct ScopeOptions<'a> {
    /// The command's entry.
    pub command: &'static CommandFacts,
    /// The command document, whose shape may have query settings.
    pub body: DocumentRef<'a>,
    /// Whether the command has `explain: true`.
    pub is_explained: bool,
    pub collation: Collation<'a>,
    pub variables: Let<'a>,
}

impl<'a> ScopeOptions<'a> {
    /// # Errors
    /// `TypeMismatch`.
    pub(crate) fn parse(fields: &Fields<'a>, command: &'static CommandFacts) -> Result<Self> {
        Ok(Self {
            command,
            body: fields.body,
            is_explained: fields.truth("explain"),
            collation: Collation::parse(fields)?,
            variables: Let::parse(fields)?,
        })
    }
}
