//! The context of an evaluation: a document, and the values of the variables.

use super::{Variable, Variables};
use crate::metadata::CurrentMetadata;
use crate::path_values::{PathSlot, PathValue};
use crate::{PathValues, StandIn};
use bunko_bson::{ArrayBuf, ArrayRef, DocumentRef, StringOrder, Value, ValueRef};
use bunko_errors::ErrorCode;
use bunko_operation::OperationContext;

/// The variables that one operator binds, on the evaluating function's stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binding<'a> {
    /// Slot of the first value; the other values have the slots after it.
    pub(crate) first_slot: u32,
    pub(crate) values: &'a [Option<ValueRef<'a>>],
    pub(crate) outer: Option<&'a Binding<'a>>,
}

/// The engine of MongoDB that would evaluate an expression: a few errors have a different code in each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// Runs most stages.
    #[default]
    Classic,
    /// Runs a group at a pipeline's front.
    SlotBased,
}

impl Engine {
    /// Returns the code that this engine uses for an error.
    pub(crate) fn code(self, classic: i32, slot_based: i32) -> ErrorCode {
        ErrorCode(if self == Self::SlotBased { slot_based } else { classic })
    }
}

/// The context of an evaluation. Cheap to copy.
#[derive(Clone, Copy, Debug)]
pub struct EvaluationContext<'a> {
    root: DocumentRef<'a>,
    variables: &'a Variables,
    locals: Option<&'a Binding<'a>>,
    now_ms: i64,
    operation: &'a OperationContext,
    strings: &'a StringOrder,
    engine: Engine,
    at_hand: Option<&'a CurrentMetadata>,
    stand_in: Option<&'a StandIn<'a>>,
    found: Option<&'a PathValues<'a>>,
}

impl<'a> EvaluationContext<'a> {
    /// A context over `root` for `operation`, at `now_ms` (milliseconds since 1970), with the variables of the parse.
    #[inline]
    pub fn new(root: DocumentRef<'a>, variables: &'a Variables, now_ms: i64, operation: &'a OperationContext) -> Self {
        Self {
            root,
            variables,
            locals: None,
            now_ms,
            operation,
            strings: StringOrder::BYTES,
            engine: Engine::default(),
            at_hand: None,
            stand_in: None,
            found: None,
        }
    }

    /// Replaces one value of the document by a stand-in. Only paths see the stand-in: an expression that reads the
    /// whole document, or a document that contains the value, must not be evaluated with it; see
    /// [`StandIn::is_apart_from`].
    #[must_use]
    #[inline]
    pub fn with_stand_in(self, stand_in: &'a StandIn<'a>) -> Self {
        Self { stand_in: Some(stand_in), ..self }
    }

    /// The stand-in for a value of the document.
    #[inline]
    pub fn stand_in(&self) -> Option<&'a StandIn<'a>> {
        self.stand_in
    }

    /// Uses values found earlier at paths of the document. Valid only for expressions of the [`crate::PathSlots`] that
    /// found them.
    #[must_use]
    #[inline]
    pub fn with_found(self, found: &'a PathValues<'a>) -> Self {
        Self { found: Some(found), ..self }
    }

    /// The value found for a slot.
    #[inline]
    pub(crate) fn found_at(&self, slot: PathSlot) -> PathValue<'a> {
        self.found.map_or(PathValue::Unknown, |found| found.at(slot))
    }

    /// Uses the error codes of `engine`.
    #[must_use]
    #[inline]
    pub fn in_engine(self, engine: Engine) -> Self {
        Self { engine, ..self }
    }

    /// The engine whose error codes are used.
    pub(crate) fn engine(&self) -> Engine {
        self.engine
    }

    /// Orders strings by `strings` instead of by their bytes.
    #[must_use]
    #[inline]
    pub fn with_strings(self, strings: &'a StringOrder) -> Self {
        Self { strings, ..self }
    }

    /// Adds the document's metadata.
    #[must_use]
    #[inline]
    pub fn with_metadata(self, at_hand: &'a CurrentMetadata) -> Self {
        Self { at_hand: Some(at_hand), ..self }
    }

    /// The document's metadata under a name of `$meta`.
    pub(crate) fn metadata(&self, name: &str) -> Option<Value> {
        self.at_hand?.value(name)
    }

    /// The order of strings.
    #[inline]
    pub fn strings(&self) -> &'a StringOrder {
        self.strings
    }

    /// The context over another document. A stage makes one context and moves it from document to document.
    #[must_use]
    pub fn at<'b>(&self, root: DocumentRef<'b>) -> EvaluationContext<'b>
    where
        'a: 'b,
    {
        EvaluationContext { root, found: None, ..*self }
    }

    /// The document that `$$ROOT` names.
    #[inline]
    pub fn root(&self) -> DocumentRef<'a> {
        self.root
    }

    /// The context with more variables bound; `binding.outer` must be [`Self::locals`].
    pub(crate) fn bound<'b>(&self, binding: &'b Binding<'b>) -> EvaluationContext<'b>
    where
        'a: 'b,
    {
        EvaluationContext { locals: Some(binding), ..*self }
    }

    /// The operation that evaluates. Every loop counts its work there.
    #[inline]
    pub fn operation(&self) -> &'a OperationContext {
        self.operation
    }

    pub(crate) fn locals(&self) -> Option<&'a Binding<'a>> {
        self.locals
    }

    /// A variable's value.
    pub(crate) fn variable(&self, variable: Variable) -> Option<ValueRef<'a>> {
        match variable {
            Variable::Root => Some(ValueRef::Document(self.root)),
            Variable::Now => Some(ValueRef::DateTime(self.now_ms)),
            Variable::ClusterTime => self.variables.cluster_time.map(ValueRef::Timestamp),
            Variable::Remove => None,
            Variable::UserRoles => {
                let roles = self.variables.user_roles.as_deref();
                Some(ValueRef::Array(roles.map_or(ArrayRef::EMPTY, ArrayBuf::as_ref)))
            }
            Variable::Decision(decision) => Some(decision.value()),
            Variable::Global(index) => self.variables.value(index).map(Value::as_ref),
            Variable::Local(slot) => {
                let mut next = self.locals;
                while let Some(binding) = next {
                    if let Some(value) =
                        slot.checked_sub(binding.first_slot).and_then(|n| binding.values.get(n as usize))
                    {
                        return *value;
                    }
                    next = binding.outer;
                }
                None
            }
        }
    }
}
