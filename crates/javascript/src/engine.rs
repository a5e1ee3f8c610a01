//! One engine: its limits, and what it says when a script fails.

use crate::allocation::{Asking, Stop};
use crate::from_script::{FromScript, Refused};
use crate::kit::Kit;
use crate::source;
use crate::to_script::{Integers, ToScript};
use bunko_bson::{ArrayBuf, Decimal128, DocumentRef, Value, ValueRef, hexadecimal};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationContext;
use md5::{Digest, Md5};
use rquickjs::function::Args;
use rquickjs::{Coerced, Context, Ctx, Error, Exception, Function, Object, Runtime};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What the scripts of one operation may hold, in bytes; they count for the operation besides.
/// Source: MongoDB manual, parameter `internalQueryJavaScriptHeapSizeLimitMB`.
const HEAP_BYTES_MAX: usize = 100 * 1024 * 1024;
/// What calls within calls may take of a thread's stack, in bytes; threads have 2 MiB.
const STACK_BYTES_MAX: usize = 256 * 1024;
/// How long `sleep` sleeps before the operation is asked again.
const NAP: Duration = Duration::from_millis(20);
/// Work of the engine's own loops that is one step of the operation's.
const LOOPS_PER_STEP: f64 = 16.0;
/// Longest loop of the engine's own that is begun, in its steps: about a second.
const LOOPS_MAX: f64 = 4e8;

const PRELUDE: &str = include_str!("prelude.js");

/// An engine at an operation's service.
pub(crate) struct Engine {
    context: Context,
    operation: Arc<OperationContext>,
    stop: Arc<Stop>,
}

/// A call of a script.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    /// Of the script.
    pub number: usize,
    /// What it calls `this`.
    pub this: Option<DocumentRef<'a>>,
    pub arguments: &'a [ValueRef<'a>],
}

impl Engine {
    /// Makes an engine with the prelude evaluated.
    /// # Errors
    /// What the operation says; `JSInterpreterFailure` where the memory does not suffice.
    pub fn new(operation: &Arc<OperationContext>) -> Result<Self> {
        operation.check()?;
        let stop = Arc::new(Stop::default());
        let make = || {
            let runtime = Runtime::new_with_alloc(Asking::new(Arc::clone(operation), Arc::clone(&stop)))?;
            runtime.set_memory_limit(HEAP_BYTES_MAX);
            runtime.set_max_stack_size(STACK_BYTES_MAX);
            let (asked, asking) = (Arc::clone(operation), Arc::clone(&stop));
            runtime.set_interrupt_handler(Some(Box::new(move || asking.ask(&asked))));
            let context = Context::full(&runtime)?;
            context.with(|context| {
                let prelude: Function<'_> = context.eval(PRELUDE)?;
                let made: Object<'_> = prelude.call((host(&context, operation, &stop)?,))?;
                context.store_userdata(Kit::new(&context, &made)?).map(drop).map_err(|_| Error::Unknown)
            })?;
            Ok(context)
        };
        let made: rquickjs::Result<Context> = make();
        let context = made.map_err(|error| {
            stop.reason().unwrap_or_else(|| interpreter_failure(&format!("cannot make a JavaScript engine: {error}")))
        })?;
        Ok(Self { context, operation: Arc::clone(operation), stop })
    }

    /// Compiles a script; its number.
    /// # Errors
    /// `JSInterpreterFailure` for what is no JavaScript; what the operation says.
    pub fn compile(&self, text: &str) -> Result<usize> {
        self.with(|context, kit| {
            let function = compiled(context, text)?;
            let mut scripts = kit.scripts.borrow_mut();
            scripts.push(function);
            Ok(scripts.len() - 1)
        })
    }

    /// Defines what scripts find under a name.
    pub fn define(&self, name: &str, value: ValueRef<'_>) -> Result<()> {
        self.with(|context, kit| {
            if let ValueRef::JavaScript(text) = value {
                return Ok(context.globals().set(name, compiled(context, text)?)?);
            }
            let value = ToScript { context, kit, integers: Integers::Forgotten }.value(value)?;
            Ok(context.globals().set(name, value)?)
        })
    }

    /// The answer of a script.
    pub fn call(&self, call: Call<'_>) -> Result<Value> {
        self.with(|context, kit| {
            let answer: rquickjs::Value<'_> = apply(context, kit, call, Integers::Remembered)?;
            FromScript { kit, operation: &self.operation }.value(&answer)
        })
    }

    /// Whether the answer of a script counts as true.
    pub fn is_true(&self, call: Call<'_>) -> Result<bool> {
        self.with(|context, kit| {
            let answer: Coerced<bool> = apply(context, kit, call, Integers::Forgotten)?;
            Ok(answer.0)
        })
    }

    /// What a script emits, as documents of `k` and `v`.
    pub fn emits(&self, call: Call<'_>) -> Result<ArrayBuf> {
        self.with(|context, kit| {
            let _: rquickjs::Value<'_> = apply(context, kit, call, Integers::Remembered)?;
            let emitted: rquickjs::Value<'_> = kit.take_emitted.call(())?;
            match (FromScript { kit, operation: &self.operation }).value(&emitted)? {
                Value::Array(emitted) => Ok(emitted),
                _ => Ok(ArrayBuf::new()),
            }
        })
    }

    /// Works inside the engine, and says in the operation's words what went wrong.
    fn with<T>(
        &self,
        work: impl for<'js> FnOnce(&Ctx<'js>, &Kit<'js>) -> std::result::Result<T, Refused>,
    ) -> Result<T> {
        self.context.with(|context| {
            let Some(kit) = context.userdata::<Kit<'_>>() else {
                return Err(interpreter_failure("the engine has no kit"));
            };
            let done = work(&context, &kit);
            let failure = match done {
                Ok(done) if self.stop.reason().is_none() => return Ok(done),
                Ok(_) => None,
                Err(Refused::Value(failure)) => Some(failure),
                Err(Refused::Engine(Error::Exception)) => Some(thrown(&context, &kit)),
                Err(Refused::Engine(Error::Allocation)) => Some(interpreter_failure("out of memory")),
                Err(Refused::Engine(error)) => Some(interpreter_failure(&error.to_string())),
            };
            // An exception that the end of the operation has caused is no failure of the script's.
            let reason = self.stop.reason();
            Err(reason.or(failure).unwrap_or_else(|| interpreter_failure("the script was interrupted")))
        })
    }
}

fn apply<'js, T: rquickjs::FromJs<'js>>(
    context: &Ctx<'js>,
    kit: &Kit<'js>,
    call: Call<'_>,
    integers: Integers,
) -> std::result::Result<T, Refused> {
    let function = kit.scripts.borrow().get(call.number).cloned().ok_or(Error::Unknown)?;
    let to_script = ToScript { context, kit, integers };
    let mut arguments = Args::new(context.clone(), call.arguments.len());
    if let Some(document) = call.this {
        let this = to_script.document(document)?;
        context.globals().set("obj", this.clone())?;
        arguments.this(this)?;
    }
    for argument in call.arguments {
        arguments.push_arg(to_script.value(*argument)?)?;
    }
    Ok(arguments.apply(&function)?)
}

/// The first reading of a text that is JavaScript.
fn compiled<'js>(context: &Ctx<'js>, text: &str) -> std::result::Result<Function<'js>, Refused> {
    let mut readings = source::readings(text).into_iter().peekable();
    while let Some(reading) = readings.next() {
        let mut options = rquickjs::context::EvalOptions::default();
        options.strict = false;
        match context.eval_with_options::<Function<'js>, _>(reading, options) {
            Err(Error::Exception) if readings.peek().is_some() => drop(context.catch()),
            function => return Ok(function?),
        }
    }
    Err(Refused::Engine(Error::Unknown))
}

/// The failure for what a script has thrown.
fn thrown<'js>(context: &Ctx<'js>, kit: &Kit<'js>) -> Failure {
    let thrown = context.catch();
    let written = kit.written.call::<_, String>((thrown,)).unwrap_or_else(|_| {
        // What it threw fails itself when it is looked at.
        drop(context.catch());
        "uncaught exception".to_owned()
    });
    interpreter_failure(&written)
}

fn interpreter_failure(message: &str) -> Failure {
    Failure::new(ErrorCode::JS_INTERPRETER_FAILURE, message)
}

/// What the prelude is given of this side.
fn host<'js>(context: &Ctx<'js>, operation: &Arc<OperationContext>, stop: &Arc<Stop>) -> rquickjs::Result<Object<'js>> {
    let host = Object::new(context.clone())?;
    let interrupted = |context: &Ctx<'js>| Exception::throw_internal(context, "interrupted");
    let (asked, asking) = (Arc::clone(operation), Arc::clone(stop));
    let work = move |context: Ctx<'js>, loops: f64| {
        if loops > LOOPS_MAX {
            return Err(Exception::throw_range(&context, "the arguments are too large"));
        }
        if asked.work((loops / LOOPS_PER_STEP) as usize).is_err() && asking.ask(&asked) {
            return Err(interrupted(&context));
        }
        Ok(())
    };
    host.set("work", Function::new(context.clone(), work)?)?;
    let (asked, asking) = (Arc::clone(operation), Arc::clone(stop));
    let sleep = move |context: Ctx<'js>, milliseconds: f64| {
        let sleep = Duration::try_from_secs_f64(milliseconds.max(0.0) / 1000.0).unwrap_or(Duration::MAX);
        let began = Instant::now();
        loop {
            if asking.ask(&asked) {
                return Err(interrupted(&context));
            }
            match sleep.checked_sub(began.elapsed()) {
                Some(left) if !left.is_zero() => std::thread::sleep(left.min(NAP)),
                _ => return Ok(()),
            }
        }
    };
    host.set("sleep", Function::new(context.clone(), sleep)?)?;
    let md5 = |text: String| hexadecimal::small(&Md5::digest(text.as_bytes()));
    host.set("md5", Function::new(context.clone(), md5)?)?;
    let decimal = |text: String| Decimal128::parse(&text).map(|number| number.to_string());
    host.set("decimal", Function::new(context.clone(), decimal)?)?;
    Ok(host)
}
