//! One span: a piece of work with a beginning and an end, in a trace.

/// Flag of the trace context: the trace is recorded. Source: W3C, "Trace Context", section 3.2.2.5.
pub(crate) const SAMPLED: u8 = 1;

/// One span.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// Its ids, and those of its trace and its parent.
    pub context: SpanContext,
    /// The work in general, such as `find things`: the same for all operations of a kind.
    pub name: String,
    /// The side of a request that did the work.
    pub kind: SpanKind,
    /// The beginning, in nanoseconds since 1970.
    pub start_ns: u64,
    /// The end, in nanoseconds since 1970.
    pub end_ns: u64,
    /// Facts about the work.
    pub attributes: Vec<Attribute>,
    /// The name of the error, if the work failed.
    pub error: Option<String>,
}

/// The ids of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanContext {
    /// The trace; not zero.
    pub trace_id: [u8; 16],
    /// The span; not zero.
    pub span_id: [u8; 8],
    /// The span that this one is part of; `None` for the first of a trace.
    pub parent: Option<[u8; 8]>,
    /// Whether the parent was made by another process.
    pub is_parent_remote: bool,
    /// The flags of the trace context.
    pub flags: u8,
}

/// The side of a request that a span describes.
/// Source: `trace.proto`, `SpanKind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// Work inside a request.
    Internal = 1,
    /// The request, as its server handles it.
    Server = 2,
}

/// A fact, by its name in the semantic conventions or a name that begins with `bunko.`.
pub type Attribute = (&'static str, AttributeValue);

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum AttributeValue {
    /// A text.
    Text(String),
    /// A whole number.
    Whole(i64),
    /// Whether something is so.
    Truth(bool),
}

impl From<&str> for AttributeValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for AttributeValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for AttributeValue {
    fn from(number: i64) -> Self {
        Self::Whole(number)
    }
}

impl From<bool> for AttributeValue {
    fn from(is_so: bool) -> Self {
        Self::Truth(is_so)
    }
}
