//! Variables: resolving `$$name` while parsing, and reading its value while evaluating.

mod evaluation;

pub(crate) use evaluation::Binding;
pub use evaluation::{Engine, EvaluationContext};

use crate::ConstantFailure;
use crate::metadata::{CurrentMetadata, Offered};
use bunko_bson::{ArrayBuf, StringOrder, Timestamp, Value, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_javascript::Scripts;
use bunko_operation::OperationContext;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Values of the variables that a command defines with `let`, and of the system variables that differ per command.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    /// The variables of `let`, shared with all scopes and copies; `None` if there are none.
    defined: Option<Arc<Defined>>,
    /// `$$CLUSTER_TIME`; `None` on a standalone server.
    cluster_time: Option<Timestamp>,
    /// `$$USER_ROLES`; `None` where no user is logged in.
    user_roles: Option<Arc<ArrayBuf>>,
}

/// Variables that a command defines.
#[derive(Clone, Debug, Default)]
struct Defined {
    /// `None` where the variable's expression gave no value.
    values: Vec<Option<Value>>,
    /// The position of each name's last value. A map, because a client may define very many names.
    positions: BTreeMap<String, usize>,
}

impl Defined {
    fn variable(&self, name: &str) -> Option<Variable> {
        self.positions.get(name).copied().map(Variable::Global)
    }
}

impl Variables {
    /// No variables beyond the system's own.
    pub const NONE: &'static Self = &Self { defined: None, cluster_time: None, user_roles: None };

    /// No variables beyond the system's own.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the cluster time; `None` on a standalone server.
    #[must_use]
    pub fn with_cluster_time(self, cluster_time: Option<Timestamp>) -> Self {
        Self { cluster_time, ..self }
    }

    /// The cluster time; `None` on a standalone server.
    pub fn cluster_time(&self) -> Option<Timestamp> {
        self.cluster_time
    }

    /// Sets the roles of the user: documents with `_id`, `role` and `db`. `None` where no user is logged in.
    #[must_use]
    pub fn with_user_roles(self, user_roles: Option<Arc<ArrayBuf>>) -> Self {
        Self { user_roles, ..self }
    }

    /// Defines a variable, which may be missing; a later definition of the same name hides the earlier.
    /// # Errors
    /// `FailedToParse` for a name that users may not define.
    pub fn define(&mut self, name: &str, value: Option<Value>) -> Result<()> {
        check_defined_name(name)?;
        // Copies the other variables only while a scope or a copy shares them.
        let defined = Arc::make_mut(self.defined.get_or_insert_default());
        defined.positions.insert(name.to_owned(), defined.values.len());
        defined.values.push(value);
        Ok(())
    }

    /// The value at a position; `None` if it is missing.
    fn value(&self, position: usize) -> Option<&Value> {
        self.defined.as_ref()?.values.get(position)?.as_ref()
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
    /// `$$USER_ROLES`: all roles of the user, including inherited ones; empty where no user is logged in.
    UserRoles,
    /// Defined by the command; its position in [`Variables`].
    Global(usize),
    /// An enclosing operator binds the variable to this slot.
    Local(u32),
    /// The value of `$$KEEP`, `$$PRUNE` or `$$DESCEND`.
    Decision(Decision),
}

impl Variable {
    /// Whether the server sets the variable for each command.
    pub fn is_of_system(self) -> bool {
        matches!(self, Self::Now | Self::ClusterTime | Self::UserRoles)
    }
}

/// The decision of `$redact` about a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// The whole document stays.
    Keep,
    /// The whole document is removed.
    Prune,
    /// `$redact` decides about each document inside.
    Descend,
}

impl Decision {
    const ALL: [(Self, &'static str, &'static str); 3] =
        [(Self::Keep, "KEEP", "keep"), (Self::Prune, "PRUNE", "prune"), (Self::Descend, "DESCEND", "descend")];

    /// The value of the decision's variable.
    fn value(self) -> ValueRef<'static> {
        let value = Self::ALL.into_iter().find(|(decision, ..)| *decision == self);
        ValueRef::String(value.map_or("", |(.., value)| value))
    }

    /// Finds the decision whose variable has that value; `None` for any other value.
    pub(crate) fn of(value: ValueRef<'_>) -> Option<Self> {
        let found = Self::ALL.into_iter().find(|(.., name)| value.as_str() == Some(*name));
        found.map(|(decision, ..)| decision)
    }
}

/// The variables that an expression being parsed may name. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ParseScope {
    names: Option<Arc<Names>>,
    /// The variables of the command.
    defined: Option<Arc<Defined>>,
    current: Variable,
    next_slot: u32,
    operation: Option<Arc<OperationContext>>,
    strings: StringOrder,
    constant_failure: Arc<ConstantFailure>,
    builtins: Builtins,
    has_cluster_time: bool,
    offered: Offered,
    at_hand: Option<Arc<CurrentMetadata>>,
    scripts: Option<Arc<Scripts>>,
    /// The values of the variables, if they are known while expressions are parsed.
    known: Option<Variables>,
}

/// The names that one operator defines.
#[derive(Debug)]
struct Names {
    /// A map, because a client may define very many names.
    variables: BTreeMap<String, Variable>,
    outer: Option<Arc<Names>>,
}

impl Default for ParseScope {
    fn default() -> Self {
        Self::new(&Variables::default())
    }
}

impl ParseScope {
    /// A scope with the system's variables and `variables`. Expressions parsed in it must be evaluated with the same
    /// ones.
    pub fn new(variables: &Variables) -> Self {
        let has_cluster_time = variables.cluster_time.is_some();
        let defined = variables.defined.clone();
        let current = defined.as_ref().and_then(|defined| defined.variable("CURRENT")).unwrap_or(Variable::Root);
        Self {
            names: None,
            defined,
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
            known: None,
        }
    }

    /// Makes `variables` available to arguments that must be constants.
    #[must_use]
    pub fn knowing(self, variables: &Variables) -> Self {
        Self { known: Some(variables.clone()), ..self }
    }

    /// The values of the variables, if they are known.
    pub(crate) fn known(&self) -> Option<&Variables> {
        self.known.as_ref()
    }

    /// Counts the work of parsing for `operation`.
    #[must_use]
    pub fn counted_for(self, operation: &Arc<OperationContext>) -> Self {
        Self { operation: Some(Arc::clone(operation)), ..self }
    }

    /// Evaluates constants with this order of strings, and notes their first failure in `constant_failure`.
    #[must_use]
    pub fn folding(self, strings: &StringOrder, constant_failure: &Arc<ConstantFailure>) -> Self {
        Self { strings: strings.clone(), constant_failure: Arc::clone(constant_failure), ..self }
    }

    /// Sets whether expressions may read values that the server provides.
    #[must_use]
    pub fn with_builtins(self, builtins: Builtins) -> Self {
        Self { builtins, ..self }
    }

    /// Allows scripts.
    #[must_use]
    pub fn with_scripts(self, scripts: &Arc<Scripts>) -> Self {
        Self { scripts: Some(Arc::clone(scripts)), ..self }
    }

    /// The scripts of the operation, if scripts are allowed.
    pub(crate) fn scripts(&self) -> Option<&Arc<Scripts>> {
        self.scripts.as_ref()
    }

    /// The scope of an expression that is never evaluated: the failures of its constants are not reported.
    pub(crate) fn unreached(&self) -> Self {
        Self { constant_failure: Arc::default(), ..self.clone() }
    }

    /// The first failure of a constant.
    pub(crate) fn constant_failure(&self) -> &ConstantFailure {
        &self.constant_failure
    }

    /// The order of strings (collation).
    pub(crate) fn strings(&self) -> &StringOrder {
        &self.strings
    }

    /// The operation that parses, if known.
    pub(crate) fn operation(&self) -> Option<&OperationContext> {
        self.operation.as_deref()
    }

    /// Offers these kinds of metadata to `$meta`; `at_hand` holds them when expressions are evaluated.
    #[must_use]
    pub fn offering(self, offered: Offered, at_hand: &Arc<CurrentMetadata>) -> Self {
        Self { offered, at_hand: Some(Arc::clone(at_hand)), ..self }
    }

    /// Whether a collation other than the order of bytes is set.
    pub(crate) fn has_collation(&self) -> bool {
        self.strings != StringOrder::default()
    }

    /// Whether `$meta` may read all of `needed`.
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

    /// The variable that `$field` is read from.
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

    /// A scope that also defines `$$KEEP`, `$$PRUNE` and `$$DESCEND`.
    pub(crate) fn deciding(&self) -> Self {
        let named = Decision::ALL.into_iter();
        let variables = named.map(|(decision, name, _)| (name.to_owned(), Variable::Decision(decision))).collect();
        Self { names: Some(Arc::new(Names { variables, outer: self.names.clone() })), ..self.clone() }
    }

    /// # Errors
    /// 51144 where the system's variables are unavailable, 10071200 for `$$CLUSTER_TIME` on a standalone server.
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

    /// Whether the name is a system variable. Users cannot redefine one: system names begin with a capital.
    pub(crate) fn is_builtin(&self, name: &str) -> bool {
        self.builtins == Builtins::Available && name.starts_with(|first: char| first.is_ascii_uppercase())
    }

    /// Resolves `$$name`.
    /// # Errors
    /// `FailedToParse` for an invalid name, 17276 for an undefined one, 51144 and 10071200 for a system variable that
    /// is unavailable.
    pub(crate) fn resolve(&self, name: &str) -> Result<Variable> {
        check_read_name(name)?;
        let known = std::iter::successors(self.names.as_ref(), |names| names.outer.as_ref())
            .find_map(|names| names.variables.get(name).copied());
        // An operator may define `CURRENT` again, so that it has an entry of its own below.
        let of_command = || self.defined.as_ref().filter(|_| name != "CURRENT")?.variable(name);
        let variable = known.or_else(of_command).or(match name {
            "ROOT" => Some(Variable::Root),
            "CURRENT" => Some(self.current),
            "REMOVE" => Some(Variable::Remove),
            "NOW" | "CLUSTER_TIME" | "USER_ROLES" => Some(self.builtin(name)?),
            _ => None,
        });
        variable.ok_or_else(|| Failure::new(ErrorCode(17276), format!("Use of undefined variable: {name}")))
    }
}

/// Whether expressions may read values that the server provides: the time, the user's roles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Builtins {
    /// Expressions may read them.
    #[default]
    Available,
    /// Expressions may not read them, as in counts and lists of names.
    Unavailable,
}

/// Checks a name that an expression reads; system names begin with a capital.
fn check_read_name(name: &str) -> Result<()> {
    check_name(name, |first| first.is_ascii_alphabetic())
}

/// Checks a name that a user defines.
/// # Errors
/// `FailedToParse` for a name that users may not define.
pub fn check_defined_name(name: &str) -> Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Expression;
    use bunko_bson::{DocumentBuf, DocumentRef};

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

    #[test]
    fn scopes_share_the_variables_of_their_command() {
        let mut variables = Variables::new();
        let mut moves = 0;
        let place = |variables: &Variables| variables.defined.as_ref().map(Arc::as_ptr);
        for number in 0..1000 {
            let before = place(&variables);
            {
                let scope = ParseScope::new(&variables).knowing(&variables);
                assert_eq!(scope.defined.as_ref().map(Arc::as_ptr), before);
                assert_eq!(scope.known().and_then(place), before);
            }
            variables.define(&format!("v{number}"), Some(Value::Int32(number))).expect("a good name");
            moves += usize::from(place(&variables) != before);
        }
        assert_eq!(moves, 1, "a definition copies none of the earlier ones");
        let scope = ParseScope::new(&variables);
        assert_eq!(scope.resolve("v999").map_err(|failure| failure.code().0), Ok(Variable::Global(999)));
    }

    #[test]
    fn an_operator_defines_the_current_document_again() {
        let mut variables = Variables::new();
        variables.define("CURRENT", Some(Value::Int32(5))).expect("a good name");
        let (scope, slot) = ParseScope::new(&variables).bind(&["CURRENT"]);
        let resolved = scope.resolve("CURRENT").map_err(|failure| failure.code().0);
        assert_eq!(resolved, Ok(Variable::Local(slot)));
    }

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
