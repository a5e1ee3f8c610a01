//! The search for a server: every known host is asked for its role at the same time, and the first one that suits is
//! used.
//!
//! A deployment is searched once per connection. A lab wants a failover to appear as errors and not to be hidden, so
//! the hosts are not monitored afterwards.
//!
//! Source: MongoDB specifications, "Server Discovery And Monitoring" and "Server Selection".

mod dialer;
mod introduction;
mod member;
mod search;

pub use dialer::Dialer;
pub(crate) use member::Role;
pub use member::is_router;

use crate::connection::Connection;
use crate::error::ClientError;
use crate::settings::Settings;
use crate::uri::Uri;
use introduction::Introduction;
use search::Search;

impl Connection {
    /// Finds a server of the wanted role among the URI's hosts and the members that they list, does the handshake and
    /// authenticates.
    ///
    /// A refused connection is tried again until `uri.connect_timeout` has passed. That timeout bounds the whole search
    /// while no server answers; `uri.server_selection_timeout` bounds it while servers answer but none suits.
    /// # Errors
    /// `Unreachable`, `NoSuitableServer` after the timeout; `WrongReplicaSet`, `Tls`, `Authentication`; `Protocol` or
    /// `Command` where the server does not speak OP_MSG.
    pub fn connect(uri: &Uri) -> Result<Self, ClientError> {
        let settings = Settings::new(uri)?;
        Search::new(&settings).run()?.finish(&settings)
    }

    /// Connects once to the first host of a URI, whatever its role is.
    /// # Errors
    /// As [`Self::connect`]; a refused connection is not tried again.
    pub fn dial(uri: &Uri) -> Result<Self, ClientError> {
        let settings = Settings::new(uri)?;
        let deadline = settings.clock.now() + uri.connect_timeout;
        Introduction::make(&settings, &uri.hosts[0], deadline)?.finish(&settings)
    }

    /// Opens one more connection to the same server, without a new search. Cheaper than [`Self::connect`]: no file is
    /// read and no key is derived from the password.
    /// # Errors
    /// As [`Self::connect`]; a refused connection is not tried again.
    pub fn open_another(&self) -> Result<Self, ClientError> {
        let deadline = self.settings().clock.now() + self.settings().uri.connect_timeout;
        Introduction::make(self.settings(), self.host(), deadline)?.finish(self.settings())
    }
}
