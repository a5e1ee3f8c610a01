//! `bunko import`.

use super::connection::{Opened, ReportArguments, ServerArguments};
use crate::stop;
use bunko_client::{Acknowledgement, WriteConcern};
use bunko_host::Clock;
use bunko_tools::import::{
    self, Blanks, ColumnTypes, FieldNames, Format, Grace, ImportError, ImportOptions, JsonForm, Mode, Positions, RunId,
    Separator, Source, TableOptions, WORKERS_MAX,
};
use bunko_tools::progress::Progress;
use bunko_tools::restore::{Existing, InsertionOrder, OnError, Validation};
use clap::{Args, ValueEnum};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// The database if none is named, as for the classic tool.
const DEFAULT_DATABASE: &str = "test";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InputType {
    Json,
    Csv,
    Tsv,
    Bson,
}

fn input_type(text: &str) -> Result<InputType, String> {
    match text {
        "json" => Ok(InputType::Json),
        "csv" => Ok(InputType::Csv),
        "tsv" => Ok(InputType::Tsv),
        "bson" => Ok(InputType::Bson),
        "parquet" => Err("parquet is not supported yet; json, csv, tsv and bson are".into()),
        _ => Err("it is one of json, csv, tsv and bson".into()),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ModeName {
    /// Insert documents; those whose _id exists are refused
    Insert,
    /// Replace documents with the same --upsertFields, or insert
    Upsert,
    /// Set the fields of documents with the same --upsertFields, or insert
    Merge,
    /// Delete documents with the same --upsertFields
    Delete,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "camelCase")]
enum GraceName {
    /// Give the value the type that it looks like
    AutoCast,
    /// Leave the field out
    SkipField,
    /// Leave the record out
    SkipRow,
    /// End the import
    Stop,
}

/// Flags as mongoimport's, and ours.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub struct ImportArguments {
    #[command(flatten)]
    server: ServerArguments,
    #[command(flatten)]
    report: ReportArguments,
    /// The file to read; as --file [default: standard input]
    #[arg(value_name = "FILE", conflicts_with = "file")]
    path: Option<PathBuf>,
    /// The file to read; - is standard input
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// The database to import into [default: test]
    #[arg(long, short = 'd', value_name = "DATABASE")]
    db: Option<String>,
    /// The collection to import into [default: the file's name without its ending]
    #[arg(long, short = 'c', value_name = "COLLECTION")]
    collection: Option<String>,
    /// The format of the input: json, csv, tsv or bson
    #[arg(long = "type", value_name = "TYPE", default_value = "json", value_parser = input_type)]
    input_type: InputType,
    /// The input is one JSON array of documents
    #[arg(long = "jsonArray")]
    json_array: bool,
    /// Accepted as by the classic tool; both versions of Extended JSON are read without it
    #[arg(long, hide = true)]
    legacy: bool,
    /// The names of the columns of CSV or TSV, with commas between them
    #[arg(long, short = 'f', value_name = "NAMES", conflicts_with_all = ["field_file", "header_line"])]
    fields: Option<String>,
    /// A file with the names of the columns, one on each line
    #[arg(long = "fieldFile", value_name = "FILE", conflicts_with = "header_line")]
    field_file: Option<PathBuf>,
    /// The first record of CSV or TSV has the names of the columns
    #[arg(long = "headerline")]
    header_line: bool,
    /// The names of the columns end with types, such as price.decimal(), day.date(2006-01-02): auto, string, int32,
    /// int64, double, decimal, boolean, date or date_go, date_ms, date_oracle, binary(base64, base32 or hex)
    #[arg(long = "columnsHaveTypes")]
    columns_have_types: bool,
    /// What becomes of a value that is not of its column's type [default: stop]
    #[arg(long = "parseGrace", value_name = "GRACE", requires = "columns_have_types")]
    parse_grace: Option<GraceName>,
    /// Leave empty values of CSV or TSV out
    #[arg(long = "ignoreBlanks")]
    ignore_blanks: bool,
    /// A number in a column's name is a position in an array, as in tags.0
    #[arg(long = "useArrayIndexFields")]
    use_array_index_fields: bool,
    /// Drop the collection first
    #[arg(long)]
    drop: bool,
    /// What is done with each document [default: insert, or upsert with --upsertFields]
    #[arg(long, value_name = "MODE")]
    mode: Option<ModeName>,
    /// As --mode upsert
    #[arg(long, hide = true, conflicts_with = "mode")]
    upsert: bool,
    /// The fields by which --mode upsert, merge and delete find a document, with commas between them [default: _id]
    #[arg(long = "upsertFields", value_name = "NAMES")]
    upsert_fields: Option<String>,
    /// End at the first document that the server refuses
    #[arg(long = "stopOnError")]
    stop_on_error: bool,
    /// Write documents in the input's order, with one connection, and end at the first that is refused, as the other
    /// modes than insert do
    #[arg(long = "maintainInsertionOrder")]
    maintain_insertion_order: bool,
    /// Number of connections, at most 64, each with a thread that parses; other modes than insert take one [default:
    /// the number of processors]
    #[arg(long = "numInsertionWorkers", short = 'j', value_name = "N")]
    insertion_workers: Option<NonZeroUsize>,
    /// Write concern: a number of members, majority, or a document such as {"w": 1, "j": true} [default: majority]
    #[arg(long = "writeConcern", value_name = "CONCERN")]
    write_concern: Option<String>,
    /// Write documents that the collection's validator would refuse
    #[arg(long = "bypassDocumentValidation")]
    bypass_document_validation: bool,
    /// Record the progress in this file, and continue where an earlier import with this file ended
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// Print this help
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

impl ImportArguments {
    /// Runs the import.
    /// # Errors
    /// Why it ended early, and what had been imported until then.
    pub fn run(&self) -> Result<ExitCode, String> {
        let options = self.options()?;
        let advice = if self.resume.is_some() {
            "; what is done so far is kept, and the same command goes on with it"
        } else {
            "; documents that were acknowledged are kept"
        };
        let opened = self.server.open_to_write(advice)?;
        let result = self.import(&opened, &options);
        opened.close(result)
    }

    fn import(&self, opened: &Opened, options: &ImportOptions) -> Result<ExitCode, String> {
        let progress = Arc::new(Progress::new(Clock::machine()));
        let reporter = self.report.start(&progress);
        let result = import::run(opened.server(), options, &progress, &stop::on_signal(stop::TOOL_GRACE));
        if let Some(reporter) = reporter {
            reporter.finish();
        }
        let (summary, ended) = match result {
            // As by the classic tool: documents that the server refuses are reported, and are not a failure of the
            // import.
            Ok(summary) => (summary, Ok(ExitCode::SUCCESS)),
            Err(ImportError { cause, summary }) => (*summary, Err(cause.to_string())),
        };
        self.report.print_summary(&summary);
        ended
    }

    fn options(&self) -> Result<ImportOptions, String> {
        let source = match self.path.as_deref().or(self.file.as_deref()) {
            None => Source::Stdin,
            Some(path) if path == Path::new("-") => Source::Stdin,
            Some(path) => Source::File(path.to_owned()),
        };
        let mode = self.mode();
        let key_fields = self.upsert_fields.as_deref().unwrap_or("_id").split(',').map(|name| name.trim().to_owned());
        let processors = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN).get().min(WORKERS_MAX);
        let options = ImportOptions {
            format: self.format()?,
            database: self.server.database(self.db.as_deref())?.unwrap_or_else(|| DEFAULT_DATABASE.to_owned()),
            collection: self.collection(&source)?,
            source,
            mode,
            key_fields: key_fields.collect(),
            existing: if self.drop { Existing::Drop } else { Existing::Keep },
            on_error: if self.stop_on_error { OnError::Stop } else { OnError::GoOn },
            order: if self.maintain_insertion_order { InsertionOrder::Maintain } else { InsertionOrder::Any },
            workers: self.workers(processors)?,
            write_concern: self.write_concern()?,
            validation: if self.bypass_document_validation { Validation::Bypass } else { Validation::Enforce },
            resume_file: self.resume.clone(),
            run_id: RunId { seconds: Clock::machine().since_1970().as_secs() as u32, number: rand::random() },
        };
        // Checks the options before the server is asked anything.
        options.validate().map_err(|error| error.to_string())?;
        Ok(options)
    }

    fn mode(&self) -> Mode {
        match self.mode {
            Some(ModeName::Insert) => Mode::Insert,
            Some(ModeName::Upsert) => Mode::Upsert,
            Some(ModeName::Merge) => Mode::Merge,
            Some(ModeName::Delete) => Mode::Delete,
            None if self.upsert || self.upsert_fields.is_some() => Mode::Upsert,
            None => Mode::Insert,
        }
    }

    /// Number of workers; documents that keep their order need one.
    fn workers(&self, processors: usize) -> Result<NonZeroUsize, String> {
        match (self.insertion_workers, self.maintain_insertion_order) {
            (Some(workers), true) if workers.get() > 1 => Err(format!(
                "--numInsertionWorkers {workers} cannot be combined with --maintainInsertionOrder, which needs one"
            )),
            (_, true) => Ok(NonZeroUsize::MIN),
            (Some(workers), false) => Ok(workers),
            (None, false) => Ok(NonZeroUsize::new(processors).unwrap_or(NonZeroUsize::MIN)),
        }
    }

    /// The collection that is named, or the name of the file.
    fn collection(&self, source: &Source) -> Result<String, String> {
        match (&self.collection, source) {
            (Some(collection), _) => Ok(collection.clone()),
            (None, Source::Stdin) => Err("--collection is needed with standard input".into()),
            (None, Source::File(path)) => {
                let name = path.file_stem().and_then(|stem| stem.to_str()).filter(|stem| !stem.is_empty());
                name.map(str::to_owned)
                    .ok_or_else(|| format!("{}: --collection is needed with this name", path.display()))
            }
        }
    }

    fn format(&self) -> Result<Format, String> {
        let of_tables = [
            (self.fields.is_some(), "--fields"),
            (self.field_file.is_some(), "--fieldFile"),
            (self.header_line, "--headerline"),
            (self.columns_have_types, "--columnsHaveTypes"),
            (self.ignore_blanks, "--ignoreBlanks"),
            (self.use_array_index_fields, "--useArrayIndexFields"),
        ];
        let separator = match self.input_type {
            InputType::Csv => Separator::Comma,
            InputType::Tsv => Separator::Tab,
            InputType::Json | InputType::Bson => {
                if let Some((_, flag)) = of_tables.into_iter().find(|(is_given, _)| *is_given) {
                    return Err(format!("{flag} needs --type csv or tsv"));
                }
                if self.json_array && self.input_type == InputType::Bson {
                    return Err("--jsonArray needs --type json".into());
                }
                let form = if self.json_array { JsonForm::Array } else { JsonForm::Lines };
                return Ok(if self.input_type == InputType::Bson { Format::Bson } else { Format::Json(form) });
            }
        };
        if self.json_array || self.legacy {
            let flag = if self.json_array { "--jsonArray" } else { "--legacy" };
            return Err(format!("{flag} needs --type json"));
        }
        Ok(Format::Table(TableOptions {
            separator,
            fields: self.field_names()?,
            types: if self.columns_have_types { ColumnTypes::Declared } else { ColumnTypes::Automatic },
            grace: match self.parse_grace {
                Some(GraceName::AutoCast) => Grace::AutoCast,
                Some(GraceName::SkipField) => Grace::SkipField,
                Some(GraceName::SkipRow) => Grace::SkipRow,
                Some(GraceName::Stop) | None => Grace::Stop,
            },
            blanks: if self.ignore_blanks { Blanks::Ignore } else { Blanks::Keep },
            positions: if self.use_array_index_fields { Positions::AsIndexes } else { Positions::AsNames },
        }))
    }

    fn field_names(&self) -> Result<FieldNames, String> {
        if self.header_line {
            return Ok(FieldNames::HeaderLine);
        }
        let names = super::field_names(self.fields.as_deref(), self.field_file.as_deref())?;
        match names {
            Some(names) => Ok(FieldNames::Listed(names)),
            None => Err("--type csv and tsv need --headerline, --fields or --fieldFile".into()),
        }
    }

    fn write_concern(&self) -> Result<WriteConcern, String> {
        match &self.write_concern {
            Some(text) => text.parse().map_err(|error| format!("--writeConcern: {error}")),
            None => Ok(self.server.write_concern()?.unwrap_or(WriteConcern {
                w: Acknowledgement::Majority,
                journal: None,
                timeout: None,
            })),
        }
    }
}
