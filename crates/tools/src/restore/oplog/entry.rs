//! One entry of an oplog, and the operation that is sent for it.

use super::super::options::{RestoreOptions, Uuids};
use super::super::target::BUCKETS_PREFIX;
use bunko_bson::{DocumentBuf, DocumentRef, Timestamp, ValueRef};
use foldhash::HashSet;
use std::borrow::Cow;

/// Databases of the server's own bookkeeping: sessions, transactions, chunks.
const INTERNAL_DATABASES: [&str; 2] = ["config", "local"];

/// The fields of an entry that a replay needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'e> {
    pub(super) document: DocumentRef<'e>,
    /// When it happened.
    pub(super) at: Timestamp,
    /// `i`, `u`, `d`, `c`, `n`.
    pub(super) op: &'e str,
    /// `database.collection`, or `database.$cmd`.
    pub(super) namespace: &'e str,
    /// The inserted document, the update, the deleted document's key, or the command.
    pub(super) object: DocumentRef<'e>,
}

/// Kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The entry changes nothing, or nothing that is restored.
    Nothing,
    /// The entry changes one document.
    Document,
    /// The entry changes collections.
    Command,
}

impl<'e> Entry<'e> {
    /// Reads an entry of the oplog, and checks its bytes first.
    /// # Errors
    /// A description of the defect.
    pub(super) fn parse(document: DocumentRef<'e>) -> Result<Self, String> {
        DocumentRef::parse(document.as_bytes()).map_err(|error| format!("an oplog entry is damaged: {error}"))?;
        let Some(ValueRef::Timestamp(at)) = document.get("ts") else {
            return Err(format!("an oplog entry without a timestamp 'ts': {}", shown(document)));
        };
        Self::parse_inner(document, at)
    }

    /// Reads an operation inside another one; it has no time of its own.
    /// # Errors
    /// A description of the defect.
    pub(super) fn parse_inner(document: DocumentRef<'e>, at: Timestamp) -> Result<Self, String> {
        let text = |name| document.get(name).and_then(ValueRef::as_str);
        let object = document.get("o").and_then(ValueRef::as_document);
        match (text("op"), text("ns"), object) {
            (Some(op), Some(namespace), Some(object)) => Ok(Self { document, at, op, namespace, object }),
            // A no-op may lack namespace and object.
            (Some(op @ "n"), _, _) => Ok(Self { document, at, op, namespace: "", object: DocumentRef::EMPTY }),
            _ => Err(format!("an oplog entry without 'op', 'ns' or 'o': {}", shown(document))),
        }
    }

    pub(super) fn kind(&self) -> Kind {
        if INTERNAL_DATABASES.contains(&self.database()) {
            return Kind::Nothing;
        }
        match self.op {
            "c" => Kind::Command,
            "i" | "u" | "d" => Kind::Document,
            _ => Kind::Nothing,
        }
    }

    pub(super) fn database(&self) -> &'e str {
        self.namespace.split_once('.').map_or(self.namespace, |(database, _)| database)
    }
}

fn shown(document: DocumentRef<'_>) -> String {
    format!("{document:?}").chars().take(200).collect()
}

/// A command of the oplog, ready to be sent.
pub(super) struct Command {
    /// The operation for `applyOps`.
    pub(super) operation: DocumentBuf,
    pub(super) database: String,
    /// The command's name: `create`, `drop`, ...
    pub(super) name: String,
    /// The command itself.
    pub(super) object: DocumentBuf,
}

/// Drops operations on namespaces that are not restored, and renames the others.
pub(super) struct Rewriter<'r> {
    options: &'r RestoreOptions,
    /// New names of namespaces that the server did not take.
    given_up: HashSet<String>,
}

impl<'r> Rewriter<'r> {
    pub(super) fn new(options: &'r RestoreOptions, given_up: HashSet<String>) -> Self {
        Self { options, given_up }
    }

    /// The operation for `applyOps` that changes one document; `None` if its collection is not restored.
    pub(super) fn document(&self, entry: &Entry<'_>) -> Option<DocumentBuf> {
        self.taken(entry.namespace).map(|namespace| self.operation(entry, &namespace, entry.object))
    }

    /// New name of a namespace; `None` if it is not restored. The buckets of a time series follow the series.
    fn taken(&self, namespace: &str) -> Option<String> {
        let (database, collection) = namespace.split_once('.').unwrap_or((namespace, ""));
        let series = collection.strip_prefix(BUCKETS_PREFIX);
        let known = series.map_or(Cow::Borrowed(namespace), |series| Cow::Owned(format!("{database}.{series}")));
        let renamed = self.options.renames.apply(&known);
        if !self.options.filter.takes(&known) || self.given_up.contains(&*renamed) {
            return None;
        }
        match (series, renamed.split_once('.')) {
            (Some(_), Some((database, series))) => Some(format!("{database}.{BUCKETS_PREFIX}{series}")),
            _ => Some(renamed.into_owned()),
        }
    }

    /// The command for `applyOps`; `None` if none of its collections is restored.
    pub(super) fn command(&self, entry: &Entry<'_>) -> Option<Command> {
        let first = entry.object.first()?;
        let (database, object) = match first.name {
            // Entries before this one drop the collections one by one, so that nothing is lost if only some are taken.
            "dropDatabase" => {
                if !self.options.filter.takes_database(entry.database()) {
                    return None;
                }
                let any = format!("{}.*", entry.database());
                let renamed = self.options.renames.apply(&any);
                let database = renamed.split_once('.').map_or(entry.database(), |(database, _)| database);
                (database.to_owned(), entry.object.to_owned())
            }
            "renameCollection" => (entry.database().to_owned(), self.rename(entry.object)?),
            _ => {
                let collection = first.value.as_str()?;
                let (database, collection) = self.target(&format!("{}.{collection}", entry.database()))?;
                let mut object = DocumentBuf::new().with(first.name, &collection);
                entry.object.iter().skip(1).for_each(|field| {
                    object.append(field.name, field.value);
                });
                (database, object)
            }
        };
        let operation = self.operation(entry, &format!("{database}.$cmd"), object.as_ref());
        Some(Command { operation, database, name: first.name.to_owned(), object })
    }

    /// Rewrites both names of a renamed collection.
    fn rename(&self, object: DocumentRef<'_>) -> Option<DocumentBuf> {
        let mut renamed = DocumentBuf::new();
        for field in object {
            match (field.name, field.value.as_str()) {
                ("renameCollection" | "to", Some(namespace)) => {
                    let (database, collection) = self.target(namespace)?;
                    renamed.append(field.name, &format!("{database}.{collection}"));
                }
                _ => {
                    renamed.append(field.name, field.value);
                }
            }
        }
        Some(renamed)
    }

    fn target(&self, namespace: &str) -> Option<(String, String)> {
        let taken = self.taken(namespace)?;
        taken.split_once('.').map(|(database, collection)| (database.to_owned(), collection.to_owned()))
    }

    /// Copies the fields that say what to do; the others, on time and session, belong to the old server.
    fn operation(&self, entry: &Entry<'_>, namespace: &str, object: DocumentRef<'_>) -> DocumentBuf {
        let mut operation = DocumentBuf::new().with("op", entry.op).with("ns", namespace);
        if self.options.uuids == Uuids::Preserve
            && let Some(uuid) = entry.document.get("ui")
        {
            operation.append("ui", uuid);
        }
        operation.append("o", object);
        for name in ["o2", "b"] {
            if let Some(value) = entry.document.get(name) {
                operation.append(name, value);
            }
        }
        operation
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::options::Source;
    use super::*;
    use crate::namespaces::{Filter, Renames};
    use bunko_bson::extended_json::parse_document;

    fn options() -> RestoreOptions {
        let mut options = RestoreOptions::new(Source::Directory { path: "dump".into(), database: None });
        options.filter = Filter::new(&[], &["a.secret".to_owned()]).expect("valid");
        let texts = |texts: [&str; 2]| texts.map(str::to_owned);
        options.renames = Renames::new(&texts(["a.*", "b.*"]), &texts(["z.*", "y.*"])).expect("valid");
        options
    }

    fn sent(json: &str) -> String {
        let document = parse_document(json).expect("JSON");
        let options = options();
        let entry = match Entry::parse(document.as_ref()) {
            Ok(entry) => entry,
            Err(error) => return error,
        };
        let rewriter = Rewriter::new(&options, std::iter::once("z.refused".to_owned()).collect());
        let operation = match entry.kind() {
            Kind::Nothing => None,
            Kind::Document => rewriter.document(&entry),
            Kind::Command => rewriter.command(&entry).map(|command| command.operation),
        };
        operation.map_or_else(|| "-".to_owned(), |operation| bunko_bson::extended_json::to_relaxed((&operation).into()))
    }

    #[test]
    fn only_the_operation_is_sent_and_under_the_new_name() {
        let ts = r#""ts":{"$timestamp":{"t":5,"i":1}},"t":1,"h":7,"v":2"#;
        for (entry, expected) in [
            (r#""op":"n","ns":"","o":{"msg":"x"}"#, "-"),
            (r#""op":"n""#, "-"),
            (r#""op":"i","ns":"a.secret","o":{"_id":1}"#, "-"),
            (r#""op":"i","ns":"a.refused","o":{"_id":1}"#, "-"),
            (r#""op":"i","ns":"a.system.buckets.refused","o":{"_id":1}"#, "-"),
            (r#""op":"i","ns":"a.system.buckets.secret","o":{"_id":1}"#, "-"),
            (
                r#""op":"i","ns":"a.system.buckets.b","o":{"_id":1}"#,
                r#"{"op":"i","ns":"z.system.buckets.b","o":{"_id":1}}"#,
            ),
            (r#""op":"c","ns":"a.$cmd","o":{"createIndexes":"refused","key":{"x":1},"name":"x_1"}"#, "-"),
            (r#""op":"u","ns":"config.transactions","o":{"_id":1}"#, "-"),
            (
                r#""op":"u","ns":"a.b","ui":1,"o":{"$set":{"x":1}},"o2":{"_id":1}"#,
                r#"{"op":"u","ns":"z.b","o":{"$set":{"x":1}},"o2":{"_id":1}}"#,
            ),
            (
                r#""op":"c","ns":"a.$cmd","o":{"create":"b","capped":true}"#,
                r#"{"op":"c","ns":"z.$cmd","o":{"create":"b","capped":true}}"#,
            ),
            (r#""op":"c","ns":"a.$cmd","o":{"drop":"secret"}"#, "-"),
            (
                r#""op":"c","ns":"a.$cmd","o":{"renameCollection":"a.b","to":"a.c","stayTemp":false}"#,
                r#"{"op":"c","ns":"a.$cmd","o":{"renameCollection":"z.b","to":"z.c","stayTemp":false}}"#,
            ),
            // The collection `a.secret` is not restored, so the database may hold another one of that name.
            (r#""op":"c","ns":"a.$cmd","o":{"dropDatabase":1}"#, "-"),
            (r#""op":"c","ns":"b.$cmd","o":{"dropDatabase":1}"#, r#"{"op":"c","ns":"y.$cmd","o":{"dropDatabase":1}}"#),
        ] {
            assert_eq!(sent(&format!("{{{ts},{entry}}}")), expected, "{entry}");
        }
    }

    #[test]
    fn documents_that_are_not_entries_are_reported() {
        assert!(sent(r#"{"op":"i"}"#).starts_with("an oplog entry without a timestamp 'ts'"));
        assert!(sent(r#"{"ts":{"$timestamp":{"t":5,"i":1}},"op":"i"}"#).starts_with("an oplog entry without 'op'"));
    }
}
