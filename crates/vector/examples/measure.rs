//! Measures the time of vector searches, beside a scan of all vectors, and the share of the nearest that they find.
//!
//! `cargo run --release -p bunko-vector --example measure -- 100000 768`: the number of vectors, and of dimensions.

use bunko_bson::{ArrayBuf, DocumentBuf};
use bunko_operation::OperationContext;
use bunko_testkit::random::Random;
use bunko_vector::{Definition, Growing, Request, Table};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Number of places around which vectors lie, as embeddings of texts lie around their topics.
const PLACES: usize = 1_000;
const QUERIES: usize = 200;
const LIMIT: i32 = 10;

struct Numbers(Random);

impl Numbers {
    /// A number of approximately normal distribution with variance 1.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.0.fraction()).sum::<f64>() - 6.0
    }

    fn vector(&mut self, dimensions: usize, around: Option<&[f64]>) -> Vec<f64> {
        (0..dimensions).map(|i| around.map_or(0.0, |around| around[i]) + self.normal()).collect()
    }
}

fn document(vector: &[f64]) -> DocumentBuf {
    DocumentBuf::new().with("v", &vector.iter().copied().collect::<ArrayBuf>())
}

fn request(query: &[f64], candidates: Option<i32>) -> Request {
    let query: ArrayBuf = query.iter().copied().collect();
    let asked =
        DocumentBuf::new().with("index", "i").with("path", "v").with("queryVector", &query).with("limit", LIMIT);
    let asked = match candidates {
        Some(candidates) => asked.with("numCandidates", candidates),
        None => asked.with("exact", true),
    };
    Request::parse(asked.as_ref()).expect("a request")
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>().expect("a number"));
    let (count, dimensions) = (arguments.next().unwrap_or(100_000), arguments.next().unwrap_or(128));
    let field = DocumentBuf::new()
        .with("type", "vector")
        .with("path", "v")
        .with("numDimensions", dimensions as i32)
        .with("similarity", "cosine");
    let fields: ArrayBuf = std::iter::once(&field).collect();
    let mut table = Table::new(Definition::of(DocumentBuf::new().with("fields", &fields).as_ref()));
    let mut numbers = Numbers(Random(1));
    let places: Vec<Vec<f64>> = (0..PLACES).map(|_| numbers.vector(dimensions, None)).collect();
    let began = Instant::now();
    let mut taken = Duration::ZERO;
    for record in 0..count {
        let place = (numbers.0.fraction() * PLACES as f64) as usize;
        let document = document(&numbers.vector(dimensions, Some(&places[place])));
        let one = Instant::now();
        table.put(record as u64, document.as_ref());
        taken += one.elapsed();
    }
    println!(
        "{count} vectors of {dimensions} dimensions: {:.1} s, {:.1} s of it to take them in",
        began.elapsed().as_secs_f64(),
        taken.as_secs_f64()
    );
    let began = Instant::now();
    while table.grow() == Growing::On {}
    println!("graph: {:.1} s; {} MB in all", began.elapsed().as_secs_f64(), table.bytes() >> 20);
    let queries: Vec<Vec<f64>> = (0..QUERIES)
        .map(|_| {
            let place = (numbers.0.fraction() * PLACES as f64) as usize;
            numbers.vector(dimensions, Some(&places[place]))
        })
        .collect();
    let run = |candidates: Option<i32>| {
        let requests: Vec<Request> = queries.iter().map(|query| request(query, candidates)).collect();
        let operation = OperationContext::unlimited();
        let began = Instant::now();
        let found: Vec<BTreeSet<u64>> = requests
            .iter()
            .map(|request| table.search(request, &operation).expect("found").iter().map(|hit| hit.record).collect())
            .collect();
        (began.elapsed().as_micros() as f64 / QUERIES as f64, found)
    };
    let (micros, exact) = run(None);
    println!("exact: {micros:.0} us a query");
    for candidates in [10, 50, 100, 200, 500, 1_000] {
        let (micros, found) = run(Some(candidates));
        let met: usize = exact.iter().zip(&found).map(|(exact, found)| exact.intersection(found).count()).sum();
        println!(
            "numCandidates {candidates}: {micros:.0} us a query, recall {:.3}",
            met as f64 / (QUERIES * LIMIT as usize) as f64
        );
    }
}
