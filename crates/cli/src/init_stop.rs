//! Signals that ask a server to stop while its init scripts run. The first process of a container has to handle them:
//! the kernel does not end that process for a signal that it does not handle. A signal ends the running script with the
//! programs that it has started, and the start fails.

use rustix::process::{Pid, Signal, kill_process_group};
use std::fmt::Display;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// How long a script may take to end after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(1);

/// The signals that ask for the end.
pub struct StopSignals {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// The signal that came first.
    heard: Option<&'static str>,
    /// The process group of the running script.
    script: Option<Pid>,
}

impl StopSignals {
    /// Handles the signals from now on, to the end of the process's program.
    /// # Errors
    /// A sentence, if no thread can be started.
    pub fn hear() -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("cannot handle signals: {error}");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let (mut terminate, mut interrupt, mut hang_up) = {
            let _context = runtime.enter();
            let register = |kind| signal(kind).map_err(failed);
            (register(SignalKind::terminate())?, register(SignalKind::interrupt())?, register(SignalKind::hangup())?)
        };
        let state = Arc::new(Mutex::new(State::default()));
        let heard = Arc::clone(&state);
        let hear = move || {
            runtime.block_on(async move {
                let name = tokio::select! {
                    _ = terminate.recv() => "SIGTERM",
                    _ = interrupt.recv() => "SIGINT",
                    _ = hang_up.recv() => "SIGHUP",
                };
                locked(&heard).heard = Some(name);
                end_script(&heard, Signal::TERM);
                tokio::time::sleep(PATIENCE).await;
                end_script(&heard, Signal::KILL);
            });
        };
        std::thread::Builder::new().name("init-signals".to_owned()).spawn(hear).map_err(failed)?;
        Ok(Self { state })
    }

    /// Fails if a signal has come. `place` names the step before which it came.
    /// # Errors
    /// A sentence that names the signal.
    pub fn check(&self, place: &impl Display) -> Result<(), String> {
        match locked(&self.state).heard {
            Some(signal) => Err(format!("{signal} before {place}")),
            None => Ok(()),
        }
    }

    /// Waits for the end of a script, which leads a process group.
    /// # Errors
    /// If the system has lost the process.
    pub fn while_running(&self, script: &mut Child) -> std::io::Result<ExitStatus> {
        locked(&self.state).script = Pid::from_raw(script.id().cast_signed());
        if locked(&self.state).heard.is_some() {
            end_script(&self.state, Signal::TERM);
        }
        let status = script.wait();
        locked(&self.state).script = None;
        status
    }
}

/// The state is whole whatever thread has panicked: each change of it is one assignment.
fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn end_script(state: &Mutex<State>, signal: Signal) {
    if let Some(group) = locked(state).script {
        // The script may have ended by itself.
        let _ = kill_process_group(group, signal);
    }
}
