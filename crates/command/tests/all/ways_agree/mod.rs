//! A filter finds the same documents in every command: shown, counted, grouped, updated or deleted; after stages, through
//! views and inside other pipelines; with each set of indexes and by none; with each rewrite of pipelines on and off; and
//! in a transaction with changes of its own. Errors are the same too.
//!
//! Each filter is asked in some of the ways. `BUNKO_FILTERS` sets the number of filters, `BUNKO_SEED` the seed.

mod generator;
mod ways;

use crate::server::Server;
use bunko_aggregate::RuleSet;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef, number};
use bunko_engines::{ENGINES, EngineOptions};
use bunko_store::LogOptions;
use bunko_testkit::random::Random;
use bunko_testkit::shell;
use generator::{document, filter, sort, variables};
use ways::{DELETE, GROUPED, SORTED, STAGES, Said, WAYS, WINDOWS, Way};

const DATABASE: &str = "agree";
const FILTERS: u64 = 5_000;
const DOCUMENTS: u64 = 90;
/// Filters between two changes of the indexes and of the rewrites.
const FILTERS_PER_STATE: u64 = 100;
/// Ways in which each filter is asked.
const ASKED: u64 = 3;

/// Collections with the same documents: with all indexes, with some that change, and with none.
static COLLECTIONS: [&str; 3] = ["q", "some", "bare"];

/// Names of indexes: first those that contain all documents, then those that contain some, so that a hint finds only these.
const WHOLE: [&str; 13] = ["n", "op", "oqh", "s", "sh", "h", "hs", "hn", "sn", "sx", "v0", "v0p", "shid"];
const SOME: [&str; 8] = ["sci", "g", "place", "partial", "sparse", "splace", "placehn", "gs"];
/// Names of wildcard indexes. They serve only filters that ask for one of their paths; a hint of one is refused for others.
const WILDCARD: [&str; 4] = ["w", "all", "hw", "few"];
/// No plan uses the hinted index.
const NO_QUERY_EXECUTION_PLANS: i32 = 291;

const TEXT_INDEX: &str = "{key: {t: 'text'}, name: 'text', default_language: 'none'}";
const INDEXES: [&str; 25] = [
    "{key: {n: 1}, name: 'n'}",
    "{key: {'o.p': 1}, name: 'op'}",
    "{key: {'o.q': -1, h: 1}, name: 'oqh'}",
    "{key: {s: 1}, name: 's'}",
    "{key: {s: 1, h: -1}, name: 'sh'}",
    "{key: {h: 'hashed'}, name: 'h'}",
    "{key: {h: 'hashed', s: 1}, name: 'hs'}",
    "{key: {h: 1, n: 1}, name: 'hn'}",
    "{key: {s: 1, n: 1}, name: 'sn'}",
    "{key: {s: -1, x: 1}, name: 'sx'}",
    "{key: {'v.0': 1}, name: 'v0'}",
    "{key: {'v.0.p': -1, s: 1}, name: 'v0p'}",
    "{key: {s: 1, n: 1}, name: 'sci', collation: {locale: 'en', strength: 2}}",
    "{key: {'w.$**': 1}, name: 'w'}",
    "{key: {'$**': -1}, name: 'all'}",
    "{key: {h: 1, 'w.$**': 1}, name: 'hw'}",
    "{key: {'$**': 1}, name: 'few', wildcardProjection: {'w.a': 1, n: 1, o: 1}}",
    "{key: {g: '2d'}, name: 'g'}",
    "{key: {place: '2dsphere'}, name: 'place'}",
    "{key: {s: 1, h: 1, _id: 1}, name: 'shid'}",
    "{key: {s: 1, place: '2dsphere'}, name: 'splace'}",
    "{key: {place: '2dsphere', h: 1, n: -1}, name: 'placehn'}",
    "{key: {g: '2d', s: 1}, name: 'gs'}",
    "{key: {n: 1, s: 1}, name: 'partial', partialFilterExpression: {n: {$gt: 2}}}",
    "{key: {x: 1}, name: 'sparse', sparse: true}",
];

/// Whether the transaction has begun.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Transaction {
    New,
    Begun,
}

struct World {
    server: Server,
    random: Random,
    /// The transaction in which commands run.
    transaction: Option<Transaction>,
    /// Number of transactions so far.
    transactions: i64,
    /// Number of filters that a hinted wildcard index served.
    hints_served: u64,
}

/// A filter with the options that it is asked with.
#[derive(Clone)]
struct Question<'q> {
    collection: &'q str,
    filter: &'q str,
    hint: String,
    collation: &'static str,
}

impl Question<'_> {
    fn with(&self, hint: String) -> Self {
        Self { hint, ..self.clone() }
    }

    fn has_text(&self) -> bool {
        self.filter.contains("$text")
    }

    /// The collections that may be asked: a search for text needs its index, and one beside other conditions an index for
    /// each of them.
    fn collections(&self) -> &'static [&'static str] {
        match self.filter {
            filter if filter.contains("$or: [{$text") => &COLLECTIONS[..1],
            filter if filter.contains("$text") => &COLLECTIONS[..2],
            _ => &COLLECTIONS,
        }
    }

    /// The command, with one of these stages, or a view of it.
    fn command(&self, way: &Way, stages: &[&str], random: &mut Random) -> String {
        let collation = if self.collation.is_empty() { String::new() } else { format!(", {}", self.collation) };
        let number = random.below(stages.len() as u64) as usize;
        let command = way.command.replace("FROM_VIEW", &format!("{}_{number}", self.collection));
        let command = command.replace("FROM", self.collection).replace("BEHIND", stages[number]);
        let command = command.replace("FILTER", self.filter);
        command.replace("OPTIONS", &format!("{collation}{}", self.hint)).replace("COLLATED", &collation)
    }
}

fn parsed(text: &str) -> DocumentBuf {
    shell::parse_document(&text.replace('\n', " ")).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The code of an error in a reply.
fn error(reply: &DocumentBuf) -> Option<i32> {
    let code = |document: DocumentRef<'_>| document.get("code").and_then(number::as_i64_exact);
    let statistics = reply.as_ref().get("executionStats").and_then(ValueRef::as_document);
    let explained = statistics.and_then(|statistics| statistics.get("errorCode")).and_then(number::as_i64_exact);
    let written = reply.as_ref().get("writeErrors").and_then(ValueRef::as_array);
    let written = written.and_then(|errors| code(errors.iter().next()?.as_document()?));
    code(reply.as_ref()).or(written).or(explained).map(|code| code as i32)
}

impl World {
    fn start(seed: u64) -> Self {
        let server = Server::start_for_tests(&ENGINES[0], &EngineOptions::default(), LogOptions::default());
        let mut world = Self { server, random: Random(seed), transaction: None, transactions: 0, hints_served: 0 };
        let mut documents = ArrayBuf::new();
        (0..DOCUMENTS).for_each(|id| _ = documents.push(&parsed(&document(id, &mut world.random))));
        for collection in COLLECTIONS {
            world.succeed(DATABASE, &DocumentBuf::new().with("insert", collection).with("documents", &documents));
            for (number, stages) in STAGES.iter().enumerate() {
                let view = format!("{{create: '{collection}_{number}', viewOn: '{collection}', pipeline: [{stages}]}}");
                world.succeed(DATABASE, &parsed(&view));
            }
        }
        world.succeed(DATABASE, &parsed("{insert: 'one', documents: [{_id: 'one'}]}"));
        world.build("q", &INDEXES);
        world
    }

    fn run(&mut self, command: &DocumentBuf) -> Result<DocumentBuf, i32> {
        let command = match self.transaction.replace(Transaction::Begun) {
            None => {
                self.transaction = None;
                command.clone()
            }
            Some(begun) => self.within(command.clone(), begun),
        };
        let reply = self.server.run(1, DATABASE, command.as_ref());
        error(&reply).map_or(Ok(reply), Err)
    }

    /// A command in the current transaction.
    fn within(&self, command: DocumentBuf, begun: Transaction) -> DocumentBuf {
        let id = DocumentBuf::new().with("id", ValueRef::Binary { subtype: 4, bytes: &[7; 16] });
        let mut command = command.with("lsid", &id).with("txnNumber", self.transactions).with("autocommit", false);
        if begun == Transaction::New {
            command.append("startTransaction", true);
        }
        command
    }

    fn succeed(&mut self, database: &str, command: &DocumentBuf) {
        let reply = self.server.run(1, database, command.as_ref());
        assert!(error(&reply).is_none(), "{command:?}: {reply:?}");
    }

    fn build(&mut self, collection: &str, indexes: &[&str]) {
        let indexes = indexes.iter().copied().chain([TEXT_INDEX]).collect::<Vec<_>>().join(", ");
        self.succeed(DATABASE, &parsed(&format!("{{createIndexes: '{collection}', indexes: [{indexes}]}}")));
    }

    /// Draws the indexes of one collection, and the rules by which pipelines are rewritten.
    fn change(&mut self) {
        self.succeed(DATABASE, &parsed("{dropIndexes: 'some', index: '*'}"));
        let indexes: Vec<_> = INDEXES.into_iter().filter(|_| self.random.one_in(4)).collect();
        self.build("some", &indexes);
        let rules: Vec<_> = RuleSet::names().collect();
        let mode = match self.random.below(4) {
            0 => "mode: 'off'".to_owned(),
            1 => "mode: 'alwaysOn'".to_owned(),
            _ => format!("mode: 'alwaysOn', data: {{rules: ['{}']}}", self.random.pick(&rules)),
        };
        self.succeed("admin", &parsed(&format!("{{configureFailPoint: 'disablePipelineOptimization', {mode}}}")));
    }

    fn ask(&mut self, way: &Way, question: &Question<'_>) -> (String, Result<Said, i32>) {
        // A transaction takes no `$unionWith`.
        let stages = if self.transaction.is_some() { &STAGES[..STAGES.len() - 1] } else { &STAGES };
        let command = question.command(way, stages, &mut self.random);
        let said = self.run(&parsed(&command)).map(|reply| (way.reads)(reply.as_ref()));
        (command, said)
    }

    /// Asks in a way that takes the question; the result must be the expected one.
    fn check(&mut self, question: &Question<'_>, expected: &Result<Said, i32>) {
        let way = self.fitting(question);
        let (command, said) = self.ask(way, question);
        assert!(agree(expected, &said), "{command}\n{said:?} instead of {expected:?}");
    }

    /// A way that takes the question.
    fn fitting(&mut self, question: &Question<'_>) -> &'static Way {
        let fits = |way: &&Way| {
            way.takes(&question.hint, question.collation)
                && (way.takes_text() || !question.has_text())
                && (way.is_transactional() || self.transaction.is_none())
        };
        let ways: Vec<_> = WAYS.iter().filter(fits).collect();
        ways[self.random.below(ways.len() as u64) as usize]
    }

    /// Skips and limits, and deletes in a transaction that is aborted.
    fn check_parts(&mut self, question: &Question<'_>, expected: &Said) {
        for way in &WINDOWS {
            let (command, said) = self.ask(way, question);
            let count = said.map(|said| said.count());
            assert_eq!(count, Ok((expected.count() - 2).clamp(0, 3)), "{command}");
        }
        self.in_transaction(|world| {
            let (command, said) = world.ask(&DELETE, question);
            assert_eq!(said.map(|said| said.count()), Ok(expected.count()), "{command}");
        });
    }

    /// Asks in a transaction that has changed documents.
    fn check_own_changes(&mut self, question: &Question<'_>) {
        let (changed, deleted) = (self.random.below(DOCUMENTS), self.random.below(DOCUMENTS));
        let (other, new) = (document(changed, &mut self.random), document(DOCUMENTS, &mut self.random));
        self.in_transaction(|world| {
            for change in [
                format!("{{update: 'q', updates: [{{q: {{_id: {changed}}}, u: {other}}}]}}"),
                format!("{{delete: 'q', deletes: [{{q: {{_id: {deleted}}}, limit: 1}}]}}"),
                format!("{{insert: 'q', documents: [{new}]}}"),
            ] {
                world.run(&parsed(&change)).expect("changed");
            }
            let hint = if question.has_text() { "" } else { ", hint: {$natural: 1}" };
            let (_, expected) = world.ask(&WAYS[0], &question.with(hint.to_owned()));
            // An error ends the transaction.
            if expected.is_ok() {
                (0..ASKED).for_each(|_| world.check(question, &expected));
            }
        });
    }

    /// Runs commands in a transaction that is aborted.
    fn in_transaction(&mut self, run: impl FnOnce(&mut Self)) {
        self.transactions += 1;
        self.transaction = Some(Transaction::New);
        run(self);
        // After an error there is no transaction to abort.
        self.transaction = None;
        let abort = self.within(parsed("{abortTransaction: 1}"), Transaction::Begun);
        self.server.run(1, "admin", abort.as_ref());
    }

    /// Sorts, skips and limits in several ways, and asks for a few documents of each group.
    fn check_orders(&mut self, question: &Question<'_>) {
        let (sort, skip, limit) = (sort(&mut self.random), self.random.below(3), 1 + self.random.below(6));
        let cut =
            if skip > 0 { format!("{{$skip: {skip}}}, {{$limit: {limit}}}") } else { format!("{{$limit: {limit}}}") };
        let renamed = sort.replace("'n'", "renamed");
        let placed = |command: &str| {
            let command = command.replace("SORT", &sort).replace("RENAMED", &renamed).replace("CUT", &cut);
            command.replace("SKIPPED", &skip.to_string()).replace("LIMITED", &limit.to_string())
        };
        let bare = Question { collection: "bare", ..question.clone() };
        let expected = self.said(&SORTED[0], &placed, &bare);
        for _ in 0..ASKED {
            let way = &SORTED[self.random.below(SORTED.len() as u64) as usize];
            if !way.takes(&question.hint, question.collation) {
                continue;
            }
            let collection = self.random.pick(question.collections());
            let said = self.said(way, &placed, &Question { collection, ..question.clone() });
            assert_eq!(said.1, expected.1, "{}\ninstead of\n{}", said.0, expected.0);
        }
        if !question.collation.is_empty() {
            // Strings that compare as equal are one group, and the first of them in the input names it.
            return;
        }
        let grouped = &GROUPED[self.random.below(GROUPED.len() as u64) as usize];
        let expected = self.said(grouped, &str::to_owned, &bare);
        let said = self.said(grouped, &str::to_owned, &Question { collection: "q", ..question.clone() });
        assert_eq!(said.1, expected.1, "{}", said.0);
    }

    fn said(
        &mut self,
        way: &Way,
        placed: &dyn Fn(&str) -> String,
        question: &Question<'_>,
    ) -> (String, Result<Said, i32>) {
        let command = placed(&question.command(way, &STAGES, &mut self.random));
        let said = self.run(&parsed(&command)).map(|reply| (way.reads)(reply.as_ref()));
        (command, said)
    }

    fn check_hints(&mut self, question: &Question<'_>, scanned: &Result<Said, i32>) {
        if self.random.one_in(3) {
            return self.check_wildcard_hints(question, scanned);
        }
        let number = self.random.below((WHOLE.len() + SOME.len()) as u64) as usize;
        let name = WHOLE.iter().chain(&SOME).nth(number).expect("an index");
        let hinted = question.with(format!(", hint: '{name}'"));
        let (command, found) = self.ask(&WAYS[0], &hinted);
        let is_whole = number < WHOLE.len();
        assert!(!is_whole || found == *scanned, "{command}\n{found:?} instead of {scanned:?}");
        self.check(&hinted, &found);
    }
}

impl World {
    /// A hinted wildcard index gives what a scan gives, or none of the ways can use it. After other stages the filter may
    /// not reach the query, and then the index cannot serve it there.
    fn check_wildcard_hints(&mut self, question: &Question<'_>, scanned: &Result<Said, i32>) {
        let hinted = question.with(format!(", hint: '{}'", self.random.pick(&WILDCARD)));
        let (command, found) = self.ask(&WAYS[0], &hinted);
        let is_refused = found == Err(NO_QUERY_EXECUTION_PLANS);
        assert!(is_refused || found == *scanned, "{command}\n{found:?} instead of {scanned:?}");
        self.hints_served += u64::from(!is_refused);
        for _ in 0..ASKED {
            let way = self.fitting(&hinted);
            let (command, said) = self.ask(way, &hinted);
            let is_behind = way.command.contains("BEHIND") && said == Err(NO_QUERY_EXECUTION_PLANS);
            assert!(is_behind || agree(&found, &said), "{command}\n{said:?} instead of {found:?}");
        }
    }
}

/// Whether two ways say the same.
fn agree(expected: &Result<Said, i32>, said: &Result<Said, i32>) -> bool {
    match (expected, said) {
        (Ok(expected), Ok(said)) => expected.agrees(said),
        (expected, said) => expected == said,
    }
}

#[test]
fn every_way_of_asking_finds_the_same() {
    let setting =
        |name: &str, default: u64| std::env::var(name).map_or(default, |said| said.parse().expect("a number"));
    let (seed, count) = (setting("BUNKO_SEED", 20), setting("BUNKO_FILTERS", FILTERS));
    let mut world = World::start(seed);
    let (mut found, mut refused) = (0, 0);
    for number in 0..count {
        if number % FILTERS_PER_STATE == 0 {
            world.change();
        }
        let filter = filter(&mut world.random);
        let collation = if world.random.one_in(4) { "collation: {locale: 'en', strength: 2}" } else { "" };
        let collation = if filter.contains("$text") { "" } else { collation };
        let hint =
            if filter.contains("$$asked") { format!(", let: {}", variables(&mut world.random)) } else { String::new() };
        let question = Question { collection: "q", filter: &filter, hint, collation };
        // No index serves the collection without indexes. A search for text needs one.
        let scanned = if question.has_text() { "q" } else { "bare" };
        let (_, expected) = world.ask(&WAYS[0], &Question { collection: scanned, ..question.clone() });
        for _ in 0..ASKED {
            let collection = world.random.pick(question.collections());
            world.check(&Question { collection, ..question.clone() }, &expected);
        }
        if !question.has_text() && question.hint.is_empty() && world.random.one_in(2) {
            world.check_hints(&question, &expected);
        }
        if !question.has_text() && expected.is_ok() && world.random.one_in(2) {
            world.check_orders(&question);
        }
        match &expected {
            Ok(said) => found += u64::from(said.count() > 0),
            Err(_) => refused += 1,
        }
        if question.hint.is_empty() && world.random.one_in(5) {
            if let Ok(said) = &expected {
                world.check_parts(&question, said);
            }
            world.check_own_changes(&question);
        }
    }
    let served = world.hints_served;
    println!(
        "{count} filters from seed {seed}; {found} found something, {refused} were refused; {served} by wildcards"
    );
    assert!(found * 3 > count && refused * 4 < count, "most of them find something");
    assert!(served * 100 > count, "wildcard indexes serve some of them");
}
