//! `bunko dump`.

use super::compression::CompressionArguments;
use super::connection::{Opened, RESUMABLE, ReportArguments, ServerArguments};
use crate::stop;
use bunko_bson::extended_json;
use bunko_client::ReadPreference;
use bunko_host::Clock;
use bunko_tools::dump::{self, ArchiveTarget, DumpOptions, OplogMode, Output, Resume, UsersAndRoles, Views};
use bunko_tools::progress::Progress;
use clap::Args;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Flags as mongodump's, and ours.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub struct DumpArguments {
    #[command(flatten)]
    server: ServerArguments,
    #[command(flatten)]
    report: ReportArguments,
    #[command(flatten)]
    compression: CompressionArguments,
    /// Only this database
    #[arg(long, short = 'd', value_name = "DATABASE")]
    db: Option<String>,
    /// Only this collection of --db
    #[arg(long, short = 'c', value_name = "COLLECTION")]
    collection: Option<String>,
    /// Only documents of --collection that match this filter, as Extended JSON
    #[arg(long, short = 'q', value_name = "JSON", requires = "collection")]
    query: Option<String>,
    /// As --query, from a file
    #[arg(long = "queryFile", value_name = "FILE", requires = "collection", conflicts_with = "query")]
    query_file: Option<PathBuf>,
    /// Which member of a replica set to read from: primary, primaryPreferred, secondary, secondaryPreferred, nearest
    #[arg(long = "readPreference", value_name = "MODE", conflicts_with = "dbpath")]
    read_preference: Option<ReadPreference>,
    /// The directory to write to; - writes the documents of one collection to standard output
    #[arg(long, short = 'o', value_name = "DIR", default_value = "dump")]
    out: PathBuf,
    /// Write one archive, to this file or, without one, to standard output
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-", conflicts_with = "out")]
    archive: Option<PathBuf>,
    /// Dump the oplog too, so that --oplogReplay restores all collections as of the dump's end
    #[arg(long, conflicts_with = "dbpath")]
    oplog: bool,
    /// Dump the users and roles of --db
    #[arg(long = "dumpDbUsersAndRoles")]
    users_and_roles: bool,
    /// Leave this collection of --db out; may be repeated
    #[arg(long = "excludeCollection", value_name = "COLLECTION")]
    exclude_collection: Vec<String>,
    /// Leave out collections of --db whose names begin with this; may be repeated
    #[arg(long = "excludeCollectionsWithPrefix", value_name = "PREFIX")]
    exclude_prefix: Vec<String>,
    /// Number of collections that are read at a time
    #[arg(long = "numParallelCollections", short = 'j', value_name = "N", default_value = "4")]
    parallel_collections: NonZeroUsize,
    /// Dump the documents that views show, and no collections
    #[arg(long = "viewsAsCollections")]
    views_as_collections: bool,
    /// Continue a dump that was interrupted; needs the same flags
    #[arg(long)]
    resume: bool,
    /// Number of threads that read, and of threads that compress [default: the number of processors]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Print this help
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

impl DumpArguments {
    /// Runs the dump.
    /// # Errors
    /// One line for the user.
    pub fn run(&self) -> Result<ExitCode, String> {
        let options = self.options()?;
        let opened = self.server.open_to_read(self.read_preference, RESUMABLE)?;
        let result = self.dump(&opened, &options);
        opened.close(result)
    }

    fn dump(&self, opened: &Opened, options: &DumpOptions) -> Result<ExitCode, String> {
        let progress = Arc::new(Progress::new(Clock::machine()));
        let reporter = self.report.start(&progress);
        let result = dump::run(opened.server(), options, &progress, &stop::on_signal(stop::TOOL_GRACE));
        if let Some(reporter) = reporter {
            reporter.finish();
        }
        result.map(|_| ExitCode::SUCCESS).map_err(|error| error.to_string())
    }

    fn options(&self) -> Result<DumpOptions, String> {
        let output = match &self.archive {
            Some(file) if file == Path::new("-") => Output::Archive(ArchiveTarget::Stdout),
            Some(file) => Output::Archive(ArchiveTarget::File(file.clone())),
            None if self.out == Path::new("-") => Output::StandardOutput,
            None => Output::Directory(self.out.clone()),
        };
        let query = match (&self.query, &self.query_file) {
            (Some(query), _) => Some((query.clone(), "--query".to_owned())),
            (None, Some(file)) => {
                let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
                Some((text, file.display().to_string()))
            }
            (None, None) => None,
        };
        let query = query
            .map(|(text, name)| extended_json::parse_document(&text).map_err(|error| format!("{name}: {error}")))
            .transpose()?;
        let mut options = DumpOptions::new(output);
        options.database = self.server.database(self.db.as_deref())?;
        options.collection.clone_from(&self.collection);
        options.query = query;
        options.compression = self.compression.get();
        options.oplog = if self.oplog { OplogMode::With } else { OplogMode::Without };
        options.exclude_collections.clone_from(&self.exclude_collection);
        options.exclude_prefixes.clone_from(&self.exclude_prefix);
        options.parallel_collections = self.parallel_collections;
        options.views = if self.views_as_collections { Views::AsCollections } else { Views::AsDefinitions };
        options.users_and_roles = if self.users_and_roles { UsersAndRoles::With } else { UsersAndRoles::Without };
        options.resume = if self.resume { Resume::Continue } else { Resume::Fresh };
        options.threads = self.threads.unwrap_or(options.threads);
        // Checks the options before the server is asked anything.
        options.validate().map_err(|error| error.to_string())?;
        Ok(options)
    }
}
