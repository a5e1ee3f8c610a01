//! Loads documents of 1,000 bytes and reads them all back over one cursor: how fast a collection comes out.
//!
//! `scan URI [DOCUMENTS]` loads into a new collection of database `bunko_bench` (which stays) and scans it five times.

use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef};
use bunko_client::{ClientError, Connection, Uri};
use std::time::Instant;

const DATABASE: &str = "bunko_bench";
const BATCH: i64 = 1_000;
const SCANS: usize = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let uri: Uri = arguments.next().ok_or("usage: scan URI [DOCUMENTS]")?.parse()?;
    let documents: i64 = arguments.next().map_or(Ok(1_000_000), |count| count.parse())?;
    let mut connection = Connection::connect(&uri)?;
    let collection = format!("scan_{}", std::process::id());
    load(&mut connection, &collection, documents)?;
    for _ in 0..SCANS {
        let start = Instant::now();
        let count = scan(&mut connection, &collection)?;
        let seconds = start.elapsed().as_secs_f64();
        println!("{count} documents in {seconds:.3} s: {:.0} docs/s", count as f64 / seconds);
    }
    Ok(())
}

fn load(connection: &mut Connection, collection: &str, documents: i64) -> Result<(), ClientError> {
    let pad = "x".repeat(964);
    for first in (0..documents).step_by(BATCH as usize) {
        let batch: Vec<DocumentBuf> = (first..documents.min(first + BATCH))
            .map(|id| DocumentBuf::new().with("_id", id).with("pad", &pad))
            .collect();
        let batch: ArrayBuf = batch.iter().collect();
        let insert = DocumentBuf::new().with("insert", collection).with("documents", &batch);
        connection.run_command(DATABASE, insert.as_ref())?;
    }
    Ok(())
}

/// Reads batch by batch and looks at every document's bytes only as far as counting them needs.
fn scan(connection: &mut Connection, collection: &str) -> Result<usize, ClientError> {
    let find = DocumentBuf::new().with("find", collection).with("batchSize", 10_000);
    let mut reply = connection.run_command(DATABASE, find.as_ref())?;
    let mut count = 0;
    loop {
        let cursor = reply.as_ref().get("cursor").and_then(ValueRef::as_document);
        let batch = cursor.and_then(|cursor| cursor.get("firstBatch").or_else(|| cursor.get("nextBatch")));
        count += batch.and_then(ValueRef::as_array).map_or(0, bunko_bson::ArrayRef::count);
        let Some(ValueRef::Int64(id @ 1..)) = cursor.and_then(|cursor| cursor.get("id")) else { return Ok(count) };
        let more = DocumentBuf::new().with("getMore", id).with("collection", collection);
        reply = connection.run_command(DATABASE, more.as_ref())?;
    }
}
