//! Detects whether a server was restarted.
//!
//! A server that was killed, or another one that took over, may lack writes that were acknowledged without journaling.

use crate::Link;
use bunko_bson::{DocumentBuf, ObjectId, ValueRef};
use bunko_client::ClientError;

/// Identifies one process of the server; `None` if the server does not tell (MongoDB before 4.4).
/// # Errors
/// The error of the connection.
pub(super) fn of(link: &mut dyn Link) -> Result<Option<ObjectId>, ClientError> {
    match link.run("admin", &DocumentBuf::new().with("hello", 1_i32)) {
        Ok(reply) => {
            let version = reply.as_ref().get("topologyVersion").and_then(ValueRef::as_document);
            Ok(version.and_then(|version| match version.get("processId") {
                Some(ValueRef::ObjectId(id)) => Some(id),
                _ => None,
            }))
        }
        Err(ClientError::Command(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
