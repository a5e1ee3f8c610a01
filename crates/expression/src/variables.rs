//! Variables: what `$$name` may mean while parsing, and what it is worth while evaluating.

use crate::metadata::{AtHand, Offered};
use crate::{ConstantFailure, StandIn};
use bunko_bson::{ArrayRef, DocumentRef, StringOrder, Timestamp, Value, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_javascript::Scripts;
use bunko_operation::OperationContext;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Values of the variables that a command defines with `let`, and of `$$CLUSTER_TIME` where there is a cluster.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    names: Vec<String>,
    /// One each; none where the variable's expression had no value.
    values: Vec<Option<Value>>,
    cluster_time: Option<Timestamp>,
}

impl Variables {
    /// No variables beyond the system's own.
    pub const NONE: &'static Self = &Self { names: Vec::new(), values: Vec::new(), cluster_time: None };

    /// No variables beyond the system's own.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, with the time of the cluster; none on a server alone.
    #[must_use]
    pub fn with_cluster_time(self, cluster_time: Option<Timestamp>) -> Self {
        Self { cluster_time, ..self }
    }

    /// The time of the cluster, where there is one.
    pub fn cluster_time(&self) -> Option<Timestamp> {
        self.cluster_time
    }

    /// Defines a variable, which may be missing; a later definition of the same name hides the earlier.
    /// # Errors
    /// `FailedToParse` for a name that users may not define.
    pub fn define(&mut self, name: &str, value: Option<Value>) -> Result<()> {
        check_defined_name(name)?;
        self.names.push(name.to_owned());
        self.values.push(value);
        Ok(())
    }
}

/// Where a variable's value is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variable {
    /// `$$ROOT`: the document that the stage received.
    Root,
    /// `$$NOW`: when the command began.
    Now,
    /// `$$CLUSTER_TIME`: the time of the cluster when the command began.
    ClusterTime,
    /// `$$REMOVE`: always missing.
    Remove,
    /// `$$USER_ROLES`: nobody has any, because there are no users.
    UserRoles,
    /// Defined by the command, by position.
    Global(usize),
    /// Bound by an operator around this one, by slot.
    Local(u32),
    /// What `$redact` does with a document.
    Decision(Decision),
}

/// What `$redact` does with a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// All of it is left.
    Keep,
    /// Nothing of it is left.
    Prune,
    /// The documents inside are decided about.
    Descend,
}

impl Decision {
    const ALL: [(Self, &'static str, &'static str); 3] =
        [(Self::Keep, "KEEP", "keep"), (Self::Prune, "PRUNE", "prune"), (Self::Descend, "DESCEND", "descend")];

    /// The value of its variable.
    fn value(self) -> ValueRef<'static> {
        let value = Self::ALL.into_iter().find(|(decision, ..)| *decision == self);
        ValueRef::String(value.map_or("", |(.., value)| value))
    }

    /// The decision whose variable has that value.
    pub(crate) fn of(value: ValueRef<'_>) -> Option<Self> {
        let found = Self::ALL.into_iter().find(|(.., name)| value.as_str() == Some(*name));
        found.map(|(decision, ..)| decision)
    }
}

/// The variables that an expression being parsed may name. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ParseScope {
    names: Option<Arc<Names>>,
    current: Variable,
    next_slot: u32,
    operation: Option<Arc<OperationContext>>,
    strings: StringOrder,
    constant_failure: Arc<ConstantFailure>,
    builtins: Builtins,
    has_cluster_time: bool,
    offered: Offered,
    at_hand: Option<Arc<AtHand>>,
    scripts: Option<Arc<Scripts>>,
}

/// What one operator, or the command, names.
#[derive(Debug)]
struct Names {
    /// Found by name, because a client may define very many.
    variables: BTreeMap<String, Variable>,
    outer: Option<Arc<Names>>,
}

impl Default for ParseScope {
    fn default() -> Self {
        Self::new(&Variables::default())
    }
}

impl ParseScope {
    /// A scope with the system's variables and these. Expressions parsed in it must be evaluated with the same.
    pub fn new(variables: &Variables) -> Self {
        let has_cluster_time = variables.cluster_time.is_some();
        let globals = variables.names.iter().enumerate();
        let variables: BTreeMap<_, _> = globals.map(|(index, name)| (name.clone(), Variable::Global(index))).collect();
        let current = variables.get("CURRENT").copied().unwrap_or(Variable::Root);
        let names = Some(Arc::new(Names { variables, outer: None }));
        Self {
            names,
            current,
            next_slot: 0,
            operation: None,
            strings: StringOrder::default(),
            constant_failure: Arc::default(),
            builtins: Builtins::default(),
            has_cluster_time,
            offered: Offered::NONE,
            at_hand: None,
            scripts: None,
        }
    }

    /// The same, for an operation that the work of parsing is counted for.
    #[must_use]
    pub fn counted_for(self, operation: &Arc<OperationContext>) -> Self {
        Self { operation: Some(Arc::clone(operation)), ..self }
    }

    /// The same, in which constants are evaluated with strings in that order, and note there what they fail with.
    #[must_use]
    pub fn folding(self, strings: &StringOrder, constant_failure: &Arc<ConstantFailure>) -> Self {
        Self { strings: strings.clone(), constant_failure: Arc::clone(constant_failure), ..self }
    }

    /// The same, in which expressions may read that of the server.
    #[must_use]
    pub fn with_builtins(self, builtins: Builtins) -> Self {
        Self { builtins, ..self }
    }

    /// The same, in which there may be scripts.
    #[must_use]
    pub fn with_scripts(self, scripts: &Arc<Scripts>) -> Self {
        Self { scripts: Some(Arc::clone(scripts)), ..self }
    }

    /// The scripts of the operation, where there may be any.
    pub(crate) fn scripts(&self) -> Option<&Arc<Scripts>> {
        self.scripts.as_ref()
    }

    /// The scope of what is never evaluated: nobody asks what its constants fail with.
    pub(crate) fn unreached(&self) -> Self {
        Self { constant_failure: Arc::default(), ..self.clone() }
    }

    /// What constants failed with.
    pub(crate) fn constant_failure(&self) -> &ConstantFailure {
        &self.constant_failure
    }

    /// In which order strings are.
    pub(crate) fn strings(&self) -> &StringOrder {
        &self.strings
    }

    /// For whom it is parsed, if that is known.
    pub(crate) fn operation(&self) -> Option<&OperationContext> {
        self.operation.as_deref()
    }

    /// The same where that is known of documents, and will be at hand when expressions are evaluated.
    #[must_use]
    pub fn offering(self, offered: Offered, at_hand: &Arc<AtHand>) -> Self {
        Self { offered, at_hand: Some(Arc::clone(at_hand)), ..self }
    }

    /// Whether strings have an order of their own.
    pub(crate) fn has_collation(&self) -> bool {
        self.strings != StringOrder::default()
    }

    /// Whether all of that is known of documents.
    pub(crate) fn offers(&self, needed: Offered) -> bool {
        self.offered.has(needed)
    }

    /// Notes that an expression reads metadata.
    pub(crate) fn want_metadata(&self, what: Offered) {
        self.at_hand.iter().for_each(|at_hand| at_hand.want_of(what));
    }

    /// Counts work, see [`OperationContext::work`].
    pub(crate) fn work(&self, steps: usize) -> Result<()> {
        self.operation.as_ref().map_or(Ok(()), |operation| operation.work(steps))
    }

    /// What `$field` starts from.
    pub(crate) fn current(&self) -> Variable {
        self.current
    }

    /// Opens a scope in which an operator binds `names` to consecutive slots, the first of which is returned.
    pub(crate) fn bind(&self, names: &[&str]) -> (ParseScope, u32) {
        let first = self.next_slot;
        let mut inner = self.clone();
        let mut variables = BTreeMap::new();
        for name in names {
            let variable = Variable::Local(inner.next_slot);
            inner.next_slot += 1;
            if *name == "CURRENT" {
                inner.current = variable;
            } else {
                variables.insert((*name).to_owned(), variable);
            }
        }
        inner.names = Some(Arc::new(Names { variables, outer: self.names.clone() }));
        (inner, first)
    }

    /// The same scope, in which decisions of `$redact` have names.
    pub(crate) fn deciding(&self) -> Self {
        let named = Decision::ALL.into_iter();
        let variables = named.map(|(decision, name, _)| (name.to_owned(), Variable::Decision(decision))).collect();
        Self { names: Some(Arc::new(Names { variables, outer: self.names.clone() })), ..self.clone() }
    }

    /// # Errors
    /// 51144 where none is available, 10071200 for the time of the cluster, which a server alone has not.
    fn builtin(&self, name: &str) -> Result<Variable> {
        let unavailable =
            |code| Err(Failure::new(ErrorCode(code), format!("Builtin variable '$${name}' is not available")));
        match (self.builtins, name) {
            (Builtins::Unavailable, _) => unavailable(51144),
            (Builtins::Available, "NOW") => Ok(Variable::Now),
            (Builtins::Available, "USER_ROLES") => Ok(Variable::UserRoles),
            (Builtins::Available, "CLUSTER_TIME") if self.has_cluster_time => Ok(Variable::ClusterTime),
            _ => unavailable(10_071_200),
        }
    }

    /// Whether nobody has given the name another meaning. None can: names of the system's begin with capitals.
    pub(crate) fn is_builtin(&self, name: &str) -> bool {
        self.builtins == Builtins::Available && name.starts_with(|first: char| first.is_ascii_uppercase())
    }

    /// Finds what `$$name` means.
    /// # Errors
    /// `FailedToParse` for what can be no name, 17276 for one that is not defined, 51144 and 10071200 for what the server
    /// does not tell.
    pub(crate) fn resolve(&self, name: &str) -> Result<Variable> {
        check_read_name(name)?;
        let known = std::iter::successors(self.names.as_ref(), |names| names.outer.as_ref())
            .find_map(|names| names.variables.get(name).copied());
        let variable = known.or(match name {
            "ROOT" => Some(Variable::Root),
            "CURRENT" => Some(self.current),
            "REMOVE" => Some(Variable::Remove),
            "NOW" | "CLUSTER_TIME" | "USER_ROLES" => Some(self.builtin(name)?),
            _ => None,
        });
        variable.ok_or_else(|| Failure::new(ErrorCode(17276), format!("Use of undefined variable: {name}")))
    }
}

/// Whether expressions may read what the server tells: the time, the user's roles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Builtins {
    /// They may.
    #[default]
    Available,
    /// They may not, as in counts and lists of names.
    Unavailable,
}

/// Checks a name that a user wants to read; the system's own begin with capitals.
fn check_read_name(name: &str) -> Result<()> {
    check_name(name, |first| first.is_ascii_alphabetic())
}

/// Checks a name that a user wants to define.
pub(crate) fn check_defined_name(name: &str) -> Result<()> {
    if name == "CURRENT" { Ok(()) } else { check_name(name, |first| first.is_ascii_lowercase()) }
}

fn check_name(name: &str, may_begin: fn(char) -> bool) -> Result<()> {
    let Some(first) = name.chars().next() else {
        return Err(Failure::failed_to_parse("empty variable names are not allowed"));
    };
    if first.is_ascii() && !may_begin(first) {
        let message = format!("'{name}' starts with an invalid character for a user variable name");
        return Err(Failure::failed_to_parse(message));
    }
    let valid = |character: char| character.is_ascii_alphanumeric() || character == '_' || !character.is_ascii();
    match name.chars().find(|&character| !valid(character)) {
        None => Ok(()),
        Some(bad) => {
            let message = format!("'{name}' contains an invalid character for a variable name: '{bad}'");
            Err(Failure::failed_to_parse(message))
        }
    }
}

/// The variables that one operator binds, on the evaluating function's stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binding<'a> {
    /// That of the first value; the others follow.
    pub(crate) first_slot: u32,
    pub(crate) values: &'a [Option<ValueRef<'a>>],
    pub(crate) outer: Option<&'a Binding<'a>>,
}

/// Which of MongoDB's engines would evaluate an expression: a few errors have another code in each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// That of most stages.
    #[default]
    Classic,
    /// That of the groups at a pipeline's front.
    SlotBased,
}

impl Engine {
    /// The code of an error in this engine.
    pub(crate) fn code(self, classic: i32, slot_based: i32) -> ErrorCode {
        ErrorCode(if self == Self::SlotBased { slot_based } else { classic })
    }
}

/// What an expression is evaluated against. Cheap to copy.
#[derive(Clone, Copy, Debug)]
pub struct EvaluationContext<'a> {
    root: DocumentRef<'a>,
    globals: &'a [Option<Value>],
    cluster_time: Option<Timestamp>,
    locals: Option<&'a Binding<'a>>,
    now_ms: i64,
    operation: &'a OperationContext,
    strings: &'a StringOrder,
    engine: Engine,
    at_hand: Option<&'a AtHand>,
    stand_in: Option<&'a StandIn<'a>>,
}

impl<'a> EvaluationContext<'a> {
    /// Evaluation over `root` for `operation`, at `now_ms` (milliseconds since 1970), with the variables of the parse.
    #[inline]
    pub fn new(root: DocumentRef<'a>, variables: &'a Variables, now_ms: i64, operation: &'a OperationContext) -> Self {
        Self {
            root,
            globals: &variables.values,
            cluster_time: variables.cluster_time,
            locals: None,
            now_ms,
            operation,
            strings: StringOrder::BYTES,
            engine: Engine::default(),
            at_hand: None,
            stand_in: None,
        }
    }

    /// The same where a value takes the place of the document's own. Only paths heed it: whoever reads the document as a
    /// whole, or a document that the value is in, must not be evaluated with it; see [`StandIn::is_apart_from`].
    #[must_use]
    #[inline]
    pub fn with_stand_in(self, stand_in: &'a StandIn<'a>) -> Self {
        Self { stand_in: Some(stand_in), ..self }
    }

    /// What takes the place of a value of the document.
    #[inline]
    pub fn stand_in(&self) -> Option<&'a StandIn<'a>> {
        self.stand_in
    }

    /// The same with the errors of that engine.
    #[must_use]
    #[inline]
    pub fn in_engine(self, engine: Engine) -> Self {
        Self { engine, ..self }
    }

    /// Whose errors are told.
    pub(crate) fn engine(&self) -> Engine {
        self.engine
    }

    /// The same with strings in another order than that of their bytes.
    #[must_use]
    #[inline]
    pub fn with_strings(self, strings: &'a StringOrder) -> Self {
        Self { strings, ..self }
    }

    /// The same where something is known of the document beside its fields.
    #[must_use]
    #[inline]
    pub fn with_metadata(self, at_hand: &'a AtHand) -> Self {
        Self { at_hand: Some(at_hand), ..self }
    }

    /// What is known of the document under a name of `$meta`.
    pub(crate) fn metadata(&self, name: &str) -> Option<Value> {
        self.at_hand?.value(name)
    }

    /// In which order strings are.
    #[inline]
    pub fn strings(&self) -> &'a StringOrder {
        self.strings
    }

    /// The same over another document: a stage makes one context and moves it along.
    #[must_use]
    pub fn at<'b>(&self, root: DocumentRef<'b>) -> EvaluationContext<'b>
    where
        'a: 'b,
    {
        EvaluationContext { root, ..*self }
    }

    /// The document that `$$ROOT` names.
    #[inline]
    pub fn root(&self) -> DocumentRef<'a> {
        self.root
    }

    /// The same with more variables bound; `binding.outer` must be [`Self::locals`].
    pub(crate) fn bound<'b>(&self, binding: &'b Binding<'b>) -> EvaluationContext<'b>
    where
        'a: 'b,
    {
        EvaluationContext { locals: Some(binding), ..*self }
    }

    /// For whom it is evaluated: whatever loops counts its work there.
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
            Variable::ClusterTime => self.cluster_time.map(ValueRef::Timestamp),
            Variable::Remove => None,
            Variable::UserRoles => Some(ValueRef::Array(ArrayRef::EMPTY)),
            Variable::Decision(decision) => Some(decision.value()),
            Variable::Global(index) => self.globals.get(index)?.as_ref().map(Value::as_ref),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_cluster_has_a_time() {
        let cluster_time = Timestamp { seconds: 7, increment: 3 };
        let parse =
            |variables: &Variables| Expression::parse(ValueRef::String("$$CLUSTER_TIME"), &ParseScope::new(variables));
        assert_eq!(parse(Variables::NONE).map(drop).map_err(|failure| failure.code().0), Err(10_071_200));
        let variables = Variables::new().with_cluster_time(Some(cluster_time));
        let expression = parse(&variables).expect("parses");
        let operation = OperationContext::unlimited();
        let context = EvaluationContext::new(DocumentRef::EMPTY, &variables, 0, &operation);
        let evaluated = expression.evaluate(&context).expect("evaluates");
        assert!(matches!(evaluated.get(), Some(ValueRef::Timestamp(time)) if time == cluster_time));
    }
    use crate::Expression;
    use bunko_bson::DocumentBuf;

    #[test]
    fn commands_define_variables_for_expressions() {
        let mut variables = Variables::new();
        variables.define("limit", Some(Value::Int32(5))).expect("a good name");
        assert_eq!(variables.define("ROOT", None).map_err(|failure| failure.code().0), Err(9));
        let scope = ParseScope::new(&variables);
        let source = DocumentBuf::new().with("x", "$$limit").with("y", "$$ROOT.n");
        let expression = Expression::parse(ValueRef::from(&source), &scope).expect("parses");
        let document = DocumentBuf::new().with("n", 7_i32);
        let operation = OperationContext::unlimited();
        let context = EvaluationContext::new(document.as_ref(), &variables, 0, &operation);
        let evaluated = expression.evaluate(&context).expect("evaluates");
        let expected = DocumentBuf::new().with("x", 5_i32).with("y", 7_i32);
        assert_eq!(evaluated.get().and_then(ValueRef::as_document), Some(expected.as_ref()));
    }
}
