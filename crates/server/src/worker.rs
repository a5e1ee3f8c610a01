//! One thread that serves connections.

use crate::connection;
use crate::listener::Seat;
use crate::socket::Stream;
use bunko_command::{Peer, Service};
use bunko_wire::Codec;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use tokio::sync::{mpsc, watch};

/// Bytes taken from a socket at once.
const READ_BYTES: usize = 256 * 1024;
/// Reply buffers kept for reuse, and the largest that is kept.
const BUFFERS_MAX: usize = 16;
const BUFFER_BYTES_MAX: usize = 1 << 20;

/// A connection on its way to its thread.
pub(crate) struct NewConnection {
    pub id: i32,
    pub stream: Stream,
    pub peer: Peer,
}

/// What the connections of one thread share. They run one at a time, so an idle connection needs no buffer.
pub(crate) struct Worker {
    pub service: Arc<Service>,
    /// Connections of this thread.
    pub connections: Arc<AtomicUsize>,
    /// Where bytes from sockets land. Never borrowed across an await.
    pub read_buffer: RefCell<Vec<u8>>,
    /// Compression contexts. Never borrowed across an await.
    pub codec: RefCell<Codec>,
    buffers: RefCell<Vec<Vec<u8>>>,
}

impl Worker {
    /// Starts the thread.
    pub fn start(
        number: usize,
        service: &Arc<Service>,
        stopped: watch::Receiver<bool>,
    ) -> io::Result<(Seat, JoinHandle<()>)> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let connections = Arc::new(AtomicUsize::new(0));
        let seat = Seat { connections: Arc::clone(&connections), sender };
        let service = Arc::clone(service);
        let thread = std::thread::Builder::new().name(format!("conn-{number}")).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                // New requests matter as much as queued replies: look at the sockets often.
                .event_interval(31)
                .build()
                .expect("a runtime can be made for a worker");
            let worker = Rc::new(Self {
                service,
                connections,
                read_buffer: RefCell::new(vec![0; READ_BYTES]),
                codec: RefCell::new(Codec::new()),
                buffers: RefCell::new(Vec::new()),
            });
            let tasks = tokio::task::LocalSet::new();
            tasks.block_on(&runtime, worker.serve(receiver, stopped));
        })?;
        Ok((seat, thread))
    }

    async fn serve(
        self: Rc<Self>,
        mut new: mpsc::UnboundedReceiver<NewConnection>,
        mut stopped: watch::Receiver<bool>,
    ) {
        loop {
            let connection = tokio::select! {
                connection = new.recv() => connection,
                _ = stopped.wait_for(|stopped| *stopped) => None,
            };
            let Some(connection) = connection else { return };
            let worker = Rc::clone(&self);
            tokio::task::spawn_local(async move {
                let id = connection.id;
                let remote = connection.peer;
                let open = Open(Rc::clone(&worker));
                let reason = connection::serve(&worker, connection).await;
                drop(open);
                tracing::info!(target: "NETWORK", id = 22944, ctx = format!("conn{id}"), remote = %remote, connectionId = id, reason, "Connection ended");
            });
        }
    }

    /// A buffer for replies, empty.
    pub fn take_buffer(&self) -> Vec<u8> {
        self.buffers.borrow_mut().pop().unwrap_or_default()
    }

    /// Gives a buffer back.
    pub fn return_buffer(&self, mut buffer: Vec<u8>) {
        let mut buffers = self.buffers.borrow_mut();
        if buffers.len() < BUFFERS_MAX && buffer.capacity() <= BUFFER_BYTES_MAX {
            buffer.clear();
            buffers.push(buffer);
        }
    }
}

/// Counts a connection down even when a command panics.
struct Open(Rc<Worker>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
