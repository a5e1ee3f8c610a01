//! Experiment E1: connections x requests in flight, one small document (or batch, read, update) at a time.

mod cell;
mod collection;
mod plan;

use crate::environment::{ClientMachine, ServerDescription};
use crate::report::{CellRun, Report, Scenario};
use crate::server_stats::ServerProcess;
use crate::target::{OpenTarget, Target};
use crate::{BenchError, Compressible};
use bunko_client::{Connection, Uri};
use plan::Plan;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

const NAME: &str = "insert-matrix";
const PROSE: &str = "Acknowledged inserts of small documents over a matrix of connections and requests in flight on \
    each (experiment E1). Connections are up before the clock starts; it stops with the last reply; the server counts \
    its documents afterwards.";
/// Lets a server finish what dropping a collection left to do.
const PAUSE_BETWEEN_CELLS: Duration = Duration::from_secs(1);

/// The scenario's parameters, named as on the command line.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct InsertMatrixOptions {
    /// Connections of each cell.
    pub connections: Vec<usize>,
    /// Requests in flight per connection of each cell; as many numbers as `connections`.
    pub in_flight: Vec<usize>,
    /// Documents per cell; for reads and updates also the number of requests.
    pub documents: u64,
    /// Encoded size of a document in bytes.
    pub document_bytes: usize,
    /// How far the documents compress.
    pub compressible: Compressible,
    /// A name from [`crate::operation::OPERATIONS`].
    pub operation: String,
    /// Documents per insert.
    pub batch: usize,
    /// `0`, `1`, a larger number, `majority` or `j`; `None` takes the connection string's, or 1.
    pub write_concern: Option<String>,
    /// Requests per second over all connections (open loop); `None` sends as fast as replies come (closed loop).
    pub rate: Option<f64>,
    /// Generator threads.
    pub threads: usize,
    /// How often the whole matrix is run.
    pub repetitions: usize,
    /// The same seed gives the same documents and the same order of reads.
    pub seed: u64,
    /// Where the report is written as JSON.
    pub json: Option<PathBuf>,
}

impl Default for InsertMatrixOptions {
    fn default() -> Self {
        Self {
            connections: vec![1, 1, 100, 100],
            in_flight: vec![1, 100, 1, 100],
            documents: 200_000,
            document_bytes: 1_000,
            compressible: Compressible::default(),
            operation: "insert".into(),
            batch: 1,
            write_concern: None,
            rate: None,
            threads: 1,
            repetitions: 1,
            seed: 1,
            json: None,
        }
    }
}

/// Runs the matrix and returns its report, also written as JSON where the options say so.
/// # Errors
/// An option that cannot be met, a server that cannot be reached or breaks off, a report that cannot be written.
/// Figures that mean nothing are no error: the report's verdict says so.
pub fn insert_matrix(options: InsertMatrixOptions, target: Target) -> Result<Report, BenchError> {
    insert_matrix_observed(options, target, |_| {})
}

/// [`insert_matrix`] that shows each cell as soon as it is measured.
/// # Errors
/// As [`insert_matrix`].
pub fn insert_matrix_observed(
    options: InsertMatrixOptions,
    target: Target,
    mut observe: impl FnMut(&CellRun),
) -> Result<Report, BenchError> {
    let plan = Plan::parse(&options)?;
    let target = OpenTarget::open(target)?;
    let uri: Uri = target.uri.parse()?;
    let plan = plan.with_write_concern_of(&uri)?;
    let mut control = Connection::connect(&uri)?;
    let server = ServerDescription::read(&mut control);
    let process = match target.pid {
        Some(pid) => Some(ServerProcess { pid }),
        None => ServerProcess::find(&uri.host, uri.port, server.pid),
    };
    let mut report = Report {
        scenario: Scenario { name: NAME, prose: PROSE, seed: options.seed, options },
        target: format!("{} ({})", uri.address(), target.kind()),
        durability: server.durability(&plan.write_concern),
        server,
        machine: ClientMachine::read(),
        runs: Vec::new(),
    };
    // Whole rounds, not each cell R times: a machine's drift then meets all cells alike.
    for repetition in 1..=report.scenario.options.repetitions {
        for cell in &plan.cells {
            if !report.runs.is_empty() {
                std::thread::sleep(PAUSE_BETWEEN_CELLS);
            }
            let run = cell::run(&plan, *cell, repetition, &uri, &mut control, process)?;
            observe(&run);
            report.runs.push(run);
        }
    }
    if let Some(path) = &report.scenario.options.json {
        report.write_json(path).map_err(|cause| BenchError::Report { path: path.clone(), cause })?;
    }
    Ok(report)
}
