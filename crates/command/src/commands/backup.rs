//! `bunkoBackup`: lends an image of the data and the durable log to a backup, in ranges.
//!
//! | `bunkoBackup` | Fields | Reply |
//! |---|---|---|
//! | `begin` | `owner`; `image`, the id of one that this owner has begun | `image`, `engine`; `list` once it is ready |
//! | `read` | `image`, `file`, `offset` | `bytes`, or `zeros` as their number; `checksum` |
//! | `checksum` | `image`, `file`, `offset` | `length`, `checksum` |
//! | `release` | `image` | |
//! | `note` | `owner`, `event`; `time` of `archived` | |
//! | `log` | `owner`, `from`; `offset` within records that are longer than a reply | `bytes`, `length`, `behind`, `end`; `completeMs` |
//!
//! A range has at most 4 MiB. There is one image at a time, which ends when it was not read for two minutes. The log is
//! kept from the image's end on for as long, and then for readers of `log`, which end like images.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_authority::privileges::administration;
use bunko_bson::{BinarySubtype, ValueRef, Writer};
use bunko_catalog::from_storage;
use bunko_errors::{ErrorCode, Failure};
use bunko_observe::BackupEvent;
use bunko_replica_set::MemberState;
use bunko_request::facts::{CommandFacts, Databases};
use bunko_request::field_kinds::{Kind, NOT_NEGATIVE, field};
use bunko_request::fields::Fields;
use bunko_session::Halt;
use bunko_store::{ImageState, Lsn, Store};
use std::sync::Arc;

const BEGIN: &str = "begin";
const READ: &str = "read";
const CHECKSUM: &str = "checksum";
const RELEASE: &str = "release";
const LOG: &str = "log";
const NOTE: &str = "note";

const MADE: &str = "made";
const FAILED: &str = "failed";
const ARCHIVED: &str = "archived";
const ENDED: &str = "ended";

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "bunkoBackup",
        fields: &[
            field("owner", Kind::Text),
            field("image", Kind::Text),
            field("file", Kind::Text),
            field("offset", NOT_NEGATIVE),
            field("from", NOT_NEGATIVE),
            field("event", Kind::Choice(&[ARCHIVED, ENDED, FAILED, MADE])),
            field("time", NOT_NEGATIVE),
        ],
        databases: Databases::Admin,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::By(administration::backup),
    run,
    ..Command::PLAIN
};

/// Longest name of a reader in bytes: the server keeps it, and names it to others.
const OWNER_BYTES_MAX: usize = 128;
/// Bytes of the log in one reply.
const LOG_BYTES_MAX: usize = 8 << 20;

enum Asked<'a> {
    Begin { owner: &'a str, known: Option<&'a str> },
    Range { image: &'a str, file: &'a str, offset: u64, is_read: bool },
    Release { image: &'a str },
    Log { owner: &'a str, from: Lsn, offset: usize },
    Note { owner: &'a str, event: BackupEvent },
}

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let argument = invocation.argument_of(Kind::Choice(&[BEGIN, READ, CHECKSUM, RELEASE, LOG, NOTE]))?;
    let asked = parse(argument.as_str().unwrap_or_default(), invocation)?;
    // The command waits for the disk.
    invocation.refuse_if_long(true)?;
    let service = invocation.service;
    let state = service.members().and(service.replica_set.as_ref()).map(|set| set.state());
    if state.is_some_and(|state| !matches!(state, MemberState::Primary | MemberState::Secondary)) {
        let message = "this member has no complete data to back up";
        return Err(Failure::new(ErrorCode::NOT_PRIMARY_OR_SECONDARY, message).into());
    }
    let store = service.catalog.store();
    match asked {
        Asked::Begin { owner, known } => begin(store, (owner, known), reply)?,
        Asked::Range { image, file, offset, is_read } => {
            let mut bytes = Vec::new();
            let image = store.image(image).map_err(from_storage)?;
            let checksum = image.read(file, offset, &mut bytes).map_err(from_storage)?;
            reply.append("checksum", i64::from(checksum));
            if !is_read {
                reply.append("length", bytes.len() as i64);
            } else if bytes.iter().all(|byte| *byte == 0) {
                reply.append("zeros", bytes.len() as i64);
            } else {
                reply.append("bytes", ValueRef::Binary { subtype: BinarySubtype::GENERIC, bytes: &bytes });
            }
        }
        Asked::Release { image } => store.release_image(image),
        Asked::Note { owner, event } => service.backup_notes.note(owner, event, service.time_and_term()),
        Asked::Log { owner, from, offset } => {
            let mut records = Vec::new();
            let part = store.read_log(&owner_name(owner), from, &mut records).map_err(from_storage)?;
            let bytes = records.get(offset..).unwrap_or_default();
            let bytes = &bytes[..bytes.len().min(LOG_BYTES_MAX)];
            reply
                .append("bytes", ValueRef::Binary { subtype: BinarySubtype::GENERIC, bytes })
                .append("length", records.len() as i64)
                .append("behind", part.behind.0 as i64)
                .append("end", part.end.0 as i64);
            // Says that the log may end before the primary's: a secondary may not have received all records.
            let is_secondary = state == Some(MemberState::Secondary);
            if is_secondary {
                reply.append("isSecondary", true);
            }
            if let Some(complete_ms) = part.complete_ms.filter(|_| !is_secondary) {
                reply.append("completeMs", complete_ms as i64);
            }
        }
    }
    Ok(())
}

fn parse<'a>(kind: &str, fields: &Fields<'a>) -> Result<Asked<'a>, Failure> {
    let text = |name| fields.string(name)?.ok_or_else(|| fields.missing(name));
    let owner = || -> Result<&'a str, Failure> {
        let owner = text("owner")?;
        if owner.len() > OWNER_BYTES_MAX {
            return Err(Failure::bad_value(format!("'owner' is longer than {OWNER_BYTES_MAX} bytes")));
        }
        Ok(owner)
    };
    let place = |name| Ok::<_, Failure>(fields.integer(name)?.unwrap_or_default() as u64);
    Ok(match kind {
        BEGIN => Asked::Begin { owner: owner()?, known: fields.string("image")? },
        RELEASE => Asked::Release { image: text("image")? },
        LOG => Asked::Log { owner: owner()?, from: Lsn(place("from")?), offset: place("offset")? as usize },
        NOTE => Asked::Note { owner: owner()?, event: event(text("event")?, place("time")?) },
        _ => {
            Asked::Range { image: text("image")?, file: text("file")?, offset: place("offset")?, is_read: kind == READ }
        }
    })
}

fn event(name: &str, time_ms: u64) -> BackupEvent {
    match name {
        ARCHIVED => BackupEvent::Archived(time_ms),
        ENDED => BackupEvent::Ended,
        MADE => BackupEvent::Made,
        _ => BackupEvent::Failed,
    }
}

/// An image's or a reader's owner, as it is named to others.
fn owner_name(owner: &str) -> String {
    format!("backup {owner}")
}

fn begin(store: &Arc<Store>, (owner, known): (&str, Option<&str>), reply: &mut Writer<'_>) -> Result<(), Failure> {
    let image = store.begin_image(&owner_name(owner), known).map_err(from_storage)?;
    reply.append("image", image.id()).append("engine", store.engine_name());
    match image.state() {
        ImageState::Preparing => {}
        ImageState::Ready(list) => {
            reply.append("list", &list.document());
        }
        ImageState::Failed(reason) => {
            store.release_image(image.id());
            return Err(Failure::new(ErrorCode::OPERATION_FAILED, format!("the image cannot be made: {reason}")));
        }
    }
    Ok(())
}
