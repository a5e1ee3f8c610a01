//! The error labels by which drivers decide whether to retry.
//!
//! Source: MongoDB's specifications for drivers, "Retryable Writes", "Transactions" and "Change Streams":
//! `errorLabels`.

use crate::transactions::is_inside;
use bunko_bson::ValueRef;
use bunko_errors::{ErrorCode, Failure};
use bunko_request::Request;
use bunko_request::facts::CommandFacts;

const TRANSIENT_TRANSACTION: &str = "TransientTransactionError";
const RETRYABLE_WRITE: &str = "RetryableWriteError";
const RESUMABLE: &str = "ResumableChangeStreamError";
const NOT_RESUMABLE: &str = "NonResumableChangeStreamError";

/// Errors after which the same request may succeed at another server, or at this one a little later.
/// Source: MongoDB's specification of retryable writes for drivers, "Determining Retryable Errors".
const ELSEWHERE: [i32; 12] = [
    6,     // HostUnreachable
    7,     // HostNotFound
    89,    // NetworkTimeout
    91,    // ShutdownInProgress
    189,   // PrimarySteppedDown
    262,   // ExceededTimeLimit
    9001,  // SocketException
    10107, // NotWritablePrimary
    11600, // InterruptedAtShutdown
    11602, // InterruptedDueToReplStateChange
    13435, // NotPrimaryNoSecondaryOk
    13436, // NotPrimaryOrSecondary
];

/// Errors after which the whole transaction may succeed when it is tried again.
/// Source: MongoDB's specification of transactions for drivers, "TransientTransactionError".
const AGAIN_AS_A_WHOLE: [i32; 6] = [
    24,  // LockTimeout
    112, // WriteConflict
    239, // SnapshotTooOld
    246, // SnapshotUnavailable
    251, // NoSuchTransaction
    267, // PreparedTransactionInProgress
];

/// Errors after which a change stream may be resumed, in addition to [`ELSEWHERE`].
/// Source: MongoDB's specification of change streams for drivers, "Resumable Error".
const ALSO_RESUMABLE: [i32; 5] = [
    63,    // StaleShardVersion
    133,   // FailedToSatisfyReadPreference
    150,   // StaleEpoch
    234,   // RetryChangeStream
    13388, // StaleConfig
];

/// Adds the error label to the failure of a request; `command` is the command's entry, `None` for an unknown command.
/// Drivers retry by the labels alone, because the server's wire version promises them.
pub fn labelled(failure: Failure, command: Option<&CommandFacts>, request: &Request<'_>) -> Failure {
    let body = request.body;
    if matches!(failure.code(), ErrorCode::CHANGE_STREAM_FATAL_ERROR | ErrorCode::CHANGE_STREAM_HISTORY_LOST) {
        return failure.with_label(NOT_RESUMABLE);
    }
    if failure.has_labels_instead() || body.get("txnNumber").is_none() {
        return failure;
    }
    if of_retryable_write(failure.code(), command, request) {
        return failure.with_label(RETRYABLE_WRITE);
    }
    let code = failure.code().0;
    let is_transient = AGAIN_AS_A_WHOLE.contains(&code) || ELSEWHERE.contains(&code);
    if is_inside(body) && is_transient { failure.with_label(TRANSIENT_TRANSACTION) } else { failure }
}

/// The labels of a write that was done but whose write concern failed with that code.
pub fn of_write_concern_error(
    code: Option<ValueRef<'_>>,
    command: &CommandFacts,
    request: &Request<'_>,
) -> Vec<String> {
    let code = code.and_then(bunko_bson::number::as_i64_exact).and_then(|code| i32::try_from(code).ok());
    let is_retryable = code.is_some_and(|code| of_retryable_write(ErrorCode(code), Some(command), request));
    is_retryable.then(|| RETRYABLE_WRITE.to_owned()).into_iter().collect()
}

/// Labels the failure of a `getMore` of a change stream.
pub fn of_stream(failure: Failure) -> Failure {
    let code = failure.code().0;
    if failure.has_labels_instead() || !(ELSEWHERE.contains(&code) || ALSO_RESUMABLE.contains(&code)) {
        return failure;
    }
    failure.with_label(RESUMABLE)
}

/// Whether a failure with that code lets a driver retry just this command: a retryable write, or the end of a
/// transaction.
fn of_retryable_write(code: ErrorCode, command: Option<&CommandFacts>, request: &Request<'_>) -> bool {
    let ends_transaction = || command.is_some_and(|command| command.transaction.is_end());
    ELSEWHERE.contains(&code.0)
        && request.body.get("txnNumber").is_some()
        && (!is_inside(request.body) || ends_transaction())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::DocumentBuf;
    use bunko_request::facts::TransactionUse;

    fn request(body: &DocumentBuf) -> Request<'_> {
        Request::new("test", body.as_ref(), None)
    }

    #[test]
    fn a_retryable_write_that_met_a_stopping_server_may_be_sent_again() {
        let write = DocumentBuf::new().with("insert", "t").with("txnNumber", 1_i64);
        let stopping = || Failure::new(ErrorCode::INTERRUPTED_AT_SHUTDOWN, "interrupted at shutdown");
        assert_eq!(labelled(stopping(), None, &request(&write)).labels(), ["RetryableWriteError"]);
        assert!(labelled(stopping(), None, &request(&DocumentBuf::new())).labels().is_empty());
        let other = Failure::new(ErrorCode::BAD_VALUE, "a value");
        assert!(labelled(other, None, &request(&write)).labels().is_empty());
        let given = stopping().with_labels_instead(vec!["Own".to_owned()]);
        assert_eq!(labelled(given, None, &request(&write)).labels(), ["Own"]);
    }

    #[test]
    fn a_transaction_is_tried_again_as_a_whole_but_its_end_alone() {
        const INSERT: CommandFacts = CommandFacts { name: "insert", ..CommandFacts::PLAIN };
        const COMMIT: CommandFacts =
            CommandFacts { name: "commitTransaction", transaction: TransactionUse::Commits, ..CommandFacts::PLAIN };
        let inside =
            |command: &str| DocumentBuf::new().with(command, 1).with("txnNumber", 1_i64).with("autocommit", false);
        let labels = |code: i32, command: &CommandFacts| {
            let failure = Failure::new(ErrorCode(code), "");
            let failure = labelled(failure, Some(command), &request(&inside(command.name)));
            failure.labels().iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(labels(112, &INSERT), ["TransientTransactionError"]);
        assert_eq!(labels(91, &INSERT), ["TransientTransactionError"]);
        assert_eq!(labels(251, &COMMIT), ["TransientTransactionError"]);
        assert_eq!(labels(91, &COMMIT), ["RetryableWriteError"]);
        assert!(labels(11000, &INSERT).is_empty());
        let alone = DocumentBuf::new().with("insert", "t").with("txnNumber", 1_i64);
        assert!(labelled(Failure::new(ErrorCode(112), ""), Some(&INSERT), &request(&alone)).labels().is_empty());
    }
}
