//! State that all threads of a restore share.

use super::batch::Batch;
use super::incarnation;
use super::insert::{Form, is_journaled};
use super::options::{Bulk, Oplog, RestoreOptions};
use super::pool::Pool;
use super::queue::Queue;
use super::resume::ResumeLog;
use super::target::RestoredNamespace;
use crate::error::OUT_OF_DISK_SPACE;
use crate::progress::{Activity, Progress};
use crate::retry::Backoff;
use crate::{Interrupted, Link, Server, ToolError};
use bunko_bson::{DocumentBuf, ObjectId};
use bunko_client::{ClientError, CommandError};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, OnceLock};

/// One restore.
pub(super) struct Run<'r> {
    pub(super) server: &'r dyn Server,
    pub(super) options: &'r RestoreOptions,
    pub(super) progress: &'r Arc<Progress>,
    pub(super) interrupted: &'r Interrupted,
    pub(super) targets: Vec<Arc<RestoredNamespace>>,
    pub(super) form: Form,
    /// Bytes of documents that still go through the log although the bulk path is available.
    log_bytes: AtomicU64,
    pub(super) queue: Queue,
    pub(super) pool: Arc<Pool>,
    pub(super) resume: Option<ResumeLog>,
    /// Takes targets whose documents are all loaded, for the index builder; `None` once no more will come.
    loaded: Mutex<Option<Sender<Arc<RestoredNamespace>>>>,
    /// Reason why the run ended; the first one counts.
    cause: Mutex<Option<ToolError>>,
    is_over: AtomicBool,
    is_read: AtomicBool,
    /// The server process that the run began with.
    incarnation: OnceLock<Option<ObjectId>>,
    has_restarted: AtomicBool,
}

impl<'r> Run<'r> {
    pub(super) fn new(
        server: &'r dyn Server,
        options: &'r RestoreOptions,
        progress: &'r Arc<Progress>,
        interrupted: &'r Interrupted,
        form: Form,
    ) -> Self {
        Self {
            server,
            options,
            progress,
            interrupted,
            targets: Vec::new(),
            pool: Pool::new(form.batch_bytes()),
            form,
            log_bytes: AtomicU64::new(match options.bulk {
                Bulk::Behind { log_bytes } => log_bytes,
                Bulk::Automatic | Bulk::Never => 0,
            }),
            queue: Queue::default(),
            resume: None,
            loaded: Mutex::new(None),
            cause: Mutex::new(None),
            is_over: AtomicBool::new(false),
            is_read: AtomicBool::new(false),
            incarnation: OnceLock::new(),
            has_restarted: AtomicBool::new(false),
        }
    }

    /// Whether the run is over: threads end without finishing their work.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed) || self.interrupted.load(Ordering::Relaxed)
    }

    /// Ends the run with this error.
    pub(super) fn stop(&self, cause: ToolError) {
        self.cause.lock().get_or_insert(cause);
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Ends reading with this error. Documents that were already read are still sent, so that their result is known.
    pub(super) fn stop_reading(&self, cause: ToolError) {
        self.cause.lock().get_or_insert(cause);
        self.is_read.store(true, Ordering::Relaxed);
    }

    /// Whether readers should stop reading.
    pub(super) fn is_read(&self) -> bool {
        self.is_read.load(Ordering::Relaxed) || self.is_over()
    }

    /// Why the run ended early, if it did.
    pub(super) fn take_cause(&self) -> Option<ToolError> {
        let cause = self.cause.lock().take();
        cause.or_else(|| self.interrupted.load(Ordering::Relaxed).then_some(ToolError::Interrupted))
    }

    /// Connects, with retries.
    /// # Errors
    /// The last attempt's error, or `Interrupted`. `Failed` if the server was restarted, may have lost acknowledged
    /// writes, and there is a state to resume from.
    pub(super) fn connect(&self, namespace: &str) -> Result<Box<dyn Link>, ToolError> {
        let mut backoff = Backoff::default();
        loop {
            let connected = self.progress.time(Activity::Network, || {
                let mut link = self.server.connect()?;
                let incarnation = incarnation::of(&mut *link)?;
                Ok((link, incarnation))
            });
            match connected {
                Ok((link, incarnation)) => return self.recognise(incarnation).map(|()| link),
                Err(error) => backoff.wait(namespace, error, self.interrupted)?,
            }
        }
    }

    fn recognise(&self, incarnation: Option<ObjectId>) -> Result<(), ToolError> {
        let first = *self.incarnation.get_or_init(|| incarnation);
        let is_same = first.is_none() || incarnation.is_none() || first == incarnation;
        if is_same || is_journaled(&self.options.write_concern) {
            return Ok(());
        }
        self.has_restarted.store(true, Ordering::Relaxed);
        // Without a state the run cannot be resumed; the summary warns instead.
        match &self.resume {
            None => Ok(()),
            Some(_) => Err(ToolError::Failed("the server was restarted, time and again".to_owned())),
        }
    }

    /// Whether a later connection found another server process, which may have lost acknowledged writes.
    pub(super) fn has_restarted(&self) -> bool {
        self.has_restarted.load(Ordering::Relaxed)
    }

    /// The command for these documents. Must be called once for each batch, because it counts their bytes.
    pub(super) fn form_of(&self, batch: &Batch) -> Form {
        if self.form == Form::Insert || batch.target.refuses_bulk.load(Ordering::Relaxed) {
            return Form::Insert;
        }
        let bytes = batch.bytes.len() as u64;
        let is_for_the_log =
            self.log_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok();
        if is_for_the_log { Form::Insert } else { self.form }
    }

    /// Runs an idempotent command, over a new link if the old one broke.
    /// # Errors
    /// The inner error is the server's refusal. A full disk of the server is an outer error and ends the run.
    pub(super) fn command(
        &self,
        link: &mut Box<dyn Link>,
        activity: Activity,
        (database, collection): (&str, &str),
        command: &DocumentBuf,
    ) -> Result<Result<DocumentBuf, CommandError>, ToolError> {
        let mut backoff = Backoff::default();
        let namespace = || format!("{database}.{collection}");
        loop {
            match self.progress.time(activity, || link.run(database, command)) {
                Ok(reply) => return Ok(Ok(reply)),
                Err(ClientError::Command(refusal)) if refusal.code == OUT_OF_DISK_SPACE => {
                    return Err(ToolError::server(namespace(), refusal));
                }
                Err(ClientError::Command(refusal)) if !is_passing(&refusal) => return Ok(Err(refusal)),
                Err(error) => backoff.wait(&namespace(), error, self.interrupted)?,
            }
            *link = self.connect(&namespace())?;
        }
    }

    /// Sets the receiver of loaded targets.
    pub(super) fn send_loaded_to(&self, sender: Option<Sender<Arc<RestoredNamespace>>>) {
        *self.loaded.lock() = sender;
    }

    /// Marks a batch as finished: the server has stored its documents, or refuses them for good.
    pub(super) fn acknowledge(&self, batch: &Batch) {
        let mut ledger = batch.target.ledger();
        ledger.acknowledge(batch.stretch.clone());
        let is_loaded = ledger.is_complete();
        drop(ledger);
        if is_loaded {
            self.loaded(&batch.target);
        }
    }

    /// Marks the end of a target's documents.
    pub(super) fn end(&self, target: &Arc<RestoredNamespace>) {
        let mut ledger = target.ledger();
        ledger.end();
        let is_loaded = ledger.is_complete();
        drop(ledger);
        if is_loaded {
            self.loaded(target);
        }
    }

    fn loaded(&self, target: &Arc<RestoredNamespace>) {
        // With an oplog, indexes wait for it: a unique index may hold only after the replay.
        if target.has_failed() || self.options.oplog != Oplog::None {
            return;
        }
        if let Some(sender) = &*self.loaded.lock() {
            // The builder ends only when the run is over.
            let _ = sender.send(Arc::clone(target));
        }
    }
}

fn is_passing(refusal: &CommandError) -> bool {
    crate::retry::is_transient(&ClientError::Command(refusal.clone()))
}
