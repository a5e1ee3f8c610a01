//! `$currentOp`: what is running, as `currentOp` has it, but as a pipeline's documents.

use super::{SourceStage, Subject};
use crate::invocation::Invocation;
use crate::operation_description::describe;
use bunko_bson::{DocumentBuf, ValueRef};
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure, Result};

pub(super) const STAGE: SourceStage = SourceStage { name: "$currentOp", subject: Subject::Server, documents };

fn documents(
    invocation: &Invocation<'_>,
    namespace: &Namespace,
    specification: ValueRef<'_>,
) -> Result<Vec<DocumentBuf>> {
    // What the cursors of `{aggregate: 1}` are called there; no collection is.
    if namespace.as_str() != "admin.$cmd.aggregate" {
        let message = "$currentOp must be run against the 'admin' database with {aggregate: 1}";
        return Err(Failure::new(ErrorCode::INVALID_NAMESPACE, message));
    }
    let shown = Shown::parse(specification)?;
    let observed = invocation.service.operations.observe();
    Ok(observed
        .iter()
        .filter(|observed| observed.opid != 0 || shown == Shown::IdleToo)
        .map(|observed| describe(invocation.service, observed))
        .collect())
}

/// Which connections are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Active,
    IdleToo,
}

impl Shown {
    /// Reads the options. Only `idleConnections` makes a difference: without users every operation is the asker's own,
    /// without transactions no session is idle with something in hand, and commands are always shown cut to 1 KiB.
    fn parse(specification: ValueRef<'_>) -> Result<Self> {
        let Some(options) = specification.as_document() else {
            let kind = specification.kind().alias();
            let message = format!("$currentOp options must be specified in an object, but found: {kind}");
            return Err(Failure::failed_to_parse(message));
        };
        let mut shown = Self::Active;
        for option in options {
            let ValueRef::Boolean(value) = option.value else {
                let message = format!(
                    "The '{}' parameter of the $currentOp stage must be a boolean value, but found: {}",
                    option.name,
                    option.value.kind().alias()
                );
                return Err(Failure::failed_to_parse(message));
            };
            match option.name {
                "idleConnections" if value => shown = Self::IdleToo,
                "allUsers" | "idleConnections" | "idleSessions" | "localOps" | "truncateOps" => {}
                // Cursors, stacks and other nodes: not to want them is granted.
                "idleCursors" | "backtrace" | "targetAllNodes" if !value => {}
                "idleCursors" | "backtrace" | "targetAllNodes" => {
                    let message = format!("the option '{}' of '$currentOp' is not supported", option.name);
                    return Err(Failure::new(ErrorCode::COMMAND_NOT_SUPPORTED, message));
                }
                unknown => {
                    let message = format!("Unrecognized option '{unknown}' in $currentOp stage.");
                    return Err(Failure::failed_to_parse(message));
                }
            }
        }
        Ok(shown)
    }
}
