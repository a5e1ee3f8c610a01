//! A server, inputs of every size in it, and how time and memory grow from one size to the next.

use super::input::{filled, placeholder};
use super::names::Table;
use crate::bystander::{Bystander, Pings};
use crate::peer::binary;
use bunko_bson::DocumentBuf;
use bunko_client::{ClientError, CommandError, Connection, Uri, check_reply};
use bunko_testkit::process::{Server, temporary_dbpath};
use bunko_testkit::shell;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const DATABASE: &str = "grinder";
/// Elements of one document; each size is ten times the one before.
const ELEMENTS: [usize; 4] = [100, 1_000, 10_000, 100_000];
/// Documents of one collection.
const DOCUMENTS: [usize; 3] = [100, 1_000, 10_000];
/// Maximum growth of time for ten times the input: n log n takes 13 times as long, n squared 100 times.
const GROWTH_MAX: f64 = 40.0;
/// Measurements of a growth that seems too large: a noisy machine does not spoil each of them.
const LOOKS_MAX: usize = 3;
/// A command that takes longer has grown too fast on any machine.
const MAX_TIME_MS: i32 = 20_000;
/// A short `maxTimeMS`, and the time within which it must have ended a longer command.
const SHORT_TIME_MS: i32 = 100;
const END_WITHIN: Duration = Duration::from_secs(1);
/// Memory below which growth is not judged: the allocator takes that much at a time.
const MEMORY_FLOOR_BYTES: u64 = 8 << 20;
const MAX_TIME_MS_EXPIRED: i32 = 50;

/// Kinds of documents, with their growing fields.
const KINDS: &[(&str, &[(&str, &str)])] = &[
    ("ints", &[("a", "#ints"), ("b", "#more")]),
    ("text", &[("s", "#text")]),
    ("texts", &[("w", "#texts")]),
    ("documents", &[("d", "#documents")]),
    ("pairs", &[("p", "#pairs")]),
    ("fields", &[("o", "#fields")]),
];

pub struct Mill {
    server: Server,
    connection: Connection,
    bystander: Bystander,
    /// Seconds that a read takes, by kind and size.
    readings: Vec<(&'static str, usize, f64)>,
    _dbpath: tempfile::TempDir,
}

/// Time and memory of a command.
#[derive(Clone, Copy, Debug)]
struct Cost {
    seconds: f64,
    bytes: u64,
}

/// Outcome of a comparison of two sizes.
enum Compared {
    Both,
    /// The server refuses the command for one of the sizes.
    Refused,
}

fn connect(address: SocketAddr) -> Connection {
    let uri: Uri = format!("mongodb://{address}/?connectTimeoutMS=10000").parse().expect("a valid URI");
    Connection::connect(&uri).expect("the server accepts connections")
}

fn command(text: &str) -> DocumentBuf {
    shell::parse_document(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

impl Mill {
    pub fn start() -> Self {
        let dbpath = temporary_dbpath();
        let server = Server::start(&binary(), dbpath.path(), &[]).expect("the server starts");
        let mut connection = connect(server.address());
        for size in ELEMENTS {
            for (kind, fields) in KINDS {
                let mut document = command(&format!(
                    "{{_id: '{kind} {size}', n: {size}, t: ISODate('2020-02-29T12:34:56Z'), u: Timestamp(5, 6)}}"
                ));
                for (field, name) in *fields {
                    document.append(field, placeholder(name, size).expect("a placeholder").as_ref());
                }
                insert(&mut connection, "inputs", &[document]);
            }
        }
        for size in DOCUMENTS {
            let document = |id: usize| command(&format!("{{_id: {id}, v: {}, o: {{f{id}: 1}}}}", id * 7919 % size));
            let documents: Vec<_> = (0..size).map(document).collect();
            documents.chunks(1_000).for_each(|batch| insert(&mut connection, &format!("many_{size}"), batch));
        }
        let bystander = Bystander::start(server.address());
        Self { server, connection, bystander, readings: Vec::new(), _dbpath: dbpath }
    }

    pub fn stop(self) -> Pings {
        self.bystander.stop()
    }

    /// Whether the entry accepts the smallest input of that shape.
    pub fn takes(&mut self, table: Table, name: &str, shape: &str) -> bool {
        self.prepare(table, sizes(table)[0]);
        self.run(&request(table, name, shape, sizes(table)[0], MAX_TIME_MS)).is_ok()
    }

    /// A complaint about an entry's growth; `None` if it is in order.
    pub fn grind(&mut self, table: Table, name: &str, shape: &str) -> Option<String> {
        let complaint = |error: String| Some(format!("{table:?} {name}, {shape}: {error}"));
        let sizes = sizes(table);
        // If the largest input is refused, the growth between smaller sizes is judged.
        for step in sizes.windows(2).rev() {
            match self.compare(table, name, shape, step[0], step[1]) {
                Ok(Compared::Both) => break,
                Ok(Compared::Refused) => {}
                Err(error) => return complaint(error),
            }
        }
        self.end_in_time(table, name, shape, sizes[sizes.len() - 1]).err().and_then(complaint)
    }

    /// # Errors
    /// A sentence, if time or memory grows too much with ten times the input.
    fn compare(
        &mut self,
        table: Table,
        name: &str,
        shape: &str,
        small: usize,
        large: usize,
    ) -> Result<Compared, String> {
        let plain = self.reading(kind(shape), large)?;
        let (mut least, mut most) = (f64::INFINITY, f64::INFINITY);
        let (mut growth, mut memory) = (0.0, 0.0);
        for _ in 0..LOOKS_MAX {
            let [of_small, of_large] = [small, large].map(|size| request(table, name, shape, size, MAX_TIME_MS));
            let Some(before) = self.cost(table, small, &of_small)? else { return Ok(Compared::Refused) };
            let Some(after) = self.cost(table, large, &of_large)? else { return Ok(Compared::Refused) };
            (least, most) = (least.min(before.seconds), most.min(after.seconds));
            growth = most / least.max(plain / 10.0);
            memory = after.bytes as f64 / before.bytes.max(MEMORY_FLOOR_BYTES) as f64;
            if growth <= GROWTH_MAX && memory <= GROWTH_MAX {
                return Ok(Compared::Both);
            }
        }
        let growth = format!("{growth:.0} times as long as {small} ({most:.3} s), and {memory:.1} times the memory");
        Err(format!("{large} elements take {growth}"))
    }

    /// # Errors
    /// A sentence, if a short `maxTimeMS` does not end a long command.
    fn end_in_time(&mut self, table: Table, name: &str, shape: &str, size: usize) -> Result<(), String> {
        self.prepare(table, size);
        let request = request(table, name, shape, size, SHORT_TIME_MS);
        let began = Instant::now();
        let ended = self.run(&request);
        let took = began.elapsed();
        match ended {
            Err(ClientError::Command(_)) | Ok(()) if took <= END_WITHIN => Ok(()),
            Err(ClientError::Command(_)) | Ok(()) => Err(format!("maxTimeMS: {SHORT_TIME_MS} ended it after {took:?}")),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Seconds that a read of such a document takes, as a base for every command that reads it.
    fn reading(&mut self, kind: &'static str, size: usize) -> Result<f64, String> {
        if let Some((.., seconds)) = self.readings.iter().find(|(known, of, _)| (*known, *of) == (kind, size)) {
            return Ok(*seconds);
        }
        let find = command(&format!("{{find: 'inputs', filter: {{_id: '{kind} {size}', nothing: null}}}}"));
        let cost = self.cost(Table::Filters, size, &find)?;
        let seconds = cost.map_or(0.0, |cost| cost.seconds);
        self.readings.push((kind, size, seconds));
        Ok(seconds)
    }

    /// Time and memory of a command; `None` if input of that size is refused, which is one way not to grow.
    fn cost(&mut self, table: Table, size: usize, request: &DocumentBuf) -> Result<Option<Cost>, String> {
        self.prepare(table, size);
        self.forget_peak();
        let before = self.memory("VmRSS:");
        let began = Instant::now();
        let ended = self.run(request);
        let seconds = began.elapsed().as_secs_f64();
        let bytes = self.memory("VmHWM:").saturating_sub(before);
        match ended {
            Ok(()) => Ok(Some(Cost { seconds, bytes })),
            Err(ClientError::Command(failure)) if failure.code != MAX_TIME_MS_EXPIRED => Ok(None),
            Err(error) => Err(format!("with {size} elements after {seconds:.1} s: {error}")),
        }
    }

    /// Restores the document that updates begin with.
    fn prepare(&mut self, table: Table, size: usize) {
        if table != Table::Updates {
            return;
        }
        self.run(&command("{delete: 'scratch', deletes: [{q: {}, limit: 0}]}")).expect("emptied");
        let array = placeholder("#ints", size).expect("a placeholder");
        insert(&mut self.connection, "scratch", &[DocumentBuf::new().with("_id", 1).with("a", array.as_ref())]);
    }

    fn run(&mut self, request: &DocumentBuf) -> Result<(), ClientError> {
        let reply = self.connection.run_command(DATABASE, request.as_ref())?;
        check_reply(reply.as_ref()).map(drop).map_err(|failure: CommandError| ClientError::Command(failure))
    }

    /// Resets the kernel's record of the server's peak memory.
    /// Source: `proc_pid_clear_refs(5)`, 5.
    fn forget_peak(&self) {
        let _ = std::fs::write(format!("/proc/{}/clear_refs", self.server.pid()), "5");
    }

    fn memory(&self, line: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.server.pid())).expect("it runs");
        let found = status.lines().find_map(|found| found.strip_prefix(line)).expect("a line of /proc");
        found.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
    }
}

fn insert(connection: &mut Connection, collection: &str, documents: &[DocumentBuf]) {
    let documents = documents.iter().collect::<bunko_bson::ArrayBuf>();
    let insert = DocumentBuf::new().with("insert", collection).with("documents", &documents);
    let reply = connection.run_command(DATABASE, insert.as_ref()).expect("a reply");
    check_reply(reply.as_ref()).expect("inserted");
}

fn sizes(table: Table) -> &'static [usize] {
    match table {
        Table::Accumulators | Table::Stages => &DOCUMENTS,
        Table::Expressions | Table::Filters | Table::Updates => &ELEMENTS,
    }
}

/// The kind of documents that a shape reads.
fn kind(shape: &str) -> &'static str {
    let reads = |field: &str| {
        shape.contains(&format!("${field}'"))
            || shape.contains(&format!("{{{field}:"))
            || shape.contains(&format!("'{field}."))
    };
    let kind = KINDS.iter().find(|(_, fields)| fields.iter().any(|(field, _)| reads(field)));
    kind.map_or("ints", |(kind, _)| kind)
}

/// The command that applies an entry to an input of that size.
fn request(table: Table, name: &str, shape: &str, size: usize, max_time_ms: i32) -> DocumentBuf {
    let shape = shape.replacen('X', name, 1);
    let input = format!("{} {size}", kind(&shape));
    let text = match table {
        Table::Expressions => {
            format!(
                "{{aggregate: 'inputs', pipeline: [{{$match: {{_id: '{input}'}}}}, {{$project: {{x: {shape}}}}}], cursor: {{}}}}"
            )
        }
        Table::Filters => format!(
            "{{aggregate: 'inputs', pipeline: [{{$match: {{$and: [{{_id: '{input}'}}, {shape}]}}}}, {{$count: 'n'}}], cursor: {{}}}}"
        ),
        Table::Accumulators => {
            format!("{{aggregate: 'many_{size}', pipeline: [{{$group: {{_id: null, x: {shape}}}}}], cursor: {{}}}}")
        }
        Table::Stages => format!("{{aggregate: 'many_{size}', pipeline: [{shape}], cursor: {{batchSize: 100000}}}}"),
        Table::Updates => format!("{{update: 'scratch', updates: [{{q: {{_id: 1}}, u: {shape}}}]}}"),
    };
    let request = filled(&command(&text), size);
    request.with("maxTimeMS", max_time_ms)
}
