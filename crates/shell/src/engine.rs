//! The JavaScript engine of a shell: scripts in, the text of their results out.

use crate::evaluation::{call, evaluated, load, options, run_timers, track_rejection};
use crate::host::Host;
use crate::output::Output;
use crate::prelude::{self, Prelude};
use crate::text::Text;
use rquickjs::{Context, Ctx, Error, Function, Object, Result, Runtime, Value};
use std::sync::Arc;

/// Bytes of stack that nested calls may take.
const STACK_BYTES_MAX: usize = 8 << 20;
/// Stack of the thread that runs an engine: conversions of nested values need a part besides.
pub(crate) const THREAD_STACK_BYTES: usize = 32 << 20;

/// Limits of all scripts of a shell.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of bytes of the heap of all scripts of a shell.
    pub heap_bytes: usize,
}

/// Why a script has no result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The script threw; holds the text of the thrown value.
    Thrown(String),
    /// Ctrl-C.
    Interrupted,
}

/// An engine with the prelude.
pub(crate) struct Engine {
    context: Context,
    host: Arc<Host>,
    output: Output,
}

impl Engine {
    /// Makes an engine.
    /// # Errors
    /// A sentence, if the heap is too small for the prelude.
    pub fn new(host: &Arc<Host>, limits: Limits, output: Output) -> std::result::Result<Self, String> {
        let make = || {
            let runtime = Runtime::new()?;
            runtime.set_memory_limit(limits.heap_bytes);
            runtime.set_max_stack_size(STACK_BYTES_MAX);
            let interruption = Arc::clone(&host.interruption);
            runtime.set_interrupt_handler(Some(Box::new(move || interruption.is_rung())));
            runtime.set_host_promise_rejection_tracker(Some(Box::new(track_rejection)));
            let context = Context::full(&runtime)?;
            context.with(|context| {
                let shell = Object::new(context.clone())?;
                shell.set("host", host.object(&context)?)?;
                context.store_userdata(Prelude(shell.clone())).map_err(|_| Error::Unknown)?;
                for (name, text) in prelude::FILES {
                    let part: Function<'_> = context.eval_with_options(*text, options(name))?;
                    part.call::<_, ()>((shell.clone(),))?;
                }
                Ok::<(), Error>(())
            })?;
            Ok(context)
        };
        let made: Result<Context> = make();
        let context = made.map_err(|error| {
            format!("the JavaScript engine does not start with a heap of {} MiB: {error}", limits.heap_bytes >> 20)
        })?;
        Ok(Self { context, host: Arc::clone(host), output })
    }

    /// Runs what a user typed, or the text of `--eval`. Returns the text to print for its result, if there is one. Its
    /// timers are left to [`Self::finish`].
    pub fn evaluate(&self, text: &str, name: &str) -> std::result::Result<Option<String>, Failure> {
        self.with(|context, shell| {
            call(shell, "forgetRejections", ())?;
            let command: Value<'_> = shell.get::<_, Function<'_>>("command")?.call((text,))?;
            let value = match command.as_array() {
                Some(result) => result.get(0)?,
                None => evaluated(context, text, name)?,
            };
            let text: Option<Text> = shell.get::<_, Function<'_>>("resultText")?.call((value, self.output.name()))?;
            Ok(text.map(|Text(text)| text))
        })
    }

    /// Runs timers of scripts, and fails if a promise was rejected that no script handles.
    pub fn finish(&self) -> std::result::Result<(), Failure> {
        self.with(|context, shell| {
            run_timers(context, shell)?;
            call(shell, "throwRejection", ())
        })
    }

    /// Runs a script's file; its result is not printed.
    pub fn run_file(&self, path: &str) -> std::result::Result<(), Failure> {
        self.with(|context, shell| {
            call(shell, "forgetRejections", ())?;
            load(context, path)?;
            run_timers(context, shell)?;
            call(shell, "throwRejection", ())
        })
    }

    /// Calls a function of the prelude.
    pub fn call<T>(&self, name: &str, arguments: &[&str]) -> std::result::Result<T, Failure>
    where
        T: for<'js> rquickjs::FromJs<'js>,
    {
        self.with(|context, shell| {
            let function: Function<'_> = shell.get(name)?;
            let mut given = rquickjs::function::Args::new(context.clone(), arguments.len());
            for argument in arguments {
                given.push_arg(*argument)?;
            }
            given.apply(&function)
        })
    }

    fn with<T>(
        &self,
        work: impl for<'js> FnOnce(&Ctx<'js>, &Object<'js>) -> Result<T>,
    ) -> std::result::Result<T, Failure> {
        self.context.with(|context| {
            let shell = context.userdata::<Prelude<'_>>().map(|prelude| prelude.0.clone());
            let Some(shell) = shell else { return Err(Failure::Thrown("the engine has no prelude".to_owned())) };
            let outcome = work(&context, &shell).map_err(|error| self.failure(&context, &shell, &error));
            // A script may have ended by itself, because its last call was interrupted.
            if self.host.interruption.is_rung() { Err(Failure::Interrupted) } else { outcome }
        })
    }

    fn failure<'js>(&self, context: &Ctx<'js>, shell: &Object<'js>, error: &Error) -> Failure {
        let thrown = context.catch();
        if self.host.interruption.is_rung() {
            return Failure::Interrupted;
        }
        if !error.is_exception() {
            return Failure::Thrown(error.to_string());
        }
        let print = |print: Function<'js>| print.call((thrown, self.output.name()));
        let text: Result<Text> = shell.get("thrownText").and_then(print);
        Failure::Thrown(match text {
            Ok(Text(text)) => text,
            // The thrown value throws again when it is printed, or there is no memory to print it.
            Err(_) => {
                drop(context.catch());
                "Error: a value was thrown that cannot be printed, or the heap of the scripts is full (--heap-mb)"
                    .to_owned()
            }
        })
    }
}
