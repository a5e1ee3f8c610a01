//! What all connections of one URI share.

use crate::auth::KeyCache;
use crate::error::ClientError;
use crate::tls;
use crate::uri::Uri;
use rustls::ClientConfig;
use std::sync::Arc;

/// A URI, the files that it names, and what is expensive to compute from it.
pub(crate) struct Settings {
    pub uri: Uri,
    pub tls: Option<Arc<ClientConfig>>,
    pub keys: KeyCache,
}

impl Settings {
    /// Reads the files of TLS.
    /// # Errors
    /// `Tls`, where one cannot be used.
    pub fn new(uri: &Uri) -> Result<Arc<Self>, ClientError> {
        let failed = |detail| ClientError::Tls { address: uri.address(), detail };
        let tls = uri.tls.as_ref().map(tls::configuration).transpose().map_err(failed)?;
        Ok(Arc::new(Self { uri: uri.clone(), tls, keys: KeyCache::default() }))
    }
}
