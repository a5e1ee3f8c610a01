//! `$jsonSchema`: the whole document satisfies a schema.

use super::TopLevelOperator;
use crate::expression::Expression;
use crate::json_schema::Schema;
use bunko_bson::StringUse;
use std::sync::Arc;

pub(crate) const JSON_SCHEMA: TopLevelOperator = TopLevelOperator {
    name: "$jsonSchema",
    strings: StringUse::AsBytes,
    parse: |parser, value| Ok(Expression::JsonSchema(Arc::new(Schema::parse(value, parser)?))),
};
