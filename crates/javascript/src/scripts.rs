//! The scripts of one operation.

use crate::StoredFunctions;
use crate::engine::{Call, Engine};
use crate::stored_functions::Stored;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, Value, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationContext;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;

/// What an operation's scripts share.
pub struct Scripts {
    operation: Arc<OperationContext>,
    scope: Mutex<Option<DocumentBuf>>,
    stored: Stored,
    /// Made for the first script that is compiled.
    engine: Mutex<Option<Ready>>,
}

/// An engine, and whether it knows the stored functions.
struct Ready {
    engine: Engine,
    knows_stored: bool,
}

impl Scripts {
    /// The scripts of an operation, none yet.
    pub fn new(operation: &Arc<OperationContext>) -> Arc<Self> {
        Arc::new(Self {
            operation: Arc::clone(operation),
            scope: Mutex::default(),
            stored: Stored::default(),
            engine: Mutex::default(),
        })
    }

    /// Whether there may be any, where the operation is now. Asked while a command is parsed, before it does anything.
    /// # Errors
    /// 31264 where the server runs no JavaScript; [`Failure::too_long`] on a thread that serves others.
    pub fn admit(&self) -> Result<()> {
        if !self.operation.may_run_scripts() {
            return Err(Failure::new(
                ErrorCode(31264),
                "Cannot run server-side javascript without the javascript engine enabled",
            ));
        }
        self.operation.leave_shared_thread()
    }

    /// Defines variables that scripts find: `scope` of `mapReduce`.
    pub fn define(&self, scope: DocumentRef<'_>) {
        *self.scope.lock() = Some(scope.to_owned());
    }

    /// Says where the functions are that the operation's database keeps. They are read when the first script is called that may
    /// call them, and once for the operation.
    pub fn offer_stored(&self, functions: Arc<dyn StoredFunctions>) {
        self.stored.offer(functions);
    }

    /// Has all scripts find the stored functions, as those of `mapReduce` do.
    pub fn serve_map_reduce(&self) {
        self.stored.serve_map_reduce();
    }

    /// A script of an expression, which is compiled when it is first called.
    pub fn function(self: &Arc<Self>, text: &str) -> Function {
        Function { scripts: Arc::clone(self), text: text.into(), place: Place::Expression, number: Mutex::default() }
    }

    /// The script of a `$where`, which may call the stored functions. It is compiled at once.
    /// # Errors
    /// As [`Function::compile`].
    pub fn function_of_where(self: &Arc<Self>, text: &str) -> Result<Function> {
        self.stored.serve_where();
        let function = Function { place: Place::Where, ..self.function(text) };
        function.compile()?;
        Ok(function)
    }

    fn with<T>(&self, place: Option<Place>, work: impl FnOnce(&Engine) -> Result<T>) -> Result<T> {
        if place == Some(Place::Expression) {
            self.stored.check_expression()?;
        }
        let mut ready = self.engine.lock();
        if ready.is_none() {
            let made = Engine::new(&self.operation)?;
            let scope = self.scope.lock();
            for variable in scope.iter().flat_map(|scope| scope.as_ref().iter()) {
                made.define(variable.name, variable.value)?;
            }
            *ready = Some(Ready { engine: made, knows_stored: false });
        }
        let Some(ready) = ready.as_mut() else {
            return Err(Failure::new(ErrorCode::INTERNAL_ERROR, "there is no JavaScript engine"));
        };
        if place.is_some() && !ready.knows_stored && self.stored.are_wanted() {
            self.stored.define_in(&ready.engine, &self.operation)?;
            ready.knows_stored = true;
        }
        work(&ready.engine)
    }
}

impl fmt::Debug for Scripts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripts").finish_non_exhaustive()
    }
}

/// Where a script stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Expression,
    Where,
}

/// One script.
pub struct Function {
    scripts: Arc<Scripts>,
    text: Box<str>,
    place: Place,
    number: Mutex<Option<usize>>,
}

impl Function {
    /// The code of a value that may be a script: a string or code without scope.
    pub fn text_of(value: ValueRef<'_>) -> Option<&str> {
        match value {
            ValueRef::String(text) | ValueRef::JavaScript(text) => Some(text),
            _ => None,
        }
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Compiles it, if it has not been.
    /// # Errors
    /// `JSInterpreterFailure` for what is no JavaScript; what the operation says.
    pub fn compile(&self) -> Result<()> {
        self.scripts.with(None, |engine| self.number(engine)).map(drop)
    }

    /// Calls it; numbers in the answer are doubles.
    /// # Errors
    /// `JSInterpreterFailure` for what it throws; 17279 and others for an answer that is no BSON; what the operation says.
    pub fn call(&self, this: Option<DocumentRef<'_>>, arguments: &[ValueRef<'_>]) -> Result<Value> {
        self.called(|engine| engine.call(Call { number: self.number(engine)?, this, arguments }))
    }

    /// Whether its answer for a document counts as true.
    /// # Errors
    /// As [`Self::call`].
    pub fn is_true(&self, document: DocumentRef<'_>) -> Result<bool> {
        self.called(|engine| {
            engine.is_true(Call { number: self.number(engine)?, this: Some(document), arguments: &[] })
        })
    }

    /// What it emits for a document: documents of `k` and `v`.
    /// # Errors
    /// As [`Self::call`].
    pub fn emits(&self, document: DocumentRef<'_>) -> Result<ArrayBuf> {
        self.called(|engine| engine.emits(Call { number: self.number(engine)?, this: Some(document), arguments: &[] }))
    }

    fn called<T>(&self, work: impl FnOnce(&Engine) -> Result<T>) -> Result<T> {
        self.scripts.with(Some(self.place), work)
    }

    fn number(&self, engine: &Engine) -> Result<usize> {
        let mut number = self.number.lock();
        if let Some(number) = *number {
            return Ok(number);
        }
        let compiled = engine.compile(&self.text)?;
        *number = Some(compiled);
        Ok(compiled)
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Function").field(&self.text).finish()
    }
}
