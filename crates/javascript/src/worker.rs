//! A worker process: runs the scripts of one operation. The server may kill it at any time.

mod confinement;

use crate::allocation::Account;
use crate::engine::Engine;
use crate::protocol::{Incoming, Outgoing, Request, Wish, nonsense};
use bunko_bson::DocumentRef;
use bunko_errors::{Failure, Result};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;

/// The argument that makes a program a worker. A program whose [`Workers`](crate::Workers) name it passes it to
/// [`work_for_server`].
pub const WORKER_ARGUMENT: &str = "script-worker";

/// Runs a process that was started as a worker: it gives up all rights that it does not need, and serves the server
/// whose socket is its standard input until the server is gone.
pub fn work_for_server() -> ExitCode {
    let is_socket =
        io::stdin().as_fd().try_clone_to_owned().is_ok_and(|file| UnixStream::from(file).peer_addr().is_ok());
    if !is_socket {
        eprintln!("bunko: {WORKER_ARGUMENT} is started by the server, for the scripts of its clients");
        return ExitCode::FAILURE;
    }
    confinement::close_other_files();
    let Ok(socket) = io::stdin().as_fd().try_clone_to_owned() else { return ExitCode::FAILURE };
    let socket = UnixStream::from(socket);
    if confinement::confine(&socket) {
        serve(socket);
    }
    ExitCode::SUCCESS
}

/// Serves until the server closes its end of the socket.
pub(crate) fn serve(socket: UnixStream) {
    let socket = Arc::new(socket);
    let engine = Engine::new(&Arc::new(Account::new(Arc::clone(&socket))));
    let (mut incoming, mut outgoing) = (Incoming::new(), Outgoing::new());
    loop {
        let Some(frame) = incoming.frame() else {
            match incoming.read(&socket) {
                Ok(true) => continue,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                _ => return,
            }
        };
        let answer = answer(engine.as_ref(), Request::parse(frame), &mut outgoing);
        if (&*socket).write_all(answer).is_err() {
            return;
        }
        incoming.clear();
    }
}

fn answer<'o>(
    engine: std::result::Result<&Engine, &Failure>,
    request: Option<Request<'_>>,
    outgoing: &'o mut Outgoing,
) -> &'o [u8] {
    let (engine, request) = match (engine, request) {
        (Ok(engine), Some(request)) => (engine, request),
        (Err(failure), _) => return outgoing.failed(failure),
        (_, None) => return outgoing.failed(&nonsense()),
    };
    match request {
        Request::Compile(text) => match engine.compile(text) {
            Ok(number) => outgoing.compiled(number as u32),
            Err(failure) => outgoing.failed(&failure),
        },
        Request::Define(variable) => match define(engine, variable) {
            Ok(()) => outgoing.done(),
            Err(failure) => outgoing.failed(&failure),
        },
        Request::Call(Wish::Truth, call) => match engine.is_true(call) {
            Ok(is_true) => outgoing.truth(is_true),
            Err(failure) => outgoing.failed(&failure),
        },
        Request::Call(Wish::Value, call) => outgoing.value(|answer| engine.call(call, answer)),
        Request::Call(Wish::Emitted, call) => outgoing.value(|answer| engine.emits(call, answer)),
    }
}

fn define(engine: &Engine, variable: DocumentRef<'_>) -> Result<()> {
    variable.iter().try_for_each(|variable| engine.define(variable.name, variable.value))
}
