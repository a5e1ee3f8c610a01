//! `$comment`: a comment for the log and the profiler; matches every document.

use super::{FieldOperator, TopLevelOperator};
use crate::expression::Expression;
use bunko_bson::StringUse;

pub(crate) const ON_FIELD: FieldOperator =
    FieldOperator { name: "$comment", strings: StringUse::AsBytes, parse: |_, _| Ok(Expression::And(Vec::new())) };
pub(crate) const TOP_LEVEL: TopLevelOperator =
    TopLevelOperator { name: "$comment", strings: StringUse::AsBytes, parse: |_, _| Ok(Expression::And(Vec::new())) };
