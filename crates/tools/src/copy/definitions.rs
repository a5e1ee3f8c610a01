//! Makes collections, views and indexes of the target as the source has them now.
//!
//! A definition is always the newest one, not that of the event. An event that comes later finds nothing left to do. A
//! collection of the target that is older than the source's is removed by the event of its drop or rename, and all
//! documents of a newer collection have events after that.

use super::bulk;
use super::listing::{self, Kind, Listed};
use super::pair::{End, Pair};
use super::{ATTEMPTS_MAX, Copy, majority_after, may_pass, record};
use crate::ToolError;
use crate::verify::{list_indexes, normalised};
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, Timestamp, ValueRef};
use bunko_client::CommandError;

/// Options of collections that `collMod` changes.
const CHANGEABLE: [&str; 5] =
    ["validator", "validationLevel", "validationAction", "changeStreamPreAndPostImages", "expireAfterSeconds"];

/// Whether a definition could be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    /// The target has the definition.
    Yes,
    /// The target refuses an index as long as its documents are of different moments.
    Later,
}

/// How the target gets the documents of a collection that it lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// The collection is created empty: the change stream brings its documents.
    Create,
    /// The collection is copied.
    Copy,
}

/// Follows the definition of one namespace. Time series are left to the end.
/// # Errors
/// The servers', the connections', `Interrupted`.
pub(super) fn follow(
    copy: &Copy<'_>,
    pair: &mut Pair,
    (database, name): (&str, &str),
    missing: Missing,
) -> Result<Settled, ToolError> {
    let wanted = listing::one(pair.source(), database, name)?;
    let found = listing::one(pair.target(), database, name)?;
    let Some(wanted) = wanted else {
        if found.is_some() {
            pair.drop_on_target(database, name)?;
        }
        return Ok(Settled::Yes);
    };
    match (wanted.kind, found) {
        (Kind::Series, _) => Ok(Settled::Yes),
        (Kind::View, Some(found)) if is_same(&wanted, &found) => Ok(Settled::Yes),
        (Kind::View, found) => {
            if found.is_some() {
                pair.drop_on_target(database, name)?;
            }
            create(pair, &wanted)?;
            Ok(Settled::Yes)
        }
        (Kind::Collection, None) if missing == Missing::Create => {
            create(pair, &wanted)?;
            follow_indexes(copy, pair, &wanted)
        }
        (Kind::Collection, Some(found)) if is_same(&wanted, &found) => follow_indexes(copy, pair, &wanted),
        (Kind::Collection, Some(found)) if found.kind == Kind::Collection && change(pair, &wanted, &found)? => {
            follow_indexes(copy, pair, &wanted)
        }
        (Kind::Collection, _) => {
            copy_anew(copy, pair, &wanted)?;
            Ok(Settled::Yes)
        }
    }
}

/// Copies a collection in its present state, and drops it if the source has it no longer. A copy that is cut off is
/// noted: not all documents that it has not copied have events.
/// # Errors
/// The servers', the connections', `Interrupted`.
pub(super) fn copy_anew(copy: &Copy<'_>, pair: &mut Pair, listed: &Listed) -> Result<(), ToolError> {
    record::note_unfinished(pair.target(), &listed.namespace())?;
    copy_present(copy, pair, listed)?;
    // A new link, because the old one may have been idle for long.
    record::forget_unfinished(Pair::connect(copy)?.target(), &listed.namespace())
}

/// Copies the collection; begins again if a rename breaks the reading off, and drops it on the target if the source has
/// it no longer.
fn copy_present(copy: &Copy<'_>, pair: &mut Pair, listed: &Listed) -> Result<(), ToolError> {
    let mut listed = listed.clone();
    let mut attempts = 0;
    loop {
        attempts += 1;
        let now: Timestamp = super::facts::now(pair.source())?;
        match bulk::copy_one(copy, &listed, &majority_after(now)) {
            Err(error) if may_pass(&error) && attempts < ATTEMPTS_MAX => {}
            ended => return ended,
        }
        match listing::one(pair.source(), &listed.database, &listed.name)? {
            Some(there) if there.kind == Kind::Collection => listed = there,
            // The source has dropped or renamed the collection: the change stream brings that.
            _ => return pair.drop_on_target(&listed.database, &listed.name),
        }
    }
}

fn is_same(wanted: &Listed, found: &Listed) -> bool {
    wanted.kind == found.kind && options(wanted) == options(found)
}

fn options(listed: &Listed) -> Vec<DocumentBuf> {
    normalised(std::slice::from_ref(&listed.options))
}

fn create(pair: &mut Pair, wanted: &Listed) -> Result<(), ToolError> {
    let mut create = DocumentBuf::new().with("create", &wanted.name);
    create.extend(wanted.options.as_ref());
    match pair.target().ask(&wanted.database, &create)? {
        Err(refusal) if refusal.code != CommandError::NAMESPACE_EXISTS => {
            Err(ToolError::server(wanted.namespace(), refusal))
        }
        _ => Ok(()),
    }
}

/// Changes the options of the target's collection by `collMod`. Returns whether that was possible.
fn change(pair: &mut Pair, wanted: &Listed, found: &Listed) -> Result<bool, ToolError> {
    let fixed = |listed: &Listed| {
        let mut fixed = DocumentBuf::new();
        for option in listed.options.as_ref().iter().filter(|option| !CHANGEABLE.contains(&option.name)) {
            fixed.append(option.name, option.value);
        }
        normalised(&[fixed])
    };
    if fixed(wanted) != fixed(found) {
        return Ok(false);
    }
    let mut command = DocumentBuf::new().with("collMod", &wanted.name);
    for name in CHANGEABLE {
        match (wanted.options.as_ref().get(name), found.options.as_ref().get(name), name) {
            (Some(value), _, _) => drop(command.append(name, value)),
            (None, Some(_), "validator") => drop(command.append(name, &DocumentBuf::new())),
            (None, Some(_), "validationLevel") => drop(command.append(name, "strict")),
            (None, Some(_), "validationAction") => drop(command.append(name, "error")),
            (None, Some(_), "changeStreamPreAndPostImages") => {
                command.append(name, &DocumentBuf::new().with("enabled", false));
            }
            (None, Some(_), _) => drop(command.append(name, "off")),
            (None, None, _) => {}
        }
    }
    pair.target().run(&wanted.database, &command)?;
    Ok(true)
}

/// The indexes of a collection but the one on `_id`, in a form in which equal ones have equal bytes.
/// # Errors
/// The server's, or the connection's.
pub(super) fn indexes(end: &mut End, database: &str, collection: &str) -> Result<Vec<DocumentBuf>, ToolError> {
    let listed = list_indexes(collection, |command| end.try_list(database, command))
        .map_err(|cause| ToolError::server(format!("{database}.{collection}"), cause))?;
    let listed: Vec<_> = listed.into_iter().filter(|index| name(index.as_ref()) != "_id_").collect();
    Ok(listed)
}

fn name(index: DocumentRef<'_>) -> &str {
    index.get("name").and_then(ValueRef::as_str).unwrap_or_default()
}

fn follow_indexes(copy: &Copy<'_>, pair: &mut Pair, listed: &Listed) -> Result<Settled, ToolError> {
    let Listed { database, name: collection, .. } = listed;
    let wanted = indexes(pair.source(), database, collection)?;
    let found = indexes(pair.target(), database, collection)?;
    let has = |indexes: &[DocumentBuf], index: &DocumentBuf| {
        let index = normalised(std::slice::from_ref(index));
        indexes.iter().any(|other| normalised(std::slice::from_ref(other)) == index)
    };
    for index in found.iter().filter(|index| !has(&wanted, index)) {
        let drop = DocumentBuf::new().with("dropIndexes", collection).with("index", name(index.as_ref()));
        pair.target().run(database, &drop)?;
    }
    let mut settled = Settled::Yes;
    for index in wanted.iter().filter(|index| !has(&found, index)) {
        // An index without a collation inherits its collection's when it is built; in a list, it has the simple one.
        let simple = DocumentBuf::new().with("locale", "simple");
        let mut definition = index.clone();
        if listed.has_collation() && index.as_ref().get("collation").is_none() {
            definition.append("collation", &simple);
        }
        let definitions: ArrayBuf = [&definition].into_iter().collect();
        let create = DocumentBuf::new().with("createIndexes", collection).with("indexes", &definitions);
        if let Err(refusal) = pair.target().ask(database, &create)? {
            copy.note(format!("{}: index '{}' waits: {refusal}", listed.namespace(), name(index.as_ref())));
            settled = Settled::Later;
        }
    }
    Ok(settled)
}
