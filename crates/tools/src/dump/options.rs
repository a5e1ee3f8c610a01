//! Contents of a dump, and where it goes.

use crate::namespaces::Filter;
use crate::{PipeEnd, ToolError};
use bunko_archive::compression::Compression;
use bunko_bson::DocumentBuf;
use std::io::PipeWriter;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use xxhash_rust::xxh3::xxh3_64;

/// Where the dump goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Files in a directory, which is made if it is missing.
    Directory(PathBuf),
    /// One stream of all collections.
    Archive(ArchiveTarget),
    /// The documents of one collection and nothing else, to standard output.
    StandardOutput,
}

/// Where an archive goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArchiveTarget {
    /// A file, or a pipe or device of that name.
    File(PathBuf),
    /// Standard output.
    Stdout,
    /// A restore in this process.
    Pipe(PipeEnd<PipeWriter>),
}

/// Whether the dump holds the operations that happened while it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OplogMode {
    /// The dump holds no operations: each collection is as it was at some moment of its own.
    #[default]
    Without,
    /// The dump holds the operations: after a replay, all collections are as they were at the dump's end.
    With,
}

/// How views are dumped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Views {
    /// Their definitions are dumped.
    #[default]
    AsDefinitions,
    /// The documents that they show are dumped as if views were collections, and collections are left out.
    AsCollections,
}

/// Whether a database's users and roles are dumped with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UsersAndRoles {
    /// Users and roles are left out.
    #[default]
    Without,
    /// Users and roles are dumped.
    With,
}

/// Whether an earlier dump that was cut short is resumed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resume {
    /// The dump starts from the beginning and overwrites existing output.
    #[default]
    Fresh,
    /// The dump continues from the last recorded state.
    Continue,
}

/// All options of a dump.
#[derive(Clone, Debug)]
pub struct DumpOptions {
    /// Only that database; if `None`, all but `local` and `config`.
    pub database: Option<String>,
    /// Only that collection of [`Self::database`].
    pub collection: Option<String>,
    /// Only those documents of [`Self::collection`].
    pub query: Option<DocumentBuf>,
    /// Where the dump goes.
    pub output: Output,
    /// How the dump is compressed.
    pub compression: Compression,
    /// Whether the oplog is dumped.
    pub oplog: OplogMode,
    /// Collections to leave out, of every database.
    pub exclude_collections: Vec<String>,
    /// Beginnings of names of collections to leave out, of every database.
    pub exclude_prefixes: Vec<String>,
    /// Namespaces to dump, of those that the other options choose.
    pub namespaces: Filter,
    /// Read concern of the documents; if `None`, the server's default.
    pub read_concern: Option<DocumentBuf>,
    /// Maximum number of collections that are read at a time.
    pub parallel_collections: NonZeroUsize,
    /// How views are dumped.
    pub views: Views,
    /// Whether users and roles of [`Self::database`] are dumped.
    pub users_and_roles: UsersAndRoles,
    /// Whether an earlier dump is resumed.
    pub resume: Resume,
    /// Threads that read and threads that compress.
    pub threads: NonZeroUsize,
}

impl DumpOptions {
    /// A dump of everything, with the classic tool's defaults.
    pub fn new(output: Output) -> Self {
        Self {
            database: None,
            collection: None,
            query: None,
            output,
            compression: Compression::None,
            oplog: OplogMode::Without,
            exclude_collections: Vec::new(),
            exclude_prefixes: Vec::new(),
            namespaces: Filter::default(),
            read_concern: None,
            parallel_collections: NonZeroUsize::new(4).expect("not zero"),
            views: Views::AsDefinitions,
            users_and_roles: UsersAndRoles::Without,
            resume: Resume::Fresh,
            threads: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
        }
    }

    /// Refuses combinations that mean nothing.
    /// # Errors
    /// `Usage` names the flags.
    /// Source: MongoDB Database Tools manual, "mongodump".
    pub fn validate(&self) -> Result<(), ToolError> {
        let excludes = !self.exclude_collections.is_empty() || !self.exclude_prefixes.is_empty();
        let is_named = self.database.is_some() && self.collection.is_some();
        let contradiction = [
            (self.collection.is_some() && self.database.is_none(), "--collection needs --db"),
            (self.query.is_some() && !is_named, "--query needs --db and --collection"),
            (
                excludes && self.collection.is_some(),
                "--collection cannot be combined with --excludeCollection or --excludeCollectionsWithPrefix",
            ),
            (excludes && self.database.is_none(), "--excludeCollection and --excludeCollectionsWithPrefix need --db"),
            (
                self.oplog == OplogMode::With && self.database.is_some(),
                "--oplog cannot be combined with --db: only a dump of everything can be taken to one point in time",
            ),
            (
                self.users_and_roles == UsersAndRoles::With && self.database.is_none(),
                "--dumpDbUsersAndRoles needs --db",
            ),
            (
                self.users_and_roles == UsersAndRoles::With && self.collection.is_some(),
                "--dumpDbUsersAndRoles cannot be combined with --collection",
            ),
            (self.output == Output::StandardOutput && !is_named, "--out=- needs --db and --collection"),
            (
                self.resume == Resume::Continue && self.is_to_standard_output(),
                "--resume needs a file or a directory, not standard output",
            ),
        ];
        match contradiction.into_iter().find(|(is_there, _)| *is_there) {
            Some((_, message)) => Err(ToolError::Usage(message.into())),
            None => Ok(()),
        }
    }

    fn is_to_standard_output(&self) -> bool {
        matches!(self.output, Output::StandardOutput | Output::Archive(ArchiveTarget::Stdout))
    }

    /// A hash of all options that decide the dump's contents. Options that may differ when a dump is resumed are left
    /// out.
    pub(super) fn fingerprint(&self) -> String {
        let what = format!(
            "{:?}",
            (
                (&self.database, &self.collection, &self.query),
                (matches!(self.output, Output::Directory(_)), self.compression, self.oplog),
                (&self.exclude_collections, &self.exclude_prefixes, self.views, self.users_and_roles),
                (&self.namespaces, &self.read_concern),
            )
        );
        format!("{:016x}", xxh3_64(what.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_that_mean_nothing_together_are_refused_by_name() {
        let everything = || DumpOptions::new(Output::Directory("dump".into()));
        let database = || DumpOptions { database: Some("shop".into()), ..everything() };
        let collection = || DumpOptions { collection: Some("orders".into()), ..database() };
        assert!(everything().validate().is_ok() && database().validate().is_ok() && collection().validate().is_ok());
        let query = Some(DocumentBuf::new());
        assert!(DumpOptions { query: query.clone(), ..collection() }.validate().is_ok());
        let refused = [
            (DumpOptions { collection: Some("orders".into()), ..everything() }, "--collection needs"),
            (DumpOptions { query, ..database() }, "--query"),
            (DumpOptions { exclude_collections: vec!["x".into()], ..collection() }, "--excludeCollection"),
            (DumpOptions { exclude_prefixes: vec!["x".into()], ..everything() }, "--excludeCollectionsWithPrefix"),
            (DumpOptions { oplog: OplogMode::With, ..database() }, "--oplog"),
            (DumpOptions { users_and_roles: UsersAndRoles::With, ..everything() }, "--dumpDbUsersAndRoles"),
            (DumpOptions { output: Output::StandardOutput, ..database() }, "--out=-"),
            (DumpOptions { output: Output::StandardOutput, resume: Resume::Continue, ..collection() }, "--resume"),
        ];
        for (options, flag) in refused {
            let message = options.validate().expect_err("refused").to_string();
            assert!(message.contains(flag), "{message}");
        }
    }

    #[test]
    fn the_fingerprint_is_of_what_is_written() {
        let options = || DumpOptions::new(Output::Directory("dump".into()));
        let more_threads =
            DumpOptions { resume: Resume::Continue, parallel_collections: NonZeroUsize::MIN, ..options() };
        assert_eq!(options().fingerprint(), more_threads.fingerprint());
        assert_ne!(options().fingerprint(), DumpOptions { compression: Compression::Lz4, ..options() }.fingerprint());
    }
}
