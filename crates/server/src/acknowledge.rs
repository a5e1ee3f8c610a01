//! Waiting until what a reply says is true.

use bunko_command::{Acknowledgement, Service};
use bunko_store::StorageError;
use std::future::poll_fn;
use std::task::Poll;

/// The stronger of two: a later record implies the earlier ones.
pub(crate) fn stronger(one: Acknowledgement, other: Acknowledgement) -> Acknowledgement {
    use Acknowledgement::{Durable, None, Written};
    match (one, other) {
        (None, any) | (any, None) => any,
        (Durable(one), Durable(other) | Written(other)) | (Written(one), Durable(other)) => Durable(one.max(other)),
        (Written(one), Written(other)) => Written(one.max(other)),
    }
}

/// Returns once it holds.
pub(crate) async fn wait(
    service: &Service,
    acknowledgement: Acknowledgement,
    peers: usize,
) -> Result<(), StorageError> {
    let store = service.catalog.store();
    match acknowledgement {
        Acknowledgement::None => Ok(()),
        Acknowledgement::Written(lsn) => {
            // Other connections that are ready append first, so that one write to the log serves them all.
            if peers > 1 {
                let_the_ready_run().await;
            }
            store.write(lsn)
        }
        Acknowledgement::Durable(lsn) => {
            let (sender, receiver) = tokio::sync::oneshot::channel();
            store.on_durable(lsn, Box::new(move |outcome| drop(sender.send(outcome))));
            receiver.await.unwrap_or(Err(StorageError::LogFailed))
        }
    }
}

/// Goes to the end of the thread's queue.
pub(crate) async fn let_the_ready_run() {
    let mut have_run = false;
    poll_fn(|context| {
        if std::mem::replace(&mut have_run, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
