//! The table of operators: one file and one line each.

mod abs;
mod add;
mod all_elements_true;
mod and;
mod any_element_true;
mod array_elem_at;
mod array_to_object;
mod avg;
mod bits;
mod ceil;
mod cmp;
mod concat;
mod concat_arrays;
mod cond;
mod constant;
mod convert;
mod date_add;
mod date_diff;
mod date_from_parts;
mod date_from_string;
mod date_subtract;
mod date_to_parts;
mod date_to_string;
mod date_trunc;
mod day_of_month;
mod day_of_week;
mod day_of_year;
mod divide;
mod eq;
mod exp;
mod filter;
mod first;
mod floor;
mod function;
mod get_field;
mod gt;
mod gte;
mod hour;
mod if_null;
mod in_array;
mod index_of_array;
mod index_of_bytes;
mod index_of_cp;
mod is_array;
mod is_number;
mod iso_day_of_week;
mod iso_week;
mod iso_week_year;
mod known;
mod last;
mod let_variables;
mod literal;
mod ln;
mod log;
mod log10;
mod lt;
mod lte;
mod ltrim;
mod map;
mod max;
mod merge_objects;
mod meta;
mod millisecond;
mod min;
mod minute;
mod modulo;
mod month;
mod multiply;
mod ne;
mod not;
mod object_to_array;
mod or;
mod percentile;
mod pow;
mod rand;
mod range;
mod reduce;
mod regex_find;
mod regex_find_all;
mod regex_match;
mod replace_all;
mod replace_one;
mod reverse_array;
mod round;
mod rtrim;
mod second;
mod set_difference;
mod set_equals;
mod set_field;
mod set_intersection;
mod set_is_subset;
mod set_union;
mod several;
mod sigmoid;
mod size;
mod sizes;
mod slice;
mod sort_array;
mod split;
mod sqrt;
mod std_dev_pop;
mod std_dev_samp;
mod str_len_bytes;
mod str_len_cp;
mod strcasecmp;
mod substr;
mod substr_bytes;
mod substr_cp;
mod subtract;
mod sum;
mod switch;
mod timestamp_parts;
mod to_bool;
mod to_date;
mod to_decimal;
mod to_double;
mod to_hashed_index_key;
mod to_int;
mod to_long;
mod to_lower;
mod to_object_id;
mod to_string;
mod to_upper;
mod to_uuid;
mod trigonometry;
mod trim;
mod trunc;
mod type_name;
mod unset_field;
mod week;
mod year;
mod zip;

use crate::accumulators::Accumulator;
pub(crate) use crate::call::{Arity, Call, Form, Operator, Parameters, Refusal, Strings, positional, refuse};
pub(crate) use crate::variables::EvaluationContext;
pub(crate) use crate::{Evaluated, Expression, ParseScope};
use crate::{folding, made};
use bunko_bson::ValueRef;
pub(crate) use bunko_errors::Result;
use bunko_errors::{ErrorCode, Failure};
pub(crate) use meta::of_search;
use std::cmp::Ordering;

static OPERATORS: &[Operator] = &[
    abs::OPERATOR,
    add::OPERATOR,
    all_elements_true::OPERATOR,
    and::OPERATOR,
    any_element_true::OPERATOR,
    array_elem_at::OPERATOR,
    array_to_object::OPERATOR,
    avg::OPERATOR,
    bits::BIT_AND,
    bits::BIT_NOT,
    bits::BIT_OR,
    bits::BIT_XOR,
    ceil::OPERATOR,
    cmp::OPERATOR,
    concat::OPERATOR,
    concat_arrays::OPERATOR,
    cond::OPERATOR,
    constant::OPERATOR,
    convert::OPERATOR,
    date_add::OPERATOR,
    date_diff::OPERATOR,
    date_from_parts::OPERATOR,
    date_from_string::OPERATOR,
    date_subtract::OPERATOR,
    date_to_parts::OPERATOR,
    date_to_string::OPERATOR,
    date_trunc::OPERATOR,
    day_of_month::OPERATOR,
    day_of_week::OPERATOR,
    day_of_year::OPERATOR,
    divide::OPERATOR,
    eq::OPERATOR,
    exp::OPERATOR,
    filter::OPERATOR,
    first::OPERATOR,
    floor::OPERATOR,
    function::EMIT,
    function::OPERATOR,
    get_field::OPERATOR,
    gt::OPERATOR,
    gte::OPERATOR,
    hour::OPERATOR,
    if_null::OPERATOR,
    in_array::OPERATOR,
    index_of_array::OPERATOR,
    index_of_bytes::OPERATOR,
    index_of_cp::OPERATOR,
    is_array::OPERATOR,
    is_number::OPERATOR,
    iso_day_of_week::OPERATOR,
    iso_week::OPERATOR,
    iso_week_year::OPERATOR,
    last::OPERATOR,
    let_variables::OPERATOR,
    literal::OPERATOR,
    ln::OPERATOR,
    log::OPERATOR,
    log10::OPERATOR,
    lt::OPERATOR,
    lte::OPERATOR,
    ltrim::OPERATOR,
    map::OPERATOR,
    max::OPERATOR,
    merge_objects::OPERATOR,
    meta::OPERATOR,
    millisecond::OPERATOR,
    min::OPERATOR,
    minute::OPERATOR,
    modulo::OPERATOR,
    month::OPERATOR,
    multiply::OPERATOR,
    ne::OPERATOR,
    not::OPERATOR,
    object_to_array::OPERATOR,
    or::OPERATOR,
    percentile::MEDIAN,
    percentile::PERCENTILE,
    pow::OPERATOR,
    rand::OPERATOR,
    range::OPERATOR,
    reduce::OPERATOR,
    regex_find::OPERATOR,
    regex_find_all::OPERATOR,
    regex_match::OPERATOR,
    replace_all::OPERATOR,
    replace_one::OPERATOR,
    reverse_array::OPERATOR,
    round::OPERATOR,
    rtrim::OPERATOR,
    second::OPERATOR,
    set_difference::OPERATOR,
    set_equals::OPERATOR,
    set_field::OPERATOR,
    set_intersection::OPERATOR,
    set_is_subset::OPERATOR,
    set_union::OPERATOR,
    several::FIRST_N,
    several::LAST_N,
    several::MAX_N,
    several::MIN_N,
    sigmoid::OPERATOR,
    size::OPERATOR,
    sizes::BINARY_SIZE,
    sizes::BSON_SIZE,
    slice::OPERATOR,
    sort_array::OPERATOR,
    split::OPERATOR,
    sqrt::OPERATOR,
    std_dev_pop::OPERATOR,
    std_dev_samp::OPERATOR,
    str_len_bytes::OPERATOR,
    str_len_cp::OPERATOR,
    strcasecmp::OPERATOR,
    substr::OPERATOR,
    substr_bytes::OPERATOR,
    substr_cp::OPERATOR,
    subtract::OPERATOR,
    sum::OPERATOR,
    switch::OPERATOR,
    timestamp_parts::TS_INCREMENT,
    timestamp_parts::TS_SECOND,
    to_bool::OPERATOR,
    to_date::OPERATOR,
    to_decimal::OPERATOR,
    to_double::OPERATOR,
    to_hashed_index_key::OPERATOR,
    to_int::OPERATOR,
    to_long::OPERATOR,
    to_lower::OPERATOR,
    to_object_id::OPERATOR,
    to_string::OPERATOR,
    to_upper::OPERATOR,
    to_uuid::OPERATOR,
    trigonometry::ACOS,
    trigonometry::ACOSH,
    trigonometry::ASIN,
    trigonometry::ASINH,
    trigonometry::ATAN,
    trigonometry::ATAN2,
    trigonometry::ATANH,
    trigonometry::COS,
    trigonometry::COSH,
    trigonometry::DEGREES_TO_RADIANS,
    trigonometry::RADIANS_TO_DEGREES,
    trigonometry::SIN,
    trigonometry::SINH,
    trigonometry::TAN,
    trigonometry::TANH,
    trim::OPERATOR,
    trunc::OPERATOR,
    type_name::OPERATOR,
    unset_field::OPERATOR,
    week::OPERATOR,
    year::OPERATOR,
    zip::OPERATOR,
];

/// The name of each operator, and whether its entry says that it compares strings in the collation's order.
#[cfg(test)]
pub(crate) fn uses_of_collation() -> impl Iterator<Item = (&'static str, Strings)> {
    OPERATORS.iter().map(|operator| (operator.name, operator.strings))
}

/// Whether the table has an operator `name`.
pub(crate) fn exists(name: &str) -> bool {
    OPERATORS.iter().any(|operator| operator.name == name)
}

/// The failure for an operator that MongoDB has and Bunko has not; `None` for any other name.
pub(crate) fn missing(name: &str) -> Option<Failure> {
    (known::is_known(name) && !exists(name)).then(|| Failure::not_supported_yet(name))
}

/// Reads an operator and its arguments.
/// # Errors
/// `InvalidPipelineOperator` for an unknown name, else the errors of its arguments.
pub(crate) fn parse(name: &str, value: ValueRef<'_>, scope: &ParseScope) -> Result<Expression> {
    let Some(operator) = OPERATORS.iter().find(|operator| operator.name == name) else {
        if let Some(failure) = missing(name) {
            return Err(failure);
        }
        let message = format!("Unrecognized expression '{name}'");
        return Err(Failure::new(ErrorCode::INVALID_PIPELINE_OPERATOR, message));
    };
    if let Form::Constant = operator.form {
        return Expression::constant(value, scope);
    }
    folding::folded(Call::parse(operator, value, scope)?, scope)
}

/// Compares the two arguments of a call.
#[inline]
fn compared<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Ordering> {
    let (left, right) = (call.argument(0, context)?, call.argument(1, context)?);
    // Only two large values take long.
    context.operation().work(made::steps(left.or_null()).min(made::steps(right.or_null())))?;
    Ok(context.strings().compare(left.comparable(), right.comparable()))
}

/// Maximum memory that an accumulator may keep of a value, as a multiple of the value's size: it may keep each field
/// alone.
const KEPT_PARTS: usize = 16;

/// Feeds an accumulator with the arguments, or with the elements of an only argument that is an array.
fn accumulate<'a>(
    call: &'a Call,
    context: &EvaluationContext<'a>,
    mut accumulator: Box<dyn Accumulator>,
) -> Result<Evaluated<'a>> {
    accumulator.collate(context.strings());
    if call.arguments.len() == 1 {
        let only = call.argument(0, context)?;
        if let Some(ValueRef::Array(array)) = only.get() {
            for element in array.iter() {
                context.operation().work(made::steps(element))?;
                context.operation().will_take(KEPT_PARTS * element.content_bytes())?;
                made::check_container_bytes(call.name(), accumulator.memory_bytes() + element.content_bytes())?;
                accumulator.add(Evaluated::Ref(element))?;
            }
        } else {
            context.operation().will_take(KEPT_PARTS * only.or_null().content_bytes())?;
            accumulator.add(only)?;
        }
    } else {
        for index in 0..call.arguments.len() {
            let value = call.argument(index, context)?;
            context.operation().work(made::steps(value.or_null()))?;
            context.operation().will_take(KEPT_PARTS * value.or_null().content_bytes())?;
            made::check_container_bytes(call.name(), accumulator.memory_bytes() + value.or_null().content_bytes())?;
            accumulator.add(value)?;
        }
    }
    Ok(accumulator.finish().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_testkit::handbook::{check, paragraph};

    #[test]
    fn every_operator_has_its_script() {
        for operator in OPERATORS {
            let script = format!("{}/tests/scripts/operators/{}", env!("CARGO_MANIFEST_DIR"), &operator.name[1..]);
            assert!(std::path::Path::new(&script).is_file(), "{} lacks {script}", operator.name);
        }
    }

    #[test]
    fn names_are_distinct() {
        for (index, operator) in OPERATORS.iter().enumerate() {
            assert!(OPERATORS[..index].iter().all(|other| other.name != operator.name), "{}", operator.name);
        }
    }

    #[test]
    fn the_handbook_lists_every_operator() {
        let names = OPERATORS.iter().map(|operator| operator.name);
        check("reference/compatibility.md", "expressions", &paragraph(names));
    }
}
