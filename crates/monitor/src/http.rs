//! Replies to HTTP requests.

use crate::login::{Access, Logins};
use crate::metrics::{self, Format};
use bunko_command::Service;
use bunko_http_port::{Arrival, PasswordChecks, Site};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::{Method, Request, Response, StatusCode};
use std::net::SocketAddr;
use std::sync::Arc;

/// The state that all requests share.
pub struct MonitorSite {
    service: Arc<Service>,
    logins: Logins,
    checks: PasswordChecks,
}

impl MonitorSite {
    /// The state before the first request.
    pub fn new(service: Arc<Service>) -> Self {
        let logins = Logins::new(&*service.world.random);
        Self { service, logins, checks: PasswordChecks::default() }
    }

    async fn metrics(&self, login: Option<&str>, format: Format, address: SocketAddr) -> Response<Full<Bytes>> {
        match self.access(login, address).await {
            Access::Granted => {
                let mut reply = text(StatusCode::OK, metrics::encode(self.service.status(), format));
                reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(format.content_type()));
                reply
            }
            Access::Forbidden => text(
                StatusCode::FORBIDDEN,
                "the user needs the privilege for serverStatus, as role clusterMonitor has\n",
            ),
            Access::Unauthorized => {
                let mut reply = text(StatusCode::UNAUTHORIZED, "log in with a user of the server\n");
                let scheme = HeaderValue::from_static("Basic realm=\"bunko\", charset=\"UTF-8\"");
                reply.headers_mut().insert(WWW_AUTHENTICATE, scheme);
                reply
            }
        }
    }

    /// The access of a request with that header `Authorization`.
    async fn access(&self, login: Option<&str>, address: SocketAddr) -> Access {
        let authority = &self.service.authority;
        if let Some(access) = self.logins.known_access(authority, login, address) {
            return access;
        }
        let check = || {
            let access = self.logins.check(authority, login, address);
            (access != Access::Unauthorized).then_some(access)
        };
        self.checks.check(check).await.unwrap_or(Access::Unauthorized)
    }
}

impl Site for MonitorSite {
    async fn reply(&self, request: Request<Incoming>, arrival: Arrival) -> Response<Full<Bytes>> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut reply = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are supported\n");
            reply.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return reply;
        }
        match request.uri().path() {
            "/metrics" => {
                let header = |name| request.headers().get(name).and_then(|header| header.to_str().ok());
                self.metrics(header(AUTHORIZATION), Format::accepted(header(ACCEPT)), arrival.client).await
            }
            "/healthz" => text(StatusCode::OK, "ok\n"),
            "/readyz" if self.service.operations.are_interrupted() => {
                text(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping\n")
            }
            "/readyz" => text(StatusCode::OK, "ready\n"),
            _ => text(StatusCode::NOT_FOUND, "there are /metrics, /healthz and /readyz\n"),
        }
    }
}

fn text(status: StatusCode, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut reply = Response::new(Full::new(text.into()));
    *reply.status_mut() = status;
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    reply
}
