//! The server's side of a worker: the calls of an operation's scripts go there, and their answers come back.
//!
//! **Invariant:** a waiting client asks the operation 50 times a second whether it must stop, and then kills the worker.
//! **Invariant:** a worker's end is a failure of its operation, never of the server.

use crate::interpreter_failure::interpreter_failure;
use crate::processes::{NAP, Process, WORKER_BYTES, Workers};
use crate::protocol::{Answer, FRAME_BYTES_MAX, GRANTED, Incoming, Outgoing, Wish, more_bytes, nonsense};
use crate::worker;
use bunko_bson::{ArrayBuf, DocumentRef, Value, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationContext;
use std::io::{self, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// Steps that a call counts for, so that the operation is also asked between short calls.
const STEPS_PER_CALL: usize = 64;
/// A call that takes this many naps is long: the worker's priority is lowered.
const LONG_CALL_NAPS: u32 = 5;
/// Bytes of a request that a worker may read without asking for memory; they are part of [`WORKER_BYTES`].
const REQUEST_BYTES: usize = 1 << 20;

/// The process or thread that runs the scripts.
enum Worker {
    Process(Process, Arc<Workers>),
    /// A thread of this process, for tests. It cannot be killed, and ends when it asks for more memory.
    Thread(UnixStream),
}

impl Worker {
    fn take(operation: &OperationContext, workers: Option<Arc<Workers>>) -> Result<Self> {
        if let Some(workers) = workers {
            return Ok(Self::Process(workers.take(operation)?, workers));
        }
        let start = || {
            let (socket, theirs) = UnixStream::pair()?;
            socket.set_read_timeout(Some(NAP))?;
            std::thread::Builder::new().name("script".into()).spawn(move || worker::serve(theirs))?;
            Ok(Self::Thread(socket))
        };
        start().map_err(|error: io::Error| interpreter_failure(&format!("cannot start a thread for scripts: {error}")))
    }

    fn socket(&self) -> &UnixStream {
        match self {
            Self::Process(process, _) => &process.socket,
            Self::Thread(socket) => socket,
        }
    }

    fn end(&self) {
        match self {
            Self::Process(process, workers) => workers.end(process),
            Self::Thread(socket) => drop(socket.shutdown(Shutdown::Both)),
        }
    }
}

/// An operation's worker.
pub(crate) struct Client {
    operation: Arc<OperationContext>,
    worker: Worker,
    outgoing: Outgoing,
    incoming: Incoming,
    /// Bytes that the worker holds for the operation.
    held_bytes: usize,
    /// Longest request that the worker may read within `held_bytes`.
    request_bytes: usize,
    /// The failure for which the worker was ended; `None` while the worker is not ended.
    ended: Option<Failure>,
}

impl Client {
    /// Takes a worker of the operation's server, or a thread if the operation knows no server.
    /// # Errors
    /// As [`OperationContext::check`]; `JSInterpreterFailure` if no process can be started.
    pub fn new(operation: &Arc<OperationContext>) -> Result<Self> {
        operation.hold_elsewhere(WORKER_BYTES)?;
        let workers = operation.script_host().and_then(|host| host.downcast::<Workers>().ok());
        let worker = Worker::take(operation, workers).inspect_err(|_| operation.let_go_elsewhere(WORKER_BYTES))?;
        let client = Self {
            operation: Arc::clone(operation),
            worker,
            outgoing: Outgoing::new(),
            incoming: Incoming::new(),
            held_bytes: WORKER_BYTES,
            request_bytes: REQUEST_BYTES,
            ended: None,
        };
        client.note_held(WORKER_BYTES);
        Ok(client)
    }

    /// Must be called before calls. Returns whether the worker is still there. A worker that failed its operation counts as
    /// there, and fails the calls.
    pub fn resume(&self) -> bool {
        match &self.worker {
            Worker::Process(process, _) if self.ended.is_none() => process.resume(),
            _ => true,
        }
    }

    /// Notes that no call comes for now, so that the worker may be ended for another operation.
    pub fn rest(&self) {
        if let Worker::Process(process, _) = &self.worker {
            process.rest(self.operation.clock().now());
        }
    }

    /// Compiles a script, and returns its number.
    /// # Errors
    /// `JSInterpreterFailure` for a text that is not JavaScript; as [`OperationContext::check`].
    pub fn compile(&mut self, text: &str) -> Result<u32> {
        self.outgoing.compile(text);
        self.ask(|answer| match answer {
            Answer::Compiled(number) => Some(*number),
            _ => None,
        })
    }

    /// Defines a global value under a name; code becomes a function.
    pub fn define(&mut self, name: &str, value: ValueRef<'_>) -> Result<()> {
        self.outgoing.define(name, value);
        self.ask(|answer| matches!(answer, Answer::Done).then_some(()))
    }

    /// Calls a script and returns its answer.
    pub fn call(&mut self, number: u32, this: Option<DocumentRef<'_>>, arguments: &[ValueRef<'_>]) -> Result<Value> {
        self.outgoing.call(Wish::Value, number, this, arguments);
        self.ask(value)
    }

    /// Calls a script and returns whether its answer counts as true.
    pub fn is_true(&mut self, number: u32, this: DocumentRef<'_>) -> Result<bool> {
        self.outgoing.call(Wish::Truth, number, Some(this), &[]);
        self.ask(|answer| match answer {
            Answer::Truth(is_true) => Some(*is_true),
            _ => None,
        })
    }

    /// Calls a script and returns the values that it emits, as documents of `k` and `v`.
    pub fn emits(&mut self, number: u32, this: DocumentRef<'_>) -> Result<ArrayBuf> {
        self.outgoing.call(Wish::Emitted, number, Some(this), &[]);
        match self.ask(value)? {
            Value::Array(emitted) => Ok(emitted),
            _ => Ok(ArrayBuf::new()),
        }
    }

    /// Sends the written request, and returns the part of the answer that `take` selects. A failure of the script
    /// leaves the worker running. Any other failure ends the worker: the request is too large, `take` does not accept
    /// the answer, or the operation has to stop.
    fn ask<T>(&mut self, take: impl FnOnce(&Answer<'_>) -> Option<T>) -> Result<T> {
        if let Some(reason) = &self.ended {
            return Err(reason.clone());
        }
        let exchanged = self.exchange();
        let answered = exchanged.and_then(|()| match self.incoming.frame().and_then(Answer::parse) {
            Some(Answer::Failed(failure)) => Ok(Err(failure)),
            answer => answer.as_ref().and_then(take).map(Ok).ok_or_else(nonsense),
        });
        answered.unwrap_or_else(|reason| {
            self.worker.end();
            self.ended = Some(reason.clone());
            Err(reason)
        })
    }

    fn exchange(&mut self) -> Result<()> {
        self.operation.work(STEPS_PER_CALL)?;
        let bytes = self.outgoing.frame().len();
        if bytes > FRAME_BYTES_MAX {
            let message = format!("a script is given {bytes} bytes at once, and the limit is {FRAME_BYTES_MAX} bytes");
            return Err(Failure::new(ErrorCode::BSON_OBJECT_TOO_LARGE, message));
        }
        if bytes > self.request_bytes {
            self.hold(bytes - self.request_bytes)?;
            self.request_bytes = bytes;
        }
        self.send(Sent::Request)?;
        loop {
            self.receive()?;
            let Some(more_bytes) = self.incoming.frame().and_then(more_bytes) else { return Ok(()) };
            self.hold(more_bytes)?;
            self.send(Sent::Grant)?;
        }
    }

    fn send(&mut self, what: Sent) -> Result<()> {
        let mut rest = match what {
            Sent::Request => self.outgoing.frame(),
            Sent::Grant => &GRANTED,
        };
        self.incoming.clear();
        while !rest.is_empty() {
            match self.worker.socket().write(rest) {
                Ok(written) if written > 0 => rest = &rest[written..],
                Err(error) if has_to_wait(&error) => self.operation.check()?,
                _ => return Err(self.lost()),
            }
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<()> {
        let mut naps = 0;
        while self.incoming.frame().is_none() {
            self.operation.will_take(self.incoming.grows_by())?;
            match self.incoming.read(self.worker.socket()) {
                Ok(true) => {}
                Err(error) if has_to_wait(&error) => {
                    self.operation.check()?;
                    naps += 1;
                    if let (LONG_CALL_NAPS, Worker::Process(process, _)) = (naps, &self.worker) {
                        process.step_back();
                    }
                }
                _ => return Err(self.lost()),
            }
        }
        Ok(())
    }

    /// Allows the worker to hold `bytes` more.
    fn hold(&mut self, bytes: usize) -> Result<()> {
        self.operation.hold_elsewhere(bytes)?;
        self.held_bytes += bytes;
        self.note_held(bytes);
        Ok(())
    }

    fn note_held(&self, bytes: usize) {
        if let Worker::Process(_, workers) = &self.worker {
            workers.note_held(bytes);
        }
    }

    /// Makes the failure for a worker that is no longer there.
    fn lost(&self) -> Failure {
        let how = match &self.worker {
            Worker::Process(process, _) => process.how_it_ended(),
            Worker::Thread(_) => None,
        };
        let how = how.unwrap_or_else(|| "it closed its socket".to_owned());
        interpreter_failure(&format!("the process that ran the script has ended: {how}"))
    }
}

fn value(answer: &Answer<'_>) -> Option<Value> {
    match answer {
        Answer::Value(document) => Some(document.get("").map_or(Value::Undefined, ValueRef::to_value)),
        _ => None,
    }
}

/// A frame that goes to a worker.
#[derive(Clone, Copy)]
enum Sent {
    Request,
    Grant,
}

impl Drop for Client {
    fn drop(&mut self) {
        self.worker.end();
        self.operation.let_go_elsewhere(self.held_bytes);
        if let Worker::Process(_, workers) = &self.worker {
            workers.note_given_back(self.held_bytes);
        }
    }
}

/// Whether a call of a socket only took too long, or was interrupted.
fn has_to_wait(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}
