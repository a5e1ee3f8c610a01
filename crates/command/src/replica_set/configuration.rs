//! The configuration document of a set of one member.
//! Source: MongoDB manual, "Replica Set Configuration".

use super::version;
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, ObjectId, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};

/// That of a set that begins now.
pub(super) fn first(name: &str, host: &str, id: ObjectId) -> DocumentBuf {
    make(name, host, 1, id)
}

fn make(name: &str, host: &str, version: i64, id: ObjectId) -> DocumentBuf {
    let member = DocumentBuf::new()
        .with("_id", 0)
        .with("host", host)
        .with("arbiterOnly", false)
        .with("buildIndexes", true)
        .with("hidden", false)
        .with("priority", 1)
        .with("tags", &DocumentBuf::new())
        .with("secondaryDelaySecs", 0_i64)
        .with("votes", 1);
    let members: ArrayBuf = [&member].into_iter().collect();
    let settings = DocumentBuf::new()
        .with("chainingAllowed", true)
        .with("heartbeatIntervalMillis", 2000)
        .with("heartbeatTimeoutSecs", 10)
        .with("electionTimeoutMillis", 10_000)
        .with("catchUpTimeoutMillis", -1)
        .with("catchUpTakeoverDelayMillis", 30_000)
        .with("getLastErrorModes", &DocumentBuf::new())
        .with("getLastErrorDefaults", &DocumentBuf::new().with("w", 1).with("wtimeout", 0))
        .with("replicaSetId", id);
    DocumentBuf::new()
        .with("_id", name)
        .with("version", version as i32)
        .with("term", super::TERM as i32)
        .with("members", &members)
        .with("protocolVersion", 1_i64)
        .with("writeConcernMajorityJournalDefault", true)
        .with("settings", &settings)
}

/// A kept configuration, with the member where it is now.
/// # Errors
/// `InvalidReplicaSetConfig` for another set's, or one of several members.
pub(super) fn checked(kept: DocumentRef<'_>, name: &str, host: &str) -> Result<DocumentBuf> {
    let own = kept.get("_id").and_then(ValueRef::as_str).unwrap_or_default();
    if own != name {
        let message = format!("the data belong to the replica set '{own}', not to '{name}'");
        return Err(Failure::new(ErrorCode::INVALID_REPLICA_SET_CONFIG, message));
    }
    let mut members = kept.get("members").and_then(ValueRef::as_array).into_iter().flat_map(ArrayRef::iter);
    let (first, others) = (members.next().and_then(ValueRef::as_document), members.count());
    if others > 0 {
        let message = format!("the replica set '{own}' has {} members: only one is supported yet", others + 1);
        return Err(Failure::new(ErrorCode::INVALID_REPLICA_SET_CONFIG, message));
    }
    if first.and_then(|member| member.get("host")).and_then(ValueRef::as_str) == Some(host) {
        return Ok(kept.to_owned());
    }
    let settings = kept.get("settings").and_then(ValueRef::as_document);
    let id = match settings.and_then(|settings| settings.get("replicaSetId")) {
        Some(ValueRef::ObjectId(id)) => id,
        _ => ObjectId::from_parts(0, [0; 5], 0),
    };
    Ok(make(name, host, version(kept) + 1, id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_moved_is_a_new_version_and_another_set_is_refused() {
        let id = ObjectId::from_parts(7, [1; 5], 9);
        let began = first("rs0", "a:1", id);
        assert_eq!(checked(began.as_ref(), "rs0", "a:1").expect("the same"), began);
        assert_eq!(checked(began.as_ref(), "rs0", "b:1").expect("moved"), make("rs0", "b:1", 2, id));
        let refused = checked(began.as_ref(), "rs1", "a:1").expect_err("another");
        assert_eq!(refused.message(), "the data belong to the replica set 'rs0', not to 'rs1'");
    }
}
