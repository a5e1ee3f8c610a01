//! The shortest command that uses a stage or operator. Its arguments are wrong mostly: the refusal tells whether the name
//! is known.

use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef};
use bunko_client::CommandError;

/// Where probes run: a database that no server has.
pub(super) const DATABASE: &str = "rehearsal_of_operators";
const COLLECTION: &str = "probes";

/// Part of the language that a name belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Stages,
    Expressions,
    Filters,
    Accumulators,
    Windows,
}

/// Sections of `operatorCounters`.
pub(super) const SECTIONS: &[(&str, Family)] = &[
    ("expressions", Family::Expressions),
    ("match", Family::Filters),
    ("groupAccumulators", Family::Accumulators),
    ("windowAccumulators", Family::Windows),
];

impl Family {
    /// The family's noun in messages.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Stages => "stage",
            Self::Expressions => "expression",
            Self::Filters => "filter",
            Self::Accumulators => "accumulator",
            Self::Windows => "window operator",
        }
    }
}

/// The shortest command that uses the name.
pub(super) fn probe(family: Family, name: &str) -> DocumentBuf {
    let argument = DocumentBuf::new();
    let with = |value: &DocumentBuf| DocumentBuf::new().with(name, value);
    match family {
        Family::Stages => pipeline(&with(&argument)),
        Family::Expressions => {
            // Not `$project`, which has names of its own.
            let computed = DocumentBuf::new().with("$expr", &with(&argument));
            pipeline(&DocumentBuf::new().with("$match", &computed))
        }
        Family::Filters => {
            // An operator stands at the top level of a filter, or at a path.
            let operand = with(&argument);
            let filter = match name {
                "$and" | "$or" | "$nor" | "$expr" | "$where" | "$text" | "$comment" | "$jsonSchema" | "$sampleRate"
                | "$alwaysTrue" | "$alwaysFalse" => operand,
                _ => DocumentBuf::new().with("x", &operand),
            };
            DocumentBuf::new().with("find", COLLECTION).with("filter", &filter)
        }
        Family::Accumulators => {
            let group = DocumentBuf::new().with("_id", ValueRef::Null).with("x", &with(&argument));
            pipeline(&DocumentBuf::new().with("$group", &group))
        }
        Family::Windows => {
            let output = DocumentBuf::new().with("x", &with(&argument));
            let sort = DocumentBuf::new().with("x", 1_i32);
            let fields = DocumentBuf::new().with("sortBy", &sort).with("output", &output);
            pipeline(&DocumentBuf::new().with("$setWindowFields", &fields))
        }
    }
}

fn pipeline(stage: &DocumentBuf) -> DocumentBuf {
    let stages: ArrayBuf = [stage].into_iter().collect();
    DocumentBuf::new().with("aggregate", COLLECTION).with("pipeline", &stages).with("cursor", &DocumentBuf::new())
}

/// Codes of refusals of a name that the server does not know, or does not support: `CommandNotFound`,
/// `CommandNotSupported`, `InvalidPipelineOperator`, `NotImplemented`, and those for stages, accumulators and window
/// operators.
const UNKNOWN_CODES: [i32; 7] = [59, 115, 168, 238, 40324, 15952, 16435];
/// `BadValue`, with these words, refuses the name of a filter's operator; other refusals with it are of the argument.
const BAD_VALUE: i32 = 2;

/// Whether a probe was refused for its name.
pub(super) fn is_unknown(refusal: &CommandError) -> bool {
    let message = refusal.message.to_lowercase();
    let names_operator = message.starts_with("unknown operator") || message.starts_with("unknown top level operator");
    UNKNOWN_CODES.contains(&refusal.code)
        || message.contains("not supported")
        || message.starts_with("unrecognized")
        || (refusal.code == BAD_VALUE && names_operator)
}
