//! Change events from entries of the oplog.
//! Source: MongoDB manual 8.2, "Change Events".

use crate::delta::{Shown, describe};
use crate::options::{Image, Options};
use crate::target::{SYSTEM_VIEWS, Target};
use crate::token::{Identity, of_event, put_event_token};
use bunko_bson::{ArrayBuf, BinarySubtype, DocumentBuf, DocumentRef, Element, Timestamp, ValueRef, Writer};
use bunko_catalog::{Catalog, Namespace};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_oplog::{Change, Entry};

/// The code for a required image that is missing.
const NO_MATCHING_DOCUMENT: ErrorCode = ErrorCode(47);

/// Approximate bytes that an event has in addition to its entry.
const HEAD_BYTES: usize = 320;

/// Makes events for one stream.
pub(crate) struct Events<'e> {
    pub catalog: &'e Catalog,
    pub target: &'e Target,
    pub options: &'e Options,
}

/// An event, and whether the stream ends with it.
pub(crate) struct Event {
    pub document: DocumentBuf,
    pub is_last: bool,
}

/// A change of one document, from an oplog entry or a log record.
struct Changed<'c> {
    operation: &'static str,
    /// The collection, with its database.
    full: &'c str,
    uuid: Option<&'c [u8]>,
    at: Timestamp,
    number: u64,
    wall: Option<ValueRef<'c>>,
    /// `lsid` and `txnNumber`, if the document was changed in a transaction.
    session: [Option<ValueRef<'c>>; 2],
    /// The new document of an insert or replacement.
    document: Option<DocumentRef<'c>>,
    id: Option<ValueRef<'c>>,
    delta: Option<DocumentRef<'c>>,
    /// The document after an update.
    after: Option<DocumentRef<'c>>,
    before: Option<DocumentRef<'c>>,
}

/// Fields of oplog entries that identify a transaction. Events use these names too.
const SESSION_FIELDS: [&str; 2] = ["lsid", "txnNumber"];

impl<'c> Changed<'c> {
    fn new(op: &str, document: DocumentRef<'c>, delta: Option<DocumentRef<'c>>) -> Self {
        let operation = match (op, delta) {
            ("i", _) => "insert",
            ("d", _) => "delete",
            (_, None) => "replace",
            (_, Some(_)) => "update",
        };
        Self {
            operation,
            full: "",
            uuid: None,
            at: Timestamp { seconds: 0, increment: 0 },
            number: 0,
            wall: None,
            session: [None; 2],
            document: matches!(operation, "insert" | "replace").then_some(document),
            id: document.get("_id"),
            delta,
            after: None,
            before: None,
        }
    }

    fn of_change(change: &'c Change<'_>) -> Self {
        Self {
            full: change.namespace,
            uuid: Some(change.uuid),
            at: change.at,
            wall: Some(ValueRef::DateTime(change.time_ms as i64)),
            after: (change.operation == "u").then_some(change.document),
            before: change.before,
            ..Self::new(change.operation, change.document, change.delta)
        }
    }

    /// The change that an oplog entry with these values of `op` and `o` describes.
    fn of_entry(entry: &'c Entry, op: &str, o: DocumentRef<'c>) -> Self {
        let document = entry.document.as_ref();
        let delta = o.get("$v").and(o.get("diff")).and_then(ValueRef::as_document).filter(|_| op == "u");
        let changed = Self::new(op, o, delta);
        Self {
            full: document.get("ns").and_then(ValueRef::as_str).unwrap_or_default(),
            uuid: uuid(entry),
            at: entry.at,
            number: entry.number,
            wall: document.get("wall"),
            session: SESSION_FIELDS.map(|name| document.get(name)),
            id: document.get("o2").and_then(ValueRef::as_document).and_then(|key| key.get("_id")).or(changed.id),
            after: entry.after.as_ref().map(DocumentBuf::as_ref),
            before: entry.before.as_ref().map(DocumentBuf::as_ref),
            ..changed
        }
    }
}

impl Events<'_> {
    /// The events of an entry: none if it does not concern the stream, two if the stream ends with
    /// it.
    /// # Errors
    /// `NoMatchingDocument` if a required image is missing; errors of looking up a document.
    pub fn of(&self, entry: &Entry, into: &mut impl Extend<Event>) -> Result<()> {
        let document = entry.document.as_ref();
        let text = |name| document.get(name).and_then(ValueRef::as_str).unwrap_or_default();
        let Some(o) = document.get("o").and_then(ValueRef::as_document) else { return Ok(()) };
        match text("op") {
            "i" | "u" | "d" if is_of_views(text("ns")) => {
                let event = of_view(entry, o, text("op")).filter(|_| self.options.is_expanded);
                into.extend(event.map(|document| Event { document, is_last: false }));
            }
            "i" if document.get("fromMigrate").is_some() && !self.options.shows_copies => {}
            op @ ("i" | "u" | "d") => {
                let changed = Changed::of_entry(entry, op, o);
                let mut bytes = Vec::with_capacity(entry.document.len_bytes() + HEAD_BYTES);
                let mut event = Writer::new(&mut bytes);
                self.put(&changed, &mut event)?;
                event.end();
                into.extend([Event { document: DocumentBuf::from_trusted(bytes), is_last: false }]);
            }
            "c" => self.of_command(entry, o, text("ns"), into),
            _ => {}
        }
        Ok(())
    }

    /// Writes the fields of the single event of a change to a document. Changes of views are not
    /// allowed here.
    /// # Errors
    /// As [`Events::of`].
    pub fn put_change(&self, change: &Change<'_>, event: &mut Writer<'_>) -> Result<()> {
        self.put(&Changed::of_change(change), event)
    }

    fn put(&self, changed: &Changed<'_>, event: &mut Writer<'_>) -> Result<()> {
        let Changed { operation, number, uuid, id, .. } = *changed;
        put_event_token(changed.at, Identity { number, uuid, operation, id }, event);
        event.append("operationType", operation).append("clusterTime", changed.at);
        if let Some(bytes) = uuid.filter(|_| self.options.is_expanded) {
            event.append("collectionUUID", ValueRef::Binary { subtype: BinarySubtype::UUID, bytes });
        }
        let session = SESSION_FIELDS.into_iter().zip(changed.session);
        for (name, value) in [("wallTime", changed.wall)].into_iter().chain(session) {
            if let Some(value) = value {
                event.append(name, value);
            }
        }
        match changed.document {
            Some(document) => {
                event.append("fullDocument", document);
            }
            None if operation == "update" => self.put_full_document(changed, event)?,
            None => {}
        }
        let (database, collection) = changed.full.split_once('.').unwrap_or((changed.full, ""));
        event.begin_document("ns").append("db", database).append("coll", collection).end();
        event.begin_document("documentKey");
        if let Some(id) = id {
            event.append("_id", id);
        }
        event.end();
        if let Some(delta) = changed.delta {
            let shown = if self.options.is_expanded { Shown::Expanded } else { Shown::Usual };
            event.append("updateDescription", &describe(delta, shown));
        }
        if operation == "insert" { Ok(()) } else { self.put_before(changed, event) }
    }

    fn put_full_document(&self, changed: &Changed<'_>, event: &mut Writer<'_>) -> Result<()> {
        // A collection that keeps the documents before changes also keeps those after them.
        let after = changed.after.filter(|_| changed.before.is_some());
        let found;
        let shown = match (self.options.full_document, after) {
            (Image::None, _) => return Ok(()),
            (Image::Lookup, _) => {
                found = self.look_up(changed)?;
                found.as_ref().map(DocumentBuf::as_ref)
            }
            (Image::Required, None) => return Err(missing_image("post")),
            (_, after) => after,
        };
        event.append("fullDocument", shown.map_or(ValueRef::Null, ValueRef::from));
        Ok(())
    }

    fn put_before(&self, changed: &Changed<'_>, event: &mut Writer<'_>) -> Result<()> {
        match (self.options.before, changed.before) {
            (Image::None | Image::Lookup, _) => {}
            (Image::Required, None) => return Err(missing_image("pre")),
            (_, before) => {
                event.append("fullDocumentBeforeChange", before.map_or(ValueRef::Null, ValueRef::from));
            }
        }
        Ok(())
    }

    fn look_up(&self, changed: &Changed<'_>) -> Result<Option<DocumentBuf>> {
        let Some(collection) = self.catalog.collection(&Namespace::parse(changed.full)?) else { return Ok(None) };
        if self.options.matches_uuid && changed.uuid.is_some_and(|uuid| uuid != collection.uuid) {
            return Ok(None);
        }
        let mut document = Vec::new();
        let found = collection.find_latest(changed.id.unwrap_or(ValueRef::Null), &mut document)?.is_some();
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
                let mut event = self.begin(entry, "dropDatabase");
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
                let mut event = self.begin(entry, "drop");
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
        let mut event = self.begin(entry, "rename");
        put_namespace(&mut event, from);
        let to = namespace(o.get("to").and_then(ValueRef::as_str).unwrap_or_default());
        event.append("to", &to);
        if self.options.is_expanded {
            let mut description = DocumentBuf::new().with("to", &to);
            // The UUID of the collection that had the new name before.
            if let Some(replaced @ ValueRef::Binary { .. }) = o.get("dropTarget") {
                description.append("dropTarget", replaced);
            }
            event.append("operationDescription", &description);
        }
        event
    }

    /// Events that only streams with `showExpandedEvents` return.
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
        let before = entry.document.as_ref().get("o2").and_then(ValueRef::as_document);
        let (operation, description) = match name {
            "create" => ("create", rest()),
            "collMod" => ("modify", rest()),
            "createIndexes" => ("createIndexes", indexes(rest())),
            "commitIndexBuild" => ("createIndexes", rest()),
            "dropIndexes" => {
                // Entries that older versions wrote have only the index name.
                let name = || DocumentBuf::new().with("name", o.get("index").unwrap_or(ValueRef::Null));
                ("dropIndexes", indexes(before.map_or_else(name, DocumentRef::to_owned)))
            }
            _ => return None,
        };
        let mut event = self.begin(entry, operation);
        put_namespace(&mut event, full);
        if operation == "create" {
            event.append("nsType", "collection");
        }
        event.append("operationDescription", &description);
        if let Some(before) = before.filter(|_| operation == "modify") {
            event.append("stateBeforeChange", &state_before(before));
        }
        Some(event)
    }

    fn invalidate_if(&self, is_invalid: bool, entry: &Entry, operation: &str, into: &mut impl Extend<Event>) {
        if !is_invalid {
            return;
        }
        let identity = Identity { number: entry.number, uuid: uuid(entry), operation, id: None };
        let token = of_event(entry.at, identity, true);
        let event = self.headed(entry, &token, "invalidate");
        into.extend([Event { document: event, is_last: true }]);
    }

    fn begin(&self, entry: &Entry, operation: &str) -> DocumentBuf {
        let identity = Identity { number: entry.number, uuid: uuid(entry), operation, id: None };
        let token = of_event(entry.at, identity, false);
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

/// The options of a collection and its index before they were modified.
fn state_before(told: DocumentRef<'_>) -> DocumentBuf {
    let mut state = DocumentBuf::new();
    for (name, shown) in [("collectionOptions_old", "collectionOptions"), ("indexOptions_old", "indexOptions")] {
        if let Some(options) = told.get(name) {
            state.append(shown, options);
        }
    }
    state
}

/// Whether writes to a collection of that full name define views.
pub(crate) fn is_of_views(full: &str) -> bool {
    full.split_once('.').is_some_and(|(_, name)| name == SYSTEM_VIEWS)
}

/// The event for a change of a view, or of a time series, which a view shows. The event has no UUID.
fn of_view(entry: &Entry, o: DocumentRef<'_>, op: &str) -> Option<DocumentBuf> {
    let operation = match op {
        "i" => "create",
        "u" => "modify",
        _ => "drop",
    };
    let key = entry.document.as_ref().get("o2").and_then(ValueRef::as_document).unwrap_or(o);
    let id = key.get("_id");
    let full = id.and_then(ValueRef::as_str)?;
    let identity = Identity { number: entry.number, uuid: uuid(entry), operation, id };
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
    // An event has its token and about as many bytes as its entry.
    let bytes = token.len_bytes() + entry.document.len_bytes() + 64;
    DocumentBuf::with_capacity(bytes).with("_id", token).with("operationType", operation).with("clusterTime", entry.at)
}

/// Appends the wall-clock time and the transaction of the entry.
fn put_origin(event: &mut DocumentBuf, entry: &Entry) {
    if let Some(wall) = entry.document.as_ref().get("wall") {
        event.append("wallTime", wall);
    }
    for name in SESSION_FIELDS {
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
