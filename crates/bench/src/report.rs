//! What a scenario leaves behind: a table for the terminal, JSON for everything else.

use crate::InsertMatrixOptions;
use crate::environment::{ClientMachine, ServerDescription};
use crate::histogram::LatencySummary;
use crate::verdict::Finding;
use serde::Serialize;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

/// What was run.
#[derive(Clone, Debug, Serialize)]
pub struct Scenario {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it does, for whoever reads the report in ten years.
    pub prose: &'static str,
    /// Seed of all its random choices.
    pub seed: u64,
    /// Its parameters.
    pub options: InsertMatrixOptions,
}

/// One cell of the matrix, once.
#[derive(Clone, Debug, Serialize)]
pub struct CellRun {
    /// Sockets.
    pub connections: usize,
    /// Requests in flight on each.
    pub in_flight: usize,
    /// Which round, from 1.
    pub repetition: usize,
    /// Documents sent, or for reads and updates asked for.
    pub documents: u64,
    /// From the starting signal to the last reply.
    pub elapsed_seconds: f64,
    /// `documents` over `elapsed_seconds`.
    pub documents_per_second: f64,
    /// The open loop's rate in requests per second.
    pub offered_rate: Option<f64>,
    /// Requests per second reached.
    pub achieved_rate: f64,
    /// From a request's start, in an open loop the intended one, to its reply.
    pub latency: LatencySummary,
    /// User and system time; `None` where the server is not on this machine.
    pub server_cpu_us_per_document: Option<f64>,
    /// Resident memory at the end; `None` where the server is not on this machine.
    pub server_resident_bytes: Option<u64>,
    /// User and system time of the generator's threads.
    pub generator_cpu_us_per_document: f64,
    /// E1's machine of the most similar size.
    pub reference_instance: &'static str,
    /// What E1 measured there; `None` where this cell did something else.
    pub reference_documents_per_second: Option<u32>,
    /// What speaks against the figures.
    pub findings: Vec<Finding>,
}

/// A scenario's whole result.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What was run.
    pub scenario: Scenario,
    /// Against what.
    pub target: String,
    /// What the server says of itself.
    pub server: ServerDescription,
    /// Where the generator ran.
    pub machine: ClientMachine,
    /// What an acknowledgement promised.
    pub durability: String,
    /// Every run of every cell, in the order of running.
    pub runs: Vec<CellRun>,
}

impl Report {
    /// Whether nothing speaks against any figure.
    pub fn is_valid(&self) -> bool {
        self.runs.iter().all(|run| run.findings.is_empty())
    }

    /// One sentence: valid, or the first thing that is wrong.
    pub fn verdict(&self) -> String {
        let mut flaws = self.flaws();
        match (flaws.next(), flaws.count()) {
            (None, _) => "valid: no errors, counts verified, the generator had time to spare".to_owned(),
            (Some(flaw), 0) => format!("not valid: {flaw}"),
            (Some(flaw), more) => format!("not valid: {flaw} (and {more} more, below)"),
        }
    }

    /// Everything that is wrong, each with its cell.
    fn flaws(&self) -> impl Iterator<Item = String> {
        self.runs.iter().flat_map(|run| {
            run.findings.iter().map(move |finding| format!("{} x {}: {finding}", run.connections, run.in_flight))
        })
    }

    /// Writes the report with its verdict as JSON.
    /// # Errors
    /// What the file system said.
    pub fn write_json(&self, path: &Path) -> io::Result<()> {
        let mut document = serde_json::to_value(self)?;
        document["valid"] = self.is_valid().into();
        document["verdict"] = self.verdict().into();
        fs::write(path, serde_json::to_string_pretty(&document)? + "\n")
    }

    /// For each cell that ran more than once, its median rate and the spread around it.
    fn medians(&self) -> Vec<String> {
        let mut cells: Vec<(usize, usize)> = Vec::new();
        for run in &self.runs {
            if !cells.contains(&(run.connections, run.in_flight)) {
                cells.push((run.connections, run.in_flight));
            }
        }
        let median = |(connections, in_flight)| {
            let of_cell = self.runs.iter().filter(|run| (run.connections, run.in_flight) == (connections, in_flight));
            let mut rates: Vec<_> = of_cell.map(|run| run.documents_per_second).collect();
            rates.sort_by(f64::total_cmp);
            let (lowest, highest) = (*rates.first()?, *rates.last()?);
            let middle = f64::midpoint(rates[(rates.len() - 1) / 2], rates[rates.len() / 2]);
            (rates.len() > 1).then(|| {
                let rate = thousands(middle);
                let spread = format!("{}..{}", thousands(lowest), thousands(highest));
                format!("median {connections} x {in_flight}: {rate} docs/s ({spread} over {} runs)", rates.len())
            })
        };
        cells.into_iter().filter_map(median).collect()
    }
}

const COLUMNS: [&str; 12] = [
    "connections",
    "in flight",
    "docs/s",
    "p50 us",
    "p99 us",
    "p99.9 us",
    "p99.99 us",
    "max us",
    "server us/doc",
    "RSS MB",
    "generator us/doc",
    "E1 docs/s",
];

impl CellRun {
    fn row(&self) -> [String; COLUMNS.len()] {
        let shown = |value: Option<f64>| value.map_or("-".into(), thousands);
        let cost = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.1}"));
        [
            self.connections.to_string(),
            self.in_flight.to_string(),
            thousands(self.documents_per_second),
            shown(self.latency.p50_us),
            shown(self.latency.p99_us),
            shown(self.latency.p999_us),
            shown(self.latency.p9999_us),
            shown(self.latency.max_us),
            cost(self.server_cpu_us_per_document),
            shown(self.server_resident_bytes.map(|bytes| bytes as f64 / 1e6)),
            cost(Some(self.generator_cpu_us_per_document)),
            shown(self.reference_documents_per_second.map(f64::from)),
        ]
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = &self.scenario.options;
        writeln!(f, "verdict: {}", self.verdict())?;
        writeln!(f, "durability: {}", self.durability)?;
        let version = self.server.version.as_deref().unwrap_or("of unstated version");
        writeln!(f, "server: {}, {version}", self.target)?;
        writeln!(f, "client: {}, {} cores, Linux {}", self.machine.processor, self.machine.cores, self.machine.kernel)?;
        write!(
            f,
            "load: {} of {} documents of {} bytes",
            options.operation, options.documents, options.document_bytes
        )?;
        write!(f, ", compressible {}, seed {}, batch {}", options.compressible, self.scenario.seed, options.batch)?;
        match options.rate {
            Some(rate) => writeln!(f, ", open loop at {rate} requests/s")?,
            None => writeln!(f, ", closed loop")?,
        }
        let rows: Vec<_> = self.runs.iter().map(CellRun::row).collect();
        let width = |column: usize| {
            rows.iter().map(|row| row[column].len()).chain([COLUMNS[column].len()]).max().unwrap_or_default()
        };
        let widths: [usize; COLUMNS.len()] = std::array::from_fn(width);
        write_row(f, &widths, &COLUMNS.map(str::to_owned))?;
        rows.iter().try_for_each(|row| write_row(f, &widths, row))?;
        self.medians().iter().try_for_each(|line| writeln!(f, "{line}"))?;
        self.flaws().skip(1).try_for_each(|flaw| writeln!(f, "flaw: {flaw}"))?;
        match self.runs.iter().find(|run| run.reference_documents_per_second.is_some()) {
            Some(run) => writeln!(f, "E1: MongoDB 3.2 on {}, client on a second machine", run.reference_instance),
            None => Ok(()),
        }
    }
}

fn write_row(f: &mut fmt::Formatter<'_>, widths: &[usize], row: &[String]) -> fmt::Result {
    let cells = row.iter().zip(widths).map(|(cell, &width)| format!("{cell:>width$}"));
    writeln!(f, "{}", cells.collect::<Vec<_>>().join("  "))
}

/// A whole number with its thousands apart.
fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        let shown = [0.0, 999.4, 1_000.0, 123_456.0, 1_234_567.0].map(thousands);
        assert_eq!(shown, ["0", "999", "1,000", "123,456", "1,234,567"]);
    }
}
