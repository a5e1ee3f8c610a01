//! How stages pass on the metadata of documents. A stage that keeps documents back stores their metadata inside them.

use crate::{DocumentStream, Environment, Flow};
use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_errors::Result;
use bunko_expression::{CurrentMetadata, Offered, SortPattern};
use std::sync::Arc;

/// How the metadata of documents passes a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// The output is made from the current document, so its metadata stays at hand.
    Along,
    /// Documents are kept back and returned unchanged, with their metadata inside meanwhile.
    Inside,
    /// As `Inside`, and the sort keys become metadata.
    Sorted,
    /// The output has no metadata.
    Lost,
    /// The stage produces metadata, and drops the input's.
    Made(Offered),
}

impl Carried {
    /// The environment of later stages, which names the metadata that they can read.
    pub(crate) fn behind(self, environment: Environment) -> Environment {
        let offered = match self {
            Self::Along | Self::Inside => return environment,
            Self::Sorted => environment.scope.offered.and(Offered::SORT_KEY),
            Self::Lost => Offered::NONE,
            Self::Made(offered) => offered,
        };
        if environment.scope.offered == offered {
            return environment;
        }
        let scope = Arc::new(environment.scope.offering(offered));
        Environment { scope, ..environment }
    }
}

/// Passes on sorted documents, and adds the sort key of each to the metadata at hand.
pub(crate) struct TellingSortKeys {
    pub(crate) input: Box<dyn DocumentStream>,
    pub(crate) pattern: SortPattern,
    pub(crate) environment: Arc<Environment>,
}

impl TellingSortKeys {
    fn tell(pattern: &SortPattern, environment: &Environment, document: DocumentRef<'_>) -> Result<()> {
        let values = pattern.key_values(document, environment.operation(), environment.strings())?;
        environment.scope.at_hand.add("sortKey", &values);
        Ok(())
    }
}

impl DocumentStream for TellingSortKeys {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        let document = self.input.next()?;
        if let Some(document) = &document {
            Self::tell(&self.pattern, &self.environment, document.as_ref())?;
        }
        Ok(document)
    }

    fn visit(&mut self, visitor: &mut dyn FnMut(DocumentRef<'_>) -> Result<Flow>) -> Result<()> {
        let Self { input, pattern, environment } = self;
        input.visit(&mut |document| {
            Self::tell(pattern, environment, document)?;
            visitor(document)
        })
    }

    fn describe_run(&self, facts: &mut DocumentBuf) {
        self.input.describe_run(facts);
    }
}

/// Passes on documents, and stores the metadata at hand inside each.
pub(crate) struct Holding {
    pub(crate) input: Box<dyn DocumentStream>,
    pub(crate) at_hand: Arc<CurrentMetadata>,
}

impl DocumentStream for Holding {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        let document = self.input.next()?;
        Ok(document.map(|document| self.at_hand.hold(document.as_ref())))
    }

    fn visit(&mut self, visitor: &mut dyn FnMut(DocumentRef<'_>) -> Result<Flow>) -> Result<()> {
        let Self { input, at_hand } = self;
        input.visit(&mut |document| visitor(at_hand.hold(document).as_ref()))
    }
}

/// Passes on documents; takes the metadata out of each and puts it at hand.
pub(crate) struct Releasing {
    pub(crate) input: Box<dyn DocumentStream>,
    pub(crate) at_hand: Arc<CurrentMetadata>,
}

impl DocumentStream for Releasing {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        let document = self.input.next()?;
        Ok(document.map(|document| self.at_hand.release(document.as_ref())))
    }

    fn visit(&mut self, visitor: &mut dyn FnMut(DocumentRef<'_>) -> Result<Flow>) -> Result<()> {
        let Self { input, at_hand } = self;
        input.visit(&mut |document| visitor(at_hand.release(document).as_ref()))
    }
}
