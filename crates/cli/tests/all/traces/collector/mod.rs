//! A collector of OpenTelemetry, as far as a server notices one: it takes requests, and answers as a test tells it.

pub mod decoded;

use crate::tls::authority::Authority;
use bunko_testkit::patience::PATIENCE;
use decoded::{Batch, batch};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

/// The answer of a collector that takes all spans of a request.
pub const TAKEN: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n";

/// A collector that runs until the test ends.
pub struct Collector {
    address: SocketAddr,
    requests: Receiver<Request>,
}

/// One request.
pub struct Request {
    /// The lines of its head.
    pub head: String,
    /// Its body.
    pub body: Vec<u8>,
}

impl Collector {
    /// Listens, and gives these answers in their order, then [`TAKEN`]. An empty answer closes the connection.
    pub fn start(answers: &[&'static str]) -> Self {
        Self::listen(TcpListener::bind("127.0.0.1:0").expect("bound"), answers, None)
    }

    /// As [`Self::start`], on a port that the test knows, and without answers of its own.
    pub fn start_at(port: u16) -> Self {
        Self::listen(TcpListener::bind(("127.0.0.1", port)).expect("bound"), &[], None)
    }

    /// As [`Self::start`], by TLS with the authority's certificate for servers.
    pub fn start_encrypted(authority: &Authority) -> Self {
        let file = authority.file("server.pem");
        let chain =
            CertificateDer::pem_file_iter(&file).expect("a file").collect::<Result<_, _>>().expect("certificates");
        let key = PrivateKeyDer::from_pem_file(&file).expect("a key");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let configuration = builder.expect("versions").with_no_client_auth().with_single_cert(chain, key);
        let configuration = Arc::new(configuration.expect("a key for the certificate"));
        Self::listen(TcpListener::bind("127.0.0.1:0").expect("bound"), &[], Some(configuration))
    }

    fn listen(listener: TcpListener, answers: &[&'static str], tls: Option<Arc<ServerConfig>>) -> Self {
        let address = listener.local_addr().expect("bound");
        let (sender, requests) = channel();
        let answers = Arc::new(Mutex::new(answers.iter().copied().collect::<VecDeque<_>>()));
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let socket = socket.expect("accepted");
                let (answers, sender, tls) = (Arc::clone(&answers), sender.clone(), tls.clone());
                std::thread::spawn(move || match tls {
                    None => serve(socket, &answers, &sender),
                    Some(tls) => serve(encrypted(tls, socket), &answers, &sender),
                });
            }
        });
        Self { address, requests }
    }

    /// The URL of the collector.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The URL of a collector that speaks TLS.
    pub fn encrypted_url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The next request.
    pub fn request(&self) -> Request {
        self.requests.recv_timeout(PATIENCE).expect("a request")
    }

    /// Batches, until one has a span that the test looks for.
    pub fn batch_with(&self, name: &str) -> Batch {
        loop {
            let batch = batch(&self.request().body);
            if batch.spans.iter().any(|span| span.name == name) {
                return batch;
            }
        }
    }
}

fn encrypted(tls: Arc<ServerConfig>, socket: TcpStream) -> StreamOwned<ServerConnection, TcpStream> {
    StreamOwned::new(ServerConnection::new(tls).expect("a configuration"), socket)
}

/// Serves a connection until either side closes it.
fn serve(stream: impl Read + Write, answers: &Mutex<VecDeque<&'static str>>, requests: &Sender<Request>) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream) {
        let answer = answers.lock().expect("no panic").pop_front().unwrap_or(TAKEN);
        // The test may have ended.
        let _ = requests.send(request);
        if answer.is_empty() || stream.get_mut().write_all(answer.as_bytes()).is_err() {
            return;
        }
        let _ = stream.get_mut().flush();
    }
}

fn read(stream: &mut impl BufRead) -> Option<Request> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "))?;
    let mut body = vec![0; length.parse().ok()?];
    stream.read_exact(&mut body).ok()?;
    Some(Request { head, body })
}
