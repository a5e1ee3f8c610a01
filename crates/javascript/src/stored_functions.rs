//! Functions that a database keeps for scripts. `$where` and `mapReduce` find them by their names; `$function` and `$accumulator`
//! do not, as on MongoDB.

use crate::client::Client;
use bunko_bson::{Value, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationContext;
use parking_lot::Mutex;
use std::sync::Arc;

/// Takes `_id` and `value` of a document that holds a function, as far as it has them.
pub type StoredVisitor<'v> = dyn FnMut(Option<ValueRef<'_>>, Option<ValueRef<'_>>) -> Result<()> + 'v;

/// Where stored functions are read.
pub trait StoredFunctions: Send + Sync {
    /// Shows the documents that hold them.
    /// # Errors
    /// As the storage and the visitor, and `Interrupted` if the operation is killed.
    fn read(&self, operation: &Arc<OperationContext>, visit: &mut StoredVisitor<'_>) -> Result<()>;
}

/// The kind of scripts that an operation runs, which decides whether they find stored functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum User {
    /// Expressions, which find no stored functions.
    #[default]
    Others,
    /// A `$where`. Expressions may not run in the same operation.
    Where,
    /// `mapReduce`.
    MapReduce,
}

/// The stored functions of an operation's database, and whether its scripts find them.
#[derive(Default)]
pub(crate) struct Stored {
    source: Mutex<Option<Arc<dyn StoredFunctions>>>,
    user: Mutex<User>,
}

impl Stored {
    pub(crate) fn offer(&self, source: Arc<dyn StoredFunctions>) {
        *self.source.lock() = Some(source);
    }

    /// Notes that a `$where` is among the scripts.
    pub(crate) fn serve_where(&self) {
        let mut user = self.user.lock();
        if *user == User::Others {
            *user = User::Where;
        }
    }

    /// Notes that the scripts are those of a `mapReduce`.
    pub(crate) fn serve_map_reduce(&self) {
        *self.user.lock() = User::MapReduce;
    }

    /// Whether scripts find stored functions.
    pub(crate) fn are_wanted(&self) -> bool {
        *self.user.lock() != User::Others
    }

    /// Refuses a script of an expression in an operation with a `$where`: only the `$where` may find stored functions.
    /// # Errors
    /// 4649200.
    pub(crate) fn check_expression(&self) -> Result<()> {
        if *self.user.lock() != User::Where {
            return Ok(());
        }
        let message = "A single operation cannot use both JavaScript aggregation expressions and $where.";
        Err(Failure::new(ErrorCode(4_649_200), message))
    }

    /// Defines all stored functions in a worker. A function that is not JavaScript is left out.
    /// # Errors
    /// As [`StoredFunctions::read`]; 10209 for a name that is not a string, 10210 for one without a value, 4546000 for code
    /// with a scope.
    pub(crate) fn define_in(&self, worker: &mut Client, operation: &Arc<OperationContext>) -> Result<()> {
        let Some(source) = self.source.lock().clone() else { return Ok(()) };
        source.read(operation, &mut |name, value| {
            let Some(ValueRef::String(name)) = name else {
                let found = name.map_or(Value::Null, ValueRef::to_value);
                let message = format!("name has to be a string: _id: {}", bunko_bson::text::ValueText(found.as_ref()));
                return Err(Failure::new(ErrorCode(10209), message));
            };
            match value {
                None => Err(Failure::new(ErrorCode(10210), "value has to be set")),
                Some(ValueRef::JavaScriptWithScope { .. }) => {
                    let message = format!("the stored function '{name}' is code with scope, which scripts cannot have");
                    Err(Failure::new(ErrorCode(4_546_000), message))
                }
                Some(value) => match worker.define(name, value) {
                    Err(failure) if failure.code() != ErrorCode::JS_INTERPRETER_FAILURE => Err(failure),
                    _ => operation.check(),
                },
            }
        })
    }
}
