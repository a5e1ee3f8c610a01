//! Whole restores against connections that replay replies: `scripts/*.txt`.
//!
//! ```text
//! case what it is about
//! document {"_id": 1}              one document of the dump, a.b
//! metadata {"indexes": []}         the metadata file beside it
//! option stop                      an option that `option` knows
//! > part of a command              the next command, on any connection, holds this text
//! < {"ok": 1}                      its reply; or `lost`: the connection breaks, or `killed`: the server does
//! = line of the summary            all but its last line, or of the error before it
//! ```

mod dumps;

use super::*;
use crate::link::{Command, Link};
use bunko_bson::extended_json::{parse_document, to_relaxed};
use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_client::ClientError;
use bunko_host::Clock;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

/// One expected command, and its reply.
#[derive(Clone, Debug)]
struct Exchange {
    command: String,
    reply: String,
}

#[derive(Default)]
struct Script {
    /// Number of the server process; it grows with each restart.
    life: u32,
    exchanges: VecDeque<Exchange>,
    unexpected: Vec<String>,
}

#[derive(Clone, Default)]
struct Scripted(Arc<Mutex<Script>>);

struct ScriptedLink {
    script: Scripted,
    replies: VecDeque<String>,
    reply: DocumentBuf,
}

fn lost() -> ClientError {
    ClientError::Disconnected { address: "scripted:1".to_owned(), cause: std::io::ErrorKind::BrokenPipe.into() }
}

impl Server for Scripted {
    fn connect(&self) -> Result<Box<dyn Link>, ClientError> {
        Ok(Box::new(ScriptedLink { script: self.clone(), replies: VecDeque::new(), reply: DocumentBuf::new() }))
    }

    fn name(&self) -> &'static str {
        "scripted:1"
    }
}

impl Link for ScriptedLink {
    fn send(&mut self, command: Command<'_>) -> Result<(), ClientError> {
        // Every new connection sends `hello`; scripts leave it out.
        if command.body.get("hello").is_some() {
            let life = self.script.0.lock().life;
            let process = format!("{life:024x}");
            self.replies
                .push_back(format!(r#"{{"ok": 1, "topologyVersion": {{"processId": {{"$oid": "{process}"}}}}}}"#));
            return Ok(());
        }
        let mut shown = format!("{} {}", command.database, to_relaxed(command.body.into()));
        if let Some((_, documents)) = command.documents {
            let documents = bunko_archive::Documents { bytes: documents.to_vec(), count: 0 };
            documents.iter().for_each(|document| shown.extend([" ", &to_relaxed(document.into())]));
        }
        let mut script = self.script.0.lock();
        match script.exchanges.pop_front() {
            Some(exchange) if shown.contains(&exchange.command) => self.replies.push_back(exchange.reply),
            other => {
                script.unexpected.push(format!("sent {shown}, expected {other:?}"));
                self.replies.push_back(r#"{"ok": 0, "errmsg": "not in the script"}"#.to_owned());
            }
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<DocumentRef<'_>, ClientError> {
        match self.replies.pop_front().expect("a command is in flight").as_str() {
            "lost" => Err(lost()),
            "killed" => {
                self.script.0.lock().life += 1;
                Err(lost())
            }
            json => {
                self.reply = parse_document(json).expect("a reply in JSON");
                Ok(self.reply.as_ref())
            }
        }
    }

    fn in_flight(&self) -> usize {
        self.replies.len()
    }
}

impl Scripted {
    /// Expects the exchanges of one case.
    fn new(script: &str) -> Self {
        let server = Self::default();
        server.0.lock().exchanges = parse(&format!("case\n{script}")).remove(0).exchanges;
        server
    }

    /// Checks that all expected commands were sent, and no others.
    fn check(&self, title: &str) {
        let script = self.0.lock();
        assert!(script.unexpected.is_empty(), "{title}: {:#?}", script.unexpected);
        assert!(script.exchanges.is_empty(), "{title}: not sent: {:#?}", script.exchanges);
    }

    fn restore(&self, options: &RestoreOptions) -> Result<RestoreSummary, RestoreError> {
        run(self, options, &Arc::new(Progress::new(Clock::machine())), &Interrupted::default())
    }
}

/// One case of a script.
#[derive(Default)]
struct Case {
    title: String,
    documents: Vec<u8>,
    metadata: Option<String>,
    options: Vec<String>,
    exchanges: VecDeque<Exchange>,
    expected: String,
}

fn parse(text: &str) -> Vec<Case> {
    let mut cases = Vec::<Case>::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        if kind == "case" {
            cases.push(Case { title: rest.to_owned(), ..Case::default() });
            continue;
        }
        let case = cases.last_mut().expect("a case comes first");
        match kind {
            "document" => case.documents.extend(parse_document(rest).expect("JSON").into_bytes()),
            "metadata" => case.metadata = Some(rest.to_owned()),
            "option" => case.options.push(rest.to_owned()),
            ">" => case.exchanges.push_back(Exchange { command: rest.to_owned(), reply: r#"{"ok": 1}"#.to_owned() }),
            "<" => rest.clone_into(&mut case.exchanges.back_mut().expect("a command comes first").reply),
            "=" => case.expected.extend([rest, "\n"]),
            other => panic!("{other} is not a line of a script"),
        }
    }
    cases
}

fn option(options: &mut RestoreOptions, name: &str, directory: &Path) {
    let state = |mode| Some(ResumeFile { path: directory.join("state"), mode });
    match name {
        "stop" => options.on_error = OnError::Stop,
        "ordered" => options.order = InsertionOrder::Maintain,
        "drop" => options.existing = Existing::Drop,
        "verify" => options.verify = Verify::Everything,
        "dry" => options.mode = Mode::DryRun,
        "log-of-two" => options.bulk = Bulk::Behind { log_bytes: 30 },
        "one-by-one" => options.batch_documents = Some(NonZeroUsize::MIN),
        "continue" => options.resume = state(Resume::Continue),
        "remember" => options.resume = state(Resume::Fresh),
        "check" => options.object_check = ObjectCheck::Deep,
        other => panic!("{other} is not an option of a script"),
    }
}

/// The summary without its last line, which holds the duration.
fn run_case(case: &Case) -> String {
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join("b.bson");
    fs::write(&path, &case.documents).expect("written");
    if let Some(metadata) = &case.metadata {
        fs::write(directory.path().join("b.metadata.json"), metadata).expect("written");
    }
    let source = Source::File { path, database: "a".to_owned(), collection: "b".to_owned() };
    let mut options = RestoreOptions::new(source);
    options.insertion_workers = Some(NonZeroUsize::MIN);
    case.options.iter().for_each(|name| option(&mut options, name, directory.path()));
    let server = Scripted::default();
    server.0.lock().exchanges.clone_from(&case.exchanges);
    let ended = server.restore(&options);
    server.check(&case.title);
    let shown = match ended {
        Ok(summary) => summary.to_string(),
        Err(error) => error.to_string().replace(&directory.path().display().to_string(), ""),
    };
    shown.lines().rev().skip(1).collect::<Vec<_>>().iter().rev().fold(String::new(), |text, line| text + line + "\n")
}

#[test]
fn scripts_end_as_they_say() {
    let scripts = [
        include_str!("scripts/errors.txt"),
        include_str!("scripts/full_disk.txt"),
        include_str!("scripts/in_doubt.txt"),
        include_str!("scripts/order.txt"),
    ];
    for case in scripts.into_iter().flat_map(parse) {
        assert_eq!(run_case(&case), case.expected, "{}", case.title);
    }
}

/// A restore that an error ended leaves a state; the next one begins after the recorded position.
#[test]
fn a_state_is_continued_and_removed() {
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join("b.bson");
    let documents: Vec<_> = (1..=3).map(|id| DocumentBuf::new().with("_id", id).into_bytes()).collect();
    fs::write(&path, documents.concat()).expect("written");
    let mut options = RestoreOptions::new(Source::File { path, database: "a".to_owned(), collection: "b".to_owned() });
    options.resume = Some(ResumeFile { path: directory.path().join("state"), mode: Resume::Continue });
    options.existing = Existing::Drop;
    let restore = |options: &RestoreOptions, script: &str| {
        let server = Scripted::new(script);
        let ended = server.restore(options);
        server.check(script);
        ended
    };
    let refusing = "> listCommands\n> drop\n> create\n> insert\n< {\"ok\": 0, \"code\": 1}";
    let refused = restore(&options, refusing);
    assert!(refused.is_ok_and(|summary| !summary.is_clean()), "what is refused is not an interruption");
    assert!(!directory.path().join("state").exists());

    options.on_error = OnError::Stop;
    assert!(restore(&options, refusing).is_err());
    let state = fs::read_to_string(directory.path().join("state")).expect("a state is left");
    assert!(state.contains(r#"{"prepared":{"namespace":"a.b"}}"#), "{state}");

    // Records the first document as done.
    let done = format!("{state}{{\"done\":{{\"namespace\":\"a.b\",\"bytes\":{}}}}}\n", documents[0].len());
    fs::write(directory.path().join("state"), done).expect("written");
    let ended = restore(
        &options,
        "> listCommands\n> {\"_id\":2} {\"_id\":3}\n< {\"n\": 1, \"ok\": 1, \"writeErrors\": [{\"index\": 0, \
         \"code\": 11000, \"keyPattern\": {\"_id\": 1}}]}\n> \"$in\":[2]\n\
         < {\"ok\": 1, \"cursor\": {\"id\": {\"$numberLong\": \"0\"}, \"ns\": \"a.b\", \"firstBatch\": [{\"_id\": 2}]}}\n",
    );
    let summary = ended.expect("restored");
    assert!(summary.is_clean() && summary.documents() == 3, "{summary}");
    assert!(!directory.path().join("state").exists());
}
