//! `bunko sample`: loads a small data set to try things with.

use super::address::AddressArguments;
use super::refuse;
use crate::exit_status;
use crate::printed::print_line;
use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef};
use bunko_client::{ClientError, Connection, ReadPreference, Uri, check_reply};
use bunko_dataset::samples::{SAMPLES, Sample, SampleCollection};
use clap::Args;
use std::process::ExitCode;

/// Documents of one insert: about half a megabyte.
const BATCH_DOCUMENTS: usize = 1_000;

/// Flags of `bunko sample`.
#[derive(Args)]
#[command(disable_help_flag = true, after_help = exit_status::help(exit_status::OF_SAMPLE))]
pub struct SampleArguments {
    /// The data set; --list names them
    #[arg(value_name = "NAME", default_value = "library")]
    name: String,
    /// List the data sets, and ask no server
    #[arg(long, conflicts_with_all = ["drop", "db", "uri", "config", "host", "port", "username", "tls"])]
    list: bool,
    /// The database to load into [default: the name of the data set]
    #[arg(long, short = 'd', value_name = "DATABASE")]
    db: Option<String>,
    /// Drop the data set's collections first; without it, collections that exist are left alone and nothing is loaded
    #[arg(long)]
    drop: bool,
    /// Print this help
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
    #[command(flatten)]
    address: AddressArguments,
}

impl SampleArguments {
    /// Loads the data set.
    /// # Errors
    /// A sentence that names what was refused.
    pub fn run(&self) -> Result<ExitCode, String> {
        if self.list {
            list()?;
            return Ok(ExitCode::SUCCESS);
        }
        let (sample, uri, database) = match self.target() {
            Ok(target) => target,
            Err(message) => return Ok(refuse(&message)),
        };
        let mut connection = Connection::connect(&uri).map_err(|error| error.to_string())?;
        let mut loading = Loading { connection: &mut connection, database: &database };
        loading.make_room(sample, self.drop)?;
        for collection in sample.collections {
            let indexes =
                loading.load(collection).map_err(|error| format!("{database}.{}: {error}", collection.name))?;
            let (name, count) = (collection.name, collection.count);
            print_line(format_args!("{database}.{name}: {count} documents, {indexes} index(es) made"))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// The data set, the server, and the database.
    fn target(&self) -> Result<(&'static Sample, Uri, String), String> {
        let sample = SAMPLES.iter().find(|sample| sample.name == self.name).ok_or_else(|| {
            let names: Vec<_> = SAMPLES.iter().map(|sample| sample.name).collect();
            format!("there is no data set '{}'; there are: {}", self.name, names.join(", "))
        })?;
        let mut uri = self.address.uri("sample", None)?;
        // Writes go to the primary.
        uri.read_preference = ReadPreference::Primary;
        let database = match (&uri.database, &self.db) {
            (Some(of_uri), Some(db)) if of_uri != db => {
                return Err(format!("--db {db}: the database in --uri is '{of_uri}': name one of them"));
            }
            (of_uri, db) => db.clone().or_else(|| of_uri.clone()).unwrap_or_else(|| sample.name.to_owned()),
        };
        Ok((sample, uri, database))
    }
}

fn list() -> Result<(), String> {
    for sample in SAMPLES {
        print_line(format_args!("{:<8} {}", sample.name, sample.about))?;
        for collection in sample.collections {
            print_line(format_args!("           {:<9} {:>6} documents", collection.name, collection.count))?;
        }
    }
    Ok(())
}

/// A connection to the server that the data set is loaded into.
struct Loading<'a> {
    connection: &'a mut Connection,
    database: &'a str,
}

impl Loading<'_> {
    /// Drops the collections of the data set, or refuses if there are any.
    fn make_room(&mut self, sample: &Sample, may_drop: bool) -> Result<(), String> {
        let existing = self.existing(sample).map_err(|error| error.to_string())?;
        if !existing.is_empty() && !may_drop {
            let names: Vec<_> = existing.iter().map(|name| format!("{}.{name}", self.database)).collect();
            let names = names.join(", ");
            return Err(format!("nothing was loaded, because these collections exist: {names}; --drop replaces them"));
        }
        for name in existing {
            self.run(&DocumentBuf::new().with("drop", name))
                .map_err(|error| format!("{}.{name}: {error}", self.database))?;
        }
        Ok(())
    }

    fn existing(&mut self, sample: &Sample) -> Result<Vec<&'static str>, ClientError> {
        let list = DocumentBuf::new().with("listCollections", 1_i32).with("nameOnly", true);
        let mut names = Vec::new();
        for listed in self.connection.find_all(self.database, list.as_ref())? {
            names.extend(listed?.as_ref().get("name").and_then(ValueRef::as_str).map(str::to_owned));
        }
        let of_sample = sample.collections.iter().map(|collection| collection.name);
        Ok(of_sample.filter(|name| names.iter().any(|existing| existing == name)).collect())
    }

    /// Creates and fills a collection. Returns the number of indexes that it made.
    fn load(&mut self, collection: &SampleCollection) -> Result<usize, ClientError> {
        let create = DocumentBuf::new().with("create", collection.name);
        self.run(&(collection.options)().iter().fold(create, |create, (name, value)| create.with(name, value)))?;
        let mut documents = (collection.documents)();
        loop {
            let batch: Vec<_> = documents.by_ref().take(BATCH_DOCUMENTS).collect();
            if batch.is_empty() {
                break;
            }
            let insert = DocumentBuf::new().with("insert", collection.name);
            let reply = self.connection.run_with_sequence(self.database, insert.as_ref(), "documents", &batch)?;
            check_reply(reply.as_ref())?;
        }
        let specifications = (collection.indexes)();
        if !specifications.is_empty() {
            let indexes: ArrayBuf = specifications.iter().collect();
            self.run(&DocumentBuf::new().with("createIndexes", collection.name).with("indexes", &indexes))?;
        }
        Ok(specifications.len())
    }

    fn run(&mut self, command: &DocumentBuf) -> Result<(), ClientError> {
        let reply = self.connection.run_command(self.database, command.as_ref())?;
        check_reply(reply.as_ref())?;
        Ok(())
    }
}
