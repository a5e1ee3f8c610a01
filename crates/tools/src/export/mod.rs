//! Exporting the documents of one collection as JSON, as a table, as BSON, or as Parquet.
//!
//! **Invariant:** a file appears whole or not at all: a broken connection or an interruption leaves the file of that
//! name as it was.
//! **Invariant:** memory is bounded by a batch of the cursor and its text (of Parquet, a row group), not by the collection.

mod json;
mod options;
mod output;
mod parquet;
mod table;

pub use options::{
    Destination, ExportFormat, ExportOptions, Frame, HeaderLine, Indentation, JsonFormat, Missing, Scan,
};

use crate::cursor::{self, Cursor, DOCUMENT_BYTES_GUESSED, batch_documents};
use crate::progress::{Activity, Progress};
use crate::{Interrupted, Link, Server, ToolError, retry};
use bunko_archive::each_document;
use bunko_bson::{DocumentBuf, DocumentRef};
use output::ExportOutput;

/// Exports the documents that `options` name; returns their number.
/// # Errors
/// `Usage` for options that mean nothing; `Failed` if the collection must exist and does not; the server's error;
/// `File`; `Interrupted`.
pub fn run(
    server: &dyn Server,
    options: &ExportOptions,
    progress: &Progress,
    interrupted: &Interrupted,
) -> Result<u64, ToolError> {
    options.validate()?;
    let mut link = server.connect().map_err(|cause| ToolError::server(options.namespace(), cause))?;
    if options.missing == Missing::Refused {
        check_existence(link.as_mut(), options, progress)?;
    }
    let mut output = ExportOutput::open(&options.destination)?;
    if options.format == ExportFormat::Parquet {
        let count = parquet::run(link.as_mut(), options, (progress, interrupted), &mut output)?;
        output.finish()?;
        progress.namespace(&options.namespace()).finish();
        return Ok(count);
    }
    let mut text = Vec::new();
    match options.format {
        ExportFormat::Json(_, frame, _) => json::begin(frame, &mut text),
        ExportFormat::Table(separator, HeaderLine::Names) => {
            table::append_header(&options.fields, separator, &mut text);
        }
        ExportFormat::Table(_, HeaderLine::Absent) | ExportFormat::Bson | ExportFormat::Parquet => {}
    }
    let count = copy(link.as_mut(), options, (progress, interrupted), (&mut text, &mut output))?;
    if let ExportFormat::Json(_, frame, _) = options.format {
        json::end(frame, &mut text);
    }
    output.write(&text)?;
    output.finish()?;
    progress.namespace(&options.namespace()).finish();
    Ok(count)
}

/// Copies all documents; returns their number.
fn copy(
    link: &mut dyn Link,
    options: &ExportOptions,
    (progress, interrupted): (&Progress, &Interrupted),
    (text, output): (&mut Vec<u8>, &mut ExportOutput),
) -> Result<u64, ToolError> {
    let counts = progress.namespace(&options.namespace());
    let mut number = 0;
    read(link, options, (progress, interrupted), &mut |batch| {
        let begun = number;
        progress.time(Activity::Parse, || {
            for document in each_document(batch) {
                append(DocumentRef::trusted(document), number, options, text);
                number += 1;
            }
        });
        progress.time(Activity::WriteTarget, || output.write(text))?;
        counts.add(number - begun, batch.len() as u64);
        text.clear();
        Ok(())
    })?;
    Ok(number)
}

/// Reads all documents, and hands them to `visit`, batch by batch.
fn read(
    link: &mut dyn Link,
    options: &ExportOptions,
    (progress, interrupted): (&Progress, &Interrupted),
    visit: &mut dyn FnMut(&[u8]) -> Result<(), ToolError>,
) -> Result<(), ToolError> {
    let failed = |cause| ToolError::server(options.namespace(), cause);
    let mut find = options.find().with("batchSize", batch_documents(DOCUMENT_BYTES_GUESSED) as i64);
    if let Some(preference) = link.read_preference() {
        find.append("$readPreference", preference);
    }
    let mut cursor = Cursor::open(link, progress, &options.database, &find).map_err(failed)?;
    let mut batch = Vec::new();
    loop {
        if let Err(error) = retry::check(interrupted) {
            // The interruption is reported, even if closing the cursor fails.
            let _ = cursor.close();
            return Err(error);
        }
        if cursor.next(&mut batch).map_err(failed)?.is_none() {
            return Ok(());
        }
        if let Err(error) = visit(&batch) {
            let _ = cursor.close();
            return Err(error);
        }
        batch.clear();
    }
}

fn append(document: DocumentRef<'_>, number: u64, options: &ExportOptions, out: &mut Vec<u8>) {
    match options.format {
        ExportFormat::Json(format, frame, indentation) => {
            json::append(document, number, (format, frame, indentation), out);
        }
        ExportFormat::Table(separator, _) => table::append(document, &options.fields, separator, out),
        // Parquet has rows of its own.
        ExportFormat::Bson | ExportFormat::Parquet => out.extend_from_slice(document.as_bytes()),
    }
}

fn check_existence(link: &mut dyn Link, options: &ExportOptions, progress: &Progress) -> Result<(), ToolError> {
    let filter = DocumentBuf::new().with("name", &options.collection);
    let list = DocumentBuf::new().with("listCollections", 1_i32).with("filter", &filter).with("nameOnly", true);
    let listed = cursor::collect(link, progress, &options.database, &list);
    if listed.map_err(|cause| ToolError::server(&options.database, cause))?.is_empty() {
        let message = format!("--assertExists: the collection {} does not exist", options.namespace());
        return Err(ToolError::Failed(message));
    }
    Ok(())
}
