//! Replies to commands that failed.

use crate::commands;
use crate::service::Service;
use bunko_bson::Writer;
use bunko_errors::{ErrorCode, Failure};
use bunko_request::Request;
use bunko_session::error_labels;

impl Service {
    /// Appends the reply to a command that failed.
    pub(crate) fn write_failed(&self, failure: Failure, request: &Request<'_>, out: &mut Vec<u8>) {
        let mut reply = Writer::new(out);
        let command = commands::find(request.name()).map(|command| &command.facts);
        if self.replica_set.is_some() && is_of_secondary(failure.code()) {
            let counter = commands::hello::topology(self);
            reply.append("topologyVersion", &commands::hello::topology_version(self, counter));
        }
        write_failure_fields(&mut reply, &error_labels::labelled(failure, command, request));
        self.write_times(&mut reply);
        reply.end();
    }
}

/// Appends an error reply.
pub fn write_failure(out: &mut Vec<u8>, failure: &Failure) {
    let mut reply = Writer::new(out);
    write_failure_fields(&mut reply, failure);
    reply.end();
}

pub(crate) fn write_labels(reply: &mut Writer<'_>, labels: &[impl AsRef<str>]) {
    if labels.is_empty() {
        return;
    }
    reply.begin_array("errorLabels");
    for (index, label) in labels.iter().enumerate() {
        reply.push(index, label.as_ref());
    }
    reply.end();
}

/// Whether a failure says that the member is not the primary. By the topology version beside it, clients tell whether
/// they know of that already.
/// Source: MongoDB drivers' specification, "Server Discovery And Monitoring", errors with `topologyVersion`.
fn is_of_secondary(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::NOT_WRITABLE_PRIMARY
            | ErrorCode::NOT_PRIMARY_NO_SECONDARY_OK
            | ErrorCode::NOT_PRIMARY_OR_SECONDARY
            | ErrorCode::INTERRUPTED_DUE_TO_REPL_STATE_CHANGE
    )
}

fn write_failure_fields(reply: &mut Writer<'_>, failure: &Failure) {
    write_labels(reply, failure.labels());
    reply
        .append("ok", 0.0)
        .append("errmsg", failure.message())
        .append("code", failure.code().0)
        .append("codeName", failure.code().name().as_str())
        .extend(failure.details());
}
