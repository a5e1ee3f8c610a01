//! Delete statements.

use super::Writes;
use super::search::{Choice, Operation, Wanted};
use crate::hint::Hint;
use bunko_bson::{DocumentRef, StringOrder};
use bunko_catalog::Verdict;
use bunko_errors::Result;
use bunko_update::Targets;

/// One entry of `deletes`.
pub struct DeleteStatement<'a> {
    /// The condition that documents match.
    pub filter: DocumentRef<'a>,
    /// The first document or all of them.
    pub targets: Targets,
    /// The index to use.
    pub hint: Option<Hint>,
    /// The string order, if not the collection's.
    pub strings: Option<StringOrder>,
}

impl Writes<'_> {
    /// Executes one delete statement and returns the number of documents deleted.
    /// # Errors
    /// Errors in the filter or the hint, before anything is done; errors of the scope's operation; `WriteConflict` if
    /// other clients change the candidates too often.
    pub fn delete(&mut self, statement: &DeleteStatement<'_>) -> Result<u64> {
        self.collate(statement.strings.as_ref())?;
        let choice = Choice { sort: None, hint: statement.hint.clone() };
        let wanted = Wanted::parse(statement.filter, choice, Operation::Delete, &self.scope)?;
        let changes = self.change_matching(&wanted, statement.targets, &mut |_, _| Ok(Verdict::Delete))?;
        Ok(changes.changed)
    }
}
