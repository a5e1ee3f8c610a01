//! Events: what an entry of the oplog is to a stream.
//! Source: MongoDB manual 8.2, "Change Events".

use super::delta::{Shown, describe};
use super::options::{Image, Options};
use super::token::{Identity, of_event};
use super::{SYSTEM_VIEWS, Target};
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, Element, ValueRef};
use bunko_catalog::{Catalog, Namespace};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_oplog::Entry;

/// An image that is required and is not there.
const NO_MATCHING_DOCUMENT: ErrorCode = ErrorCode(47);

/// An event to be.
pub(super) struct Events<'e> {
    pub catalog: &'e Catalog,
    pub target: &'e Target,
    pub options: &'e Options,
}

/// An event, and whether the stream ends with it.
pub(super) struct Event {
    pub document: DocumentBuf,
    pub is_last: bool,
}

impl Events<'_> {
    /// The events of an entry: none for what does not concern the stream, two where it ends.
    /// # Errors
    /// `NoMatchingDocument` for a required image that is not there; those of looking a document up.
    pub fn of(&self, entry: &Entry, into: &mut impl Extend<Event>) -> Result<()> {
        let document = entry.document.as_ref();
        let text = |name| document.get(name).and_then(ValueRef::as_str).unwrap_or_default();
        let Some(o) = document.get("o").and_then(ValueRef::as_document) else { return Ok(()) };
        match text("op") {
            "i" | "u" | "d" if text("ns").split_once('.').is_some_and(|(_, name)| name == SYSTEM_VIEWS) => {
                let event = of_view(entry, o, text("op")).filter(|_| self.options.is_expanded);
                into.extend(event.map(|document| Event { document, is_last: false }));
            }
            "i" | "u" | "d" => into.extend([self.of_document(entry, o, text("op"), text("ns"))?]),
            "c" => self.of_command(entry, o, text("ns"), into),
            _ => {}
        }
        Ok(())
    }

    fn of_document(&self, entry: &Entry, o: DocumentRef<'_>, op: &str, full: &str) -> Result<Event> {
        let delta = o.get("$v").and(o.get("diff")).and_then(ValueRef::as_document).filter(|_| op == "u");
        let operation = match (op, delta) {
            ("i", _) => "insert",
            ("d", _) => "delete",
            (_, None) => "replace",
            (_, Some(_)) => "update",
        };
        let entry_document = entry.document.as_ref();
        let key = match entry_document.get("o2").and_then(ValueRef::as_document) {
            Some(key) => key,
            None => o,
        };
        let mut event = self.begin(entry, operation, Some(key));
        match operation {
            "insert" | "replace" => {
                event.append("fullDocument", o);
            }
            "update" => self.put_full_document(entry, full, key, &mut event)?,
            _ => {}
        }
        put_namespace(&mut event, full);
        event.append("documentKey", key);
        if let Some(delta) = delta {
            let shown = if self.options.is_expanded { Shown::Expanded } else { Shown::Usual };
            event.append("updateDescription", &describe(delta, shown));
        }
        if operation != "insert" {
            self.put_before(entry, &mut event)?;
        }
        Ok(Event { document: event, is_last: false })
    }

    fn put_full_document(
        &self,
        entry: &Entry,
        full: &str,
        key: DocumentRef<'_>,
        event: &mut DocumentBuf,
    ) -> Result<()> {
        // A collection that keeps the documents before a change keeps those after it as well.
        let after = entry.after.as_ref().filter(|_| entry.before.is_some());
        match (self.options.full_document, after) {
            (Image::None, _) => {}
            (Image::Lookup, _) => match self.look_up(full, key)? {
                Some(found) => {
                    event.append("fullDocument", &found);
                }
                None => {
                    event.append("fullDocument", ValueRef::Null);
                }
            },
            (_, Some(after)) => {
                event.append("fullDocument", after);
            }
            (Image::WhenAvailable, None) => {
                event.append("fullDocument", ValueRef::Null);
            }
            (Image::Required, None) => return Err(missing_image("post")),
        }
        Ok(())
    }

    fn put_before(&self, entry: &Entry, event: &mut DocumentBuf) -> Result<()> {
        match (self.options.before, &entry.before) {
            (Image::None | Image::Lookup, _) => {}
            (_, Some(before)) => {
                event.append("fullDocumentBeforeChange", before);
            }
            (Image::WhenAvailable, None) => {
                event.append("fullDocumentBeforeChange", ValueRef::Null);
            }
            (Image::Required, None) => return Err(missing_image("pre")),
        }
        Ok(())
    }

    fn look_up(&self, full: &str, key: DocumentRef<'_>) -> Result<Option<DocumentBuf>> {
        let Some(collection) = self.catalog.collection(&Namespace::parse(full)?) else { return Ok(None) };
        let mut document = Vec::new();
        let id = key.get("_id").unwrap_or(ValueRef::Null);
        let found = collection.find_latest(id, &mut document)?.is_some();
        Ok(found.then(|| DocumentRef::trusted(&document).to_owned()))
    }

    fn of_command(&self, entry: &Entry, o: DocumentRef<'_>, ns: &str, into: &mut impl Extend<Event>) {
        let Some(Element { name, value, .. }) = o.first() else { return };
        let database = ns.strip_suffix(".$cmd").unwrap_or(ns);
        let collection = value.as_str().unwrap_or_default();
        let full = if name == "renameCollection" { collection.to_owned() } else { format!("{database}.{collection}") };
        let target = self.target;
        match name {
            "dropDatabase" => {
                let is_shown = !matches!(target, Target::Collection { .. });
                let mut event = self.begin(entry, "dropDatabase", None);
                event.append("ns", &DocumentBuf::new().with("db", database));
                into.extend(is_shown.then_some(Event { document: event, is_last: false }));
                self.invalidate_if(matches!(target, Target::Database { .. }), entry, "dropDatabase", into);
            }
            "renameCollection" => {
                let to = o.get("to").and_then(ValueRef::as_str).unwrap_or_default();
                if target.watches(&full) || target.watches(to) {
                    into.extend([Event { document: self.of_rename(entry, &full, o), is_last: false }]);
                    self.invalidate_if(matches!(target, Target::Collection { .. }), entry, "rename", into);
                }
            }
            "drop" if target.watches(&full) => {
                let mut event = self.begin(entry, "drop", None);
                put_namespace(&mut event, &full);
                into.extend([Event { document: event, is_last: false }]);
                self.invalidate_if(matches!(target, Target::Collection { .. }), entry, "drop", into);
            }
            _ if self.options.is_expanded && target.watches(&full) => {
                let event = self.of_definition(entry, o, name, &full);
                into.extend(event.map(|document| Event { document, is_last: false }));
            }
            _ => {}
        }
    }

    fn of_rename(&self, entry: &Entry, from: &str, o: DocumentRef<'_>) -> DocumentBuf {
        let mut event = self.begin(entry, "rename", None);
        put_namespace(&mut event, from);
        let to = namespace(o.get("to").and_then(ValueRef::as_str).unwrap_or_default());
        event.append("to", &to);
        if self.options.is_expanded {
            let mut description = DocumentBuf::new().with("to", &to);
            // The identity of the collection that had the name before.
            if let Some(replaced @ ValueRef::Binary { .. }) = o.get("dropTarget") {
                description.append("dropTarget", replaced);
            }
            event.append("operationDescription", &description);
        }
        event
    }

    /// What only streams with `showExpandedEvents` tell.
    fn of_definition(&self, entry: &Entry, o: DocumentRef<'_>, name: &str, full: &str) -> Option<DocumentBuf> {
        let rest = || {
            let mut rest = DocumentBuf::new();
            for field in o.iter().skip(1) {
                rest.append(field.name, field.value);
            }
            rest
        };
        let indexes = |index: DocumentBuf| {
            let indexes: ArrayBuf = [&index].into_iter().collect();
            DocumentBuf::new().with("indexes", &indexes)
        };
        let (operation, description) = match name {
            "create" => ("create", rest()),
            "collMod" => ("modify", rest()),
            "createIndexes" => ("createIndexes", indexes(rest())),
            "dropIndexes" => {
                let name = o.get("index").unwrap_or(ValueRef::Null);
                ("dropIndexes", indexes(DocumentBuf::new().with("name", name)))
            }
            _ => return None,
        };
        let mut event = self.begin(entry, operation, None);
        put_namespace(&mut event, full);
        if operation == "create" {
            event.append("nsType", "collection");
        }
        event.append("operationDescription", &description);
        Some(event)
    }

    fn invalidate_if(&self, is_invalid: bool, entry: &Entry, operation: &str, into: &mut impl Extend<Event>) {
        if !is_invalid {
            return;
        }
        let identity = Identity { number: entry.number, uuid: uuid(entry), operation, key: None };
        let token = of_event(entry.at, identity, true);
        let event = self.headed(entry, &token, "invalidate");
        into.extend([Event { document: event, is_last: true }]);
    }

    fn begin(&self, entry: &Entry, operation: &str, key: Option<DocumentRef<'_>>) -> DocumentBuf {
        let token = of_event(entry.at, Identity { number: entry.number, uuid: uuid(entry), operation, key }, false);
        self.headed(entry, &token, operation)
    }

    fn headed(&self, entry: &Entry, token: &DocumentBuf, operation: &str) -> DocumentBuf {
        let mut event = begun(entry, token, operation);
        if let Some(uuid) = entry.document.as_ref().get("ui").filter(|_| self.options.is_expanded) {
            event.append("collectionUUID", uuid);
        }
        put_origin(&mut event, entry);
        event
    }
}

/// What becomes of a view, or of a time series, whose documents are shown by one. It has no UUID.
fn of_view(entry: &Entry, o: DocumentRef<'_>, op: &str) -> Option<DocumentBuf> {
    let operation = match op {
        "i" => "create",
        "u" => "modify",
        _ => "drop",
    };
    let key = entry.document.as_ref().get("o2").and_then(ValueRef::as_document).unwrap_or(o);
    let full = key.get("_id").and_then(ValueRef::as_str)?;
    let identity = Identity { number: entry.number, uuid: uuid(entry), operation, key: Some(key) };
    let mut event = begun(entry, &of_event(entry.at, identity, false), operation);
    put_origin(&mut event, entry);
    put_namespace(&mut event, full);
    if operation == "drop" {
        return Some(event);
    }
    if operation == "create" {
        let shown = o.get("viewOn").and_then(ValueRef::as_str).unwrap_or_default();
        event.append("nsType", if shown.starts_with("system.buckets.") { "timeseries" } else { "view" });
    }
    let mut description = DocumentBuf::new();
    for field in o.iter().filter(|field| field.name != "_id") {
        description.append(field.name, field.value);
    }
    event.append("operationDescription", &description);
    Some(event)
}

fn begun(entry: &Entry, token: &DocumentBuf, operation: &str) -> DocumentBuf {
    // Most events have the token and about what the entry has.
    let bytes = token.len_bytes() + entry.document.len_bytes() + 64;
    DocumentBuf::with_capacity(bytes).with("_id", token).with("operationType", operation).with("clusterTime", entry.at)
}

/// When it happened, and in which transaction.
fn put_origin(event: &mut DocumentBuf, entry: &Entry) {
    if let Some(wall) = entry.document.as_ref().get("wall") {
        event.append("wallTime", wall);
    }
    for name in ["lsid", "txnNumber"] {
        if let Some(value) = entry.document.as_ref().get(name) {
            event.append(name, value);
        }
    }
}

fn uuid(entry: &Entry) -> Option<&[u8]> {
    match entry.document.as_ref().get("ui") {
        Some(ValueRef::Binary { bytes, .. }) => Some(bytes),
        _ => None,
    }
}

fn namespace(full: &str) -> DocumentBuf {
    let (database, collection) = full.split_once('.').unwrap_or((full, ""));
    DocumentBuf::new().with("db", database).with("coll", collection)
}

fn put_namespace(event: &mut DocumentBuf, full: &str) {
    event.append("ns", &namespace(full));
}

fn missing_image(which: &str) -> Failure {
    let message = format!(
        "Change stream was configured to require a {which}-image for all update, delete and replace events, but the \
         {which}-image was not found for event"
    );
    Failure::new(NO_MATCHING_DOCUMENT, message)
}
