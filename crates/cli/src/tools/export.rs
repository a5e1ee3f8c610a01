//! `bunko export`.

use super::connection::{Opened, ReportArguments, ServerArguments};
use crate::stop;
use bunko_bson::{DocumentBuf, extended_json};
use bunko_client::ReadPreference;
use bunko_host::Clock;
use bunko_tools::export::{
    self, Destination, ExportFormat, ExportOptions, Frame, HeaderLine, Indentation, JsonFormat, Missing, Scan,
};
use bunko_tools::import::Separator;
use bunko_tools::progress::Progress;
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// The database if none is named, as for the classic tool.
const DEFAULT_DATABASE: &str = "test";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutputType {
    Json,
    Csv,
    Tsv,
    Bson,
    Parquet,
}

fn output_type(text: &str) -> Result<OutputType, String> {
    match text {
        "json" => Ok(OutputType::Json),
        "csv" => Ok(OutputType::Csv),
        "tsv" => Ok(OutputType::Tsv),
        "bson" => Ok(OutputType::Bson),
        "parquet" => Ok(OutputType::Parquet),
        _ => Err("it is one of json, csv, tsv, bson and parquet".into()),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FormatName {
    /// Numbers and dates as JSON has them
    Relaxed,
    /// Every type has its own text
    Canonical,
}

/// Flags as mongoexport's, and ours.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub struct ExportArguments {
    #[command(flatten)]
    server: ServerArguments,
    #[command(flatten)]
    report: ReportArguments,
    /// The database to export from [default: test]
    #[arg(long, short = 'd', value_name = "DATABASE")]
    db: Option<String>,
    /// The collection or view to export
    #[arg(long, short = 'c', value_name = "COLLECTION")]
    collection: String,
    /// The file to write, which appears once it is whole; - is standard output [default: -]
    #[arg(long, short = 'o', value_name = "FILE")]
    out: Option<PathBuf>,
    /// The format of the output: json, csv, tsv, bson or parquet
    #[arg(long = "type", value_name = "TYPE", default_value = "json", value_parser = output_type)]
    output_type: OutputType,
    /// The fields to export, with commas between them; csv and tsv need them, parquet has all without them
    #[arg(long, short = 'f', value_name = "NAMES", conflicts_with = "field_file")]
    fields: Option<String>,
    /// A file with the names of the fields, one on each line
    #[arg(long = "fieldFile", value_name = "FILE")]
    field_file: Option<PathBuf>,
    /// Leave the names of the fields out of csv and tsv
    #[arg(long = "noHeaderLine")]
    no_header_line: bool,
    /// Write one JSON array instead of one document on each line
    #[arg(long = "jsonArray")]
    json_array: bool,
    /// Write each field of JSON on a line of its own
    #[arg(long)]
    pretty: bool,
    /// The form of Extended JSON [default: relaxed]
    #[arg(long = "jsonFormat", value_name = "FORM")]
    json_format: Option<FormatName>,
    /// Only documents that match this filter, as Extended JSON
    #[arg(long, short = 'q', value_name = "JSON")]
    query: Option<String>,
    /// As --query, from a file
    #[arg(long = "queryFile", value_name = "FILE", conflicts_with = "query")]
    query_file: Option<PathBuf>,
    /// The order of the documents, such as {"year": -1}
    #[arg(long, value_name = "JSON")]
    sort: Option<String>,
    /// Number of documents to leave out at the beginning
    #[arg(long, value_name = "N", default_value = "0")]
    skip: u64,
    /// Maximum number of documents to export; 0 is all
    #[arg(long, value_name = "N", default_value = "0")]
    limit: u64,
    /// Read the collection in its natural order, without an index
    #[arg(long = "forceTableScan")]
    force_table_scan: bool,
    /// Fail if the collection does not exist
    #[arg(long = "assertExists")]
    assert_exists: bool,
    /// Which member of a replica set to read from: primary, primaryPreferred, secondary, secondaryPreferred, nearest
    #[arg(long = "readPreference", value_name = "MODE", conflicts_with = "dbpath")]
    read_preference: Option<ReadPreference>,
    /// Print this help
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

impl ExportArguments {
    /// Runs the export.
    /// # Errors
    /// One line for the user.
    pub fn run(&self) -> Result<ExitCode, String> {
        let options = self.options()?;
        let opened = self.server.open_to_read(self.read_preference, "; no file was written")?;
        let result = self.export(&opened, &options);
        opened.close(result)
    }

    fn export(&self, opened: &Opened, options: &ExportOptions) -> Result<ExitCode, String> {
        let progress = Arc::new(Progress::new(Clock::machine()));
        let reporter = self.report.start(&progress);
        let result = export::run(opened.server(), options, &progress, &stop::on_signal(stop::TOOL_GRACE));
        if let Some(reporter) = reporter {
            reporter.finish();
        }
        let count = result.map_err(|error| error.to_string())?;
        self.report.print_note(&format!("exported {count} record(s)"));
        Ok(ExitCode::SUCCESS)
    }

    fn options(&self) -> Result<ExportOptions, String> {
        let destination = match self.out.as_deref() {
            None => Destination::Stdout,
            Some(path) if path == Path::new("-") => Destination::Stdout,
            Some(path) => Destination::File(path.to_owned()),
        };
        let query = match (&self.query, &self.query_file) {
            (Some(text), _) => document(text, "--query")?,
            (None, Some(file)) => {
                let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
                document(&text, &file.display().to_string())?
            }
            (None, None) => DocumentBuf::new(),
        };
        let options = ExportOptions {
            database: self.server.database(self.db.as_deref())?.unwrap_or_else(|| DEFAULT_DATABASE.to_owned()),
            collection: self.collection.clone(),
            destination,
            format: self.format()?,
            fields: super::field_names(self.fields.as_deref(), self.field_file.as_deref())?.unwrap_or_default(),
            query,
            sort: self.sort.as_deref().map_or_else(|| Ok(DocumentBuf::new()), |text| document(text, "--sort"))?,
            skip: self.skip,
            limit: self.limit,
            scan: if self.force_table_scan { Scan::Table } else { Scan::Any },
            missing: if self.assert_exists { Missing::Refused } else { Missing::Empty },
        };
        // Checks the options before the server is asked anything.
        options.validate().map_err(|error| error.to_string())?;
        Ok(options)
    }

    fn format(&self) -> Result<ExportFormat, String> {
        let of_json =
            [(self.json_array, "--jsonArray"), (self.pretty, "--pretty"), (self.json_format.is_some(), "--jsonFormat")];
        let given = of_json.into_iter().find(|(is_given, _)| *is_given).map(|(_, flag)| flag);
        let is_table = matches!(self.output_type, OutputType::Csv | OutputType::Tsv);
        if let Some(flag) = given.filter(|_| self.output_type != OutputType::Json) {
            return Err(format!("{flag} needs --type json"));
        }
        if self.no_header_line && !is_table {
            return Err("--noHeaderLine needs --type csv or tsv".into());
        }
        let header = if self.no_header_line { HeaderLine::Absent } else { HeaderLine::Names };
        Ok(match self.output_type {
            OutputType::Csv => ExportFormat::Table(Separator::Comma, header),
            OutputType::Tsv => ExportFormat::Table(Separator::Tab, header),
            OutputType::Bson => ExportFormat::Bson,
            OutputType::Parquet => ExportFormat::Parquet,
            OutputType::Json => ExportFormat::Json(
                if self.json_format == Some(FormatName::Canonical) {
                    JsonFormat::Canonical
                } else {
                    JsonFormat::Relaxed
                },
                if self.json_array { Frame::Array } else { Frame::Lines },
                if self.pretty { Indentation::Pretty } else { Indentation::None },
            ),
        })
    }
}

/// Reads a document of Extended JSON.
fn document(text: &str, name: &str) -> Result<DocumentBuf, String> {
    extended_json::parse_document(text).map_err(|error| format!("{name}: {error}"))
}
