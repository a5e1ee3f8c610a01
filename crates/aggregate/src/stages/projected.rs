//! Documents through a projection, for `$project`, `$addFields` and `$unset`.

use super::{Reads, Stage};
use crate::{DocumentStream, Environment, Flow};
use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_errors::Result;
use bunko_expression::{Dependencies, Projection};
use std::sync::Arc;

/// A stage that is a projection.
pub(super) struct Projecting {
    pub(super) name: &'static str,
    pub(super) projection: Projection,
}

impl Stage for Projecting {
    fn name(&self) -> &'static str {
        self.name
    }

    fn open(
        self: Arc<Self>,
        input: Box<dyn DocumentStream>,
        environment: &Arc<Environment>,
    ) -> Box<dyn DocumentStream> {
        Box::new(Projected { stage: self, input, environment: Arc::clone(environment), buffer: Vec::new() })
    }

    fn add_dependencies(&self, dependencies: &mut Dependencies) -> Reads {
        if self.projection.is_inclusion() {
            self.projection.add_dependencies(dependencies);
            return Reads::OnlyThese;
        }
        dependencies.add_all();
        Reads::OthersToo
    }
}

struct Projected {
    stage: Arc<Projecting>,
    input: Box<dyn DocumentStream>,
    environment: Arc<Environment>,
    /// Reused between visited documents.
    buffer: Vec<u8>,
}

impl DocumentStream for Projected {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        let Some(document) = self.input.next()? else { return Ok(None) };
        let mut bytes = Vec::new();
        self.stage.projection.apply(&self.environment.context(document.as_ref()), None, &mut bytes)?;
        Ok(Some(DocumentBuf::from_trusted(bytes)))
    }

    fn visit(&mut self, visitor: &mut dyn FnMut(DocumentRef<'_>) -> Result<Flow>) -> Result<()> {
        let Self { stage, input, environment, buffer } = self;
        input.visit(&mut |document| {
            buffer.clear();
            stage.projection.apply(&environment.context(document), None, buffer)?;
            visitor(DocumentRef::trusted(buffer))
        })
    }
}
