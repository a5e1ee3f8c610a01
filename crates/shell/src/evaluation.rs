//! How a script is run: `await` at its top level, its timers, and promises that it does not await.

use crate::bounded_file;
use crate::completeness::with_repeatable_declarations;
use crate::prelude::Prelude;
use rquickjs::context::EvalOptions;
use rquickjs::function::IntoArgs;
use rquickjs::promise::PromiseState;
use rquickjs::{Ctx, Exception, Function, Object, Promise, Result, Value};

/// Options for a script of that name, which is not a module.
pub(crate) fn options(name: &str) -> EvalOptions {
    let mut options = EvalOptions::default();
    options.strict = false;
    options.filename = Some(name.to_owned());
    options
}

/// Runs a script, with `await` at its top level, until its value is there.
pub(crate) fn evaluated<'js>(context: &Ctx<'js>, text: &str, name: &str) -> Result<Value<'js>> {
    let mut options = options(name);
    options.promise = true;
    let shell = prelude(context)?;
    // `{a: 1}` is an object to a user, and a block to JavaScript.
    if text.trim_start().starts_with('{') && !text.trim_end().ends_with(';') {
        let mut expression = self::options(name);
        expression.promise = true;
        let source = format!("({text}\n)");
        call(&shell, "noteSource", (name, source.as_str()))?;
        match context.eval_with_options::<Promise<'js>, _>(source, expression) {
            Ok(promise) => return value_of(context, &promise),
            Err(_) => drop(context.catch()),
        }
    }
    let source = with_repeatable_declarations(text);
    call(&shell, "noteSource", (name, source.as_str()))?;
    let promise: Promise<'js> = context.eval_with_options(source, options)?;
    let value = value_of(context, &promise)?;
    // A declaration has no value in JavaScript; mongosh shows the function or class.
    if value.is_undefined() { shell.get::<_, Function<'js>>("declared")?.call((text,)) } else { Ok(value) }
}

fn prelude<'js>(context: &Ctx<'js>) -> Result<Object<'js>> {
    context.userdata::<Prelude<'js>>().map(|prelude| prelude.0.clone()).ok_or(rquickjs::Error::Unknown)
}

/// The value of an asynchronous script. If that is a promise, the script's user means the value of the promise.
fn value_of<'js>(context: &Ctx<'js>, script: &Promise<'js>) -> Result<Value<'js>> {
    let result: Object<'js> = settled(context, script)?;
    let value: Value<'js> = result.get("value")?;
    match value.as_promise() {
        Some(inner) => settled(context, inner),
        None => Ok(value),
    }
}

fn settled<'js, T: rquickjs::FromJs<'js>>(context: &Ctx<'js>, promise: &Promise<'js>) -> Result<T> {
    loop {
        while promise.state() == PromiseState::Pending && context.execute_pending_job() {}
        match promise.result() {
            Some(result) => return result,
            None if run_timer(context)? => {}
            None => return Err(Exception::throw_message(context, "a promise is awaited that nothing will settle")),
        }
    }
}

fn run_timer(context: &Ctx<'_>) -> Result<bool> {
    prelude(context)?.get::<_, Function<'_>>("runTimer")?.call(())
}

/// Calls a function of the prelude.
pub(crate) fn call<'js>(shell: &Object<'js>, name: &str, arguments: impl IntoArgs<'js>) -> Result<()> {
    shell.get::<_, Function<'js>>(name)?.call(arguments)
}

/// Tells the prelude of a promise that was rejected, or whose rejection was handled later.
#[allow(clippy::needless_pass_by_value, reason = "the engine's type")]
pub(crate) fn track_rejection<'js>(context: Ctx<'js>, promise: Value<'js>, reason: Value<'js>, is_handled: bool) {
    if let Some(prelude) = context.userdata::<Prelude<'js>>() {
        // Before the prelude has run, nothing is rejected.
        let _ = call(&prelude.0, "trackRejection", (promise, reason, is_handled));
    }
}

/// Runs the jobs and timers that a script left for later.
pub(crate) fn run_timers(context: &Ctx<'_>, shell: &Object<'_>) -> Result<()> {
    loop {
        while context.execute_pending_job() {}
        if !shell.get::<_, Function<'_>>("runTimer")?.call::<_, bool>(())? {
            return Ok(());
        }
    }
}

/// Runs the script of a file, in the global scope.
pub(crate) fn load<'js>(context: &Ctx<'js>, path: &str) -> Result<()> {
    let text = match bounded_file::read(path).map(String::from_utf8) {
        Ok(Ok(text)) => text,
        Ok(Err(_)) => return Err(Exception::throw_message(context, &format!("{path} is not text in UTF-8"))),
        Err(error) => return Err(Exception::throw_message(context, &format!("{path}: {error}"))),
    };
    // A first line that names the interpreter is not JavaScript.
    let text = if text.starts_with("#!") { format!("//{text}") } else { text };
    let source = with_repeatable_declarations(&text);
    call(&prelude(context)?, "noteSource", (path, source.as_str()))?;
    let mut options = options(path);
    options.promise = true;
    let promise: Promise<'js> = context.eval_with_options(source, options)?;
    settled::<Value<'js>>(context, &promise).map(drop)
}
