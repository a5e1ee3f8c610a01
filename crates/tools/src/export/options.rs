//! The options of an export: the documents that it reads, and the form in which it writes them.

use crate::ToolError;
use crate::import::Separator;
use bunko_bson::DocumentBuf;
use std::path::PathBuf;

/// Where the documents go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A file, which appears once it is whole.
    File(PathBuf),
    /// Standard output.
    Stdout,
}

/// The two forms of Extended JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonFormat {
    /// Numbers and dates as JSON has them, where no type is lost on most readers.
    Relaxed,
    /// Every type has its own text.
    Canonical,
}

/// How documents of JSON are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// One document on each line.
    Lines,
    /// One array of all documents.
    Array,
}

/// White space inside documents of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indentation {
    /// None.
    None,
    /// One field on each line.
    Pretty,
}

/// The first record of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderLine {
    /// The fields' names.
    Names,
    /// A document's values.
    Absent,
}

/// The format of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// Extended JSON.
    Json(JsonFormat, Frame, Indentation),
    /// CSV or TSV.
    Table(Separator, HeaderLine),
    /// Encoded documents, one after another.
    Bson,
    /// Apache Parquet.
    Parquet,
}

/// Whether a collection that does not exist is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The export has no documents.
    Empty,
    /// The export fails.
    Refused,
}

/// How documents are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan {
    /// The server chooses.
    Any,
    /// The whole collection is read in its natural order.
    Table,
}

/// One export.
#[derive(Clone, Debug)]
pub struct ExportOptions {
    /// The database to read from.
    pub database: String,
    /// The collection or view.
    pub collection: String,
    /// Where the documents go.
    pub destination: Destination,
    /// Their format.
    pub format: ExportFormat,
    /// Dotted paths; all fields if there are none.
    pub fields: Vec<String>,
    /// The filter.
    pub query: DocumentBuf,
    /// The order; empty for any.
    pub sort: DocumentBuf,
    /// Documents that are left out at the beginning.
    pub skip: u64,
    /// Maximum number of documents; 0 for all.
    pub limit: u64,
    /// How documents are looked for.
    pub scan: Scan,
    /// Whether the collection must exist.
    pub missing: Missing,
}

impl ExportOptions {
    /// Checks that the options make sense together.
    /// # Errors
    /// `Usage` names the flags.
    pub fn validate(&self) -> Result<(), ToolError> {
        let is_table = matches!(self.format, ExportFormat::Table(..));
        let is_repeated = |(at, field): (usize, &String)| self.fields[..at].contains(field);
        let has_name = |bad: fn(&str) -> bool| self.fields.iter().any(|field| field.split('.').any(bad));
        let contradictions = [
            (is_table && self.fields.is_empty(), "--type csv and tsv need --fields or --fieldFile"),
            (
                self.format == ExportFormat::Parquet && self.fields.iter().enumerate().any(is_repeated),
                "--type parquet: --fields names a column twice",
            ),
            (has_name(str::is_empty), "--fields: a field's name is empty"),
            (has_name(|name| name.starts_with('$')), "--fields: a field's name begins with '$'"),
            (
                self.scan == Scan::Table && self.sort != DocumentBuf::new(),
                "--forceTableScan cannot be combined with --sort: it reads the collection in its own order",
            ),
            (
                i64::try_from(self.skip).is_err() || i64::try_from(self.limit).is_err(),
                "--skip and --limit: the number is too large",
            ),
        ];
        match contradictions.into_iter().find(|(is_there, _)| *is_there) {
            Some((_, message)) => Err(ToolError::Usage(message.into())),
            None => Ok(()),
        }
    }

    /// `database.collection`.
    pub fn namespace(&self) -> String {
        format!("{}.{}", self.database, self.collection)
    }

    /// The command that reads the documents.
    pub(super) fn find(&self) -> DocumentBuf {
        let mut find = DocumentBuf::new().with("find", &self.collection).with("filter", &self.query);
        if self.sort != DocumentBuf::new() {
            find.append("sort", &self.sort);
        }
        let projection = self.projection();
        if projection != DocumentBuf::new() {
            find.append("projection", &projection);
        }
        if self.skip > 0 {
            find.append("skip", self.skip as i64);
        }
        if self.limit > 0 {
            find.append("limit", self.limit as i64);
        }
        if self.scan == Scan::Table {
            find.append("hint", &DocumentBuf::new().with("$natural", 1_i32));
        }
        find
    }

    /// The fields that the server sends: whole arrays, because projections know no positions, and no field below
    /// another one.
    fn projection(&self) -> DocumentBuf {
        let is_position = |name: &&str| !name.bytes().all(|byte| byte.is_ascii_digit());
        let paths = self.fields.iter().map(|field| {
            let names: Vec<&str> = field
                .split('.')
                .enumerate()
                .take_while(|(at, name)| *at == 0 || is_position(name))
                .map(|(_, name)| name)
                .collect();
            names.join(".")
        });
        let mut paths: Vec<String> = paths.collect();
        paths.sort();
        paths.dedup();
        let mut projection = DocumentBuf::new();
        for path in &paths {
            let is_below =
                paths.iter().any(|other| path.strip_prefix(other.as_str()).is_some_and(|rest| rest.starts_with('.')));
            if !is_below {
                projection.append(path, 1_i32);
            }
        }
        // As by mongoexport: JSON has `_id` even if it is not named.
        let leaves_id_out = matches!(self.format, ExportFormat::Table(..) | ExportFormat::Parquet)
            && !paths.iter().any(|path| path == "_id" || path.starts_with("_id."));
        if leaves_id_out && !paths.is_empty() {
            projection.append("_id", 0_i32);
        }
        projection
    }
}
