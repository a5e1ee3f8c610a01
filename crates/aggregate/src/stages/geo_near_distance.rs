//! The last part of `$geoNear` over the measurements of a time series: adds the distance to each measurement, and drops
//! those too far or too near. A `$sort` follows it.

use super::{Reads, Stage};
use crate::{DocumentStream, Environment};
use bunko_bson::DocumentBuf;
use bunko_errors::Result;
use bunko_expression::Dependencies;
use bunko_query::NearSearch;
use std::sync::Arc;

/// Adds the distance to each document.
pub(super) struct GeoNearDistance {
    pub search: NearSearch,
}

impl Stage for GeoNearDistance {
    fn name(&self) -> &'static str {
        "$_internalComputeGeoNearDistance"
    }

    fn open(
        self: Arc<Self>,
        input: Box<dyn DocumentStream>,
        environment: &Arc<Environment>,
    ) -> Box<dyn DocumentStream> {
        Box::new(Measuring { stage: self, input, environment: Arc::clone(environment) })
    }

    fn add_dependencies(&self, dependencies: &mut Dependencies) -> Reads {
        dependencies.add_all();
        Reads::OthersToo
    }
}

struct Measuring {
    stage: Arc<GeoNearDistance>,
    input: Box<dyn DocumentStream>,
    environment: Arc<Environment>,
}

impl DocumentStream for Measuring {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        while let Some(document) = self.input.next()? {
            let operation = self.environment.operation();
            if let Some(measured) = self.stage.search.measured(document.as_ref(), operation)? {
                return Ok(Some(measured));
            }
        }
        Ok(None)
    }
}
