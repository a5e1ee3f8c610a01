//! `bunko restore`.

use super::connection::{Opened, RESUMABLE, ReportArguments, ServerArguments};
use super::login::HOST_AND_USER;
use crate::printed::{print, print_line};
use crate::stop;
use bunko_bson::Timestamp;
use bunko_client::WriteConcern;
use bunko_engines::COOLING_BYTES_MAX;
use bunko_host::Clock;
use bunko_store::SEGMENT_BYTES;
use bunko_tools::namespaces::{Filter, Renames};
use bunko_tools::progress::Progress;
use bunko_tools::restore::{
    self, ArchiveSource, Bulk, CollectionOptions, Existing, IndexVersion, Indexes, InsertionOrder, Mode, ObjectCheck,
    OnError, Oplog, RestoreError, RestoreOptions, Resume, ResumeFile, Source, UsersAndRoles, Uuids, Validation, Verify,
};
use bunko_tools::{Absent, tune};
use clap::Args;
use std::fs::OpenOptions;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Flags that have no effect on `--list`, which only reads the dump. They are refused with it, as is [`HOST_AND_USER`].
const WITHOUT_EFFECT_ON_A_LIST: [&str; 26] = [
    "uri",
    "config",
    "dbpath",
    "storage_engine",
    "log_format",
    "dry_run",
    "drop",
    "write_concern",
    "no_index_restore",
    "no_options_restore",
    "keep_index_version",
    "stop_on_error",
    "maintain_insertion_order",
    "parallel_collections",
    "insertion_workers",
    "batch_size",
    "bypass_document_validation",
    "preserve_uuid",
    "objcheck",
    "oplog_replay",
    "oplog_limit",
    "oplog_file",
    "resume",
    "resume_file",
    "verify",
    "no_bulk",
];

/// Flags that have no effect on trials and are refused with `--tune`, see [`tune`].
const WITHOUT_EFFECT_ON_TRIALS: [&str; 17] = [
    "dry_run",
    "list",
    "resume",
    "resume_file",
    "verify",
    "drop",
    "preserve_uuid",
    "from",
    "to",
    "no_index_restore",
    "keep_index_version",
    "oplog_replay",
    "oplog_limit",
    "oplog_file",
    "users_and_roles",
    "maintain_insertion_order",
    "log_format",
];

/// Flags that have no effect on a restore of a backup and are refused with it.
const WITHOUT_EFFECT_ON_A_BACKUP: [&str; 31] = [
    "storage_engine",
    "gzip",
    "db",
    "collection",
    "include",
    "exclude",
    "from",
    "to",
    "drop",
    "dry_run",
    "list",
    "write_concern",
    "no_index_restore",
    "no_options_restore",
    "keep_index_version",
    "stop_on_error",
    "maintain_insertion_order",
    "insertion_workers",
    "batch_size",
    "bypass_document_validation",
    "preserve_uuid",
    "objcheck",
    "oplog_replay",
    "oplog_limit",
    "oplog_file",
    "users_and_roles",
    "resume",
    "resume_file",
    "verify",
    "tune",
    "no_bulk",
];

/// Default dump directory.
const DEFAULT_DUMP: &str = "dump";

/// Bytes of documents that may go through the log of a `--dbpath`: somewhat less than the engine lsm leaves there to
/// cool down.
const DIRECTORY_LOG_BYTES: u64 = COOLING_BYTES_MAX - SEGMENT_BYTES;

/// First size of a restore's state file: a block of most filesystems.
const FIRST_LINES_BYTES: usize = 4096;

/// Flags as mongorestore's, and ours.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub struct RestoreArguments {
    #[command(flatten)]
    server: ServerArguments,
    #[command(flatten)]
    report: ReportArguments,
    /// A dump directory, or a .bson file with --db and --collection; - is standard input
    #[arg(value_name = "DIR or FILE", conflicts_with_all = ["dir", "archive"])]
    path: Option<PathBuf>,
    /// A directory or s3://BUCKET/PREFIX of backups that `bunko backup` made; --dbpath names the data directory to make
    #[arg(long, value_name = "DIR or s3://", requires = "dbpath", conflicts_with_all = ["path", "dir", "archive"])]
    #[arg(conflicts_with_all = WITHOUT_EFFECT_ON_A_BACKUP)]
    backup: Option<PathBuf>,
    /// The file of keys that an encrypted backup needs
    #[arg(long = "key-file", value_name = "FILE", requires = "backup")]
    key_file: Option<PathBuf>,
    /// The moment to restore a backup to, such as 2026-11-30T14:03:05.123Z [default: the newest]
    #[arg(long = "to-time", value_name = "TIME", requires = "backup", value_parser = super::restore_backup::moment)]
    to_time: Option<u64>,
    /// The dump directory [default: dump]
    #[arg(long, value_name = "DIR", conflicts_with = "archive")]
    dir: Option<PathBuf>,
    /// Read an archive, from this file or, without one, from standard input
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    archive: Option<PathBuf>,
    /// Accepted as by the classic tool; the first bytes of a dump show how it is compressed
    #[arg(long, hide = true)]
    gzip: bool,
    /// Only this database of an archive; with a directory or a file, the database to restore into
    #[arg(long, short = 'd', value_name = "DATABASE")]
    db: Option<String>,
    /// Only this collection; with a file, the collection to restore into
    #[arg(long, short = 'c', value_name = "COLLECTION")]
    collection: Option<String>,
    /// Only namespaces that match, such as shop.* ; may be repeated
    #[arg(long = "nsInclude", value_name = "PATTERN")]
    include: Vec<String>,
    /// Leave out namespaces that match; may be repeated
    #[arg(long = "nsExclude", value_name = "PATTERN")]
    exclude: Vec<String>,
    /// Rename namespaces that match, such as $db$.$c$ ; one --nsTo for each
    #[arg(long = "nsFrom", value_name = "PATTERN")]
    from: Vec<String>,
    /// New names of the namespaces of --nsFrom
    #[arg(long = "nsTo", value_name = "PATTERN")]
    to: Vec<String>,
    /// Drop each collection of the dump before it is restored
    #[arg(long)]
    drop: bool,
    /// Read and check the whole dump with the flags of a later restore; contact no server, write nothing
    #[arg(long = "dryRun", conflicts_with_all = ["resume", "resume_file", "verify"])]
    dry_run: bool,
    /// Print the dump's namespaces with their sizes; contact no server, write nothing
    #[arg(long, conflicts_with_all = HOST_AND_USER.into_iter().chain(WITHOUT_EFFECT_ON_A_LIST))]
    list: bool,
    /// Write concern: a number of members, majority, or a document such as {"w": 1, "j": true}
    #[arg(long = "writeConcern", value_name = "CONCERN")]
    write_concern: Option<String>,
    /// Build no indexes
    #[arg(long = "noIndexRestore")]
    no_index_restore: bool,
    /// Create collections without the options that the dump names
    #[arg(long = "noOptionsRestore")]
    no_options_restore: bool,
    /// Build indexes of the version that the dump names
    #[arg(long = "keepIndexVersion", conflicts_with = "no_index_restore")]
    keep_index_version: bool,
    /// End at the first document or index that is refused
    #[arg(long = "stopOnError")]
    stop_on_error: bool,
    /// Insert documents in the dump's order, one batch at a time, and end at the first that is refused
    #[arg(long = "maintainInsertionOrder")]
    maintain_insertion_order: bool,
    /// Number of files of a directory that are read at a time
    #[arg(long = "numParallelCollections", short = 'j', value_name = "N", default_value = "4")]
    parallel_collections: NonZeroUsize,
    /// Number of connections that insert into one collection, at most 64 in all [default: adapted to the throughput]
    #[arg(long = "numInsertionWorkersPerCollection", value_name = "N")]
    insertion_workers: Option<NonZeroUsize>,
    /// Maximum number of documents in one batch, up to 100000 [default: as many as fit]
    #[arg(long = "batchSize", value_name = "N")]
    batch_size: Option<NonZeroUsize>,
    /// Insert documents that a collection's validator would refuse
    #[arg(long = "bypassDocumentValidation")]
    bypass_document_validation: bool,
    /// Keep collections' UUIDs; needs --drop
    #[arg(long = "preserveUUID", requires = "drop")]
    preserve_uuid: bool,
    /// Check every value of each document before it is sent
    #[arg(long)]
    objcheck: bool,
    /// Replay the oplog that the dump holds
    #[arg(long = "oplogReplay")]
    oplog_replay: bool,
    /// Replay only entries before this time: SECONDS or SECONDS:INCREMENT
    #[arg(long = "oplogLimit", value_name = "TIME", requires = "oplog_replay", value_parser = timestamp)]
    oplog_limit: Option<Timestamp>,
    /// Replay the entries in this file: after a dump that has no oplog, or alone if no dump is named
    #[arg(long = "oplogFile", value_name = "FILE", requires = "oplog_replay")]
    oplog_file: Option<PathBuf>,
    /// Restore the users and roles of --db
    #[arg(long = "restoreDbUsersAndRoles")]
    users_and_roles: bool,
    /// Continue a restore that was interrupted; needs the same flags
    #[arg(long)]
    resume: bool,
    /// File that records the restore's progress [default: beside the dump; none for standard input]
    #[arg(long = "resumeFile", value_name = "FILE")]
    resume_file: Option<PathBuf>,
    /// Compare counts, checksums and indexes with the dump at the end
    #[arg(long)]
    verify: bool,
    /// Find the fastest flags for this dump and this server by short trials, in a database of their own that is dropped
    #[arg(long, conflicts_with_all = WITHOUT_EFFECT_ON_TRIALS)]
    tune: bool,
    /// Insert by ordinary commands, even if the server has a faster one
    #[arg(long = "noBulk")]
    no_bulk: bool,
    /// Number of threads that decompress, and half of the maximum number of connections [default: the number of
    /// processors]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Print this help
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

impl RestoreArguments {
    /// Runs the restore.
    /// # Errors
    /// Why it ended early, and what had been restored until then.
    pub fn run(&self) -> Result<ExitCode, String> {
        if let (Some(backup), Some(dbpath)) = (&self.backup, self.server.directory()) {
            let place = super::restore_backup::place(backup, self.key_file.as_deref())?;
            return super::restore_backup::run((place, self.to_time), dbpath, &self.report);
        }
        let options = self.options()?;
        let opened = match options.mode {
            Mode::Restore => self.server.open_to_write(RESUMABLE)?,
            Mode::DryRun | Mode::List => Opened::Absent(Absent),
        };
        let result = match options.mode {
            Mode::List => Self::list(&opened, &options),
            Mode::Restore if self.tune => self.tune(&opened, &options),
            Mode::Restore | Mode::DryRun => self.restore(&opened, &options),
        };
        opened.close(result)
    }

    fn list(opened: &Opened, options: &RestoreOptions) -> Result<ExitCode, String> {
        let listed = restore::run(
            opened.server(),
            options,
            &Arc::new(Progress::new(Clock::machine())),
            &stop::on_signal(stop::TOOL_GRACE),
        );
        print(format_args!("{}", listed.map_err(|error| error.cause.to_string())?.listing()))?;
        Ok(ExitCode::SUCCESS)
    }

    fn restore(&self, opened: &Opened, options: &RestoreOptions) -> Result<ExitCode, String> {
        let progress = Arc::new(Progress::new(Clock::machine()));
        let reporter = self.report.start(&progress);
        let result = restore::run(opened.server(), options, &progress, &stop::on_signal(stop::TOOL_GRACE));
        if let Some(reporter) = reporter {
            reporter.finish();
        }
        let (summary, ended) = match result {
            Ok(summary) if summary.is_clean() => (summary, Ok(ExitCode::SUCCESS)),
            Ok(summary) => (summary, Ok(ExitCode::FAILURE)),
            Err(RestoreError { cause, summary }) => (*summary, Err(cause.to_string())),
        };
        self.report.print_summary(&summary);
        ended
    }

    fn tune(&self, opened: &Opened, options: &RestoreOptions) -> Result<ExitCode, String> {
        let mut on_trial = |trial: &tune::Trial| self.report.print(trial);
        let tuning =
            tune::run(opened.server(), options, &stop::on_signal(stop::TOOL_GRACE), &Clock::machine(), &mut on_trial);
        print_line(format_args!("{}", tuning.map_err(|error| error.to_string())?))?;
        Ok(ExitCode::SUCCESS)
    }

    fn options(&self) -> Result<RestoreOptions, String> {
        let db = self.server.database(self.db.as_deref())?;
        let source = self.source(db.as_ref())?;
        let in_error = |error: bunko_tools::namespaces::PatternError| error.to_string();
        // A directory's or a file's documents go where --db and --collection say; with an archive these flags select
        // from it.
        let is_choice = self.archive.is_some();
        let filter = Filter::new(&self.include, &self.exclude).map_err(in_error)?;
        let mut options = RestoreOptions::new(source);
        options.filter = if is_choice { filter.with(db.as_deref(), self.collection.as_deref()) } else { filter };
        options.renames = Renames::new(&self.from, &self.to).map_err(in_error)?;
        options.mode = match (self.dry_run, self.list) {
            (true, _) => Mode::DryRun,
            (_, true) => Mode::List,
            _ => Mode::Restore,
        };
        options.existing = if self.drop { Existing::Drop } else { Existing::Keep };
        options.write_concern = self.write_concern()?;
        options.indexes = if self.no_index_restore { Indexes::Skip } else { Indexes::Restore };
        options.collection_options =
            if self.no_options_restore { CollectionOptions::Skip } else { CollectionOptions::Restore };
        options.index_version = if self.keep_index_version { IndexVersion::Keep } else { IndexVersion::ChosenByServer };
        options.on_error = if self.stop_on_error { OnError::Stop } else { OnError::GoOn };
        options.order = if self.maintain_insertion_order { InsertionOrder::Maintain } else { InsertionOrder::Any };
        options.parallel_collections = self.parallel_collections;
        options.insertion_workers = self.insertion_workers;
        options.batch_documents = self.batch_size;
        options.validation = if self.bypass_document_validation { Validation::Bypass } else { Validation::Enforce };
        options.uuids = if self.preserve_uuid { Uuids::Preserve } else { Uuids::New };
        options.object_check = if self.objcheck { ObjectCheck::Deep } else { ObjectCheck::None };
        if self.oplog_replay {
            options.oplog = Oplog::Replay { limit: self.oplog_limit, file: self.oplog_file.clone() };
        }
        if self.users_and_roles {
            options.users_and_roles = UsersAndRoles::Of { database: Self::database_of_users(db)? };
        }
        options.resume = self.resume_file(&options.source)?;
        options.verify = if self.verify { Verify::Everything } else { Verify::Nothing };
        options.bulk = if self.no_bulk {
            Bulk::Never
        } else if self.server.is_directory() {
            // The tool does not wait until the log's documents are moved: a server does that later.
            Bulk::Behind { log_bytes: DIRECTORY_LOG_BYTES }
        } else {
            Bulk::Automatic
        };
        options.threads = self.threads.unwrap_or(options.threads);
        // Checks the options before the server is asked anything.
        options.validate().map_err(|error| error.to_string())?;
        Ok(options)
    }

    /// The database whose users and roles are restored.
    fn database_of_users(db: Option<String>) -> Result<String, String> {
        match db {
            None => Err("--restoreDbUsersAndRoles needs --db".into()),
            Some(admin) if admin == "admin" => {
                Err("--restoreDbUsersAndRoles cannot be combined with --db admin, with which all users are restored"
                    .into())
            }
            Some(database) => Ok(database),
        }
    }

    /// Whether only an oplog file was named. An existing directory `dump` is restored first, as by the classic tool.
    fn replays_alone(&self, db: Option<&String>) -> bool {
        self.oplog_file.is_some() && db.is_none() && !Path::new(DEFAULT_DUMP).exists()
    }

    fn source(&self, db: Option<&String>) -> Result<Source, String> {
        if self.collection.is_some() && db.is_none() {
            return Err("--collection needs --db".into());
        }
        if let Some(file) = &self.archive {
            let is_stdin = file == Path::new("-");
            return Ok(Source::Archive(if is_stdin {
                ArchiveSource::Stdin
            } else {
                ArchiveSource::File(file.clone())
            }));
        }
        let named = self.path.as_ref().or(self.dir.as_ref());
        if named.is_none() && self.replays_alone(db) {
            return Ok(Source::Absent);
        }
        let path = named.cloned().unwrap_or_else(|| DEFAULT_DUMP.into());
        if path == Path::new("-") || path.is_file() {
            let (Some(database), Some(collection)) = (db.cloned(), self.collection.clone()) else {
                return Err(format!("{}: a single file needs --db and --collection", path.display()));
            };
            return Ok(Source::File { path, database, collection });
        }
        if self.collection.is_some() {
            return Err(format!("{}: --collection needs a .bson file, or --archive", path.display()));
        }
        Ok(Source::Directory { path, database: db.cloned() })
    }

    /// The file with a restore's state: beside the dump, unless the dump comes from standard input or its directory is
    /// not writable.
    fn resume_file(&self, source: &Source) -> Result<Option<ResumeFile>, String> {
        let asks_for_state = self.resume || self.resume_file.is_some();
        let keeps_state = asks_for_state || !matches!(source, Source::Absent);
        if !keeps_state || self.dry_run || self.list || self.tune {
            return Ok(None);
        }
        let mode = if self.resume { Resume::Continue } else { Resume::Fresh };
        let beside = |path: &Path| {
            let mut name = path.as_os_str().to_owned();
            name.push(".restore-resume");
            PathBuf::from(name)
        };
        let source = self.archive.as_ref().or(self.path.as_ref()).or(self.dir.as_ref());
        let source = source.map_or_else(|| PathBuf::from(DEFAULT_DUMP), |path| path.components().collect());
        if source == Path::new("-") {
            let flag = [(self.resume, "--resume"), (self.resume_file.is_some(), "--resumeFile")];
            return match flag.into_iter().find(|(is_given, _)| *is_given) {
                Some((_, flag)) => Err(format!("{flag}: standard input cannot be read again: nothing can be resumed")),
                None => Ok(None),
            };
        }
        let path = match &self.resume_file {
            Some(file) => Some(file.clone()),
            // A dump may lie in a directory that is not writable: then no state is kept and the restore cannot be
            // resumed.
            None => Some(beside(&source)).filter(|path| self.resume || is_writable(path)),
        };
        Ok(path.map(|path| ResumeFile { path, mode }))
    }

    fn write_concern(&self) -> Result<WriteConcern, String> {
        let Some(text) = &self.write_concern else {
            return Ok(self.server.write_concern()?.unwrap_or_default());
        };
        text.parse().map_err(|error| format!("--writeConcern: {error}"))
    }
}

/// Whether a file can be created there with room for its first lines, or exists and is writable.
fn is_writable(path: &Path) -> bool {
    let is_there = path.exists();
    let opened = OpenOptions::new().append(true).create(true).open(path);
    if is_there {
        return opened.is_ok();
    }
    let Ok(mut file) = opened else { return false };
    let written = file.write_all(&[b'\n'; FIRST_LINES_BYTES]);
    let _ = std::fs::remove_file(path);
    written.is_ok()
}

/// Reads seconds since 1970 and, after a colon, a number within the second.
fn timestamp(text: &str) -> Result<Timestamp, String> {
    let (seconds, increment) = text.split_once(':').unwrap_or((text, "0"));
    match (seconds.parse(), increment.parse()) {
        (Ok(seconds), Ok(increment)) => Ok(Timestamp { seconds, increment }),
        _ => Err(format!("'{text}' is not SECONDS[:INCREMENT]")),
    }
}
