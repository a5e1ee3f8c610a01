//! HTTP/1.1 over TCP or TLS: one request, one answer, both with limits.

use crate::settings::Settings;
use crate::{Patience, Result, S3Error};
use bunko_certificates::{certificates, system_authorities};
use std::sync::Arc;
use std::time::Duration;
use ureq::http::{HeaderMap, Request};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body};

/// Longest time from the end of a request to the beginning of its answer.
const ANSWER: Duration = Duration::from_mins(2);

/// A server's answer.
pub(crate) struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// A request that is ready to be sent.
pub(crate) struct Ready<'r> {
    pub method: &'r str,
    pub url: String,
    pub headers: &'r [(&'r str, String)],
    /// `None` if the method has none.
    pub body: Option<&'r [u8]>,
    /// Longest answer in bytes.
    pub answer_bytes_max: u64,
}

/// Connections to one server.
pub(crate) struct Transport(Agent);

impl Transport {
    /// # Errors
    /// `Usage` with the file of certificates.
    pub fn new(settings: &Settings) -> Result<Self> {
        let Patience { connect, silence, .. } = settings.patience;
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_resolve(Some(connect))
            .timeout_connect(Some(connect))
            .timeout_per_read(Some(silence))
            .timeout_per_write(Some(silence))
            .timeout_recv_response(Some(ANSWER))
            .user_agent(concat!("bunko/", env!("CARGO_PKG_VERSION")))
            .accept("")
            .accept_encoding("");
        if settings.scheme == "https" {
            config = config.tls_config(tls(settings)?);
        }
        Ok(Self(config.build().new_agent()))
    }

    /// Sends a request and reads its answer.
    /// # Errors
    /// A sentence. Another attempt may succeed.
    pub fn send(&self, request: &Ready<'_>) -> Result<Answer, String> {
        let mut built = Request::builder().method(request.method).uri(&request.url);
        for (name, value) in request.headers {
            built = built.header(*name, value);
        }
        let answer = match request.body {
            Some(body) => built.body(body).map_err(ureq::Error::from).and_then(|request| self.0.run(request)),
            None => built.body(()).map_err(ureq::Error::from).and_then(|request| self.0.run(request)),
        };
        let mut answer = answer.map_err(|error| described(&error))?;
        let body = read(answer.body_mut(), request.answer_bytes_max).map_err(|error| described(&error))?;
        Ok(Answer { status: answer.status().as_u16(), headers: answer.headers().clone(), body })
    }
}

fn read(body: &mut Body, bytes_max: u64) -> Result<Vec<u8>, ureq::Error> {
    body.with_config().limit(bytes_max).read_to_vec()
}

fn described(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Timeout(_) => "no answer in time".to_owned(),
        ureq::Error::HostNotFound => "the host's name has no address".to_owned(),
        error => error.to_string(),
    }
}

fn tls(settings: &Settings) -> Result<TlsConfig> {
    let trusted = match &settings.ca_file {
        Some(path) => certificates(path),
        None => system_authorities().map(|(_, trusted)| trusted),
    };
    let trusted = trusted.map_err(S3Error::usage)?;
    let trusted = trusted.iter().map(|certificate| Certificate::from_der(certificate).to_owned());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = TlsConfig::builder().root_certs(RootCerts::from(trusted));
    Ok(config.unversioned_rustls_crypto_provider(provider).build())
}

impl Answer {
    /// The text of a header; empty if it is missing.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}
