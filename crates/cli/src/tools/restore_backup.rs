//! `bunko restore --backup`, and the trial of a backup that `bunko backup --verify` makes.

use super::connection::ReportArguments;
use super::in_process::InProcess;
use bunko_backup::{Place, RestoreOptions, Restored, Surroundings, parse_ms, restore};
use bunko_bson::{ArrayRef, DocumentBuf, DocumentRef, ValueRef, number};
use bunko_client::ClientError;
use bunko_host::Clock;
use bunko_tools::{Link, Server};
use std::path::Path;
use std::process::ExitCode;

/// Reads a moment, in milliseconds since 1970.
pub fn moment(text: &str) -> Result<u64, String> {
    parse_ms(text).map_err(|error| error.to_string())
}

/// The place of backups that a user names, with the file of its keys.
/// # Errors
/// One line for the user.
pub fn place(name: &Path, key_file: Option<&Path>) -> Result<Place, String> {
    let variable = |name: &str| std::env::var(name).ok();
    let surroundings = Surroundings { variable: &variable, clock: Clock::machine() };
    Place::named(name, key_file, &surroundings).map_err(|error| error.to_string())
}

/// Makes a data directory of a backup, as of a moment.
/// # Errors
/// One line for the user.
pub fn run((from, to_ms): (Place, Option<u64>), dbpath: &Path, report: &ReportArguments) -> Result<ExitCode, String> {
    let options = RestoreOptions { from, to_ms, dbpath: dbpath.to_owned() };
    let restored = restore(&options, &|line| report.print_note(line)).map_err(|error| error.to_string())?;
    let engine = match restored.engine.as_str() {
        "lsm" => String::new(),
        other => format!(" --storage-engine {other}"),
    };
    report.print_note(&format!("start it: bunko serve --dbpath {}{engine}", dbpath.display()));
    Ok(ExitCode::SUCCESS)
}

/// Restores the newest moment into a scratch directory, starts on it, and checks every collection.
/// # Errors
/// One line that names what is wrong.
pub fn try_out(from: &Place, scratch: &Path, report: &ReportArguments) -> Result<(), String> {
    let options = RestoreOptions { from: from.clone(), to_ms: None, dbpath: scratch.to_owned() };
    let restored: Restored = restore(&options, &|_| ()).map_err(|error| error.to_string())?;
    let opened = InProcess::open(scratch, Some(&restored.engine))?;
    let checked = check_collections(&opened, report);
    opened.close().and(checked)
}

fn check_collections(opened: &InProcess, report: &ReportArguments) -> Result<(), String> {
    let mut link = opened.connect().map_err(|error| error.to_string())?;
    let databases = ask(&mut *link, "admin", &DocumentBuf::new().with("listDatabases", 1).with("nameOnly", true))?;
    for database in names(&databases, &["databases"]) {
        let hash = ask(&mut *link, &database, &DocumentBuf::new().with("dbHash", 1))?;
        let listed = DocumentBuf::new().with("listCollections", 1).with("nameOnly", true).with("filter", &stored());
        let listed = ask(&mut *link, &database, &listed.with("cursor", &DocumentBuf::new().with("batchSize", BATCH)))?;
        let collections = names(&listed, &["cursor", "firstBatch"]);
        let mut documents = 0;
        for collection in &collections {
            let validate = DocumentBuf::new().with("validate", collection.as_str());
            let validated = match link.run(&database, &validate) {
                // The collection is made while it is read.
                Err(ClientError::Command(error)) if error.code == NOT_SUPPORTED => continue,
                outcome => outcome.map_err(|error| format!("{database}.{collection}: {error}"))?,
            };
            let validated = validated.as_ref();
            if !matches!(validated.get("valid"), Some(ValueRef::Boolean(true))) {
                return Err(format!("{database}.{collection}: is not valid: {validated:?}"));
            }
            documents += validated.get("nrecords").and_then(number::as_i64_exact).unwrap_or_default();
        }
        let md5 = hash.as_ref().get("md5").and_then(ValueRef::as_str).unwrap_or_default();
        let count = collections.len();
        report.print_note(&format!("{database}: {count} collections, {documents} documents, dbHash {md5}"));
    }
    Ok(())
}

/// MongoDB's `CommandNotSupported`.
const NOT_SUPPORTED: i32 = 115;
/// Maximum number of collections of a database that are checked one by one.
const BATCH: i64 = 100_000;

/// The filter of collections that have documents of their own.
fn stored() -> DocumentBuf {
    DocumentBuf::new().with("type", "collection")
}

fn ask(link: &mut dyn Link, database: &str, command: &DocumentBuf) -> Result<DocumentBuf, String> {
    link.run(database, command).map_err(|error| format!("{database}: {error}"))
}

/// The names in an array of documents that stands at a path.
fn names(reply: &DocumentBuf, path: &[&str]) -> Vec<String> {
    let Some((last, above)) = path.split_last() else { return Vec::new() };
    let place = above.iter().try_fold(reply.as_ref(), |place: DocumentRef<'_>, name| place.get(name)?.as_document());
    let array = place.and_then(|place| place.get(last)?.as_array());
    let name = |value: ValueRef<'_>| Some(value.as_document()?.get("name")?.as_str()?.to_owned());
    array.into_iter().flat_map(ArrayRef::iter).filter_map(name).collect()
}
