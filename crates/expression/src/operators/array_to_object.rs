//! `$arrayToObject`: a document from pairs, `[name, value]` or `{k, v}`; a later pair of the same name wins.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Refusal, Result, Strings, refuse};
use crate::made::MadeDocument;
use crate::printed::printed_value;
use bunko_bson::{ArrayRef, DocumentRef, Type, ValueRef};
use std::collections::BTreeMap;

const NOT_ALL_ARRAYS: Refusal = (
    40396,
    "$arrayToObject requires a consistent input format. Elements must all be arrays or all be objects. Array was detected, now found: {}",
);
const NOT_ALL_DOCUMENTS: Refusal = (
    40391,
    "$arrayToObject requires a consistent input format. Elements must all be arrays or all be objects. Object was detected, now found: {}",
);

pub(super) const OPERATOR: Operator =
    Operator { name: "$arrayToObject", strings: Strings::AsBytes, form: Form::Positional(Arity::Exactly(1)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let Some(value) = call.not_null(context)? else { return Ok(Evaluated::null()) };
    let Some(ValueRef::Array(array)) = value.get() else {
        return Err(call.failure(40386, &format!(" requires an array input, found: {}", value.type_name())));
    };
    let mut fields: Vec<(&str, ValueRef<'_>)> = Vec::new();
    let mut positions = BTreeMap::new();
    let first = array.iter().next().map(ValueRef::kind);
    for pair in array.iter() {
        let (name, value) = match (first, pair) {
            (Some(Type::Array), ValueRef::Array(pair)) => pair_of_array(pair)?,
            (Some(Type::Document), ValueRef::Document(pair)) => pair_of_document(pair)?,
            (Some(Type::Array), other) => return Err(refuse(NOT_ALL_ARRAYS, other.kind().alias())),
            (Some(Type::Document), other) => return Err(refuse(NOT_ALL_DOCUMENTS, other.kind().alias())),
            (_, other) => {
                let refusal = (40398, "Unrecognised input type format for $arrayToObject: {}");
                return Err(refuse(refusal, other.kind().alias()));
            }
        };
        if name.contains('\0') {
            let code = if first == Some(Type::Array) { 4_940_400 } else { 4_940_401 };
            return Err(refuse((code, "Key field cannot contain an embedded null byte"), ""));
        }
        context.operation().work(1)?;
        let position = *positions.entry(name).or_insert(fields.len());
        match fields.get_mut(position) {
            Some(field) => field.1 = value,
            None => fields.push((name, value)),
        }
    }
    let mut document = MadeDocument::new(call.name(), context);
    for (name, value) in fields {
        document.append_field(name, value)?;
    }
    Ok(document.finish())
}

fn pair_of_array(pair: ArrayRef<'_>) -> Result<(&str, ValueRef<'_>)> {
    let count = pair.count();
    let (Some(name), Some(value), 2) = (pair.get(0), pair.get(1), count) else {
        let refusal = (40397, "$arrayToObject requires an array of size 2 arrays,found array of size: {}");
        return Err(refuse(refusal, &count.to_string()));
    };
    let refusal = (
        40395,
        "$arrayToObject requires an array of key-value pairs, where the key must be of type string. Found key type: {}",
    );
    Ok((name.as_str().ok_or_else(|| refuse(refusal, name.kind().alias()))?, value))
}

fn pair_of_document(pair: DocumentRef<'_>) -> Result<(&str, ValueRef<'_>)> {
    if pair.count() != 2 {
        let refusal =
            (40392, "$arrayToObject requires an object keys of 'k' and 'v'. Found incorrect number of keys:{}");
        return Err(refuse(refusal, &pair.count().to_string()));
    }
    let (Some(name), Some(value)) = (pair.get("k"), pair.get("v")) else {
        let refusal =
            (40393, "$arrayToObject requires an object with keys 'k' and 'v'. Missing either or both keys from: {}");
        return Err(refuse(refusal, &printed_value(ValueRef::Document(pair))));
    };
    let refusal = (
        40394,
        "$arrayToObject requires an object with keys 'k' and 'v', where the value of 'k' must be of type string. Found type: {}",
    );
    Ok((name.as_str().ok_or_else(|| refuse(refusal, name.kind().alias()))?, value))
}
