//! Output, files, variables and the process.

use super::bytes::copied;
use super::{Host, failed};
use crate::bounded_file;
use crate::evaluation;
use crate::terminal::{Source, ask_password, complain, print};
use crate::text::Text;
use rquickjs::{Ctx, Function, IntoJs, Object, Result, TypedArray, Value};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Longest sleep between two looks at Ctrl-C.
const SLEEP_STEP: Duration = Duration::from_millis(20);

pub(super) fn define<'js>(this: &Arc<Host>, context: &Ctx<'js>, host: &Object<'js>) -> Result<()> {
    output(this, context, host)?;
    files(context, host)?;
    process(this, context, host)
}

fn output<'js>(this: &Arc<Host>, context: &Ctx<'js>, host: &Object<'js>) -> Result<()> {
    host.set("write", Function::new(context.clone(), |Text(text): Text| print(&text))?)?;
    host.set("writeError", Function::new(context.clone(), |Text(text): Text| complain(&text))?)?;
    let password = move |context: Ctx<'js>, question: String| match ask_password(&question) {
        Ok(password) => password.into_js(&context),
        Err(error) => failed(&context, "MongoshRuntimeError", &format!("no password can be asked for: {error}")),
    };
    host.set("password", Function::new(context.clone(), password)?)?;
    let is_typed = this.source == Source::User;
    host.set("isInteractive", Function::new(context.clone(), move || is_typed)?)?;
    let world = Arc::clone(this);
    let sleep = move |milliseconds: f64| {
        let mut rest = Duration::try_from_secs_f64(milliseconds.max(0.0) / 1000.0).unwrap_or(Duration::MAX);
        while !rest.is_zero() && !world.interruption.is_rung() {
            let step = rest.min(SLEEP_STEP);
            std::thread::sleep(step);
            rest -= step;
        }
    };
    host.set("sleep", Function::new(context.clone(), sleep)?)
}

fn files<'js>(context: &Ctx<'js>, host: &Object<'js>) -> Result<()> {
    let refused = |context: &Ctx<'js>, path: &str, error: &std::io::Error| {
        failed(context, "MongoshRuntimeError", &format!("{path}: {error}"))
    };
    let read = move |context: Ctx<'js>, path: String| match bounded_file::read(&path) {
        Ok(bytes) => Ok(TypedArray::new(context, bytes)?.into_value()),
        Err(error) => refused(&context, &path, &error),
    };
    host.set("readFile", Function::new(context.clone(), read)?)?;
    let write = move |context: Ctx<'js>, path: String, data: TypedArray<'js, u8>, appends: bool| {
        let mut options = fs::OpenOptions::new();
        let options = options.create(true).write(true).append(appends).truncate(!appends);
        match options.open(&path).and_then(|mut file| file.write_all(&copied(&data))) {
            Ok(()) => Ok(Value::new_undefined(context)),
            Err(error) => refused(&context, &path, &error),
        }
    };
    host.set("writeFile", Function::new(context.clone(), write)?)?;
    host.set("exists", Function::new(context.clone(), |path: String| Path::new(&path).exists())?)?;
    let list = move |context: Ctx<'js>, path: String| match fs::read_dir(&path) {
        Ok(entries) => {
            let mut names: Vec<_> =
                entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
            names.sort();
            let listed = Object::new(context.clone())?;
            listed.set("names", names)?;
            Ok(listed.into_value())
        }
        Err(error) => refused(&context, &path, &error),
    };
    host.set("list", Function::new(context.clone(), list)?)?;
    let load = |context: Ctx<'js>, path: String| evaluation::load(&context, &path);
    host.set("load", Function::new(context.clone(), load)?)?;
    let directory = || std::env::current_dir().map(|path| path.display().to_string()).unwrap_or_default();
    host.set("directory", Function::new(context.clone(), directory)?)
}

fn process<'js>(this: &Arc<Host>, context: &Ctx<'js>, host: &Object<'js>) -> Result<()> {
    host.set("version", env!("CARGO_PKG_VERSION"))?;
    host.set("pid", std::process::id())?;
    host.set("environment", Function::new(context.clone(), |name: String| std::env::var(name).ok())?)?;
    let names = || std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect::<Vec<_>>();
    host.set("environmentNames", Function::new(context.clone(), names)?)?;
    let arguments = || std::env::args_os().map(|it| it.to_string_lossy().into_owned()).collect::<Vec<_>>();
    host.set("arguments", Function::new(context.clone(), arguments)?)?;
    let world = Arc::clone(this);
    host.set("exitCode", Function::new(context.clone(), move || world.exit_code.load(Ordering::Relaxed))?)?;
    let world = Arc::clone(this);
    let set = move |code: u8| world.exit_code.store(code, Ordering::Relaxed);
    host.set("setExitCode", Function::new(context.clone(), set)?)?;
    host.set("exit", Function::new(context.clone(), end)?)
}

/// Ends the process. A script cannot catch its own end.
fn end(code: u8) {
    std::process::exit(code.into())
}
