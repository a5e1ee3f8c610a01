//! Query operators, one file per operator or family. The tables are the registry: parsers find operators only here, and
//! a test requires a script for every entry.

mod all;
mod always;
mod bits;
mod bson_type;
mod bucket_geo;
mod comment;
mod compare;
mod elem_match;
mod exists;
mod expr;
mod geo;
mod in_list;
mod json_schema;
mod logical;
mod modulo;
mod near;
mod not;
mod regex;
mod sample_rate;
mod size;
mod text;
mod where_script;

pub(crate) use compare::literal;
pub(crate) use elem_match::parse as parse_elem_match;
pub(crate) use near::{is_near, parse as parse_near};

use crate::expression::Expression;
use crate::parser::{Operand, Parser};
use bunko_bson::{StringUse, ValueRef};
use bunko_errors::{Failure, Result};

/// An operator after a field name: `{a: {$gt: 1}}`.
pub(crate) struct FieldOperator {
    pub name: &'static str,
    /// Whether the operator compares strings.
    #[cfg_attr(not(test), expect(dead_code, reason = "the test that walks the table reads it"))]
    pub strings: StringUse,
    pub parse: fn(&Parser<'_>, &Operand<'_>) -> Result<Expression>,
}

/// An operator in place of a field name: `{$or: [...]}`.
pub(crate) struct TopLevelOperator {
    pub name: &'static str,
    /// Whether the operator compares strings.
    #[cfg_attr(not(test), expect(dead_code, reason = "the test that walks the table reads it"))]
    pub strings: StringUse,
    pub parse: fn(&Parser<'_>, ValueRef<'_>) -> Result<Expression>,
}

const FIELD_OPERATORS: &[FieldOperator] = &[
    compare::EQ,
    compare::NE,
    compare::GT,
    compare::GTE,
    compare::LT,
    compare::LTE,
    in_list::IN,
    in_list::NIN,
    not::NOT,
    exists::EXISTS,
    bson_type::TYPE,
    regex::REGEX,
    regex::OPTIONS,
    modulo::MOD,
    size::SIZE,
    all::ALL,
    elem_match::ELEM_MATCH,
    bits::ALL_SET,
    bits::ALL_CLEAR,
    bits::ANY_SET,
    bits::ANY_CLEAR,
    geo::GEO_WITHIN,
    geo::WITHIN,
    geo::GEO_INTERSECTS,
    near::NEAR,
    near::NEAR_SPHERE,
    near::GEO_NEAR,
    comment::ON_FIELD,
];

const TOP_LEVEL_OPERATORS: &[TopLevelOperator] = &[
    logical::AND,
    logical::OR,
    logical::NOR,
    expr::EXPR,
    json_schema::JSON_SCHEMA,
    sample_rate::SAMPLE_RATE,
    text::TEXT,
    where_script::WHERE,
    comment::TOP_LEVEL,
    bucket_geo::BUCKET_GEO_WITHIN,
    always::ALWAYS_TRUE,
    always::ALWAYS_FALSE,
];

/// The operator with that name, after a field name.
pub(crate) fn on_field(name: &str) -> Option<&'static FieldOperator> {
    FIELD_OPERATORS.iter().find(|operator| operator.name == name)
}

/// Whether an operator with that name may follow a field name as a condition; `$not` and `$comment` are not conditions
/// of their own.
pub(crate) fn is_condition(name: &str) -> bool {
    on_field(name).is_some() && name != not::NOT.name && name != comment::ON_FIELD.name
}

/// Whether an operator with that name may be in place of a field name.
pub(crate) fn is_top_level(name: &str) -> bool {
    top_level(name).is_some()
}

/// The failure for a name after a field name that is not allowed there.
pub(crate) fn refused_on_field(name: &str) -> Failure {
    where_script::on_field(name).unwrap_or_else(|| Failure::bad_value(format!("unknown operator: {name}")))
}

/// The operator with that name, in place of a field name.
pub(crate) fn top_level(name: &str) -> Option<&'static TopLevelOperator> {
    TOP_LEVEL_OPERATORS.iter().find(|operator| operator.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Filter;
    use bunko_bson::StringOrder;
    use bunko_testkit::collators::WithoutCase;
    use bunko_testkit::handbook::{self, paragraph};
    use bunko_testkit::shell;
    use std::fs;
    use std::sync::Arc;

    const VALUES: &[&str] = &["'a'", "'A'", "'b'", "'C'", "['a', 'b']", "[{w: 'a'}]", "1", "['a']"];
    const ON_FIELD: &[&str] =
        &["'A'", "'B'", "['A', 'B']", "{$eq: 'A'}", "{w: 'A'}", "true", "1", "[1, 0]", "'string'"];
    const TOP_LEVEL: &[&str] = &[
        "[{v: 'A'}]",
        "{properties: {v: {enum: ['A', 'B']}}}",
        "{properties: {v: {bsonType: 'array', uniqueItems: true}}}",
        "'A'",
        "1",
    ];

    /// For each filter that can be parsed, which values it matches.
    fn matched(filters: impl Iterator<Item = String>, strings: &StringOrder) -> Vec<(String, Vec<bool>)> {
        let document = |text: &str| shell::parse_document(text).unwrap_or_else(|failure| panic!("{text}: {failure}"));
        filters
            .filter_map(|text| {
                let filter = Filter::parse_collated(document(&text).as_ref(), strings).ok()?;
                let holds = |value: &str| filter.try_matches(document(&format!("{{v: {value}}}")).as_ref());
                let held: Result<Vec<bool>> = VALUES.iter().map(|value| holds(value)).collect();
                Some((text, held.ok()?))
            })
            .collect()
    }

    fn check(name: &str, says: StringUse, filters: &[String]) {
        let by_bytes = matched(filters.iter().cloned(), StringOrder::BYTES);
        let collated = matched(filters.iter().cloned(), &StringOrder::collated(Arc::new(WithoutCase)));
        let differing = by_bytes.iter().zip(&collated).find(|(one, other)| one != other);
        assert_eq!(differing.is_some(), says == StringUse::Collated, "{name}: {differing:?}");
    }

    #[test]
    fn operators_compare_strings_as_their_entries_say() {
        for operator in FIELD_OPERATORS {
            let filters = ON_FIELD.iter().map(|operand| format!("{{v: {{'{}': {operand}}}}}", operator.name));
            check(operator.name, operator.strings, &filters.collect::<Vec<_>>());
        }
        // The test of expressions covers the comparisons of `$expr`.
        for operator in TOP_LEVEL_OPERATORS.iter().filter(|operator| operator.name != expr::EXPR.name) {
            let filters = TOP_LEVEL.iter().map(|operand| format!("{{'{}': {operand}}}", operator.name));
            check(operator.name, operator.strings, &filters.collect::<Vec<_>>());
        }
    }

    /// A script `gt-gte.txt` covers both `$gt` and `$gte`.
    #[test]
    fn every_operator_has_a_script() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripts");
        let covered: Vec<String> = fs::read_dir(directory)
            .expect("scripts")
            .filter_map(|entry| {
                entry.expect("entry").file_name().into_string().ok()?.strip_suffix(".txt").map(str::to_owned)
            })
            .flat_map(|topic| topic.split('-').map(|name| format!("${name}")).collect::<Vec<_>>())
            .collect();
        let names = FIELD_OPERATORS.iter().map(|operator| operator.name);
        for name in names.chain(TOP_LEVEL_OPERATORS.iter().map(|operator| operator.name)) {
            assert!(covered.iter().any(|known| known == name), "no script for {name} in {directory}");
        }
    }

    #[test]
    fn the_handbook_lists_every_operator() {
        let page = "reference/compatibility.md";
        handbook::check(
            page,
            "query operators of fields",
            &paragraph(FIELD_OPERATORS.iter().map(|operator| operator.name)),
        );
        let names = TOP_LEVEL_OPERATORS.iter().map(|operator| operator.name);
        handbook::check(page, "query operators in place of fields", &paragraph(names));
    }
}
