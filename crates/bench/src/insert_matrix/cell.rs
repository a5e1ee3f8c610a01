//! One cell of the matrix, once.

use super::collection::{CellCollection, DATABASE};
use super::plan::{Cell, Plan};
use crate::BenchError;
use crate::operation::{Assignment, Claims, Measured, Needs, Operation, Tally};
use crate::reference::ReferenceRow;
use crate::report::CellRun;
use crate::server_stats::ServerProcess;
use crate::verdict::{Evidence, judge};
use bunko_client::load::{Arrival, Load, LoadFigures, LoadOptions};
use bunko_client::{Connection, Uri, WriteConcern};
use std::sync::Arc;
use std::time::Duration;

/// A server that says nothing for this long is taken for dead.
const STALL_TIMEOUT: Duration = Duration::from_mins(1);
/// How documents are loaded for reads and updates.
const PRELOAD_BATCH: usize = 1_000;
const PRELOAD_BATCH_BYTES: usize = 4_000_000;
const PRELOAD: Cell = Cell { connections: 4, in_flight: 1 };

/// Measures a cell on a collection of its own, which is dropped whatever happens.
pub(super) fn run(
    plan: &Plan,
    cell: Cell,
    repetition: usize,
    uri: &Uri,
    control: &mut Connection,
    process: Option<ServerProcess>,
) -> Result<CellRun, BenchError> {
    let collection = CellCollection::create(control)?;
    let measured = measure(plan, cell, uri, &collection, control, process);
    let dropped = collection.drop(control);
    let (figures, evidence, tally, resident_bytes) = measured?;
    dropped?;
    let documents = evidence.sent as f64;
    let us_per_document = |cpu: Duration| cpu.as_secs_f64() * 1e6 / documents;
    let reference = ReferenceRow::nearest(evidence.cores);
    Ok(CellRun {
        connections: cell.connections,
        in_flight: cell.in_flight,
        repetition,
        documents: evidence.sent,
        elapsed_seconds: figures.elapsed.as_secs_f64(),
        documents_per_second: documents / figures.elapsed.as_secs_f64().max(f64::MIN_POSITIVE),
        offered_rate: evidence.offered_rate,
        achieved_rate: evidence.achieved_rate,
        latency: tally.latency.summary(),
        server_cpu_us_per_document: evidence.server_cpu.map(us_per_document),
        server_resident_bytes: resident_bytes,
        generator_cpu_us_per_document: us_per_document(figures.generator_cpu),
        reference_instance: reference.instance,
        reference_documents_per_second: reference
            .documents_per_second(cell.connections, cell.in_flight)
            .filter(|_| plan.is_e1),
        findings: judge(&evidence),
    })
}

type Measurement = (LoadFigures, Evidence, Tally, Option<u64>);

fn measure(
    plan: &Plan,
    cell: Cell,
    uri: &Uri,
    collection: &CellCollection,
    control: &mut Connection,
    process: Option<ServerProcess>,
) -> Result<Measurement, BenchError> {
    if plan.operation.needs == Needs::LoadedDocuments {
        preload(plan, uri, collection)?;
    }
    let claims = Arc::new(Claims::new(plan.documents));
    let mut load = connect(uri, cell, plan.threads, plan.arrival)?;
    let assignment = assignment(plan, collection, &claims, plan.batch, &plan.write_concern);
    let mut workloads = workloads(&load, plan.operation, assignment);
    let cpu_before = process.and_then(ServerProcess::cpu);
    let figures = load.run(&mut workloads)?;
    // Before the connections close: a server's thread takes its count along when it ends.
    let cpu_after = process.and_then(ServerProcess::cpu);
    let resident_bytes = process.and_then(ServerProcess::resident_bytes);
    let threads = load.threads();
    drop(load);
    let tally = workloads.into_iter().map(|workload| workload.tally).fold(Tally::default(), Tally::merged);
    let requests = plan.documents.div_ceil(plan.batch as u64);
    let evidence = Evidence {
        sent: plan.documents,
        acknowledged: plan.write_concern.expects_reply().then_some(tally.acknowledged),
        expected_count: plan.documents,
        counted: collection.count(control)?,
        errors: tally.errors,
        first_error: tally.first_error.clone(),
        elapsed: figures.elapsed,
        threads,
        generator_cpu: figures.generator_cpu,
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        server_cpu: cpu_after.zip(cpu_before).map(|(after, before)| after.since(before)),
        offered_rate: if let Arrival::Open(rate) = plan.arrival { Some(rate) } else { None },
        achieved_rate: requests as f64 / figures.elapsed.as_secs_f64().max(f64::MIN_POSITIVE),
    };
    Ok((figures, evidence, tally, resident_bytes))
}

/// Fills the collection with the documents that reads and updates ask for.
fn preload(plan: &Plan, uri: &Uri, collection: &CellCollection) -> Result<(), BenchError> {
    let insert = Operation::named("insert").expect("the table has it");
    let batch = (PRELOAD_BATCH_BYTES / plan.document_bytes).clamp(1, PRELOAD_BATCH);
    let claims = Arc::new(Claims::new(plan.documents));
    let acknowledged = WriteConcern::default();
    let mut load = connect(uri, PRELOAD, 1, Arrival::Closed)?;
    let assignment = assignment(plan, collection, &claims, batch, &acknowledged);
    load.run(&mut workloads(&load, insert, assignment))?;
    // What is missing afterwards shows up as reads that find nothing and as a count that differs.
    Ok(())
}

fn connect(uri: &Uri, cell: Cell, threads: usize, arrival: Arrival) -> Result<Load, BenchError> {
    let Cell { connections, in_flight } = cell;
    Ok(Load::connect(uri, LoadOptions { connections, in_flight, threads, arrival, stall_timeout: STALL_TIMEOUT })?)
}

fn assignment<'a>(
    plan: &'a Plan,
    collection: &'a CellCollection,
    claims: &'a Arc<Claims>,
    batch: usize,
    write_concern: &'a WriteConcern,
) -> Assignment<'a> {
    let (dataset, seed) = (&plan.dataset, plan.seed);
    Assignment { dataset, claims, database: DATABASE, collection: &collection.name, write_concern, batch, seed }
}

/// One workload per generator thread, each with a seed of its own.
fn workloads(load: &Load, operation: &Operation, assignment: Assignment<'_>) -> Vec<Measured> {
    let seeds = (0..load.threads() as u64).map(|thread| assignment.seed.wrapping_add(thread));
    seeds.map(|seed| operation.start(&Assignment { seed, ..assignment })).collect()
}
