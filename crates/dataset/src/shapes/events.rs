use super::Shape;
use crate::id::IdKind;
use crate::layout::{Content, Field, Position};

/// Average time between two events, in milliseconds: 300,000 events are 21 hours of a network.
const PAUSE_MS: u64 = 250;
/// 2024-11-21 16:00:00 UTC.
const START_MS: i64 = 1_732_204_800_000;

/// Public events of a social network: nested, and skewed in users and kinds. The public benchmark JSONBench has five
/// queries over such events.
pub(super) static SHAPE: Shape = Shape {
    name: "events",
    about: "An event of a social network: its author, its time, and what was done to which record, with a text.",
    default_document_bytes: 480,
    default_id: IdKind::Int64,
    fields: &[
        Field { name: "author", content: Content::Label("did:plc:", author) },
        Field { name: "time", content: Content::DateTime(time_ms) },
        Field { name: "kind", content: Content::Word(KINDS) },
        Field { name: "commit", content: Content::Document(COMMIT) },
    ],
};

static COMMIT: &[Field] = &[
    Field { name: "revision", content: Content::Text(13) },
    Field { name: "operation", content: Content::Word(OPERATIONS) },
    Field { name: "collection", content: Content::Word(COLLECTIONS) },
    Field { name: "key", content: Content::Text(13) },
    Field { name: "record", content: Content::Document(RECORD) },
    Field { name: "digest", content: Content::Text(59) },
];

static RECORD: &[Field] = &[
    Field { name: "created", content: Content::DateTime(|at| time_ms(at) - (at.random("created") % 2_000) as i64) },
    Field { name: "language", content: Content::Array(&[Content::Word(LANGUAGES)]) },
    Field { name: "subject", content: Content::Label("did:plc:", subject) },
    Field { name: "text", content: Content::Pad },
];

// A word's frequency is its number of occurrences in these lists.
static KINDS: &[&str] = &[
    "commit", "commit", "commit", "commit", "commit", "commit", "commit", "commit", "commit", "commit", "commit",
    "commit", "commit", "commit", "commit", "commit", "commit", "commit", "commit", "member",
];
static OPERATIONS: &[&str] = &[
    "create", "create", "create", "create", "create", "create", "create", "create", "create", "create", "create",
    "create", "create", "create", "create", "create", "create", "delete", "delete", "update",
];
static COLLECTIONS: &[&str] = &[
    "feed.liking",
    "feed.liking",
    "feed.liking",
    "feed.liking",
    "feed.liking",
    "feed.liking",
    "feed.liking",
    "feed.liking",
    "feed.liking",
    "feed.liking",
    "user.follow",
    "user.follow",
    "user.follow",
    "user.follow",
    "feed.posted",
    "feed.posted",
    "feed.posted",
    "feed.shared",
    "feed.shared",
    "user.blocks",
];
static LANGUAGES: &[&str] = &["en", "en", "en", "en", "en", "ja", "ja", "pt", "pt", "de"];

/// Number of users: a tenth of the number of events.
fn users(at: &Position) -> u64 {
    at.documents.div_ceil(10).max(1)
}

/// Author of an event. A few users write much: one hundredth of them writes a fifth of the events.
fn author(at: &Position) -> u64 {
    skewed(at.random("author"), users(at))
}

fn subject(at: &Position) -> u64 {
    skewed(at.random("subject"), users(at))
}

/// A number below `count`; lower numbers are likelier: `count` times the cube of an even share.
fn skewed(random: u64, count: u64) -> u64 {
    let share = (random >> 11) as f64 / (1_u64 << 53) as f64;
    ((share * share * share) * count as f64) as u64
}

fn time_ms(at: &Position) -> i64 {
    START_MS + (at.number * PAUSE_MS + at.random("time") % PAUSE_MS) as i64
}
