//! The paths of the page, and what each replies:
//!
//! | Request | Reply |
//! |---|---|
//! | `GET /`, `GET /NAME.js` ... | the files of the page |
//! | `GET /api/site` | whether a login is required, and whether there are reports |
//! | `POST /api/login` | the token of a new session |
//! | `POST /api/logout` | ends the session |
//! | `POST /api/run` | the reply to a command, as Extended JSON |
//! | `POST /api/reports` | the list of reports |
//! | `POST /api/report` | an address for one report, which holds once |
//! | `GET /report/SECRET` | that report |

use crate::commands::{COMMAND_MS_MAX, bounded};
use crate::files;
use crate::guard::{self, Refusal};
use crate::link::HeldText;
use crate::replies::{Reply, json, refusal, reply};
use crate::reports::{self, Reports};
use crate::sessions::{Session, Sessions, logged_out, secret};
use bunko_access::Name;
use bunko_authority::log_in_by_password;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, extended_json};
use bunko_command::{Client, LocalEnd, Peer, Service};
use bunko_http_port::{Arrival, PasswordChecks, Site};
use bunko_operation::Purpose;
use bunko_server::Doorway;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::AUTHORIZATION;
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long the body of a request may take.
const BODY_TIME_MAX: Duration = Duration::from_secs(10);
/// How long a command may take, with its way to the server and back. The server ends it earlier.
const RUN_TIME_MAX: Duration = Duration::from_millis(COMMAND_MS_MAX as u64 + 5_000);
/// Memory of a request, as a multiple of its body: the text, its documents, and the message.
const REQUEST_FACTOR: u64 = 5;
/// Database of users for whom the page names none.
const USERS_DATABASE: &str = "admin";

/// The state that all requests share.
pub struct ConsoleSite {
    service: Arc<Service>,
    sessions: Arc<Sessions>,
    checks: PasswordChecks,
    /// The name of this host that the settings give; empty for an address.
    own_name: String,
    /// `None` if no setting names their directory.
    reports: Option<Reports>,
}

impl ConsoleSite {
    /// The state before the first request. The server at the other end of `doorway` runs the commands; `reports` is the
    /// directory of the lab's reports.
    pub fn new(service: Arc<Service>, doorway: Doorway, own_name: &str, reports: Option<PathBuf>) -> Self {
        let sessions = Arc::new(Sessions::new(Arc::clone(&service), doorway));
        let (checks, reports) = (PasswordChecks::default(), reports.map(Reports::new));
        Self { service, sessions, checks, own_name: own_name.to_owned(), reports }
    }

    async fn answer(&self, request: Request<Incoming>, arrival: Arrival) -> Result<Reply, Refusal> {
        let (request, body) = request.into_parts();
        guard::check(&request, arrival, &self.own_name)?;
        let path = request.uri.path();
        match (&request.method, path) {
            (&Method::GET | &Method::HEAD, "/api/site") => {
                let client = Client::new(0, Peer::Tcp(arrival.client));
                let asks = self.service.authority.asks_for_login(&client);
                Ok(json(&DocumentBuf::new().with("login", asks).with("reports", self.reports.is_some())))
            }
            (&Method::GET, _) if path.starts_with(reports::PATH) => self.load(&path[reports::PATH.len()..]),
            (&Method::GET | &Method::HEAD, _) => files::find(path).ok_or_else(no_page),
            (&Method::POST, "/api/login" | "/api/logout" | "/api/run" | "/api/reports" | "/api/report") => {
                self.act(&request, body, arrival).await
            }
            _ => Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "this path has no such method")),
        }
    }

    /// Serves a request that may do something.
    async fn act(&self, request: &Parts, body: Incoming, arrival: Arrival) -> Result<Reply, Refusal> {
        let bytes = guard::check_own_page(request, arrival)?;
        let memory = &self.service.facts.memory_limits.server;
        let _draw = memory.draw(bytes * REQUEST_FACTOR, Purpose::Message).ok_or_else(|| {
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the server has no memory for the request now")
        })?;
        match request.uri.path() {
            "/api/login" => self.log_in(read(body).await?.as_ref(), arrival).await,
            "/api/logout" => {
                self.sessions.end(token(request));
                Ok(json(&DocumentBuf::new()))
            }
            "/api/reports" | "/api/report" => {
                self.sessions.find(token(request)).ok_or_else(logged_out)?;
                let body = read(body).await?;
                self.find_report(request.uri.path(), body.as_ref())
            }
            _ => {
                let session = self.sessions.find(token(request)).ok_or_else(logged_out)?;
                self.run(&session, read(body).await?.as_ref()).await
            }
        }
    }

    /// The list of reports, or the address of one.
    fn find_report(&self, path: &str, body: DocumentRef<'_>) -> Result<Reply, Refusal> {
        let reports = self.reports.as_ref().ok_or_else(no_page)?;
        if path == "/api/reports" {
            return reports.list().map(|list| json(&list));
        }
        let name = body.get("name").and_then(ValueRef::as_str);
        let name = name.ok_or_else(|| Refusal::new(StatusCode::BAD_REQUEST, "the field name must be a string"))?;
        let now = self.service.world.clock.now();
        reports.admit(name, secret(&self.service), now).map(|address| json(&address))
    }

    fn load(&self, secret: &str) -> Result<Reply, Refusal> {
        let reports = self.reports.as_ref().ok_or_else(no_page)?;
        reports.load(secret, self.service.world.clock.now(), &self.service.facts.memory_limits.server)
    }

    async fn log_in(&self, body: DocumentRef<'_>, arrival: Arrival) -> Result<Reply, Refusal> {
        let text = |field| body.get(field).and_then(ValueRef::as_str).unwrap_or_default();
        let authority = &self.service.authority;
        let mut client = Client::new(0, Peer::Tcp(arrival.client));
        client.local = Some(LocalEnd::Tcp(arrival.server));
        let (user, password, database) = (text("user"), text("password"), text("database"));
        if !user.is_empty() || authority.asks_for_login(&client) {
            let user = Name::new(user, if database.is_empty() { USERS_DATABASE } else { database });
            let check = || log_in_by_password(authority, &mut client, &user, password).ok();
            let refused = || Refusal::new(StatusCode::UNAUTHORIZED, "Authentication failed.");
            self.checks.check(check).await.ok_or_else(refused)?;
        }
        let token = self.sessions.begin(client)?;
        Ok(json(&DocumentBuf::new().with("token", token.as_str())))
    }

    async fn run(&self, session: &Session, body: DocumentRef<'_>) -> Result<Reply, Refusal> {
        let wrong = |reason: &str| Refusal::new(StatusCode::BAD_REQUEST, reason);
        let command = body.get("command").and_then(ValueRef::as_document);
        let command = command.ok_or_else(|| wrong("the field command must be a document"))?;
        let database = body.get("database").and_then(ValueRef::as_str);
        let command = bounded(command, database.ok_or_else(|| wrong("the field database must be a string"))?)?;
        let running = self.sessions.run(session, command.as_ref());
        let received = tokio::time::timeout(RUN_TIME_MAX, running)
            .await
            .map_err(|_| Refusal::new(StatusCode::GATEWAY_TIMEOUT, "the command took too long, and was ended"))??;
        let document = ValueRef::Document(received.document.as_ref());
        let is_canonical = matches!(body.get("canonical"), Some(ValueRef::Boolean(true)));
        let print = if is_canonical { extended_json::to_canonical } else { extended_json::to_relaxed };
        let text = HeldText { text: print(document), draw: received.draw };
        Ok(reply(StatusCode::OK, "application/json", Bytes::from_owner(text)))
    }
}

impl Site for ConsoleSite {
    async fn reply(&self, request: Request<Incoming>, arrival: Arrival) -> Response<Full<Bytes>> {
        self.answer(request, arrival).await.unwrap_or_else(|refused| refusal(&refused))
    }
}

fn no_page() -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, "there is no such page")
}

/// The document in a request's body, whose length has been checked.
async fn read(body: Incoming) -> Result<DocumentBuf, Refusal> {
    let wrong = |reason: String| Refusal::new(StatusCode::BAD_REQUEST, reason);
    let collected = tokio::time::timeout(BODY_TIME_MAX, Limited::new(body, guard::BODY_BYTES_MAX as usize).collect());
    let collected = collected
        .await
        .map_err(|_| Refusal::new(StatusCode::REQUEST_TIMEOUT, "the body did not come in time"))?
        .map_err(|error| wrong(error.to_string()))?;
    let bytes = collected.to_bytes();
    let text = std::str::from_utf8(&bytes).map_err(|error| wrong(error.to_string()))?;
    extended_json::parse_document(text).map_err(|error| wrong(error.to_string()))
}

/// The token that the request carries; empty if it carries none.
fn token(request: &Parts) -> &str {
    guard::only(request, &AUTHORIZATION).and_then(|header| header.strip_prefix("Bearer ")).unwrap_or_default()
}
