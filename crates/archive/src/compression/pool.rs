//! Threads that take jobs in turn. Each job's result arrives on a channel of its own, so the submitting thread can keep
//! the order.

use std::io;
use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

/// The job queue has no limit of its own: the submitting thread limits the jobs in flight.
pub(super) struct Pool<J, D> {
    jobs: Option<Sender<(J, SyncSender<D>)>>,
    threads: Vec<JoinHandle<()>>,
}

impl<J: Send + 'static, D: Send + 'static> Pool<J, D> {
    /// Starts threads, each with its own worker.
    pub(super) fn start<W>(name: &str, threads: NonZeroUsize, worker: impl Fn() -> W) -> io::Result<Self>
    where
        W: FnMut(J) -> D + Send + 'static,
    {
        let (jobs, queue) = channel::<(J, SyncSender<D>)>();
        let queue = Arc::new(Mutex::new(queue));
        let threads = (0..threads.get())
            .map(|number| {
                let (queue, mut work) = (queue.clone(), worker());
                Builder::new().name(format!("{name}-{number}")).spawn(move || {
                    while let Ok((job, done)) = next(&queue) {
                        // The error is ignored: the receiver was dropped, and soon the queue ends too.
                        let _ = done.send(work(job));
                    }
                })
            })
            .collect::<io::Result<_>>()?;
        Ok(Self { jobs: Some(jobs), threads })
    }

    /// Queues a job. The receiver fails if its worker panicked.
    pub(super) fn submit(&self, job: J) -> Receiver<D> {
        let (done, result) = sync_channel(1);
        if let Some(jobs) = &self.jobs {
            // Fails only if all workers have panicked; then the receiver fails as well.
            let _ = jobs.send((job, done));
        }
        result
    }
}

fn next<T>(queue: &Mutex<Receiver<T>>) -> Result<T, std::sync::mpsc::RecvError> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).recv()
}

impl<J, D> Drop for Pool<J, D> {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            // A worker's panic was seen by the receiver of its result.
            let _ = thread.join();
        }
    }
}
