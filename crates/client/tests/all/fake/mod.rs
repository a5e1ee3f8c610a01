//! A server that answers as a test prescribes.
use bunko_bson::{DocumentBuf, ValueRef};
use bunko_client::frame::{self, FrameWriter, ReplyMode};
use bunko_wire::{HEADER_BYTES, Message, needed_bytes};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

/// One connection's server side.
pub trait Session: Send {
    /// Answers a command. `name` is the name of its first field.
    fn answer(&mut self, name: &str, command: &DocumentBuf) -> DocumentBuf;
}

impl<F: FnMut(&str, &DocumentBuf) -> DocumentBuf + Send> Session for F {
    fn answer(&mut self, name: &str, command: &DocumentBuf) -> DocumentBuf {
        self(name, command)
    }
}

/// A stream of either kind.
pub trait Bytes: Read + Write {}
impl<S: Read + Write> Bytes for S {}

/// A listener that has not accepted a connection yet, and its address.
pub fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    (listener, address)
}

/// Serves all connections of `listener`, each with a session of its own.
pub fn serve<S: Session>(listener: TcpListener, new_session: impl Fn() -> S + Send + Sync + 'static) {
    serve_wrapped(listener, |stream| Box::new(stream), new_session);
}

/// As [`serve`], over the stream that `wrap` makes of each socket.
pub fn serve_wrapped<S: Session>(
    listener: TcpListener,
    wrap: impl Fn(TcpStream) -> Box<dyn Bytes> + Send + Sync + 'static,
    new_session: impl Fn() -> S + Send + Sync + 'static,
) {
    let shared = Arc::new((wrap, new_session));
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let shared = Arc::clone(&shared);
            // A client that disconnects ends its thread with an error.
            thread::spawn(move || converse(&mut *shared.0(stream), shared.1()));
        }
    });
}

/// Answers until the client disconnects.
pub fn converse(stream: &mut dyn Bytes, mut session: impl Session) -> std::io::Result<()> {
    loop {
        let mut request = vec![0; HEADER_BYTES];
        stream.read_exact(&mut request)?;
        request.resize(needed_bytes(&request).expect("a sound length"), 0);
        stream.read_exact(&mut request[HEADER_BYTES..])?;
        let message = Message::parse(&request).expect("a sound request");
        let name = message.body.into_iter().next().expect("a command").name;
        let body = session.answer(name, &message.body.to_owned());
        if !frame::expects_reply(&request) {
            continue;
        }
        let mut reply = Vec::new();
        FrameWriter::new(&mut reply, 1, ReplyMode::Expected, body.as_ref()).finish().expect("short");
        reply[8..12].copy_from_slice(&request[4..8]);
        stream.write_all(&reply)?;
        stream.flush()?;
    }
}

/// `{ok: 1}`.
pub fn ok() -> DocumentBuf {
    DocumentBuf::new().with("ok", 1.0)
}

/// `{ok: 0}` with a code and its name.
pub fn refusal(code: i32, code_name: &str, message: &str) -> DocumentBuf {
    let error = DocumentBuf::new().with("ok", 0.0).with("errmsg", message);
    error.with("code", code).with("codeName", code_name)
}

/// A text field.
pub fn text<'d>(document: &'d DocumentBuf, name: &str) -> &'d str {
    document.as_ref().get(name).and_then(ValueRef::as_str).unwrap_or_default()
}
