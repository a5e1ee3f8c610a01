//! Exporting as Parquet: two readings of the documents, the first of which finds the columns and their types.
//!
//! The types could be guessed by a sample; then an export of many hours could end at the first value that does not fit.
//! The crate `parquet` does the same and far more, at the cost of 40 seconds more for each release build
//! (docs/decisions/065-parquet.md).
//!
//! **Invariant:** memory is bounded by a row group and by the footer, which has some bytes for each column of each row group.

mod column;
mod file;
mod thrift;

use super::table::find;
use super::{ExportOptions, ExportOutput, read};
use crate::progress::{Activity, Progress};
use crate::{Interrupted, Link, ToolError};
use bunko_archive::each_document;
use bunko_bson::{DocumentRef, Element, ValueRef, extended_json};
use column::{Column, ColumnType};
use file::ParquetFile;
use std::collections::HashSet;

/// The most columns of a file: a collection whose fields have names such as dates would make one for each.
const COLUMNS_MAX: usize = 1_000;

/// Finds the value of a column in a document.
type Finder = for<'d> fn(DocumentRef<'d>, &str) -> Option<ValueRef<'d>>;

/// Exports the documents; returns their number.
/// # Errors
/// `Usage` if the documents have no field, or too many; `Failed` if a document has a field or a type that none had before,
/// or if the footer is too long; otherwise as the export's.
pub(super) fn run(
    link: &mut dyn Link,
    options: &ExportOptions,
    (progress, interrupted): (&Progress, &Interrupted),
    output: &mut ExportOutput,
) -> Result<u64, ToolError> {
    let mut found = Found::new(&options.fields);
    read(link, options, (progress, interrupted), &mut |batch| {
        progress.time(Activity::Parse, || {
            each_document(batch).try_for_each(|document| found.add(DocumentRef::trusted(document)))
        })
    })?;
    let counts = progress.namespace(&options.namespace());
    let (is_given, find) = (found.is_given, finder(&options.fields));
    let names: HashSet<String> = found.columns.iter().map(|(name, _)| name.clone()).collect();
    let (mut text, mut number) = (Vec::new(), 0);
    let mut file = ParquetFile::begin(found.columns()?, &mut text);
    read(link, options, (progress, interrupted), &mut |batch| {
        let begun = number;
        progress.time(Activity::Parse, || {
            each_document(batch).try_for_each(|document| {
                let document = DocumentRef::trusted(document);
                number += 1;
                if !is_given && let Some(new) = document.iter().find(|element| !names.contains(element.name)) {
                    return Err(changed(document, new.name, "is one that no document had"));
                }
                file.append(document, find, &mut text).map_err(|name| {
                    let value = find(document, &name).map_or_else(String::new, extended_json::to_relaxed);
                    changed(document, &name, &format!("is {value}, of another type than all values"))
                })
            })
        })?;
        progress.time(Activity::WriteTarget, || output.write(&text))?;
        text.clear();
        counts.add(number - begun, batch.len() as u64);
        Ok(())
    })?;
    let too_long = "--type parquet: the footer would have more than 4 GiB: name fewer columns with --fields";
    file.finish(&mut text).map_err(|_| ToolError::Failed(too_long.to_owned()))?;
    output.write(&text)?;
    Ok(number)
}

/// How a column finds its values. The names that the command line gives are paths; in a name that a document has, a dot is a
/// character as any other.
fn finder(fields: &[String]) -> Finder {
    if fields.is_empty() { at_top } else { find }
}

fn at_top<'d>(document: DocumentRef<'d>, name: &str) -> Option<ValueRef<'d>> {
    document.get(name)
}

/// The columns that the first reading has found, in the order of their appearance.
struct Found {
    columns: Vec<(String, Option<ColumnType>)>,
    /// Whether the command line names the columns.
    is_given: bool,
}

impl Found {
    fn new(fields: &[String]) -> Self {
        Self { columns: fields.iter().map(|name| (name.clone(), None)).collect(), is_given: !fields.is_empty() }
    }

    fn add(&mut self, document: DocumentRef<'_>) -> Result<(), ToolError> {
        if self.is_given {
            for (name, kind) in &mut self.columns {
                widen(kind, find(document, name).and_then(ColumnType::of));
            }
            return Ok(());
        }
        // The fields of most documents come in the order of the columns.
        let mut expected = 0;
        for Element { name, value } in document {
            let is_there = |at: &usize| self.columns.get(*at).is_some_and(|(known, _)| known == name);
            let at =
                Some(expected).filter(is_there).or_else(|| self.columns.iter().position(|(known, _)| known == name));
            let at = match at {
                Some(at) => at,
                None if self.columns.len() == COLUMNS_MAX => {
                    let message = format!(
                        "--type parquet: the documents have more than {COLUMNS_MAX} different fields: name the columns with --fields"
                    );
                    return Err(ToolError::Usage(message));
                }
                None => {
                    self.columns.push((name.to_owned(), None));
                    self.columns.len() - 1
                }
            };
            widen(&mut self.columns[at].1, ColumnType::of(value));
            expected = at + 1;
        }
        Ok(())
    }

    fn columns(self) -> Result<Vec<Column>, ToolError> {
        if self.columns.is_empty() {
            let message = "--type parquet: there are no documents, and a file needs a column: name one with --fields";
            return Err(ToolError::Usage(message.into()));
        }
        let column = |(name, kind): (String, Option<ColumnType>)| Column::new(name, kind.unwrap_or(ColumnType::Text));
        Ok(self.columns.into_iter().map(column).collect())
    }
}

fn widen(kind: &mut Option<ColumnType>, found: Option<ColumnType>) {
    *kind = match (*kind, found) {
        (Some(one), Some(other)) => Some(one.with(other)),
        (one, other) => one.or(other),
    };
}

/// The error of a document that was written between the two readings, with what is new about its field.
fn changed(document: DocumentRef<'_>, name: &str, news: &str) -> ToolError {
    let id = document.get("_id").map_or_else(|| "unknown _id".to_owned(), extended_json::to_relaxed);
    ToolError::Failed(format!(
        "--type parquet: the field '{name}' of the document {id} {news} a moment ago: export again"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::DocumentBuf;

    #[test]
    fn without_named_fields_a_dot_is_part_of_a_name() {
        let document = DocumentBuf::new().with("a.b", 7_i32);
        let is_found = |fields: &[String]| finder(fields)(document.as_ref(), "a.b").is_some();
        assert!(is_found(&[]) && !is_found(&["a.b".to_owned()]));
    }
}
