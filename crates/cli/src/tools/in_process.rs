//! A data directory that the tool opens itself: commands run on the calling threads, without a socket.
//!
//! A restore with `--dbpath` sends its first documents as plain inserts (`Bulk::Behind` of `tools`): the log takes them
//! faster, and moves them to their final place after the tool has ended.

use crate::allocator::keep_freed_memory;
use crate::configuration::{Configuration, ServeArguments, Settings};
use crate::serve;
use bunko_bson::DocumentRef;
use bunko_client::ClientError;
use bunko_command::{Acknowledgement, ClientConnection, Peer, Request, RunOn, Service};
use bunko_store::{StorageError, Store};
use bunko_tools::{Command, Link, Server};
use bunko_wire::Message;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, mpsc};

/// A server inside this process.
pub struct InProcess {
    service: Arc<Service>,
    store: Arc<Store>,
    name: String,
    connections: AtomicI32,
}

impl InProcess {
    /// Opens a data directory as `bunko serve` would with its defaults.
    /// # Errors
    /// One line that names the directory.
    pub fn open(dbpath: &Path, engine: Option<&str>) -> Result<Self, String> {
        let configuration = Configuration::read(&ServeArguments::of_directory(dbpath, engine)?)?;
        let settings = Settings::new(&configuration)?;
        keep_freed_memory();
        let (store, service) = serve::open_service(&settings)?;
        Ok(Self { service, store, name: dbpath.display().to_string(), connections: AtomicI32::new(0) })
    }

    /// Makes all writes durable and closes the directory.
    /// # Errors
    /// One line.
    pub fn close(self) -> Result<(), String> {
        self.store.close().map_err(|error| format!("cannot close the data directory: {error}"))
    }
}

impl Server for InProcess {
    fn connect(&self) -> Result<Box<dyn Link>, ClientError> {
        let number = self.connections.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(Box::new(Call {
            service: Arc::clone(&self.service),
            name: self.name.clone(),
            connection: ClientConnection::new(number, Peer::Unix),
            replies: VecDeque::new(),
            handed_out: Vec::new(),
        }))
    }

    fn name(&self) -> &str {
        &self.name
    }
}

/// A connection without a socket.
struct Call {
    service: Arc<Service>,
    name: String,
    connection: ClientConnection,
    replies: VecDeque<Vec<u8>>,
    /// The reply that the caller is reading.
    handed_out: Vec<u8>,
}

impl Call {
    fn violation(&self, detail: String) -> ClientError {
        ClientError::Protocol { address: self.name.clone(), detail }
    }

    /// Waits until the write has the durability that the reply promises.
    fn wait(&self, acknowledgement: Acknowledgement) -> Result<(), StorageError> {
        let store = self.service.catalog.store();
        match acknowledgement {
            Acknowledgement::None => Ok(()),
            Acknowledgement::Written(lsn) => store.write(lsn),
            Acknowledgement::Durable(lsn) => {
                let (sender, receiver) = mpsc::channel();
                store.on_durable(lsn, Box::new(move |outcome| drop(sender.send(outcome))));
                receiver.recv().unwrap_or(Err(StorageError::LogFailed))
            }
        }
    }
}

impl Link for Call {
    fn send(&mut self, command: Command<'_>) -> Result<(), ClientError> {
        let body = command.body.to_owned().with("$db", command.database);
        let message = Message::of_parts(body.as_ref(), command.documents);
        let message = message.map_err(|error| self.violation(error.to_string()))?;
        let request = Request::new(command.database, message.body, Some(&message));
        let mut reply = Vec::new();
        let answer = self.service.run(&mut self.connection, request, RunOn::OwnThread, &mut reply);
        let answer = answer.map_err(|_| self.violation("a command is too long to be run".into()))?;
        self.wait(answer.acknowledgement).map_err(|error| self.violation(error.to_string()))?;
        self.replies.push_back(reply);
        Ok(())
    }

    fn receive(&mut self) -> Result<DocumentRef<'_>, ClientError> {
        self.handed_out = self.replies.pop_front().expect("a request is in flight");
        Ok(DocumentRef::trusted(&self.handed_out))
    }

    fn in_flight(&self) -> usize {
        self.replies.len()
    }
}
