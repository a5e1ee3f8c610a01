//! The floor of an insert's cost: a server that reads whole frames, appends them to a file and acknowledges them
//! without decoding.
//!
//! Its cost is the kernel's share; no database can be cheaper. One thread, epoll.
//!
//! ```text
//! cargo run --release -p bunko-bench --example floor -- --port 27500 --log /tmp/floor.log
//! cargo run --release -p bunko-cli -- bench insert-matrix --uri mongodb://127.0.0.1:27500
//! ```
//! `--n N` says how many documents each reply acknowledges (batches), `--document-bytes B` answers with a found
//! document of that size and appends nothing (the floor of find). The lab's verdict "counts differ" is right here: the
//! server keeps no documents that could be counted.
#![forbid(unsafe_code)]

use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef};
use bunko_wire::{Header, MessageFlags, WireError, split_frame, write_message};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use std::collections::HashMap;
use std::error::Error;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};

/// The listener's number among those of the connections.
const LISTENER: u64 = 0;
const SCRATCH_BYTES: usize = 1 << 20;

struct Options {
    port: u16,
    log: Option<File>,
    reply: DocumentBuf,
}

fn parse_options() -> Result<Options, Box<dyn Error>> {
    let (mut port, mut log, mut n, mut document_bytes) = (27_500, None, 1_i32, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} has no value"))?;
        match name.as_str() {
            "--port" => port = value.parse()?,
            "--log" => log = Some(File::create(value)?),
            "--n" => n = value.parse()?,
            "--document-bytes" => document_bytes = Some(value.parse::<usize>()?),
            _ => return Err(format!("unknown option {name}").into()),
        }
    }
    let reply = document_bytes.map_or_else(|| DocumentBuf::new().with("n", n).with("ok", 1.0), found);
    Ok(Options { port, log, reply })
}

/// Reply of a find that found one document.
fn found(document_bytes: usize) -> DocumentBuf {
    let pad = vec![0; document_bytes.saturating_sub(13)];
    let document = DocumentBuf::new().with("d", ValueRef::Binary { subtype: 0, bytes: &pad });
    let batch: ArrayBuf = [&document].into_iter().collect();
    let cursor = DocumentBuf::new().with("firstBatch", &batch).with("id", 0_i64).with("ns", "floor.floor");
    DocumentBuf::new().with("cursor", &cursor).with("ok", 1.0)
}

/// A client, its incomplete request, and replies that it has not received.
struct Client {
    stream: TcpStream,
    partial: Vec<u8>,
    outgoing: Vec<u8>,
}

impl Client {
    /// Reads once and answers every whole frame. Returns false once the client is gone.
    fn serve(&mut self, scratch: &mut [u8], options: &mut Options) -> Result<bool, Box<dyn Error>> {
        let received = match self.stream.read(scratch) {
            Ok(0) => return Ok(false),
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(self.flush()),
            Err(_) => return Ok(false),
        };
        let consumed = if self.partial.is_empty() {
            let consumed = self.answer(&scratch[..received], options)?;
            self.partial.extend_from_slice(&scratch[consumed..received]);
            return Ok(self.flush());
        } else {
            self.partial.extend_from_slice(&scratch[..received]);
            let partial = std::mem::take(&mut self.partial);
            let consumed = self.answer(&partial, options);
            self.partial = partial;
            consumed?
        };
        self.partial.drain(..consumed);
        Ok(self.flush())
    }

    /// Appends the whole frames to the log in one write and replies to each; returns their length in bytes.
    fn answer(&mut self, bytes: &[u8], options: &mut Options) -> Result<usize, Box<dyn Error>> {
        let mut at = 0;
        while let Some((header, body, length)) = split_frame(&bytes[at..], bunko_wire::MAX_FRAME_BYTES)? {
            let flags = body.first_chunk().map_or(0, |&flags| u32::from_le_bytes(flags));
            if !MessageFlags(flags).contains(MessageFlags::MORE_TO_COME) {
                reply(&mut self.outgoing, header, &options.reply)?;
            }
            at += length;
        }
        if let Some(log) = &mut options.log {
            log.write_all(&bytes[..at])?;
        }
        Ok(at)
    }

    /// Writes as much as the client receives. Returns false once the client is gone.
    fn flush(&mut self) -> bool {
        while !self.outgoing.is_empty() {
            match self.stream.write(&self.outgoing) {
                Ok(written) => drop(self.outgoing.drain(..written)),
                // Retried with the client's next request; a generator that reads its replies does not get here.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => return false,
            }
        }
        true
    }
}

fn reply(out: &mut Vec<u8>, request: Header, body: &DocumentBuf) -> Result<usize, WireError> {
    let write_body = |out: &mut Vec<u8>| out.extend_from_slice(body.as_ref().as_bytes());
    write_message(out, 0, request.request_id, MessageFlags::NONE, write_body)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut options = parse_options()?;
    let listener = TcpListener::bind(("127.0.0.1", options.port))?;
    listener.set_nonblocking(true)?;
    println!("the floor answers on {}", listener.local_addr()?);
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
    let (mut clients, mut last_client) = (HashMap::new(), LISTENER);
    let (mut scratch, mut events) = (vec![0; SCRATCH_BYTES], Vec::with_capacity(256));
    loop {
        epoll::wait(&epoll, spare_capacity(&mut events), None)?;
        for event in events.drain(..) {
            let number = event.data.u64();
            if number == LISTENER {
                let Ok((stream, _)) = listener.accept() else { continue };
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                last_client += 1;
                epoll::add(&epoll, &stream, EventData::new_u64(last_client), EventFlags::IN)?;
                clients.insert(last_client, Client { stream, partial: Vec::new(), outgoing: Vec::new() });
            } else if let Some(client) = clients.get_mut(&number)
                && !client.serve(&mut scratch, &mut options)?
            {
                clients.remove(&number);
            }
        }
    }
}
