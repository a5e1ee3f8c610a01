//! Collections, views and indexes: the rehearsal creates each.

use super::server::{GRANT, text};
use super::{Check, Subject, Weight};
use crate::InspectionError;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef};

/// Options of collections that servers show, and that no client may give.
const SHOWN_OPTIONS: [&str; 2] = ["uuid", "flags"];
/// Fields of indexes that older servers show.
const SHOWN_FIELDS: [&str; 3] = ["ns", "background", "safe"];

const SCHEMA_ADVICE: &str = "Change it before the move, or create it on the new server in another way.";
const BUCKETS: &str = "MongoDB stores measurements in compressed buckets, which a restore cannot read yet";
const BUCKETS_ADVICE: &str = "Move its measurements by export and import, or by copying documents with a driver.";
const NOT_DUMPED: &str = "dumps hold no search indexes";
const NOT_DUMPED_ADVICE: &str = "Create it again after the move.";
/// MongoDB's `Unauthorized`.
const UNAUTHORIZED: i32 = 13;

impl Check<'_> {
    /// Rehearses all collections, then all views, then all indexes of a database.
    pub(super) fn schema(&mut self, database: &str) -> Result<(), InspectionError> {
        let list = DocumentBuf::new().with("listCollections", 1_i32);
        let mut entries = match self.source.list(database, &list)? {
            Ok(entries) => entries,
            Err(refusal) => {
                self.unknown(Subject::Collection, database, &refusal, GRANT);
                return Ok(());
            }
        };
        // Servers make collections of the system by themselves.
        entries.retain(|entry| !text(entry.as_ref(), "name").is_none_or(|name| name.starts_with("system.")));
        // Views come last, because the collections that they read must exist first.
        entries.sort_by_key(|entry| text(entry.as_ref(), "type") == Some("view"));
        for entry in &entries {
            let entry = entry.as_ref();
            let Some(name) = text(entry, "name") else { continue };
            self.collection(database, name, entry)?;
            if text(entry, "type") != Some("view") {
                self.indexes(database, name)?;
            }
        }
        Ok(())
    }

    fn collection(&mut self, database: &str, name: &str, entry: DocumentRef<'_>) -> Result<(), InspectionError> {
        self.report.count(Subject::Collection);
        let namespace = format!("{database}.{name}");
        let options = entry.get("options").and_then(ValueRef::as_document);
        if let Err(refusal) = self.rehearsal.ask(database, &creation(name, options))? {
            self.refused(Subject::Collection, namespace, &refusal, SCHEMA_ADVICE);
        } else if text(entry, "type") == Some("timeseries") && self.compresses_buckets {
            self.found(Subject::Collection, Weight::Refused, namespace, BUCKETS.to_owned(), BUCKETS_ADVICE);
        }
        Ok(())
    }

    fn indexes(&mut self, database: &str, collection: &str) -> Result<(), InspectionError> {
        let list = DocumentBuf::new().with("listIndexes", collection);
        let indexes = match self.source.list(database, &list)? {
            Ok(indexes) => indexes,
            Err(refusal) => {
                self.unknown(Subject::Index, &format!("{database}.{collection}"), &refusal, GRANT);
                return Ok(());
            }
        };
        for index in &indexes {
            self.report.count(Subject::Index);
            let index = index.as_ref();
            // The rehearsal's collection has the index on `_id` already, or is clustered by `_id`.
            if text(index, "name") == Some("_id_") || index.get("clustered").is_some() {
                continue;
            }
            let specifications: ArrayBuf = [&specification(index)].into_iter().collect();
            let command = DocumentBuf::new().with("createIndexes", collection).with("indexes", &specifications);
            if let Err(refusal) = self.rehearsal.ask(database, &command)? {
                let name = format!("{database}.{collection}: {}", text(index, "name").unwrap_or("an index"));
                self.refused(Subject::Index, name, &refusal, SCHEMA_ADVICE);
            }
        }
        self.search_indexes(database, collection)
    }

    /// Only some servers have search indexes, so a refusal says nothing unless the user lacks the right.
    fn search_indexes(&mut self, database: &str, collection: &str) -> Result<(), InspectionError> {
        let stages: ArrayBuf =
            [&DocumentBuf::new().with("$listSearchIndexes", &DocumentBuf::new())].into_iter().collect();
        let list = DocumentBuf::new()
            .with("aggregate", collection)
            .with("pipeline", &stages)
            .with("cursor", &DocumentBuf::new());
        let indexes = match self.source.list(database, &list)? {
            Ok(indexes) => indexes,
            Err(refusal) => {
                if refusal.code == UNAUTHORIZED {
                    self.unknown(Subject::Index, &format!("{database}.{collection}: search indexes"), &refusal, GRANT);
                }
                return Ok(());
            }
        };
        for index in &indexes {
            self.report.count(Subject::Index);
            let index = index.as_ref();
            let name = text(index, "name").unwrap_or("default");
            let shown = format!("{database}.{collection}: search index {name}");
            let mut wanted = DocumentBuf::new().with("name", name);
            for (from, to) in [("type", "type"), ("latestDefinition", "definition")] {
                if let Some(value) = index.get(from) {
                    wanted.append(to, value);
                }
            }
            let wanted: ArrayBuf = [&wanted].into_iter().collect();
            let command = DocumentBuf::new().with("createSearchIndexes", collection).with("indexes", &wanted);
            match self.rehearsal.ask(database, &command)? {
                Ok(_) => self.found(Subject::Index, Weight::Refused, shown, NOT_DUMPED.into(), NOT_DUMPED_ADVICE),
                Err(refusal) => self.refused(Subject::Index, shown, &refusal, SCHEMA_ADVICE),
            }
        }
        Ok(())
    }
}

/// The command that creates a collection as the server shows it.
fn creation(name: &str, options: Option<DocumentRef<'_>>) -> DocumentBuf {
    let mut command = DocumentBuf::new().with("create", name);
    for element in options.into_iter().flatten().filter(|element| !SHOWN_OPTIONS.contains(&element.name)) {
        command.append(element.name, element.value);
    }
    command
}

/// The index as a client asks for it. An index without a collation has the simple one, which the client must name: a
/// new index would inherit its collection's collation.
fn specification(index: DocumentRef<'_>) -> DocumentBuf {
    let mut specification = DocumentBuf::new();
    for element in index.iter().filter(|element| !SHOWN_FIELDS.contains(&element.name)) {
        specification.append(element.name, element.value);
    }
    if index.get("collation").is_none() {
        specification.append("collation", &DocumentBuf::new().with("locale", "simple"));
    }
    specification
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_only_fields_are_left_out() {
        let options = DocumentBuf::new().with("capped", true).with("uuid", "x").with("size", 1_i32);
        let expected = DocumentBuf::new().with("create", "c").with("capped", true).with("size", 1_i32);
        assert_eq!(creation("c", Some(options.as_ref())), expected);
        let index = DocumentBuf::new().with("v", 2_i32).with("name", "a_1").with("ns", "d.c");
        let simple = DocumentBuf::new().with("locale", "simple");
        let expected = DocumentBuf::new().with("v", 2_i32).with("name", "a_1").with("collation", &simple);
        assert_eq!(specification(index.as_ref()), expected);
    }
}
