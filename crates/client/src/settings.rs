//! Settings that all connections of one URI share.

use crate::auth::KeyCache;
use crate::error::ClientError;
use crate::tls;
use crate::uri::Uri;
use bunko_host::Clock;
use rustls::ClientConfig;
use std::sync::Arc;

/// A URI, the contents of the files that it names, and results that are expensive to compute from it.
pub(crate) struct Settings {
    pub uri: Uri,
    pub tls: Option<Arc<ClientConfig>>,
    pub keys: KeyCache,
    pub clock: Clock,
}

impl Settings {
    /// Reads the URI's TLS files.
    /// # Errors
    /// `Tls`, if a file cannot be used.
    pub fn new(uri: &Uri) -> Result<Arc<Self>, ClientError> {
        let failed = |detail| ClientError::Tls { address: uri.address(), detail };
        let tls = uri.tls.as_ref().map(tls::configuration).transpose().map_err(failed)?;
        Ok(Arc::new(Self { uri: uri.clone(), tls, keys: KeyCache::default(), clock: Clock::machine() }))
    }
}
