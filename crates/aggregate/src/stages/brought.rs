//! Source stages: they begin a pipeline with the server's own documents. The server makes the documents, so these
//! stages are not in the table.

use super::{Reads, Stage};
use crate::metadata::Carried;
use crate::{DocumentStream, Documents, Environment, SourceStage};
use bunko_bson::DocumentBuf;
use bunko_errors::Result;
use bunko_expression::Dependencies;
use std::sync::Arc;

pub(super) struct Brought(pub SourceStage);

impl Stage for Brought {
    fn name(&self) -> &'static str {
        self.0.name
    }

    fn open(self: Arc<Self>, _: Box<dyn DocumentStream>, _: &Arc<Environment>) -> Box<dyn DocumentStream> {
        Box::new(Bringing { stage: self, documents: None })
    }

    fn add_dependencies(&self, _: &mut Dependencies) -> Reads {
        Reads::OnlyThese
    }

    fn brings_documents(&self) -> bool {
        true
    }

    fn metadata(&self) -> Carried {
        Carried::Lost
    }
}

struct Bringing {
    stage: Arc<Brought>,
    /// `None` until the first document is requested.
    documents: Option<Documents>,
}

impl DocumentStream for Bringing {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        if self.documents.is_none() {
            self.documents = Some(Documents::new((self.stage.0.documents)()?));
        }
        self.documents.as_mut().map_or(Ok(None), Documents::next)
    }
}
