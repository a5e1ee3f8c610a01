//! The processes of workers: their number, their assignment to operations, and their end.
//!
//! A dedicated thread starts the processes: the kernel ends a child together with the thread that started it, and this
//! thread lives as long as the server. An operation takes a process that was started in advance, so it need not wait,
//! and another one is started in its place. A process serves one operation and is then killed: nothing that a script
//! leaves behind reaches another client.
//!
//! Their number is limited. Operations beyond the limit wait in order of arrival. The first one in the queue ends the
//! process of a cursor that waits for its client, if there is one; that cursor later continues with a new process.

use crate::interpreter_failure::interpreter_failure;
use bunko_errors::Result;
use bunko_operation::{Clock, OperationContext};
use parking_lot::{Condvar, Mutex, MutexGuard};
use rustix::process::{Pid, setpriority_process};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fmt;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Interval at which a waiting thread asks its operation whether it must stop.
pub(crate) const NAP: Duration = Duration::from_millis(20);
/// Bytes that a worker takes before it runs a script, with its first credit.
pub const WORKER_BYTES: usize = 6 << 20;
/// A worker that has been idle for this long may be ended for an operation that waits.
const IDLE_MIN: Duration = Duration::from_millis(200);
/// The priority of a worker whose call takes long: beside threads that serve clients it gets a tenth of a processor.
const NICENESS: i32 = 10;
/// Interval at which a killed process is checked for its end.
const REAP: Duration = Duration::from_millis(2);
/// How long a process that closed its socket may take to end by itself.
const LAST_MOMENTS: u32 = 25;

/// Where operations find the workers for their scripts.
pub struct Workers {
    program: PathBuf,
    arguments: Vec<OsString>,
    most: usize,
    state: Mutex<SpareProcesses>,
    /// Wakes the thread that starts and reaps processes.
    wanted: Condvar,
    /// Wakes operations that wait.
    given: Condvar,
    held_bytes: AtomicU64,
}

#[derive(Default)]
struct SpareProcesses {
    has_thread: bool,
    /// Processes that wait for an operation.
    spares: Vec<Process>,
    /// Whether a process is kept ready for the next operation; not after the system refused to start one.
    keeps_spare: bool,
    /// Numbers of the operations that wait, in their order.
    queue: VecDeque<u64>,
    last_number: u64,
    /// Processes that operations have.
    lives: Vec<Arc<Life>>,
    /// Processes that were killed and have not ended yet.
    dying: Vec<Child>,
    failures: u64,
    last_failure: String,
}

/// A worker's process and its socket.
pub(crate) struct Process {
    pub socket: UnixStream,
    life: Arc<Life>,
}

/// The life of a process, which the pool may end while no call is made.
struct Life(Mutex<Living>);

struct Living {
    child: Option<Child>,
    /// The end of the last call; `None` during a call.
    idle: Option<Instant>,
}

impl Workers {
    /// Workers that run `program` with these arguments, which calls [`work_for_server`](crate::work_for_server); at
    /// most `most` at once. None is started before the first script.
    pub fn new(program: PathBuf, arguments: Vec<OsString>, most: usize) -> Arc<Self> {
        Arc::new(Self {
            program,
            arguments,
            most: most.max(1),
            state: Mutex::default(),
            wanted: Condvar::new(),
            given: Condvar::new(),
            held_bytes: AtomicU64::default(),
        })
    }

    /// Bytes that workers hold for operations.
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn note_held(&self, bytes: usize) {
        self.held_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn note_given_back(&self, bytes: usize) {
        self.held_bytes.fetch_sub(bytes as u64, Ordering::Relaxed);
    }

    /// A process that no other operation has had.
    /// # Errors
    /// As [`OperationContext::check`] while the operation waits; `JSInterpreterFailure` if no process can be started.
    pub(crate) fn take(self: &Arc<Self>, operation: &OperationContext) -> Result<Process> {
        let mut state = self.state.lock();
        self.start_thread(&mut state)?;
        state.last_number += 1;
        state.keeps_spare = true;
        let (number, failures) = (state.last_number, state.failures);
        state.queue.push_back(number);
        let taken = loop {
            if state.queue.front() == Some(&number)
                && let Some(process) = state.pop(self.most, operation.clock())
            {
                break Ok(process);
            }
            if state.failures != failures {
                break Err(interpreter_failure(&state.last_failure));
            }
            self.wanted.notify_one();
            self.given.wait_for(&mut state, NAP);
            if let Err(failure) = MutexGuard::unlocked(&mut state, || operation.check()) {
                break Err(failure);
            }
        };
        state.queue.retain(|waiting| *waiting != number);
        self.wanted.notify_one();
        self.given.notify_all();
        taken
    }

    /// Kills a process, whatever it is doing.
    pub(crate) fn end(&self, process: &Process) {
        let child = process.life.kill();
        let mut state = self.state.lock();
        state.dying.extend(child);
        state.lives.retain(|life| !Arc::ptr_eq(life, &process.life));
        self.wanted.notify_one();
        self.given.notify_all();
    }

    fn start_thread(self: &Arc<Self>, state: &mut SpareProcesses) -> Result<()> {
        if state.has_thread {
            return Ok(());
        }
        let workers = Arc::clone(self);
        let thread = std::thread::Builder::new().name("scripts".into()).spawn(move || workers.start_and_reap());
        thread.map_err(|error| interpreter_failure(&format!("cannot start a thread for scripts: {error}")))?;
        state.has_thread = true;
        Ok(())
    }

    fn start_and_reap(&self) {
        let mut state = self.state.lock();
        loop {
            state.dying.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
            let wanted = state.queue.len().min(self.most.saturating_sub(state.lives.len()));
            let wanted = wanted + usize::from(state.keeps_spare);
            if state.spares.len() < wanted {
                match MutexGuard::unlocked(&mut state, || self.start()) {
                    Ok(process) => state.spares.push(process),
                    Err(error) => {
                        state.last_failure = format!("cannot start a process for scripts: {error}");
                        state.failures += 1;
                        state.keeps_spare = false;
                    }
                }
                self.given.notify_all();
            } else if state.spares.len() > wanted {
                let killed = state.spares.pop().and_then(|spare| spare.life.kill());
                state.dying.extend(killed);
            } else if state.dying.is_empty() {
                self.wanted.wait(&mut state);
            } else {
                self.wanted.wait_for(&mut state, REAP);
            }
        }
    }

    fn start(&self) -> std::io::Result<Process> {
        let (socket, theirs) = UnixStream::pair()?;
        socket.set_read_timeout(Some(NAP))?;
        socket.set_write_timeout(Some(NAP))?;
        let mut command = Command::new(&self.program);
        // A process group of its own, so that the terminal's signals to the server do not reach it.
        command.arg0("bunko").args(&self.arguments).env_clear().process_group(0);
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn()?;
        Ok(Process { socket, life: Arc::new(Life(Mutex::new(Living { child: Some(child), idle: None }))) })
    }
}

impl SpareProcesses {
    /// Takes a spare process that still runs. If operations have `most` processes already, an idle one is ended first.
    /// `None` if none is idle, or if no spare process is left.
    fn pop(&mut self, most: usize, clock: &Clock) -> Option<Process> {
        if self.lives.len() >= most {
            self.end_idle(clock.now());
        }
        while self.lives.len() < most {
            let process = self.spares.pop()?;
            if process.life.has_ended() {
                continue;
            }
            self.lives.push(Arc::clone(&process.life));
            return Some(process);
        }
        None
    }

    /// Ends the process that has been idle for the longest time, if that time is at least [`IDLE_MIN`].
    fn end_idle(&mut self, now: Instant) {
        let idle = self.lives.iter().enumerate().filter_map(|(at, life)| Some((life.idle_since()?, at))).min();
        if let Some((since, at)) = idle
            && now.saturating_duration_since(since) >= IDLE_MIN
            && let Some(child) = self.lives[at].kill_if_idle()
        {
            self.dying.push(child);
            self.lives.swap_remove(at);
        }
    }
}

impl Process {
    /// Must be called before a call. Returns whether the process is still there.
    pub fn resume(&self) -> bool {
        let mut living = self.life.0.lock();
        living.idle = None;
        living.child.is_some()
    }

    /// Lowers the priority of the process, whose call takes long: threads that serve clients go first from now on.
    pub fn step_back(&self) {
        let living = self.life.0.lock();
        if let Some(child) = &living.child {
            // If the system refuses, the worker keeps its priority.
            let _ = setpriority_process(Some(Pid::from_child(child)), NICENESS);
        }
    }

    /// Notes that no call is made from `now` on, so that the process may be ended for another operation.
    pub fn rest(&self, now: Instant) {
        self.life.0.lock().idle = Some(now);
    }

    /// The exit status of a process that closed its socket; `None` if it has not ended.
    pub fn how_it_ended(&self) -> Option<String> {
        for _ in 0..LAST_MOMENTS {
            if let Ok(Some(status)) = self.life.0.lock().child.as_mut()?.try_wait() {
                return Some(status.to_string());
            }
            std::thread::sleep(REAP);
        }
        None
    }
}

impl Life {
    fn kill(&self) -> Option<Child> {
        self.0.lock().kill()
    }

    fn kill_if_idle(&self) -> Option<Child> {
        let mut living = self.0.lock();
        living.idle.and_then(|_| living.kill())
    }

    fn idle_since(&self) -> Option<Instant> {
        self.0.lock().idle
    }

    fn has_ended(&self) -> bool {
        let mut living = self.0.lock();
        living.child.as_mut().is_none_or(|child| !matches!(child.try_wait(), Ok(None)))
    }
}

impl Living {
    fn kill(&mut self) -> Option<Child> {
        let mut child = self.child.take()?;
        // The call fails only if the process has ended already.
        let _ = child.kill();
        Some(child)
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers").field("program", &self.program).field("most", &self.most).finish_non_exhaustive()
    }
}
