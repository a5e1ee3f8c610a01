//! Workloads whose steps cover everything that touches files.

use crate::model::{Collection, Content, Model, document};
use crate::server::{Outcome, Server};
use crate::transaction::Transaction;
use crate::writes::{Journal, insert, inserted, list, update};
use bunko_bson::DocumentBuf;
use bunko_faulty_files::Random;
use std::ops::Range;

/// A command, a transaction, or a restart of the server. Each is carried out whole or not at all.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Step {
    Create {
        collection: &'static str,
        engine: &'static str,
    },
    Insert {
        collection: &'static str,
        ids: Range<i32>,
        pad_bytes: usize,
        journal: Journal,
    },
    /// Documents that bypass the log and go into a file of their own.
    BulkInsert {
        collection: &'static str,
        ids: Range<i32>,
        pad_bytes: usize,
    },
    Update {
        collection: &'static str,
        id: i32,
        content: Content,
        journal: Journal,
    },
    Delete {
        collection: &'static str,
        id: i32,
        journal: Journal,
    },
    /// Several statements that are committed together.
    Transaction(Transaction),
    CreateIndex {
        collection: &'static str,
        field: &'static str,
    },
    DropIndex {
        collection: &'static str,
        field: &'static str,
    },
    Rename {
        from: &'static str,
        to: &'static str,
    },
    Drop {
        collection: &'static str,
    },
    /// A comparison of everything with the model, in tests that make one while the server runs.
    Look,
    Checkpoint,
    Compact,
    Reopen,
    /// As `Reopen`, but the server is killed.
    Kill,
}

/// The collections, one for each engine.
pub const COLLECTIONS: [(&str, &str); 3] = [("trees", "lsm"), ("mapped", "mmap"), ("fleeting", "memory")];

/// Number of steps that a shuffled workload draws.
const STEPS: i32 = 30;
/// Drawn steps that are transactions for every seed. Their commits are chains of records.
const CHAINED_STEPS: [i32; 2] = [9, 21];

/// The collection that `compact` names. The command compacts all collections, so that any would do.
const COMPACTED: &str = "fleeting";

/// The workload for the runs in each of which one call fails.
pub fn everything() -> Vec<Step> {
    use Journal::{Synced, Written};
    let content = |value, pad_bytes| Content { value, pad_bytes };
    let mut steps = Vec::new();
    for (collection, engine) in COLLECTIONS {
        steps.push(Step::Create { collection, engine });
        steps.push(Step::Insert { collection, ids: 0..6, pad_bytes: 100, journal: Synced });
        steps.push(Step::CreateIndex { collection, field: "v" });
    }
    steps.push(Step::Checkpoint);
    for (collection, _) in COLLECTIONS {
        steps.push(Step::Update { collection, id: 3, content: content(33, 150), journal: Written });
        steps.push(Step::Delete { collection, id: 4, journal: Synced });
        // Together these documents are larger than a segment, so that there is a segment to reclaim.
        steps.push(Step::Insert { collection, ids: 100..104, pad_bytes: 300_000, journal: Written });
    }
    steps.push(Step::BulkInsert { collection: "trees", ids: 200..204, pad_bytes: 300_000 });
    // This transaction is larger than a segment too: its chain continues in the next segment.
    steps.push(Step::Transaction(Transaction {
        number: 1,
        collections: ["trees", "mapped"],
        ids: 400..404,
        pad_bytes: 300_000,
        updated: 2,
        journal: Synced,
    }));
    for (collection, _) in COLLECTIONS {
        steps.push(Step::Delete { collection, id: 101, journal: Synced });
        steps.push(Step::DropIndex { collection, field: "v" });
        steps.push(Step::CreateIndex { collection, field: "w" });
    }
    steps.push(Step::Compact);
    steps.push(Step::Reopen);
    steps.push(Step::Look);
    for (collection, _) in COLLECTIONS {
        steps.push(Step::Insert { collection, ids: 300..302, pad_bytes: 10, journal: Synced });
    }
    steps.push(Step::Transaction(Transaction {
        number: 2,
        collections: ["mapped", "trees"],
        ids: 410..412,
        pad_bytes: 300_000,
        updated: 400,
        journal: Written,
    }));
    steps.push(Step::Rename { from: "trees", to: "woods" });
    steps.push(Step::Drop { collection: "mapped" });
    steps.push(Step::Create { collection: "mapped", engine: "mmap" });
    steps.push(Step::Insert { collection: "mapped", ids: 0..5, pad_bytes: 20, journal: Written });
    steps.push(Step::Update { collection: "woods", id: 5, content: content(55, 5000), journal: Synced });
    steps.push(Step::Delete { collection: "woods", id: 201, journal: Synced });
    steps.push(Step::Delete { collection: "woods", id: 202, journal: Synced });
    steps.push(Step::Delete { collection: "woods", id: 203, journal: Synced });
    steps.push(Step::Checkpoint);
    steps.push(Step::Compact);
    steps
}

/// A workload drawn from a seed: writes of either durability, checkpoints, compactions and drops.
pub fn shuffled(seed: u64) -> Vec<Step> {
    let mut random = Random(seed);
    let mut below = |end: u64| random.below(end);
    let mut steps: Vec<Step> =
        COLLECTIONS.iter().map(|&(collection, engine)| Step::Create { collection, engine }).collect();
    let mut next = [0; COLLECTIONS.len()];
    let mut has_index = [false; COLLECTIONS.len()];
    for number in 0..STEPS {
        let which = below(COLLECTIONS.len() as u64) as usize;
        let (collection, engine) = COLLECTIONS[which];
        let journal = if below(2) == 0 { Journal::Written } else { Journal::Synced };
        let id = below(next[which].max(1) as u64) as i32;
        let last = next[which];
        let kind = if CHAINED_STEPS.contains(&number) { 20 } else { below(21) };
        let step = match kind {
            0..8 => {
                let count = 1 + below(4) as i32;
                next[which] += count;
                // A few documents of this size fill a segment.
                let pad_bytes = if below(3) == 0 { 250_000 } else { below(3000) as usize };
                Step::Insert { collection, ids: last..last + count, pad_bytes, journal }
            }
            8 if engine == "lsm" => {
                next[which] += 4;
                Step::BulkInsert { collection, ids: last..last + 4, pad_bytes: 300_000 }
            }
            9..12 => {
                let content = Content { value: number, pad_bytes: below(5000) as usize };
                Step::Update { collection, id, content, journal }
            }
            12..14 => Step::Delete { collection, id, journal },
            14 => {
                has_index[which] = !has_index[which];
                if has_index[which] {
                    Step::CreateIndex { collection, field: "v" }
                } else {
                    Step::DropIndex { collection, field: "v" }
                }
            }
            15 => {
                (next[which], has_index[which]) = (0, false);
                steps.push(Step::Drop { collection });
                Step::Create { collection, engine }
            }
            16..18 => Step::Checkpoint,
            18 => Step::Compact,
            19 => Step::Kill,
            20 => {
                let other = (which + 1) % COLLECTIONS.len();
                let first = last.max(next[other]);
                let count = 2 + below(3) as i32;
                next[which] = first + count;
                next[other] = first + count;
                Step::Transaction(Transaction {
                    number: i64::from(number) + 1,
                    collections: [collection, COLLECTIONS[other].0],
                    ids: first..first + count,
                    pad_bytes: 300_000,
                    updated: id,
                    journal,
                })
            }
            _ => Step::Look,
        };
        steps.push(step);
    }
    steps
}

impl Step {
    /// Whether the acknowledgement of this step means that it and all earlier steps are on disk.
    pub fn is_durable(&self) -> bool {
        match self {
            Self::Insert { journal, .. } | Self::Update { journal, .. } | Self::Delete { journal, .. } => {
                *journal == Journal::Synced
            }
            Self::Transaction(transaction) => transaction.journal == Journal::Synced,
            Self::Checkpoint | Self::Compact | Self::Reopen => true,
            _ => false,
        }
    }

    /// Carries the step out and returns its outcome; `None` for a step that is not a command.
    pub fn send(&self, server: &Server) -> Option<Outcome> {
        if let Self::Transaction(transaction) = self {
            return Some(transaction.send(server));
        }
        self.command().map(|command| server.run(self.database(), command.as_ref()))
    }

    /// The database that the step's command runs against.
    fn database(&self) -> &'static str {
        if matches!(self, Self::Rename { .. } | Self::Checkpoint) { "admin" } else { "test" }
    }

    /// The step's command; `None` for a transaction, which has several, and for a step that is not a command.
    fn command(&self) -> Option<DocumentBuf> {
        let command = |name: &str, collection: &str| DocumentBuf::new().with(name, collection);
        Some(match self {
            Self::Create { collection, engine } => {
                let engine = DocumentBuf::new().with(engine, &DocumentBuf::new());
                command("create", collection).with("storageEngine", &engine)
            }
            Self::Insert { collection, ids, pad_bytes, journal } => {
                journal.concern(insert(collection, ids, *pad_bytes))
            }
            Self::BulkInsert { collection, ids, pad_bytes } => {
                let documents: Vec<_> = ids.clone().map(|id| document(id, inserted(id, *pad_bytes))).collect();
                command("bunkoBulkInsert", collection).with("documents", &list(&documents))
            }
            Self::Update { collection, id, content, journal } => journal.concern(update(collection, *id, *content)),
            Self::Delete { collection, id, journal } => {
                let delete = DocumentBuf::new().with("q", &DocumentBuf::new().with("_id", *id)).with("limit", 1);
                journal.concern(command("delete", collection).with("deletes", &list(&[delete])))
            }
            Self::CreateIndex { collection, field } => {
                let index = DocumentBuf::new().with("key", &DocumentBuf::new().with(field, 1)).with("name", *field);
                command("createIndexes", collection).with("indexes", &list(&[index]))
            }
            Self::DropIndex { collection, field } => command("dropIndexes", collection).with("index", *field),
            Self::Rename { from, to } => {
                let (from, to) = (format!("test.{from}"), format!("test.{to}"));
                command("renameCollection", &from).with("to", to.as_str())
            }
            Self::Drop { collection } => command("drop", collection),
            Self::Checkpoint => DocumentBuf::new().with("fsync", 1),
            Self::Compact => command("compact", COMPACTED).with("force", true),
            Self::Transaction(_) | Self::Look | Self::Reopen | Self::Kill => return None,
        })
    }

    /// Whether the step can succeed after earlier steps were refused: the collection or index that it needs exists.
    pub fn makes_sense(&self, model: &Model) -> bool {
        let has = |name: &str| model.collections.contains_key(name);
        match self {
            Self::Insert { collection, .. }
            | Self::BulkInsert { collection, .. }
            | Self::Update { collection, .. }
            | Self::Delete { collection, .. }
            | Self::CreateIndex { collection, .. }
            | Self::Drop { collection } => has(collection),
            Self::DropIndex { collection, field } => {
                model.collections.get(collection).is_some_and(|collection| collection.indexes.contains(field))
            }
            Self::Transaction(transaction) => transaction.collections.into_iter().all(has),
            Self::Create { collection, .. } => !has(collection),
            Self::Rename { from, to } => has(from) && !has(to),
            Self::Compact => has(COMPACTED),
            Self::Look | Self::Checkpoint | Self::Reopen | Self::Kill => true,
        }
    }

    /// Applies the step's effect to a model.
    pub fn apply(&self, model: &mut Model) {
        let mut change = |name: &str, change: &dyn Fn(&mut Collection)| {
            if let Some(collection) = model.collections.get_mut(name) {
                change(collection);
            }
        };
        match self {
            Self::Create { collection, engine } => {
                let made = Collection { is_volatile: *engine == "memory", ..Collection::default() };
                model.collections.insert(collection, made);
            }
            Self::Insert { collection, ids, pad_bytes, .. } | Self::BulkInsert { collection, ids, pad_bytes } => {
                change(collection, &|collection| {
                    collection.documents.extend(ids.clone().map(|id| (id, inserted(id, *pad_bytes))));
                });
            }
            Self::Update { collection, id, content, .. } => change(collection, &|collection| {
                collection.documents.entry(*id).and_modify(|known| *known = *content);
            }),
            Self::Delete { collection, id, .. } => change(collection, &|collection| {
                collection.documents.remove(id);
            }),
            Self::Transaction(transaction) => {
                for collection in transaction.collections {
                    change(collection, &|collection| transaction.apply(collection));
                }
            }
            Self::CreateIndex { collection, field } => change(collection, &|collection| {
                collection.indexes.insert(field);
            }),
            Self::DropIndex { collection, field } => change(collection, &|collection| {
                collection.indexes.remove(field);
            }),
            Self::Rename { from, to } => {
                if let Some(collection) = model.collections.remove(from) {
                    model.collections.insert(to, collection);
                }
            }
            Self::Drop { collection } => _ = model.collections.remove(collection),
            Self::Reopen | Self::Kill => *model = std::mem::take(model).restarted(),
            Self::Look | Self::Checkpoint | Self::Compact => {}
        }
    }
}
