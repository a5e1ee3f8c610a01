//! Waits until no earlier run of a copy can write to the target.
//!
//! A run that was killed may have left commands on their way: the server still carries out what it has received. A run
//! that is alive ends once it finds out that its record was taken over. Both have connections to the target with an
//! `appName` of their own, and the server closes a connection after its last command. So an earlier run writes nothing more
//! once it has no connection.

use super::pair::Pair;
use super::{APP_NAME, Copy};
use crate::{ToolError, retry};
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, ValueRef};
use std::time::Duration;

/// Time between two looks at the target's connections.
const LOOK: Duration = Duration::from_millis(200);
/// Time after which the commands of earlier runs are ended. A run that is alive finds out by itself before.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time after which the wait is given up.
const WAIT_MAX: Duration = Duration::from_mins(1);
/// Addresses of connections that an error names.
const CLIENTS_TOLD_MAX: usize = 5;

/// Waits until earlier runs have no connection to the target, and ends their commands if that takes long.
/// # Errors
/// `Usage` if an earlier run stays; `Interrupted`; the connection's error. If the user may not see connections, a note
/// says so.
pub(super) fn wait_for_earlier_runs(copy: &Copy<'_>, pair: &mut Pair) -> Result<(), ToolError> {
    let clock = copy.progress.clock();
    let began = clock.now();
    let mut is_told = false;
    loop {
        retry::check(copy.interrupted)?;
        let Some(connections) = connections(copy, pair)? else {
            copy.note("the target does not show its connections: no other copy to it may run".to_owned());
            return Ok(());
        };
        if connections.is_empty() {
            return Ok(());
        }
        if !is_told {
            copy.note("an earlier copy still has connections to the target, and is waited for".to_owned());
            is_told = true;
        }
        let waited = clock.since(began);
        if waited >= WAIT_MAX {
            let clients: Vec<_> = connections.iter().take(CLIENTS_TOLD_MAX).filter_map(client).collect();
            return Err(ToolError::Usage(format!(
                "another bunko copy is connected to the target and does not end ({}): only one copy to a target may run",
                clients.join(", ")
            )));
        }
        if waited >= PATIENCE {
            for connection in &connections {
                if let Some(operation) = connection.as_ref().get("opid") {
                    // The refusal is ignored: the operation may have ended meanwhile.
                    let kill = DocumentBuf::new().with("killOp", 1_i32).with("op", operation);
                    let _ = pair.target().ask("admin", &kill)?;
                }
            }
        }
        std::thread::sleep(LOOK);
    }
}

/// The address from which a connection came.
fn client(connection: &DocumentBuf) -> Option<&str> {
    connection.as_ref().get("client").and_then(ValueRef::as_str)
}

/// The connections of other runs to the target; `None` if the user may not see them.
fn connections(copy: &Copy<'_>, pair: &mut Pair) -> Result<Option<Vec<DocumentBuf>>, ToolError> {
    let name = DocumentBuf::new()
        .with("$regex", ValueRef::String(&format!("^{APP_NAME} ")))
        .with("$ne", copy.options.app_name.as_str());
    // Users without the right to see all see their own, which an earlier run most often had too.
    for sees_all in [true, false] {
        let shown = DocumentBuf::new().with("allUsers", sees_all).with("idleConnections", true);
        let stages = [
            DocumentBuf::new().with("$currentOp", &shown),
            DocumentBuf::new().with("$match", &DocumentBuf::new().with("appName", &name)),
            DocumentBuf::new().with("$project", &DocumentBuf::new().with("opid", 1_i32).with("client", 1_i32)),
        ];
        let command = DocumentBuf::new()
            .with("aggregate", 1_i32)
            .with("pipeline", &stages.iter().collect::<ArrayBuf>())
            .with("cursor", &DocumentBuf::new());
        match pair.target().ask("admin", &command)? {
            Ok(reply) => {
                let cursor = reply.as_ref().get("cursor").and_then(ValueRef::as_document);
                let batch = cursor.and_then(|cursor| cursor.get("firstBatch")?.as_array());
                let found = batch.into_iter().flat_map(ArrayRef::iter).filter_map(ValueRef::as_document);
                return Ok(Some(found.map(DocumentRef::to_owned).collect()));
            }
            Err(_) if sees_all => {}
            Err(_) => return Ok(None),
        }
    }
    Ok(None)
}
