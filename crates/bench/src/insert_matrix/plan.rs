//! The options, checked once.

use super::InsertMatrixOptions;
use crate::BenchError;
use crate::dataset::Dataset;
use crate::operation::{OPERATIONS, Operation};
use bunko_client::load::Arrival;
use bunko_client::{Uri, WriteConcern};
use std::sync::Arc;

/// Connections and requests in flight on each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub connections: usize,
    pub in_flight: usize,
}

/// What is to be run; every number is within its limits.
pub(super) struct Plan {
    pub cells: Vec<Cell>,
    pub operation: &'static Operation,
    pub dataset: Arc<Dataset>,
    pub documents: u64,
    pub document_bytes: usize,
    pub batch: usize,
    /// The option's, or the connection string's once that is known.
    pub write_concern: WriteConcern,
    write_concern_given: bool,
    pub arrival: Arrival,
    pub threads: usize,
    pub seed: u64,
    /// Whether E1 did the same, so that its figures may stand beside ours.
    pub is_e1: bool,
}

const CONNECTIONS_MAX: usize = 60_000;
const REQUESTS_MAX: usize = 10_000_000;
/// MongoDB's `maxWriteBatchSize`.
const BATCH_MAX: usize = 100_000;
/// MongoDB's `maxMessageSizeBytes` less the command around the documents.
const BATCH_BYTES_MAX: usize = 47_900_000;
const DOCUMENT_BYTES_MAX: usize = bunko_bson::MAX_USER_DOCUMENT_BYTES;

impl Plan {
    /// # Errors
    /// The first option that cannot be met.
    pub fn parse(options: &InsertMatrixOptions) -> Result<Self, BenchError> {
        let operation = Operation::named(&options.operation).ok_or_else(|| {
            let names: Vec<_> = OPERATIONS.iter().map(|operation| operation.name).collect();
            refused("operation", format!("'{}' is none of {}", options.operation, names.join(", ")))
        })?;
        within("documents", options.documents, 1, 1 << 40)?;
        within("document-bytes", options.document_bytes as u64, 1, DOCUMENT_BYTES_MAX as u64)?;
        within("threads", options.threads as u64, 1, 1_024)?;
        within("repetitions", options.repetitions as u64, 1, 1_000)?;
        within("batch", options.batch as u64, 1, BATCH_MAX as u64)?;
        if options.batch > 1 && !operation.batches {
            return Err(refused("batch", format!("operation '{}' works on one document", operation.name)));
        }
        if options.batch.saturating_mul(options.document_bytes) > BATCH_BYTES_MAX {
            return Err(refused("batch", format!("more than {BATCH_BYTES_MAX} bytes per request")));
        }
        let arrival = match options.rate {
            None => Arrival::Closed,
            Some(rate) if rate > 0.0 && rate <= 1e7 => Arrival::Open(rate),
            Some(rate) => return Err(refused("rate", format!("{rate} is not in 0..10,000,000 requests per second"))),
        };
        let write_concern = options.write_concern.as_deref().map(str::parse::<WriteConcern>).transpose();
        let write_concern = write_concern.map_err(|detail| refused("write-concern", detail))?;
        let dataset = Dataset::new(options.seed, operation.shape, options.document_bytes, options.compressible)?;
        let plan = Self {
            cells: cells(options)?,
            operation,
            dataset: Arc::new(dataset),
            documents: options.documents,
            document_bytes: options.document_bytes,
            batch: options.batch,
            write_concern_given: write_concern.is_some(),
            write_concern: write_concern.unwrap_or_default(),
            arrival,
            threads: options.threads,
            seed: options.seed,
            is_e1: operation.name == "insert"
                && options.batch == 1
                && options.document_bytes == 1_000
                && arrival == Arrival::Closed,
        };
        plan.check_silence().map(|()| plan)
    }

    /// Takes the connection string's write concern where no option gave one.
    /// # Errors
    /// As [`Self::parse`].
    pub fn with_write_concern_of(mut self, uri: &Uri) -> Result<Self, BenchError> {
        if let Some(write_concern) = uri.write_concern.clone().filter(|_| !self.write_concern_given) {
            self.write_concern = write_concern;
        }
        self.check_silence().map(|()| self)
    }

    /// Without replies the server's pace is unknown, and an update's effect cannot be counted afterwards.
    fn check_silence(&self) -> Result<(), BenchError> {
        if self.write_concern.expects_reply() || self.operation.name == "insert" {
            return Ok(());
        }
        Err(refused("write-concern", format!("0 leaves nothing to count for operation '{}'", self.operation.name)))
    }
}

fn refused(name: &'static str, detail: String) -> BenchError {
    BenchError::Option { name, detail }
}

fn within(name: &'static str, value: u64, least: u64, most: u64) -> Result<(), BenchError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(refused(name, format!("{value} is not in {least}..{most}")))
}

fn cells(options: &InsertMatrixOptions) -> Result<Vec<Cell>, BenchError> {
    let (connections, in_flight) = (&options.connections, &options.in_flight);
    if connections.is_empty() || connections.len() != in_flight.len() {
        let detail = format!("{} numbers, but --connections has {}", in_flight.len(), connections.len());
        return Err(refused("in-flight", detail));
    }
    let cells = connections.iter().zip(in_flight).map(|(&connections, &in_flight)| {
        within("connections", connections as u64, 1, CONNECTIONS_MAX as u64)?;
        within("in-flight", in_flight as u64, 1, (REQUESTS_MAX / connections) as u64)?;
        Ok(Cell { connections, in_flight })
    });
    cells.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(change: impl FnOnce(&mut InsertMatrixOptions)) -> String {
        let mut options = InsertMatrixOptions::default();
        change(&mut options);
        Plan::parse(&options).err().expect("refused").to_string()
    }

    #[test]
    fn what_cannot_be_met_is_refused_by_name() {
        assert_eq!(refusal(|o| o.in_flight = vec![1]), "--in-flight: 1 numbers, but --connections has 4");
        assert_eq!(refusal(|o| o.connections[0] = 0), "--connections: 0 is not in 1..60000");
        assert_eq!(refusal(|o| o.operation = "drop".into()), "--operation: 'drop' is none of insert, find, inc");
        assert_eq!(
            refusal(|o| o.document_bytes = 29),
            "--document-bytes: 29 bytes do not hold the fields, which take 30"
        );
        assert!(refusal(|o| o.batch = 50_000).starts_with("--batch: more than 47900000 bytes"));
        assert!(refusal(|o| o.rate = Some(0.0)).starts_with("--rate: 0 is not"));
        assert!(refusal(|o| o.write_concern = Some("x".into())).starts_with("--write-concern: "));
        let silent_update = refusal(|o| (o.operation, o.write_concern) = ("inc".into(), Some("0".into())));
        assert!(silent_update.contains("nothing to count"), "{silent_update}");
        assert!(refusal(|o| (o.operation, o.batch) = ("find".into(), 2)).contains("works on one document"));
    }

    #[test]
    fn an_option_wins_over_the_connection_string() {
        let uri: Uri = "mongodb://h/?w=majority".parse().expect("valid");
        let plan = |write_concern: Option<&str>| {
            let write_concern = write_concern.map(str::to_owned);
            let options = InsertMatrixOptions { write_concern, ..InsertMatrixOptions::default() };
            let plan = Plan::parse(&options).and_then(|plan| plan.with_write_concern_of(&uri)).expect("valid");
            plan.write_concern.to_string()
        };
        assert_eq!(plan(None), "w: \"majority\"");
        assert_eq!(plan(Some("1")), "w: 1");
    }
}
