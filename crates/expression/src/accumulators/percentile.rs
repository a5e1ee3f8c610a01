//! `$percentile` and `$median` of a group's numbers.

use super::{Accumulator, Form, Kind, Strings};
use crate::Evaluated;
use crate::percentiles::Digest;
use bunko_bson::Value;
use bunko_errors::Result;
use std::sync::Arc;

pub(super) const PERCENTILE: Kind = Kind {
    name: "$percentile",
    strings: Strings::AsBytes,
    form: Form::Percentiles,
    make: |settings| {
        Box::new(Percentiles { digest: Digest::default(), wanted: Wanted::List(Arc::clone(&settings.percentiles)) })
    },
};
pub(super) const MEDIAN: Kind = Kind {
    name: "$median",
    strings: Strings::AsBytes,
    form: Form::Median,
    make: |_| Box::new(Percentiles { digest: Digest::default(), wanted: Wanted::Median }),
};

enum Wanted {
    Median,
    List(Arc<[f64]>),
}

struct Percentiles {
    digest: Digest,
    wanted: Wanted,
}

impl Accumulator for Percentiles {
    fn add(&mut self, value: Evaluated<'_>) -> Result<()> {
        self.digest.add(value.or_null());
        Ok(())
    }

    fn value(&self) -> Value {
        let mut digest = self.digest.clone();
        match &self.wanted {
            Wanted::Median => digest.percentile(0.5).map_or(Value::Null, Value::Double),
            Wanted::List(wanted) => digest.percentiles(wanted),
        }
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.digest.memory_bytes()
    }
}
