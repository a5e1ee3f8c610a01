//! A proxy that answers some commands itself, like a server that lacks a command or asks for a password.

use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_wire::{HEADER_BYTES, Message, MessageFlags, needed_bytes, write_message};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;

/// The proxy's reply to a command; `None` forwards it to the server.
pub type Answer = fn(DocumentRef<'_>) -> Option<DocumentBuf>;

/// Starts a proxy; returns its port.
pub fn start(backend: SocketAddr, answer: Answer) -> u16 {
    accept(move |client| relay(client, TcpStream::connect(backend)?, answer))
}

/// Starts a proxy that uses TLS, with a certificate for `localhost` whose PEM is written to `ca_file`.
pub fn start_tls(backend: SocketAddr, ca_file: &Path, answer: Answer) -> u16 {
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    std::fs::write(ca_file, cert.pem()).expect("written");
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.expect("the defaults").with_no_client_auth();
    let configuration = Arc::new(builder.with_single_cert(vec![cert.der().clone()], key).expect("they fit"));
    accept(move |client| {
        let session = ServerConnection::new(Arc::clone(&configuration)).map_err(io::Error::other)?;
        relay(StreamOwned::new(session, client), TcpStream::connect(backend)?, answer)
    })
}

fn accept(serve: impl Fn(TcpStream) -> io::Result<()> + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let serve = Arc::clone(&serve);
            // A client that disconnects ends its thread with an error.
            thread::spawn(move || serve(client));
        }
    });
    port
}

/// Forwards each request and its reply.
fn relay(mut client: impl Read + Write, mut server: TcpStream, answer: Answer) -> io::Result<()> {
    server.set_nodelay(true)?;
    loop {
        let request = read_frame(&mut client)?;
        let message = Message::parse(&request).map_err(io::Error::other)?;
        let reply = match answer(message.body) {
            Some(own) => {
                let mut reply = Vec::new();
                let body = |out: &mut Vec<u8>| out.extend_from_slice(own.as_ref().as_bytes());
                write_message(&mut reply, 1, message.header.request_id, MessageFlags::NONE, body)
                    .map_err(io::Error::other)?;
                reply
            }
            None => {
                server.write_all(&request)?;
                read_frame(&mut server)?
            }
        };
        client.write_all(&reply)?;
        client.flush()?;
    }
}

fn read_frame(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; HEADER_BYTES];
    from.read_exact(&mut frame)?;
    frame.resize(needed_bytes(&frame).ok_or(io::ErrorKind::InvalidData)?, 0);
    from.read_exact(&mut frame[HEADER_BYTES..])?;
    Ok(frame)
}
