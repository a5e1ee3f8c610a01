//! `$out` and `$merge` in their pipeline. The pipeline's caller writes; the stage only passes its input on.

use super::{Reads, Stage};
use crate::{DocumentStream, Environment, WriteStage};
use bunko_expression::Dependencies;
use std::sync::Arc;

impl Stage for WriteStage {
    fn name(&self) -> &'static str {
        match self {
            Self::Out(_) => bunko_stages::OUT.name,
            Self::Merge(_) => bunko_stages::MERGE.name,
        }
    }

    fn open(self: Arc<Self>, input: Box<dyn DocumentStream>, _: &Arc<Environment>) -> Box<dyn DocumentStream> {
        input
    }

    fn add_dependencies(&self, dependencies: &mut Dependencies) -> Reads {
        dependencies.add_all();
        Reads::OthersToo
    }

    fn write(&self) -> Option<WriteStage> {
        Some(self.clone())
    }
}
