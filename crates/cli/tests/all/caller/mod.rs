//! A client that survives kills of its server: it connects again, at the server's new address.

use crate::peer::{command, message};
use bunko_bson::{DocumentBuf, number};
use bunko_testkit::random::Random;
use bunko_wire::{HEADER_BYTES, Message, MessageFlags, needed_bytes};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_mins(1);

/// The server's current address.
pub type Address = Arc<Mutex<SocketAddr>>;

pub struct Caller {
    address: Address,
    stream: Option<TcpStream>,
    random: Random,
}

impl Caller {
    pub fn new(address: &Address, seed: u64) -> Self {
        Self { address: Arc::clone(address), stream: None, random: Random(seed) }
    }

    /// A number below `end`, equal in every run.
    pub fn below(&mut self, end: u64) -> u64 {
        self.random.below(end)
    }

    /// Sends a command once; `None` if no reply arrived.
    pub fn send(&mut self, database: &str, text: &str) -> Option<DocumentBuf> {
        self.send_document(&command(database, text))
    }

    /// As [`Self::send`], for a body that contains its `$db`.
    pub fn send_document(&mut self, body: &DocumentBuf) -> Option<DocumentBuf> {
        let reply = self.exchange(&message(1, MessageFlags::NONE, body.as_ref()));
        if reply.is_none() {
            self.hang_up();
        }
        reply
    }

    /// Drops the connection, as a killed client does.
    pub fn hang_up(&mut self) {
        self.stream = None;
    }

    fn exchange(&mut self, request: &[u8]) -> Option<DocumentBuf> {
        if self.stream.is_none() {
            let address = *self.address.lock().expect("not poisoned");
            let stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
            stream.set_read_timeout(Some(PATIENCE)).ok()?;
            stream.set_nodelay(true).ok()?;
            self.stream = Some(stream);
        }
        let stream = self.stream.as_mut()?;
        stream.write_all(request).ok()?;
        let mut frame = vec![0; HEADER_BYTES];
        stream.read_exact(&mut frame).ok()?;
        frame.resize(needed_bytes(&frame).expect("a length within limits"), 0);
        stream.read_exact(&mut frame[HEADER_BYTES..]).ok()?;
        Some(Message::parse(&frame).expect("a valid OP_MSG").body.to_owned())
    }
}

pub fn code(reply: &DocumentBuf) -> i64 {
    reply.as_ref().get("code").and_then(number::as_i64_exact).unwrap_or(0)
}

pub fn is_ok(reply: &DocumentBuf) -> bool {
    reply.as_ref().get("ok").and_then(number::as_i64_exact) == Some(1) && reply.as_ref().get("writeErrors").is_none()
}
