//! One engine: its limits, and the failures of scripts.

use crate::allocation::{Account, Accounted};
use crate::call::Call;
use crate::from_script::{FromScript, Refused};
use crate::interpreter_failure::interpreter_failure;
use crate::kit::Kit;
use crate::source;
use crate::to_script::{Integers, ToScript};
use bunko_bson::{Decimal128, ValueRef, hexadecimal};
use bunko_errors::{Failure, Result};
use md5::{Digest, Md5};
use rquickjs::function::Args;
use rquickjs::{Coerced, Context, Ctx, Error, Function, Object, Runtime};
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of bytes of the heap of one operation's scripts; they also count as memory of the operation. Source:
/// MongoDB manual, parameter `internalQueryJavaScriptHeapSizeLimitMB`.
const HEAP_BYTES_MAX: usize = 100 * 1024 * 1024;
/// Maximum number of bytes of stack that nested calls may take; a thread has 2 MiB.
const STACK_BYTES_MAX: usize = 256 * 1024;

const PRELUDE: &str = include_str!("prelude.js");

/// An engine for the scripts of one operation.
pub(crate) struct Engine {
    context: Context,
    account: Arc<Account>,
}

impl Engine {
    /// Makes an engine with the prelude evaluated.
    /// # Errors
    /// `JSInterpreterFailure` if there is too little memory.
    pub fn new(account: &Arc<Account>) -> Result<Self> {
        let make = || {
            let runtime = Runtime::new_with_alloc(Accounted(Arc::clone(account)))?;
            runtime.set_memory_limit(HEAP_BYTES_MAX);
            runtime.set_max_stack_size(STACK_BYTES_MAX);
            let context = Context::full(&runtime)?;
            context.with(|context| {
                let prelude: Function<'_> = context.eval(PRELUDE)?;
                let made: Object<'_> = prelude.call((host(&context)?,))?;
                context.store_userdata(Kit::new(&context, &made)?).map(drop).map_err(|_| Error::Unknown)
            })?;
            Ok(context)
        };
        let made: rquickjs::Result<Context> = make();
        let context =
            made.map_err(|error| interpreter_failure(&format!("cannot make a JavaScript engine: {error}")))?;
        Ok(Self { context, account: Arc::clone(account) })
    }

    /// Compiles a script and returns its number.
    /// # Errors
    /// `JSInterpreterFailure` for invalid JavaScript; errors of the operation.
    pub fn compile(&self, text: &str) -> Result<usize> {
        self.with(|context, kit| {
            let function = compiled(context, text)?;
            let mut scripts = kit.scripts.borrow_mut();
            scripts.push(function);
            Ok(scripts.len() - 1)
        })
    }

    /// Defines a global value under a name; code becomes a function.
    pub fn define(&self, name: &str, value: ValueRef<'_>) -> Result<()> {
        self.with(|context, kit| {
            if let ValueRef::JavaScript(text) = value {
                return Ok(context.globals().set(name, compiled(context, text)?)?);
            }
            let value = ToScript { context, kit, integers: Integers::Forgotten }.value(value)?;
            Ok(context.globals().set(name, value)?)
        })
    }

    /// Calls a script and appends its answer, as the only field of a document.
    pub fn call(&self, call: Call<'_>, answer: &mut Vec<u8>) -> Result<()> {
        self.with(|context, kit| {
            let returned: rquickjs::Value<'_> = apply(context, kit, call, Integers::Remembered)?;
            FromScript { kit, account: &self.account }.append_alone(answer, &returned)
        })
    }

    /// Calls a script and returns whether its answer counts as true.
    pub fn is_true(&self, call: Call<'_>) -> Result<bool> {
        self.with(|context, kit| {
            let answer: Coerced<bool> = apply(context, kit, call, Integers::Forgotten)?;
            Ok(answer.0)
        })
    }

    /// Calls a script and appends the values that it emits, an array of documents of `k` and `v`, as the only field of
    /// a document.
    pub fn emits(&self, call: Call<'_>, answer: &mut Vec<u8>) -> Result<()> {
        self.with(|context, kit| {
            let _: rquickjs::Value<'_> = apply(context, kit, call, Integers::Remembered)?;
            let emitted: rquickjs::Value<'_> = kit.take_emitted.call(())?;
            FromScript { kit, account: &self.account }.append_alone(answer, &emitted)
        })
    }

    /// Runs `work` inside the engine, and turns its failure into MongoDB's.
    fn with<T>(
        &self,
        work: impl for<'js> FnOnce(&Ctx<'js>, &Kit<'js>) -> std::result::Result<T, Refused>,
    ) -> Result<T> {
        self.context.with(|context| {
            let Some(kit) = context.userdata::<Kit<'_>>() else {
                return Err(interpreter_failure("the engine has no kit"));
            };
            work(&context, &kit).map_err(|refused| match refused {
                Refused::Value(failure) => failure,
                Refused::Engine(Error::Exception) => thrown(&context, &kit),
                Refused::Engine(Error::Allocation) => interpreter_failure("out of memory"),
                Refused::Engine(error) => interpreter_failure(&error.to_string()),
            })
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
    let mut arguments = Args::new(context.clone(), call.arguments.iter().count());
    if let Some(document) = call.this {
        let this = to_script.document(document)?;
        context.globals().set("obj", this.clone())?;
        arguments.this(this)?;
    }
    for argument in call.arguments {
        arguments.push_arg(to_script.value(argument.value)?)?;
    }
    Ok(arguments.apply(&function)?)
}

/// Compiles the first reading of a text that is valid JavaScript.
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

/// The failure for a value that a script has thrown.
fn thrown<'js>(context: &Ctx<'js>, kit: &Kit<'js>) -> Failure {
    let thrown = context.catch();
    let written = kit.written.call::<_, String>((thrown,)).unwrap_or_else(|_| {
        // The thrown value throws again when it is printed.
        drop(context.catch());
        "uncaught exception".to_owned()
    });
    interpreter_failure(&written)
}

/// Rust functions that the prelude can call.
fn host<'js>(context: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    let host = Object::new(context.clone())?;
    // If the operation has to stop meanwhile, the server ends the process.
    let sleep = |milliseconds: f64| {
        std::thread::sleep(Duration::try_from_secs_f64(milliseconds.max(0.0) / 1000.0).unwrap_or(Duration::MAX));
    };
    host.set("sleep", Function::new(context.clone(), sleep)?)?;
    let md5 = |text: String| hexadecimal::small(&Md5::digest(text.as_bytes()));
    host.set("md5", Function::new(context.clone(), md5)?)?;
    let decimal = |text: String| Decimal128::parse(&text).map(|number| number.to_string());
    host.set("decimal", Function::new(context.clone(), decimal)?)?;
    Ok(host)
}
