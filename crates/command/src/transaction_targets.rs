//! Collections that a transaction may not read, write to or create.

use crate::commands::create;
use crate::invocation::Invocation;
use bunko_bson::{DocumentRef, ValueRef};
use bunko_catalog::Namespace;
use bunko_errors::Result;
use bunko_request::facts::{Changes, ReadsFrom};
use bunko_session::transactions::{check_read, not_supported};

/// Checks the collections that a command reads and writes, if it is part of a transaction.
/// # Errors
/// As [`check_read`]; `OperationNotSupportedInTransaction` for a collection that transactions may not write to. The
/// error ends the transaction.
pub(crate) fn check_targets(invocation: &Invocation<'_>) -> Result<()> {
    if !invocation.is_of_transaction() {
        return Ok(());
    }
    check_creation(invocation)?;
    if let (ReadsFrom::Collection, Some(name)) = (invocation.command.reads, invocation.argument().as_str()) {
        check_read(invocation.request.database, name)?;
    }
    // The command itself reports a malformed name.
    targets(invocation).into_iter().flatten().try_for_each(|namespace| check(invocation, &namespace))
}

/// A transaction may create collections, but not views, time series or system collections.
fn check_creation(invocation: &Invocation<'_>) -> Result<()> {
    if invocation.command.name != create::COMMAND.name {
        return Ok(());
    }
    let name = invocation.argument().as_str().unwrap_or_default();
    if invocation.field("timeseries").is_some() {
        let message = "Cannot create a time-series collection in a multi-document transaction.";
        return Err(not_supported(message.to_owned()));
    }
    if invocation.field("viewOn").is_some() {
        return Err(not_supported("Cannot create a view in a multi-document transaction.".to_owned()));
    }
    if name.starts_with("system.") {
        let namespace = Namespace::new(invocation.request.database, name)?;
        return Err(not_supported(format!("Cannot create system collection {namespace} within a transaction.")));
    }
    Ok(())
}

/// The collections whose documents the command writes; empty for commands that write no documents themselves.
fn targets(invocation: &Invocation<'_>) -> Vec<Result<Namespace>> {
    match invocation.command.changes {
        Changes::Documents => {
            let name = invocation.argument().as_str().unwrap_or_default();
            vec![Namespace::new(invocation.request.database, name)]
        }
        Changes::DocumentsOfSeveral => {
            let named = invocation.documents("nsInfo").unwrap_or_default();
            let name = |named: DocumentRef<'_>| named.get("ns").and_then(ValueRef::as_str).map(Namespace::parse);
            named.into_iter().filter_map(name).collect()
        }
        Changes::None | Changes::Other | Changes::Output(_) => Vec::new(),
    }
}

fn check(invocation: &Invocation<'_>, namespace: &Namespace) -> Result<()> {
    if namespace.collection().starts_with("system.") {
        return Err(not_supported(format!("Cannot write to the collection '{namespace}' in a transaction.")));
    }
    if bunko_series::find(&invocation.service.catalog, namespace)?.is_some() {
        let message =
            format!("Cannot write to the time-series collection '{namespace}' in a multi-document transaction.");
        return Err(not_supported(message));
    }
    Ok(())
}
