//! Operations of clients: each shape runs once on the rehearsal, without documents.
//!
//! An operation succeeded on the server that is checked, and here meets the same collections and indexes. So a refusal
//! is a difference between the two servers, unless the collection or index is gone since.

use super::server::GRANT;
use super::{Check, Subject, Weight};
use crate::InspectionError;
use crate::operations::{each_of_log, of_profile, operation, shortened};
use crate::shape::shape;
use bunko_bson::DocumentRef;
use bunko_client::CommandError;
use std::io::BufRead;

/// Refusals that do not speak of the operation: `NamespaceNotFound`, `MaxTimeMSExpired`, `IndexNotFound`, `DuplicateKey`,
/// and 40573 for a change stream on a server without an oplog, which the rehearsal is.
const PASSING_CODES: [i32; 5] = [26, 50, 27, 11000, 40573];
/// The code for variables that a command does not define. The profiler shows the statements of an update or a delete
/// without the variables of its `let`.
const UNDEFINED_VARIABLE: i32 = 17276;
/// Longest time of one operation, in milliseconds.
const OPERATION_MS_MAX: i32 = 1_000;

const ADVICE: &str = "Write the operation in another way, and check again.";

impl Check<'_> {
    /// Rehearses the operations of a database's profile.
    pub(super) fn profile(&mut self, database: &str) -> Result<(), InspectionError> {
        match of_profile(&mut self.source, database)? {
            Ok(entries) => entries.iter().try_for_each(|entry| self.operation(entry.as_ref())),
            Err(refusal) => {
                self.unknown(Subject::Use, &format!("{database}.system.profile"), &refusal, GRANT);
                Ok(())
            }
        }
    }

    /// Rehearses the slow operations of a log.
    pub(super) fn log(&mut self, log: &mut dyn BufRead) -> Result<(), InspectionError> {
        each_of_log(log, &mut |entry| self.operation(entry))
    }

    /// Rehearses an operation, unless one of its shape was rehearsed before.
    fn operation(&mut self, entry: DocumentRef<'_>) -> Result<(), InspectionError> {
        let Some((database, command)) = operation(entry) else { return Ok(()) };
        if !self.shapes.insert(shape(&database, command.as_ref())) {
            return Ok(());
        }
        self.report.count(Subject::Use);
        let limited = command.clone().with("maxTimeMS", OPERATION_MS_MAX);
        match self.rehearsal.ask(&database, &limited)? {
            Err(refusal) if !is_passing(&refusal) && !lacks_variables(command.as_ref(), &refusal) => {
                let name = format!("{database}: {}", shortened(&command));
                self.found(Subject::Use, Weight::Refused, name, refusal.to_string(), ADVICE);
            }
            _ => {}
        }
        Ok(())
    }
}

fn lacks_variables(command: DocumentRef<'_>, refusal: &CommandError) -> bool {
    refusal.code == UNDEFINED_VARIABLE && matches!(command.first_name(), Some("update" | "delete"))
}

/// Whether a refusal may come from what has changed since the operation ran.
fn is_passing(refusal: &CommandError) -> bool {
    PASSING_CODES.contains(&refusal.code) || refusal.message.contains("hint provided does not correspond")
}
