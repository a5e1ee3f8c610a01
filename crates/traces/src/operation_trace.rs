//! The trace that an operation belongs to.

use crate::span::{SAMPLED, SpanContext};
use crate::trace_parent::TraceParent;

/// The trace of one command, and the ids of its span. The command's statements have spans below it.
#[derive(Clone, Copy, Debug)]
pub struct OperationTrace(SpanContext);

impl OperationTrace {
    /// The ids below the application's span, or, without one, the beginning of a new trace with random ids.
    pub fn begin(parent: Option<TraceParent>, random: &dyn Fn() -> u64) -> Self {
        let span_id = span_id(random);
        Self(match parent {
            Some(TraceParent { trace_id, span_id: parent, flags }) => {
                SpanContext { trace_id, span_id, parent: Some(parent), is_parent_remote: true, flags }
            }
            None => {
                let high = u128::from(random()) << 64;
                let trace_id = (high | u128::from(random())).max(1).to_be_bytes();
                SpanContext { trace_id, span_id, parent: None, is_parent_remote: false, flags: SAMPLED }
            }
        })
    }

    /// The ids of the command's span.
    pub fn of_command(&self) -> SpanContext {
        self.0
    }

    /// Ids for the span of one of the command's statements.
    pub fn of_statement(&self, random: &dyn Fn() -> u64) -> SpanContext {
        let Self(command) = self;
        let parent = Some(command.span_id);
        SpanContext { span_id: span_id(random), parent, is_parent_remote: false, ..*command }
    }
}

/// A random id that is not zero.
fn span_id(random: &dyn Fn() -> u64) -> [u8; 8] {
    random().max(1).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_below_their_command() {
        let application = TraceParent { trace_id: [7; 16], span_id: [9; 8], flags: 0 };
        let trace = OperationTrace::begin(Some(application), &|| 5);
        let command = trace.of_command();
        assert_eq!((command.trace_id, command.parent, command.flags), ([7; 16], Some([9; 8]), 0));
        assert!(command.is_parent_remote);
        let statement = trace.of_statement(&|| 6);
        assert_eq!((statement.trace_id, statement.parent), ([7; 16], Some(command.span_id)));
        assert!(!statement.is_parent_remote && statement.span_id != command.span_id);
    }

    #[test]
    fn a_new_trace_has_ids_that_are_not_zero() {
        let context = OperationTrace::begin(None, &|| 0).of_command();
        assert!(context.trace_id != [0; 16] && context.span_id != [0; 8]);
        assert_eq!((context.parent, context.flags), (None, SAMPLED));
    }
}
