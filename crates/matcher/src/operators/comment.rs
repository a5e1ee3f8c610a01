//! `$comment`: words for the log and the profiler, which match everything.

use super::{FieldOperator, TopLevelOperator};
use crate::expression::Expression;

pub(crate) const ON_FIELD: FieldOperator =
    FieldOperator { name: "$comment", parse: |_, _| Ok(Expression::And(Vec::new())) };
pub(crate) const TOP_LEVEL: TopLevelOperator =
    TopLevelOperator { name: "$comment", parse: |_, _| Ok(Expression::And(Vec::new())) };
