//! Running a scenario.

use super::arguments::{CommonArguments, EmbeddedArguments, RunArguments};
use super::{output, progress};
use crate::embedded::{ChildServer, ServerChoice};
use crate::memory_budget::IN_MEMORY;
use crate::printed::print;
use crate::stop;
use crate::watch;
use bunko_bench::scenario::{Override, Scenario, ScenarioSource, Servers};
use bunko_bench::{AllocationPlace, DATABASE, Existing, RunOptions, Target, TargetServer};
use bunko_client::Uri;
use bunko_engines::{ENGINES, Entry};
use bunko_host::loop_filesystem::LoopFilesystem;
use bunko_report::compare;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Default time after which a running server that does not answer is given up.
const SERVER_TIMEOUT_SECONDS: u32 = 60;
/// Size of an image: room for the largest file twice, while one is recycled, and for a server's files.
const IMAGE_BYTES: u64 = 12 << 30;

/// Runs a scenario, prints its table and writes its report.
pub fn run(mut source: ScenarioSource, arguments: RunArguments) -> Result<ExitCode, String> {
    let RunArguments { uris, worker, directory, archive_directory, loop_filesystems, embedded, common } = arguments;
    apply(&mut source, &common)?;
    let has_uris = !uris.is_empty();
    let others: &[&str] = if has_uris || !embedded.engines.is_empty() { &["servers"] } else { &[] };
    refuse_idle(&source, &common, has_uris, others)?;
    refuse_idle_directories(&source, has_uris, directory.is_some(), archive_directory.is_some())?;
    watch_all(&uris, &common)?;
    let scratch = directory.unwrap_or_else(std::env::temp_dir);
    let images = make_images(&loop_filesystems, &scratch)?;
    let places = places(&images, &scratch);
    let mut targets = targets(&source, uris, &embedded, &places)?;
    let mut options = options(&common)?;
    options.worker = worker;
    options.allocation_places = places;
    options.archive_directory = archive_directory.unwrap_or(scratch);
    let mut progress = progress::Progress::new(common.quiet);
    let report = bunko_bench::run(&source, &mut targets, &options, &mut progress);
    progress.clear();
    // Once the targets are dropped, no server uses the images.
    drop(targets);
    drop(images);
    output::finish(&report.map_err(|error| error.to_string())?, common.output, output::Shown::of(common.json))
}

/// Runs a scenario against two servers in turn and compares them.
pub fn ab(mut source: ScenarioSource, uris: [String; 2], common: CommonArguments) -> Result<ExitCode, String> {
    apply(&mut source, &common)?;
    refuse_idle(&source, &common, true, &["servers"])?;
    source.without_allocation("ab").map_err(|error| error.to_string())?;
    watch_all(&uris, &common)?;
    let labelled = ["A", "B"].into_iter().zip(uris);
    let mut targets: Vec<Target> =
        labelled.map(|(label, uri)| Target { label: label.to_owned(), server: TargetServer::Uri(uri) }).collect();
    let options = options(&common)?;
    let mut progress = progress::Progress::new(common.quiet);
    let report = bunko_bench::run(&source, &mut targets, &options, &mut progress);
    progress.clear();
    let report = report.map_err(|error| error.to_string())?;
    let folder = output::folder(&report, common.output);
    let code = output::finish(&report, Some(folder.clone()), output::Shown::of(common.json))?;
    // An interrupted run may have ended before B was measured.
    if report.targets.len() == 2 {
        let comparison = compare::compare_targets(&report, 0, 1);
        output::write_comparison(&comparison, &report, &folder)?;
        if !common.json {
            print(format_args!("\n{comparison}"))?;
        }
    }
    Ok(code)
}

/// Applies the changes of the command line to the scenario.
pub fn apply(source: &mut ScenarioSource, common: &CommonArguments) -> Result<(), String> {
    let scale = common.scale.iter().map(|scale| Override::new("dataset.total-bytes", scale.as_str().into()));
    let repetitions = common.repetitions.iter().map(|count| Override::new("repetitions", i64::from(*count).into()));
    for change in scale.chain(repetitions).chain(common.set.iter().cloned()) {
        source.set(&change).map_err(|error| error.to_string())?;
    }
    bunko_bench::check(source).map_err(|error| error.to_string())
}

/// Refuses arguments that would have no effect.
/// # Errors
/// If the command line changes a setting of the scenario that it overrules itself, or gives a timeout for running
/// servers but names none.
pub fn refuse_idle(
    source: &ScenarioSource,
    common: &CommonArguments,
    has_uris: bool,
    overruled: &[&str],
) -> Result<(), String> {
    if let Some(change) = source.changes().iter().find(|change| overruled.contains(&change.key.as_str())) {
        return Err(format!("--set {change}: the command line says which servers are measured"));
    }
    if common.server_timeout.is_some() && !has_uris {
        return Err("--server-timeout is for servers that run already: --uri names one".to_owned());
    }
    Ok(())
}

/// Refuses directories that would not be used.
/// # Errors
/// If the command line names a directory for files that this run does not write.
fn refuse_idle_directories(
    source: &ScenarioSource,
    has_uris: bool,
    has_directory: bool,
    has_archive_directory: bool,
) -> Result<(), String> {
    let scenario = source.scenario().map_err(|error| error.to_string())?;
    let dumps = scenario.phase.iter().any(|phase| phase.operation.name() == "dump");
    if has_archive_directory && !dumps {
        return Err("--archive-directory: no phase of this scenario dumps".to_owned());
    }
    if has_directory && has_uris && !dumps && scenario.allocation.is_none() {
        return Err(
            "--directory: --uri names a server that has its data elsewhere, and nothing else is written".to_owned()
        );
    }
    Ok(())
}

/// Options of a run beyond its scenario.
pub fn options(common: &CommonArguments) -> Result<RunOptions, String> {
    let existing = match common.drop.as_deref() {
        None => Existing::Refuse,
        Some(DATABASE) => Existing::Drop,
        Some(other) => return Err(format!("--drop {other}: the lab works in '{DATABASE}' and drops nothing else")),
    };
    Ok(RunOptions {
        existing,
        worker: None,
        stop: stop::on_signal(stop::LAB_GRACE),
        command: command_line(),
        allocation_places: Vec::new(),
        archive_directory: std::env::temp_dir(),
    })
}

/// The command that repeats this run: the arguments as given, without passwords.
fn command_line() -> Vec<String> {
    let shown = |argument: String| {
        if argument.contains("://") { Uri::redact(&argument) } else { argument }
    };
    let arguments = std::env::args().skip(1).map(shown);
    std::iter::once("bunko".to_owned()).chain(arguments).collect()
}

fn make_images(kinds: &[String], scratch: &Path) -> Result<Vec<(String, LoopFilesystem)>, String> {
    let make = |kind: &String| {
        let image = LoopFilesystem::create(kind, IMAGE_BYTES, scratch);
        image.map(|image| (kind.clone(), image)).map_err(|error| format!("--loop-filesystems {kind}: {error}"))
    };
    kinds.iter().map(make).collect()
}

fn places(images: &[(String, LoopFilesystem)], scratch: &Path) -> Vec<AllocationPlace> {
    if images.is_empty() {
        return vec![AllocationPlace { name: scratch.display().to_string(), directory: scratch.to_owned() }];
    }
    let place = |(kind, image): &(String, LoopFilesystem)| AllocationPlace {
        name: format!("{kind} in an image file"),
        directory: image.path(),
    };
    images.iter().map(place).collect()
}

/// The servers that the command line names; otherwise the servers that the scenario wants started, in each directory.
fn targets(
    source: &ScenarioSource,
    uris: Vec<String>,
    arguments: &EmbeddedArguments,
    places: &[AllocationPlace],
) -> Result<Vec<Target>, String> {
    if !uris.is_empty() {
        refuse_beside_uri(arguments)?;
        return Ok(of_uris(uris));
    }
    let scenario = source.scenario().map_err(|error| error.to_string())?;
    let mut choices = choices(arguments)?;
    if scenario.servers == Servers::EachEngine && arguments.engines.is_empty() {
        let of = |entry: &Entry| ServerChoice { engine: Some(entry.name), options: arguments.options.clone() };
        choices = ENGINES.iter().map(of).collect();
    }
    refuse_engine_of_set(&scenario, &choices)?;
    let mut targets = Vec::new();
    for place in places {
        for choice in &choices {
            let several_places = (places.len() > 1).then_some(place.name.as_str());
            let label = choice.engine.into_iter().chain(several_places).collect::<Vec<_>>().join(", ");
            targets.push(embedded(label, &place.directory, choice.clone()));
        }
    }
    Ok(targets)
}

/// Refuses the storage engine that no set of several members can have.
/// # Errors
/// If the scenario wants members, and one of the servers has an engine without files.
pub fn refuse_engine_of_set(scenario: &Scenario, choices: &[ServerChoice]) -> Result<(), String> {
    if scenario.server.members.len() > 1 && choices.iter().any(|choice| choice.engine == Some(IN_MEMORY)) {
        return Err(format!("server.members: the storage engine '{IN_MEMORY}' cannot be in a set of several members"));
    }
    Ok(())
}

/// The servers that the command line wants started: one for each engine that it names, otherwise one with the default
/// engine.
/// # Errors
/// If there is no engine of that name.
pub fn choices(arguments: &EmbeddedArguments) -> Result<Vec<ServerChoice>, String> {
    let choice = |engine| ServerChoice { engine, options: arguments.options.clone() };
    if arguments.engines.is_empty() {
        return Ok(vec![choice(None)]);
    }
    let named = |name: &String| match bunko_engines::find(name) {
        Some(entry) => Ok(choice(Some(entry.name))),
        None => {
            let names: Vec<_> = ENGINES.iter().map(|entry| entry.name).collect();
            Err(format!("--engine: there is no storage engine '{name}'; there are {}", names.join(", ")))
        }
    };
    arguments.engines.iter().map(named).collect()
}

/// Refuses server options for a server that runs already.
/// # Errors
/// If the command line says how servers are to be started, but names one that runs already.
pub fn refuse_beside_uri(arguments: &EmbeddedArguments) -> Result<(), String> {
    if arguments.engines.is_empty() && arguments.options.is_empty() {
        return Ok(());
    }
    Err("--engine and --server-option are for servers that the lab starts; --uri names one that runs".to_owned())
}

/// A server that the lab starts.
pub fn embedded(label: String, directory: &Path, choice: ServerChoice) -> Target {
    let server = ChildServer::new(PathBuf::from(directory), choice);
    Target { label, server: TargetServer::Embedded(Box::new(server)) }
}

/// Ends the process when one of these running servers is gone or stopped. Servers that the lab started are not watched,
/// because it stops them itself when a scenario asks for it.
/// # Errors
/// If a connection string is malformed.
pub fn watch_all(uris: &[String], common: &CommonArguments) -> Result<(), String> {
    for uri in uris {
        let uri: Uri = uri.parse().map_err(|error| format!("{}: {error}", Uri::redact(uri)))?;
        watch::start(uri, Duration::from_secs(common.server_timeout.unwrap_or(SERVER_TIMEOUT_SECONDS).into()), "")?;
    }
    Ok(())
}

/// Targets for servers that run already.
pub fn of_uris(uris: Vec<String>) -> Vec<Target> {
    uris.into_iter().map(|uri| Target { label: String::new(), server: TargetServer::Uri(uri) }).collect()
}
