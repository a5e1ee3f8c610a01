//! The scripts of one operation.

use crate::StoredFunctions;
use crate::client::Client;
use crate::stored_functions::Stored;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, Value, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationContext;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;

/// The state that an operation's scripts share, among it their worker.
pub struct Scripts {
    operation: Arc<OperationContext>,
    scope: Mutex<Option<DocumentBuf>>,
    stored: Stored,
    /// Taken when the first script is compiled.
    worker: Mutex<TheirWorker>,
}

/// The worker of an operation's scripts, if there is one now.
#[derive(Default)]
struct TheirWorker {
    ready: Option<Ready>,
    /// Number of workers so far: a worker may be ended while a cursor waits for its client.
    count: u32,
}

/// A worker that knows the scope and, if `knows_stored`, the stored functions.
struct Ready {
    client: Client,
    knows_stored: bool,
    /// Number of this worker among the operation's workers.
    ordinal: u32,
}

impl Scripts {
    /// Makes the state for an operation that has no scripts yet.
    pub fn new(operation: &Arc<OperationContext>) -> Arc<Self> {
        Arc::new(Self {
            operation: Arc::clone(operation),
            scope: Mutex::default(),
            stored: Stored::default(),
            worker: Mutex::default(),
        })
    }

    /// Checks whether scripts are allowed where the operation runs now. Called while a command is parsed, before it
    /// does anything.
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

    /// Defines variables for the scripts: `scope` of `mapReduce`.
    pub fn define(&self, scope: DocumentRef<'_>) {
        *self.scope.lock() = Some(scope.to_owned());
    }

    /// Sets the source of the stored functions of the operation's database. They are read once per operation, before
    /// the first call of a script that may use them.
    pub fn offer_stored(&self, functions: Arc<dyn StoredFunctions>) {
        self.stored.offer(functions);
    }

    /// Makes the stored functions available to all scripts, as `mapReduce` needs.
    pub fn serve_map_reduce(&self) {
        self.stored.serve_map_reduce();
    }

    /// Makes a script of an expression. It is compiled when it is first called.
    pub fn function(self: &Arc<Self>, text: &str) -> Function {
        Function {
            scripts: Arc::clone(self),
            text: text.into(),
            place: ScriptUse::Expression,
            number: Mutex::default(),
        }
    }

    /// Compiles the script of a `$where`, which may call the stored functions.
    /// # Errors
    /// As [`Function::compile`].
    pub fn function_of_where(self: &Arc<Self>, text: &str) -> Result<Function> {
        self.stored.serve_where();
        let function = Function { place: ScriptUse::Where, ..self.function(text) };
        function.compile()?;
        Ok(function)
    }

    fn with<T>(&self, place: Option<ScriptUse>, work: impl FnOnce(&mut Ready) -> Result<T>) -> Result<T> {
        if place == Some(ScriptUse::Expression) {
            self.stored.check_expression()?;
        }
        let mut worker = self.worker.lock();
        if worker.ready.as_ref().is_some_and(|ready| !ready.client.resume()) {
            worker.ready = None;
        }
        let mut ready = match worker.ready.take() {
            Some(ready) => ready,
            None => {
                worker.count += 1;
                self.make_ready(worker.count)?
            }
        };
        let done = self.tell_stored(place, &mut ready).and_then(|()| work(&mut ready));
        ready.client.rest();
        worker.ready = Some(ready);
        done
    }

    fn make_ready(&self, ordinal: u32) -> Result<Ready> {
        let mut client = Client::new(&self.operation)?;
        let scope = self.scope.lock();
        for variable in scope.iter().flat_map(|scope| scope.as_ref().iter()) {
            client.define(variable.name, variable.value)?;
        }
        Ok(Ready { client, knows_stored: false, ordinal })
    }

    fn tell_stored(&self, place: Option<ScriptUse>, ready: &mut Ready) -> Result<()> {
        if place.is_some() && !ready.knows_stored && self.stored.are_wanted() {
            self.stored.define_in(&mut ready.client, &self.operation)?;
            ready.knows_stored = true;
        }
        Ok(())
    }
}

impl fmt::Debug for Scripts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripts").finish_non_exhaustive()
    }
}

/// Whether a script belongs to an expression or to a `$where`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScriptUse {
    Expression,
    Where,
}

/// One script.
pub struct Function {
    scripts: Arc<Scripts>,
    text: Box<str>,
    place: ScriptUse,
    /// The script's number in a worker, and the worker's [`Ready::ordinal`]; `None` before the script is first
    /// compiled.
    number: Mutex<Option<(u32, u32)>>,
}

impl Function {
    /// The text of a value that may be a script: a string, or code without scope; else `None`.
    pub fn text_of(value: ValueRef<'_>) -> Option<&str> {
        match value {
            ValueRef::String(text) | ValueRef::JavaScript(text) => Some(text),
            _ => None,
        }
    }

    /// The text as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Compiles the script, unless it is compiled.
    /// # Errors
    /// `JSInterpreterFailure` for invalid JavaScript; errors of the operation.
    pub fn compile(&self) -> Result<()> {
        self.scripts.with(None, |ready| self.number(ready)).map(drop)
    }

    /// Calls the script. Numbers in the result are doubles.
    /// # Errors
    /// `JSInterpreterFailure` for an exception; 17279 and others for a result that is not BSON; errors of the operation.
    pub fn call(&self, this: Option<DocumentRef<'_>>, arguments: &[ValueRef<'_>]) -> Result<Value> {
        self.called(|client, number| client.call(number, this, arguments))
    }

    /// Whether the script's result for a document counts as true.
    /// # Errors
    /// As [`Self::call`].
    pub fn is_true(&self, document: DocumentRef<'_>) -> Result<bool> {
        self.called(|client, number| client.is_true(number, document))
    }

    /// The documents of `k` and `v` that the script emits for a document.
    /// # Errors
    /// As [`Self::call`].
    pub fn emits(&self, document: DocumentRef<'_>) -> Result<ArrayBuf> {
        self.called(|client, number| client.emits(number, document))
    }

    fn called<T>(&self, work: impl FnOnce(&mut Client, u32) -> Result<T>) -> Result<T> {
        self.scripts.with(Some(self.place), |ready| {
            let number = self.number(ready)?;
            work(&mut ready.client, number)
        })
    }

    fn number(&self, ready: &mut Ready) -> Result<u32> {
        let mut number = self.number.lock();
        match *number {
            Some((number, ordinal)) if ordinal == ready.ordinal => Ok(number),
            _ => {
                let compiled = ready.client.compile(&self.text)?;
                *number = Some((compiled, ready.ordinal));
                Ok(compiled)
            }
        }
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Function").field(&self.text).finish()
    }
}
