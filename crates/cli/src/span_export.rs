//! The export of slow operations as spans. Without its setting there are neither a thread nor a queue.

use crate::configuration::Settings;
use bunko_client::{ByteDialer, TlsOptions, Verification};
use bunko_command::Service;
use bunko_host::Clock;
use bunko_server::ListeningSockets;
use bunko_traces::{Attribute, Endpoint, Exporter, ExporterOptions};
use std::net::SocketAddr;
use std::sync::Arc;

/// Starts the export if the settings ask for it. It ends when it is dropped.
/// # Errors
/// A sentence that names the setting, if a collector that is reached by TLS cannot be verified, or no thread is started.
pub fn start(service: &Service, settings: &Settings, sockets: &ListeningSockets) -> Result<Option<Exporter>, String> {
    let Some(url) = &settings.trace_endpoint else { return Ok(None) };
    let failed = |error: String| format!("opentelemetryHttpEndpoint: {error}");
    let endpoint = Endpoint::parse(url).map_err(failed)?;
    let tls = endpoint.is_encrypted.then_some(TlsOptions {
        ca_file: None,
        certificate_key_file: None,
        certificate_key_password: None,
        verification: Verification::CertificateAndName,
    });
    let dialer = ByteDialer::new(&endpoint.host, endpoint.port, tls.as_ref()).map_err(failed)?;
    let url = endpoint.url();
    // The port that clients reach; the one of the settings may be 0.
    let (host, _) = service.facts.host.rsplit_once(':').unwrap_or((&service.facts.host, ""));
    let port = sockets.addresses().first().map_or(0, SocketAddr::port);
    let options = ExporterOptions {
        endpoint,
        dialer,
        clock: Clock::machine(),
        resource: resource(host, port),
        of_each_span: of_each_span(host, port),
        random: Arc::new(rand::random::<u64>),
    };
    let exporter = Exporter::start(options).map_err(|error| failed(format!("cannot start a thread: {error}")))?;
    service.profiler.send_spans_to(Arc::clone(exporter.queue()));
    tracing::info!(target: "NETWORK", id = 172, ctx = "main", url, "Slow operations are sent as spans");
    Ok(Some(exporter))
}

/// Facts about the server. Source: OpenTelemetry semantic conventions, "Service".
fn resource(host: &str, port: u16) -> Vec<Attribute> {
    vec![
        ("service.name", "bunko".into()),
        ("service.version", env!("CARGO_PKG_VERSION").into()),
        ("service.instance.id", format!("{host}:{port}").into()),
    ]
}

/// Facts that the conventions ask of each span. Source: OpenTelemetry semantic conventions, "MongoDB".
fn of_each_span(host: &str, port: u16) -> Vec<Attribute> {
    vec![("db.system.name", "mongodb".into()), ("server.address", host.into()), ("server.port", i64::from(port).into())]
}
