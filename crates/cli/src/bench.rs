//! `bunko bench`: runs a scenario of the lab.

use crate::arguments::{BenchArguments, InsertMatrixArguments, Scenario};
use crate::embedded::ChildServer;
use bunko_bench::{InsertMatrixOptions, Target, insert_matrix};
use std::process::ExitCode;

/// Runs the scenario and prints its report; fails where the figures are not valid.
pub fn run(arguments: BenchArguments) -> Result<ExitCode, String> {
    match arguments.scenario {
        Scenario::InsertMatrix(arguments) => run_insert_matrix(arguments),
    }
}

fn run_insert_matrix(arguments: InsertMatrixArguments) -> Result<ExitCode, String> {
    let target = match arguments.uri {
        Some(uri) => Target::Uri(uri),
        None => Target::Embedded(Box::new(ChildServer::default())),
    };
    let options = InsertMatrixOptions {
        connections: arguments.connections,
        in_flight: arguments.in_flight,
        documents: arguments.documents,
        document_bytes: arguments.document_bytes,
        compressible: arguments.compressible,
        operation: arguments.operation,
        batch: arguments.batch,
        write_concern: arguments.write_concern,
        rate: arguments.rate,
        threads: arguments.threads,
        repetitions: arguments.repetitions,
        seed: arguments.seed,
        json: arguments.json,
    };
    let report = insert_matrix(options, target).map_err(|error| error.to_string())?;
    print!("{report}");
    Ok(if report.is_valid() { ExitCode::SUCCESS } else { ExitCode::from(2) })
}
