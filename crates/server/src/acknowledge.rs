//! Waiting until a reply's promise holds: the records that it acknowledges are written or durable.
//!
//! - `Acknowledgement::Written` is one `pwrite` of everything appended so far. Connections that are ready together
//!   share it: each lets the others append first.
//! - `Acknowledgement::Durable` (`j: true`, `w: "majority"`) waits for the thread `log-sync`, whose one fdatasync
//!   serves all waiting connections. Other writes do not wait for a sync, but the same thread syncs every
//!   `commitIntervalMs`.
//!
//! All replies of one pass over a socket go out together, after the strongest acknowledgement among them. While the
//! engines' flushes are far behind the writers, replies to writes are delayed: this slows the clients down without
//! holding a thread that serves others.

use bunko_command::{Acknowledgement, Service};
use bunko_store::{Lag, STALL, STALLS_MAX, StorageError, Store};
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

/// Waits until the acknowledgement holds.
pub(crate) async fn wait(
    service: &Service,
    acknowledgement: Acknowledgement,
    peers: usize,
) -> Result<(), StorageError> {
    let store = service.catalog.store();
    if acknowledgement != Acknowledgement::None {
        keep_pace(store).await;
    }
    match acknowledgement {
        Acknowledgement::None => Ok(()),
        Acknowledgement::Written(lsn) => {
            // Other ready connections append first, so that one write to the log serves all of them.
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

/// Delays a reply while the engines' flushes lag behind the writers. The delay slows down the client's next write.
async fn keep_pace(store: &Store) {
    if store.lag() == Lag::None {
        return;
    }
    store.note_stall();
    for _ in 0..STALLS_MAX {
        tokio::time::sleep(STALL).await;
        if store.lag() == Lag::None {
            break;
        }
    }
}

/// Returns after the thread's other ready tasks have run.
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

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_engines::EngineOptions;
    use bunko_store::{Batch, KeyspaceId, RecordId, StillFiles, StoreOptions};
    use std::cell::Cell;
    use std::pin::pin;
    use std::sync::Arc;
    use std::time::Instant;

    /// Number of turns that another task of the thread has until the first one is done.
    async fn turns_until(is_done: &Cell<bool>) -> usize {
        let mut turns = 0;
        while !is_done.get() {
            tokio::task::yield_now().await;
            turns += 1;
        }
        turns
    }

    #[test]
    fn a_reply_waits_for_the_flush_without_its_thread() {
        let engine = bunko_engines::find("lsm").unwrap();
        let directory = tempfile::tempdir().unwrap();
        let options = StoreOptions { unflushed_bytes_max: 0, ..StoreOptions::at_rest() };
        let store = Store::open(directory.path(), options, bunko_engines::table(engine, &EngineOptions::default()));
        let store: Arc<Store> = store.unwrap();
        let still = StillFiles::hold(&store);
        let mut batch = Batch::new();
        batch.put_key(KeyspaceId(5), b"key", RecordId(1));
        store.commit(&batch).unwrap();
        assert_ne!(store.lag(), Lag::None);
        let longest = STALL * STALLS_MAX as u32;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let began = Instant::now();
        let is_done = Cell::new(false);
        let (waited, turns) = runtime.block_on(async {
            let waited = async {
                keep_pace(&store).await;
                is_done.set(true);
                began.elapsed()
            };
            tokio::join!(waited, turns_until(&is_done))
        });
        // A busy machine only makes the wait longer.
        assert!(waited >= longest, "{waited:?}");
        // A wait that kept the thread would leave the other task one turn for each stall.
        assert!(turns > 4 * STALLS_MAX, "{turns} turns");
        drop(still);
        store.checkpoint().unwrap();
        let mut pace = pin!(keep_pace(&store));
        assert!(runtime.block_on(poll_fn(|context| Poll::Ready(pace.as_mut().poll(context).is_ready()))));
        store.close().unwrap();
    }
}
