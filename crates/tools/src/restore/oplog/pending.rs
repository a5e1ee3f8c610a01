//! Indexes that wait for the oplog's end. Commands of the oplog change them meanwhile.

use super::entry::Command;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use std::collections::BTreeMap;

/// The indexes of each collection, by `database.collection`, that are still to be built.
#[derive(Default)]
pub(super) struct PendingIndexes {
    namespaces: BTreeMap<String, Vec<DocumentBuf>>,
}

impl PendingIndexes {
    pub(super) fn set(&mut self, namespace: &str, indexes: Vec<DocumentBuf>) {
        self.namespaces.insert(namespace.to_owned(), indexes);
    }

    pub(super) fn into_namespaces(self) -> BTreeMap<String, Vec<DocumentBuf>> {
        self.namespaces
    }

    /// Follows a command. Returns whether it is dealt with here: commands that concern only pending indexes are not
    /// sent.
    pub(super) fn takes(&mut self, command: &Command) -> bool {
        let object = command.object.as_ref();
        let first = object.first().and_then(|first| first.value.as_str()).unwrap_or_default();
        let namespace = format!("{}.{first}", command.database);
        match command.name.as_str() {
            "createIndexes" => self.add(&namespace, definition(object)),
            "commitIndexBuild" => {
                let indexes = object.get("indexes").and_then(ValueRef::as_array);
                for index in indexes.iter().flat_map(|indexes| indexes.iter()).filter_map(ValueRef::as_document) {
                    self.add(&namespace, definition(index));
                }
            }
            // The indexes are built once the build is committed.
            "startIndexBuild" | "abortIndexBuild" => {}
            "dropIndexes" | "deleteIndexes" | "dropIndex" | "deleteIndex" => {
                self.remove(&namespace, object.get("index"));
            }
            "drop" => {
                self.namespaces.remove(&namespace);
                return false;
            }
            "dropDatabase" => {
                let prefix = format!("{}.", command.database);
                self.namespaces.retain(|namespace, _| !namespace.starts_with(&prefix));
                return false;
            }
            "renameCollection" => {
                let to = object.get("to").and_then(ValueRef::as_str).unwrap_or_default();
                if let Some(indexes) = self.namespaces.remove(first) {
                    self.namespaces.insert(to.to_owned(), indexes);
                }
                return false;
            }
            "collMod" => return self.modify(&namespace, object),
            _ => return false,
        }
        true
    }

    fn add(&mut self, namespace: &str, index: DocumentBuf) {
        let indexes = self.namespaces.entry(namespace.to_owned()).or_default();
        indexes.retain(|other| name(other.as_ref()) != name(index.as_ref()));
        indexes.push(index);
    }

    fn remove(&mut self, namespace: &str, which: Option<ValueRef<'_>>) {
        let Some(indexes) = self.namespaces.get_mut(namespace) else { return };
        match which.and_then(ValueRef::as_str) {
            Some("*") | None => indexes.clear(),
            Some(dropped) => indexes.retain(|index| name(index.as_ref()) != dropped),
        }
    }

    /// Changes options of a pending index. Returns whether the command is about a pending index.
    fn modify(&mut self, namespace: &str, command: DocumentRef<'_>) -> bool {
        let Some(change) = command.get("index").and_then(ValueRef::as_document) else { return false };
        let key = change.get("keyPattern").and_then(ValueRef::as_document).map(DocumentRef::as_bytes);
        let is_meant = |index: DocumentRef<'_>| {
            let is_key =
                key.is_some() && index.get("key").and_then(ValueRef::as_document).map(DocumentRef::as_bytes) == key;
            is_key || (!name(change).is_empty() && name(index) == name(change))
        };
        let indexes = self.namespaces.get_mut(namespace);
        let Some(index) = indexes.into_iter().flatten().find(|index| is_meant(index.as_ref())) else { return false };
        let options = change.iter().filter(|option| !matches!(option.name, "name" | "keyPattern"));
        let mut changed = DocumentBuf::new();
        for field in index.as_ref().iter().filter(|field| change.get(field.name).is_none() || field.name == "name") {
            changed.append(field.name, field.value);
        }
        for option in options {
            changed.append(option.name, option.value);
        }
        *index = changed;
        true
    }
}

/// An index as `createIndexes` takes it: in an oplog entry, the command's own fields stand beside the definition.
fn definition(fields: DocumentRef<'_>) -> DocumentBuf {
    let mut definition = DocumentBuf::new();
    for field in fields.iter().filter(|field| !matches!(field.name, "createIndexes" | "ns" | "v")) {
        definition.append(field.name, field.value);
    }
    definition
}

fn name(index: DocumentRef<'_>) -> &str {
    index.get("name").and_then(ValueRef::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::extended_json::{parse_document, to_relaxed};

    /// Follows commands on database `a`; shows which were not sent, and the indexes that are pending in the end.
    fn follow(commands: &[&str]) -> (Vec<bool>, String) {
        let mut pending = PendingIndexes::default();
        let taken = commands.iter().map(|json| {
            let object = parse_document(json).expect("JSON");
            let name = object.as_ref().first().expect("a field").name.to_owned();
            pending.takes(&Command { operation: DocumentBuf::new(), database: "a".to_owned(), name, object })
        });
        let taken = taken.collect();
        let shown = pending.into_namespaces().into_iter().map(|(namespace, indexes)| {
            let indexes: Vec<_> = indexes.iter().map(|index| to_relaxed(index.into())).collect();
            format!("{namespace} {}", indexes.join(" "))
        });
        (taken, shown.collect::<Vec<_>>().join("; "))
    }

    const CREATE: &str = r#"{"createIndexes":"b","v":2,"key":{"x":1},"name":"x_1"}"#;

    #[test]
    fn commands_change_what_waits() {
        let two =
            r#"{"commitIndexBuild":"b","indexes":[{"v":2,"key":{"y":1},"name":"y_1"},{"key":{"z":1},"name":"z_1"}]}"#;
        let (taken, left) = follow(&[CREATE, two, r#"{"dropIndexes":"b","index":"y_1"}"#]);
        assert_eq!(taken, [true, true, true]);
        assert_eq!(left, r#"a.b {"key":{"x":1},"name":"x_1"} {"key":{"z":1},"name":"z_1"}"#);
        let (taken, left) = follow(&[CREATE, r#"{"renameCollection":"a.b","to":"a.c"}"#, CREATE, r#"{"drop":"b"}"#]);
        assert_eq!((taken, left.as_str()), (vec![true, false, true, false], r#"a.c {"key":{"x":1},"name":"x_1"}"#));
        let (taken, left) = follow(&[CREATE, r#"{"dropDatabase":1}"#, r#"{"create":"b"}"#]);
        assert_eq!((taken, left.as_str()), (vec![true, false, false], ""));
    }

    #[test]
    fn a_waiting_index_is_modified() {
        let by_name = r#"{"collMod":"b","index":{"name":"x_1","expireAfterSeconds":5}}"#;
        let by_key = r#"{"collMod":"b","index":{"keyPattern":{"x":1},"hidden":true}}"#;
        let (taken, left) = follow(&[CREATE, by_name, by_key, r#"{"collMod":"b","validator":{}}"#]);
        assert_eq!(taken, [true, true, true, false]);
        assert_eq!(left, r#"a.b {"key":{"x":1},"name":"x_1","expireAfterSeconds":5,"hidden":true}"#);
    }
}
