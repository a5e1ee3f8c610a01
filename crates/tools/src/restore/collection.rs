//! Creates collections and views as the dump describes them.

use super::insert::{Journal, concern};
use super::options::{CollectionOptions, Existing, Uuids};
use super::run::Run;
use super::target::{RestoredNamespace, Role};
use crate::progress::Activity;
use crate::{Link, ToolError};
use bunko_bson::{ArrayBuf, BinarySubtype, DocumentBuf, ValueRef};
use bunko_client::CommandError;

/// Drops the existing collection, if that is asked for, and creates the collection or view.
/// # Errors
/// An error that ends the run. A refusal by the server is noted at the target unless the first error ends the run.
pub(super) fn prepare(run: &Run<'_>, link: &mut Box<dyn Link>, target: &RestoredNamespace) -> Result<(), ToolError> {
    // Users and roles are loaded into temporary collections before they are merged. An earlier run may have left those.
    if target.role.is_temporary() || run.options.existing == Existing::Drop {
        let command = DocumentBuf::new().with("drop", &target.collection);
        match run.command(link, Activity::Server, (&target.database, &target.collection), &command)? {
            Err(refusal) if refusal.code != CommandError::NAMESPACE_NOT_FOUND => {
                return refused(run, target, "drop", refusal);
            }
            _ => {}
        }
    }
    let (database, mut command) = creation(target, run.options.collection_options, run.options.uuids)?;
    // A collection that is recorded as prepared must survive a crash of the server.
    let journal = if run.resume.is_some() { Journal::Required } else { Journal::AsAsked };
    command.append("writeConcern", &concern(&run.options.write_concern, journal));
    match run.command(link, Activity::Server, (&database, &target.collection), &command)? {
        // An existing collection is no error: documents are added to it.
        Err(refusal) if refusal.code != CommandError::NAMESPACE_EXISTS => refused(run, target, "create", refusal),
        _ => Ok(()),
    }
}

fn refused(run: &Run<'_>, target: &RestoredNamespace, command: &str, refusal: CommandError) -> Result<(), ToolError> {
    target.fail(format!("{command} refused: {refusal}"));
    if run.options.stops_on_error() {
        return Err(ToolError::server(&target.name, refusal));
    }
    Ok(())
}

/// The command that creates a target, and the database that it goes to.
fn creation(
    target: &RestoredNamespace,
    options: CollectionOptions,
    uuids: Uuids,
) -> Result<(String, DocumentBuf), ToolError> {
    let mut create = DocumentBuf::new().with("create", &target.collection);
    // A view or a time series without its options would be a collection.
    if options == CollectionOptions::Restore || matches!(target.role, Role::View | Role::TimeSeries) {
        // Old tools wrote the name among the options.
        for option in target.metadata.options.as_ref().iter().filter(|option| !matches!(option.name, "create" | "uuid"))
        {
            create.append(option.name, option.value);
        }
    }
    let uuid = target.metadata.uuid.as_deref().filter(|_| uuids == Uuids::Preserve && target.role != Role::View);
    let Some(uuid) = uuid else { return Ok((target.database.clone(), create)) };
    let bytes = parse_uuid(uuid)
        .ok_or_else(|| ToolError::Failed(format!("{}: '{uuid}' in its metadata is not a UUID", target.source)))?;
    // Only an oplog entry can set a collection's UUID.
    let entry = DocumentBuf::new()
        .with("op", "c")
        .with("ns", &format!("{}.$cmd", target.database))
        .with("ui", ValueRef::Binary { subtype: BinarySubtype::UUID, bytes: &bytes })
        .with("o", &create);
    let entries: ArrayBuf = [&entry].into_iter().collect();
    Ok(("admin".to_owned(), DocumentBuf::new().with("applyOps", &entries)))
}

/// Thirty-two hexadecimal digits, with or without dashes.
fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let digits: Vec<u8> =
        text.chars().filter(|&c| c != '-').map(|c| c.to_digit(16).map(|d| d as u8)).collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect();
    if digits.len() == 32 { bytes.try_into().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::super::earlier::Earlier;
    use super::super::options::InsertionOrder;
    use super::super::target::TargetDescription;
    use super::*;
    use bunko_archive::metadata::Metadata;

    fn target(role: Role, metadata: &str) -> RestoredNamespace {
        let metadata = Metadata::parse(metadata).expect("metadata");
        let found =
            TargetDescription { source: "a.b".to_owned(), name: "c.d".to_owned(), role, metadata, size_bytes: 0 };
        RestoredNamespace::new(found, InsertionOrder::Any, std::sync::Arc::default(), Earlier::default())
    }

    fn created(role: Role, metadata: &str, options: CollectionOptions, uuids: Uuids) -> String {
        match creation(&target(role, metadata), options, uuids) {
            Ok((database, command)) => format!("{database} {command:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn options_pass_as_they_are_or_not_at_all() {
        let capped = r#"{"options":{"create":"b","capped":true,"unheardOf":1}}"#;
        let full = created(Role::Collection, capped, CollectionOptions::Restore, Uuids::New);
        assert_eq!(full, r#"c {"create": String("d"), "capped": Boolean(true), "unheardOf": Int32(1)}"#);
        let bare = created(Role::Collection, capped, CollectionOptions::Skip, Uuids::New);
        assert_eq!(bare, r#"c {"create": String("d")}"#);
        let view = created(Role::View, r#"{"options":{"viewOn":"x"}}"#, CollectionOptions::Skip, Uuids::Preserve);
        assert_eq!(view, r#"c {"create": String("d"), "viewOn": String("x")}"#);
    }

    #[test]
    fn uuids_are_kept_by_an_oplog_entry() {
        let uuid = |uuid: &str| {
            let metadata = format!(r#"{{"options":{{"capped":true}},"uuid":"{uuid}"}}"#);
            created(Role::Collection, &metadata, CollectionOptions::Restore, Uuids::Preserve)
        };
        let command = uuid("00112233445566778899aabbccddeeff");
        assert!(
            command.starts_with(r#"admin {"applyOps": "#) && command.contains(r#""ns": String("c.$cmd")"#),
            "{command}"
        );
        assert_eq!(uuid("0011"), "a.b: '0011' in its metadata is not a UUID");
        assert_eq!(parse_uuid("00112233-4455-6677-8899-aabbccddeeff").map(|bytes| bytes[15]), Some(0xff));
    }
}
