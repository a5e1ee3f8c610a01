//! The normal form as a filter document, in the shape of explain's `parsedQuery`.

use crate::comparison::Comparison;
use crate::expr::{Expr, ExprComparison};
use crate::expression::{Condition, Expression};
use crate::operands::bucket_geo;
use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef};

/// Minimum bytes of a bit position in an array: a type, a one-digit name, and an int.
const POSITION_BYTES: usize = 7;
/// Bytes of an array element beside its document: a type and a name.
const ELEMENT_BYTES: usize = 8;

/// Whether a document shows the comparisons that an `$expr` implies, which the planner uses as bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Implied {
    Shown,
    Hidden,
}

/// Remaining bytes of the document. Each part is checked before it is made, or afterwards if it is no larger than its
/// source.
struct Left {
    bytes: usize,
    implied: Implied,
}

impl Left {
    fn take(&mut self, bytes: usize) -> Option<()> {
        self.bytes = self.bytes.checked_sub(bytes)?;
        Some(())
    }

    /// The comparisons to show beside an `$expr`.
    fn implied_by<'e>(&self, expr: &'e Expr) -> &'e [ExprComparison] {
        if self.implied == Implied::Shown { expr.implied() } else { &[] }
    }

    fn taken(&mut self, part: DocumentBuf) -> Option<DocumentBuf> {
        self.take(part.as_ref().len_bytes())?;
        Some(part)
    }
}

/// A filter with the meaning of the tree, made from the predicates of the top-level conjunction whose positions
/// `is_taken` accepts. `None` if the filter needs more than `bytes_max` bytes.
pub(crate) fn document_within(
    expression: &Expression,
    implied: Implied,
    is_taken: &dyn Fn(usize) -> bool,
    bytes_max: usize,
) -> Option<DocumentBuf> {
    let mut left = Left { bytes: bytes_max, implied };
    let Expression::And(children) = expression else { return document(expression, &mut left) };
    let taken: Vec<&Expression> =
        children.iter().enumerate().filter(|(position, _)| is_taken(*position)).map(|(_, child)| child).collect();
    match taken.as_slice() {
        [] => Some(DocumentBuf::new()),
        [only] => document(only, &mut left),
        several => list("$and", several.iter().copied(), &mut left),
    }
}

fn document(expression: &Expression, left: &mut Left) -> Option<DocumentBuf> {
    match expression {
        Expression::And(children) if children.is_empty() => Some(DocumentBuf::new()),
        Expression::And(children) => list("$and", children, left),
        Expression::Or(children) => list("$or", children, left),
        Expression::Nor(children) => list("$nor", children, left),
        Expression::Not(child) => match &**child {
            Expression::OnPath(path, condition) => {
                let negation = DocumentBuf::new().with("$not", &operator(condition, left)?);
                left.taken(DocumentBuf::new().with(path.as_str(), &negation))
            }
            // Negations of several operators have no `$not`.
            several => list("$nor", [several], left),
        },
        Expression::JsonSchema(schema) => left.taken(DocumentBuf::new().with("$jsonSchema", schema.source())),
        Expression::Expr(expr) if !left.implied_by(expr).is_empty() => list("$and", [expression], left),
        Expression::Expr(expr) => of_expr(expr, left),
        Expression::Text(search) => left.taken(DocumentBuf::new().with("$text", &search.to_document())),
        Expression::BucketGeo { field, geo } => left.taken(bucket_geo::to_document(field, geo)),
        Expression::AlwaysTrue => left.taken(DocumentBuf::new().with("$alwaysTrue", 1_i32)),
        Expression::OnPath(_, Condition::In { values, regexes }) if values.is_empty() && regexes.is_empty() => {
            document(&Expression::AlwaysFalse, left)
        }
        Expression::OnPath(path, condition) => {
            let operator = operator(condition, left)?;
            left.taken(DocumentBuf::new().with(path.as_str(), &operator))
        }
        Expression::AlwaysFalse => left.taken(DocumentBuf::new().with("$alwaysFalse", 1_i32)),
    }
}

fn list<'e>(name: &str, children: impl IntoIterator<Item = &'e Expression>, left: &mut Left) -> Option<DocumentBuf> {
    let mut list = ArrayBuf::new();
    let mut implied: Vec<&ExprComparison> = Vec::new();
    for child in children {
        left.take(ELEMENT_BYTES)?;
        list.push(&match child {
            Expression::Expr(expr) if name == "$and" => {
                implied.extend(left.implied_by(expr));
                of_expr(expr, left)
            }
            child => document(child, left),
        }?);
    }
    implied.sort_by_key(|implied| (name_of_implied(implied.op), &implied.path));
    for ExprComparison { path, op, value } in implied {
        left.take(ELEMENT_BYTES)?;
        list.push(&left.taken(DocumentBuf::new().with(path, &DocumentBuf::new().with(name_of_implied(*op), value)))?);
    }
    Some(DocumentBuf::new().with(name, &list))
}

fn of_expr(expr: &Expr, left: &mut Left) -> Option<DocumentBuf> {
    left.taken(DocumentBuf::new().with(expr.name, expr.source()))
}

/// MongoDB's name for a comparison that an `$expr` implies. These names sort as explain shows them.
fn name_of_implied(op: Comparison) -> &'static str {
    match op {
        Comparison::Eq => "$_internalExprEq",
        Comparison::Gt => "$_internalExprGt",
        Comparison::Gte => "$_internalExprGte",
        Comparison::Lt => "$_internalExprLt",
        Comparison::Lte => "$_internalExprLte",
    }
}

/// The operator of a condition: `{$gt: 5}`.
fn operator(condition: &Condition, left: &mut Left) -> Option<DocumentBuf> {
    let empty = DocumentBuf::new();
    Some(match condition {
        Condition::Compare(op, value) => empty.with(op.name(), value),
        Condition::In { values, regexes } => {
            let mut list = ArrayBuf::new();
            let regexes =
                regexes.iter().map(|regex| ValueRef::Regex { pattern: regex.pattern(), options: regex.options() });
            for value in values.iter().map(|value| value.as_ref()).chain(regexes) {
                list.push(value);
                if list.len_bytes() > left.bytes {
                    return None;
                }
            }
            empty.with("$in", &list)
        }
        Condition::Regex(regex) => {
            let mut operator = empty.with("$regex", regex.pattern());
            if !regex.options().is_empty() {
                operator.append("$options", regex.options());
            }
            operator
        }
        Condition::Exists => empty.with("$exists", true),
        Condition::Type(types) => empty.with("$type", &types.to_array()),
        Condition::Mod { divisor, remainder } => {
            empty.with("$mod", &[*divisor, *remainder].into_iter().collect::<ArrayBuf>())
        }
        Condition::Size(size) => match i32::try_from(*size) {
            Ok(size) => empty.with("$size", size),
            Err(_) => empty.with("$size", *size as i64),
        },
        Condition::ElemMatchObject(filter) => empty.with("$elemMatch", &document(filter, left)?),
        Condition::ElemMatchValue(condition) => empty.with("$elemMatch", &operators(condition, left)?),
        Condition::Bits(test, mask) => {
            let positions = mask.positions();
            if positions.len().saturating_mul(POSITION_BYTES) > left.bytes {
                return None;
            }
            empty.with(test.name(), &positions.iter().map(|&position| position as i32).collect::<ArrayBuf>())
        }
        Condition::Geo(geo) => geo.to_document(),
        Condition::Near(point) => point.source.clone(),
    })
}

/// The operators of a condition on the value itself: `{$gt: 1, $lt: 5}`.
fn operators(condition: &Expression, left: &mut Left) -> Option<DocumentBuf> {
    Some(match condition {
        Expression::And(children) => {
            let mut all = DocumentBuf::new();
            for child in children {
                all.extend(operators(child, left)?.as_ref());
            }
            all
        }
        Expression::Not(child) => DocumentBuf::new().with("$not", &operators(child, left)?),
        Expression::OnPath(_, condition) => operator(condition, left)?,
        _ => DocumentBuf::new(),
    })
}
