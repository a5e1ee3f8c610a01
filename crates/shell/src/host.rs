//! The functions that the prelude calls: connections and commands. Output, files and the process are in `world.rs`,
//! bytes and texts in `bytes.rs`.
//!
//! A function that fails for a reason of a connection or a file returns an array of the error's class and its message;
//! the prelude throws it (`ask`).

pub(crate) mod bytes;
mod world;

use crate::address::Address;
use crate::decode::Decoder;
use crate::encode::Encoder;
use crate::interruption::Interruption;
use crate::links::{Links, Repetition};
use crate::prelude::Prelude;
use crate::target::at_local;
use crate::terminal::Source;
use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_client::ClientError;
use parking_lot::Mutex;
use rquickjs::{Array, Ctx, Function, IntoJs, Object, Result, Value};
use std::sync::Arc;
use std::sync::atomic::AtomicU8;
use std::time::Duration;

/// Maximum number of bytes of one command: the largest document, and 16 KiB for the command around it.
/// Source: MongoDB's limits, "BSON Document Size".
const COMMAND_BYTES_MAX: usize = (16 << 20) + (16 << 10);
/// Longest wait for one reply at the end of the shell.
const LEAVE_WAIT_MAX: Duration = Duration::from_secs(2);

/// State that the functions share.
pub(crate) struct Host {
    pub links: Mutex<Links>,
    pub interruption: Arc<Interruption>,
    pub source: Source,
    /// The connection string that takes the place of the local host.
    local: Option<String>,
    pub exit_code: AtomicU8,
}

impl Host {
    pub fn new(interruption: &Arc<Interruption>, source: Source, local: Option<String>) -> Arc<Self> {
        Arc::new(Self {
            links: Mutex::new(Links::new(interruption)),
            interruption: Arc::clone(interruption),
            source,
            local,
            exit_code: AtomicU8::new(0),
        })
    }

    /// The object `host` of the prelude.
    pub fn object<'js>(self: &Arc<Self>, context: &Ctx<'js>) -> Result<Object<'js>> {
        let host = Object::new(context.clone())?;
        self.define_connections(context, &host)?;
        self.define_login(context, &host)?;
        world::define(self, context, &host)?;
        bytes::define(context, &host)?;
        Ok(host)
    }

    fn define_connections<'js>(self: &Arc<Self>, context: &Ctx<'js>, host: &Object<'js>) -> Result<()> {
        let this = Arc::clone(self);
        let connect = move |context: Ctx<'js>, uri: String| {
            let uri = this.local.as_deref().map_or_else(|| uri.clone(), |local| at_local(&uri, local));
            let address = match Address::parse(&uri) {
                Ok(address) => address,
                Err(error) => return failed(&context, "MongoInvalidArgumentError", &error.to_string()),
            };
            match this.links.lock().connect(address) {
                Ok(number) => number.into_js(&context),
                Err(error) => connection_failed(&context, &error),
            }
        };
        host.set("connect", Function::new(context.clone(), connect)?)?;
        let this = Arc::clone(self);
        let command =
            move |context: Ctx<'js>, link: usize, database: String, command: Object<'js>, may_repeat: bool| {
                let command = encoded(&context, &command)?.with("$db", database.as_str());
                if command.len_bytes() > COMMAND_BYTES_MAX {
                    let message = format!(
                        "the command of {} bytes is longer than the {COMMAND_BYTES_MAX} of a message",
                        command.len_bytes()
                    );
                    let facts = Object::new(context.clone())?;
                    facts.set("isTooLong", true)?;
                    return array(&context, ("MongoInvalidArgumentError", message, facts));
                }
                let repetition = if may_repeat { Repetition::Allowed } else { Repetition::Forbidden };
                let reply = this.links.lock().run(link, &command, repetition);
                match reply {
                    Ok(reply) => Ok(decoded(&context, reply.as_ref())?.into_value()),
                    Err(error) => connection_failed(&context, &error),
                }
            };
        host.set("command", Function::new(context.clone(), command)?)?;
        let size = |context: Ctx<'js>, document: Object<'js>| encoded(&context, &document).map(|sent| sent.len_bytes());
        host.set("bsonSize", Function::new(context.clone(), size)?)?;
        let this = Arc::clone(self);
        let generation = move |link: usize| this.links.lock().get(link).map(|link| link.generation);
        host.set("generation", Function::new(context.clone(), generation)?)?;
        let this = Arc::clone(self);
        let facts = move |context: Ctx<'js>, number: usize| this.facts(&context, number);
        host.set("facts", Function::new(context.clone(), facts)?)?;
        let this = Arc::clone(self);
        let disconnect = move |link: usize| {
            if let Some(link) = this.links.lock().get(link) {
                link.close();
            }
        };
        host.set("disconnect", Function::new(context.clone(), disconnect)?)?;
        let this = Arc::clone(self);
        let leave = move |link: usize| this.links.lock().get(link).is_some_and(|link| link.limit_waits(LEAVE_WAIT_MAX));
        host.set("leave", Function::new(context.clone(), leave)?)
    }

    /// The facts about a connection, for the prelude.
    fn facts<'js>(&self, context: &Ctx<'js>, number: usize) -> Result<Object<'js>> {
        let facts = Object::new(context.clone())?;
        let mut links = self.links.lock();
        let Some(link) = links.get(number) else { return Ok(facts) };
        facts.set("hello", decoded(context, link.hello.as_ref())?)?;
        facts.set("uri", link.address.shown())?;
        facts.set("database", link.address.uri.database.clone())?;
        facts.set("retriesWrites", link.address.retries_writes)?;
        facts.set("retriesReads", link.address.retries_reads)?;
        let preference = link.read_preference();
        for (name, document) in [("readPreference", preference), ("writeConcern", link.write_concern())] {
            if let Some(document) = document {
                facts.set(name, decoded(context, document.as_ref())?)?;
            }
        }
        if let Some(level) = &link.address.read_concern {
            facts.set("readConcern", decoded(context, DocumentBuf::new().with("level", level).as_ref())?)?;
        }
        Ok(facts)
    }

    fn define_login<'js>(self: &Arc<Self>, context: &Ctx<'js>, host: &Object<'js>) -> Result<()> {
        let this = Arc::clone(self);
        let login = move |context: Ctx<'js>, number: usize, given: Object<'js>| {
            let (user, password, database): (String, String, String) =
                (given.get("user")?, given.get("pwd")?, given.get("db")?);
            let mechanism: Option<String> = given.get("mechanism")?;
            let mut options = vec![("authSource", database.as_str())];
            options.extend(mechanism.as_deref().map(|name| ("authMechanism", name)));
            let mut links = this.links.lock();
            let Some(link) = links.get(number) else { return Ok(Value::new_undefined(context)) };
            let address = match link.address.with_user(&options, &user, &password) {
                Ok(address) => address,
                Err(error) => return failed(&context, "MongoInvalidArgumentError", &error.to_string()),
            };
            match link.log_in(address) {
                Ok(()) => Ok(Value::new_undefined(context)),
                Err(error) => connection_failed(&context, &error),
            }
        };
        host.set("login", Function::new(context.clone(), login)?)
    }
}

fn prelude<'js, T: rquickjs::FromJs<'js>>(context: &Ctx<'js>, name: &str) -> Result<T> {
    match context.userdata::<Prelude<'js>>() {
        Some(prelude) => prelude.0.get(name),
        None => Err(rquickjs::Error::Unknown),
    }
}

/// An object of a script as a document.
pub(crate) fn encoded<'js>(context: &Ctx<'js>, object: &Object<'js>) -> Result<DocumentBuf> {
    Encoder { context, encode: prelude(context, "encode")? }.document(object)
}

/// A document as an object of scripts.
fn decoded<'js>(context: &Ctx<'js>, document: DocumentRef<'_>) -> Result<Object<'js>> {
    Decoder { context, decode: prelude(context, "decode")?, received: prelude(context, "received")? }.document(document)
}

fn array<'js>(context: &Ctx<'js>, (class, message, facts): (&str, String, Object<'js>)) -> Result<Value<'js>> {
    let array = Array::new(context.clone())?;
    array.set(0, class)?;
    array.set(1, message)?;
    array.set(2, facts)?;
    Ok(array.into_value())
}

/// An error of that class, for the prelude to throw.
fn failed<'js>(context: &Ctx<'js>, class: &str, message: &str) -> Result<Value<'js>> {
    array(context, (class, message.to_owned(), Object::new(context.clone())?))
}

fn connection_failed<'js>(context: &Ctx<'js>, error: &ClientError) -> Result<Value<'js>> {
    let class = match error {
        ClientError::NoSuitableServer { .. } | ClientError::WrongReplicaSet { .. } => "MongoServerSelectionError",
        ClientError::Authentication { .. } => {
            let facts = Object::new(context.clone())?;
            facts.set("code", 18)?;
            facts.set("codeName", "AuthenticationFailed")?;
            return array(context, ("MongoServerError", error.to_string(), facts));
        }
        ClientError::Command(_) => "MongoServerError",
        ClientError::Unreachable { .. }
        | ClientError::Tls { .. }
        | ClientError::Disconnected { .. }
        | ClientError::Protocol { .. } => "MongoNetworkError",
    };
    failed(context, class, &error.to_string())
}
