//! The tree of a parsed filter: the planner reads it, and documents are matched against it.

use crate::json_schema::Schema;
use crate::operators::bits::{BitMask, BitTest};
use crate::operators::bson_type::TypeSet;
use crate::operators::geo::Geo;
use crate::operators::near::NearPoint;
use crate::operators::regex::Regex;
use crate::operators::text::TextSearch;
use crate::path::Path;
use bunko_bson::{DocumentRef, StringOrder, Value, ValueRef};
use bunko_errors::{Failure, Result};
use bunko_operation::OperationContext;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// A comparison within one type bracket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Comparison {
    Eq,
    Lt,
    Lte,
    Gt,
    Gte,
}

impl Comparison {
    /// The operator's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Eq => "$eq",
            Self::Lt => "$lt",
            Self::Lte => "$lte",
            Self::Gt => "$gt",
            Self::Gte => "$gte",
        }
    }

    /// Whether equal values satisfy it.
    pub fn includes_equality(self) -> bool {
        matches!(self, Self::Eq | Self::Lte | Self::Gte)
    }

    pub(crate) fn holds(self, ordering: Ordering) -> bool {
        match self {
            Self::Eq => ordering.is_eq(),
            Self::Lt => ordering.is_lt(),
            Self::Lte => ordering.is_le(),
            Self::Gt => ordering.is_gt(),
            Self::Gte => ordering.is_ge(),
        }
    }
}

/// A parsed filter, or a part of one.
///
/// **Invariant:** trees are in normal form: `And` contains no `And`, `Or` no `Or`, neither has exactly one child, and
/// no `Not` contains a `Not`; children are in the order of `rank`, as explain shows them. The empty `And` is the empty
/// filter. `$ne` is `Not(Compare Eq)`, `$nin` is `Not(In)`, `{$exists: false}` is `Not(Exists)`, `$all` is an `And`.
///
/// The paths of an [`Expression::ElemMatchObject`]'s `filter` are relative to the element; those in an
/// [`Expression::ElemMatchValue`]'s `condition` all are [`Path::is_itself`].
#[derive(Clone, Debug)]
pub enum Expression {
    /// All children match. An empty list matches every document.
    And(Vec<Expression>),
    /// At least one child matches.
    Or(Vec<Expression>),
    /// No child matches.
    Nor(Vec<Expression>),
    /// The child does not match.
    Not(Box<Expression>),
    /// Some value at the path compares this way, within the operand's type bracket.
    Compare {
        /// The path.
        path: Path,
        /// The comparison.
        op: Comparison,
        /// The operand; never undefined, a regex only under `$eq`.
        value: Value,
    },
    /// Some value at the path is one of `values` or matches one of `regexes`. If both are empty (`{$in: []}`, `{$all:
    /// []}`), nothing matches.
    In {
        /// The path.
        path: Path,
        /// Values, sorted in the filter's string order, without duplicates.
        values: Arc<Vec<Value>>,
        /// Patterns, in the order of the filter.
        regexes: Vec<Regex>,
    },
    /// Some string at the path matches, or some value is an equal regex.
    Regex {
        /// The path.
        path: Path,
        /// The compiled regex.
        regex: Regex,
    },
    /// The path leads to some value.
    Exists {
        /// The path.
        path: Path,
    },
    /// Some value at the path has one of the types.
    Type {
        /// The path.
        path: Path,
        /// The types.
        types: TypeSet,
    },
    /// Some number at the path, truncated, leaves `remainder` when divided by `divisor` (never 0).
    Mod {
        /// The path.
        path: Path,
        /// The divisor; not 0.
        divisor: i64,
        /// The sign is that of the dividend, as in C.
        remainder: i64,
    },
    /// The array at the path has this many elements.
    Size {
        /// The path.
        path: Path,
        /// Number of elements.
        size: u64,
    },
    /// Some document (or array) in the array at the path matches the filter.
    ElemMatchObject {
        /// The path.
        path: Path,
        /// Matched against each element as a document.
        filter: Box<Expression>,
    },
    /// Some element of the array at the path satisfies the condition.
    ElemMatchValue {
        /// The path.
        path: Path,
        /// Matched against each element itself.
        condition: Box<Expression>,
    },
    /// Some integer or binary value at the path satisfies the bit test.
    Bits {
        /// The path.
        path: Path,
        /// The test: all or any, set or clear.
        test: BitTest,
        /// The bits.
        mask: BitMask,
    },
    /// The whole document satisfies a schema.
    JsonSchema(Arc<Schema>),
    /// Some geometry at the path satisfies the geo condition.
    Geo {
        /// The path.
        path: Path,
        /// The condition.
        geo: Geo,
    },
    /// Some measurement of a time series bucket has a location in a region.
    BucketGeo {
        /// The path in a measurement.
        field: Path,
        /// The region.
        geo: Geo,
    },
    /// Documents by distance of a geometry at the path, nearest first. Only the planner uses it; as a condition every
    /// document matches.
    Near {
        /// The path.
        path: Path,
        /// The point.
        point: NearPoint,
    },
    /// Documents by a text search.
    Text(Arc<TextSearch>),
    /// An aggregation expression over the whole document, or a script, is true.
    Expr(Expr),
    /// Every document matches: `{$alwaysTrue: 1}`.
    AlwaysTrue,
    /// No document matches: `{$alwaysFalse: 1}`.
    AlwaysFalse,
}

impl Expression {
    /// All of `children`, in normal form.
    pub(crate) fn and(children: Vec<Self>) -> Self {
        let mut flat = Vec::with_capacity(children.len());
        for child in children {
            match child {
                Self::And(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        Self::only_or(flat, Self::And)
    }

    /// Any of `children`, in normal form.
    pub(crate) fn or(children: Vec<Self>) -> Self {
        let mut flat = Vec::with_capacity(children.len());
        for child in children {
            match child {
                Self::Or(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        Self::only_or(flat, Self::Or)
    }

    /// None of `children`, in normal form.
    pub(crate) fn nor(mut children: Vec<Self>) -> Self {
        sort(&mut children);
        Self::Nor(children)
    }

    /// The opposite of `child`, in normal form.
    pub(crate) fn not(child: Self) -> Self {
        if let Self::Not(inner) = child { *inner } else { Self::Not(Box::new(child)) }
    }

    /// `path` equals `value`.
    pub(crate) fn equal(path: Path, value: Value) -> Self {
        Self::Compare { path, op: Comparison::Eq, value }
    }

    /// The only child, or all children in rank order.
    fn only_or(mut children: Vec<Self>, all: fn(Vec<Self>) -> Self) -> Self {
        sort(&mut children);
        match (children.pop(), children.is_empty()) {
            (Some(only), true) => only,
            (last, _) => {
                children.extend(last);
                all(children)
            }
        }
    }

    /// Whether the tree contains `$expr` or `$where`; it may occur wherever a whole document is tested.
    pub(crate) fn holds_expr(&self) -> bool {
        match self {
            Self::Expr(_) => true,
            Self::And(children) | Self::Or(children) | Self::Nor(children) => children.iter().any(Self::holds_expr),
            Self::Not(child) => child.holds_expr(),
            _ => false,
        }
    }

    /// Whether the tree contains no expression, script or search.
    pub(crate) fn looks_at_values_only(&self) -> bool {
        match self {
            Self::And(children) | Self::Or(children) | Self::Nor(children) => {
                children.iter().all(Self::looks_at_values_only)
            }
            Self::Not(child)
            | Self::ElemMatchObject { filter: child, .. }
            | Self::ElemMatchValue { condition: child, .. } => child.looks_at_values_only(),
            Self::Compare { .. }
            | Self::In { .. }
            | Self::Regex { .. }
            | Self::Exists { .. }
            | Self::Type { .. }
            | Self::Mod { .. }
            | Self::Size { .. }
            | Self::Bits { .. }
            | Self::JsonSchema(_)
            | Self::Geo { .. }
            | Self::BucketGeo { .. }
            | Self::AlwaysTrue
            | Self::AlwaysFalse => true,
            // Expressions have their own variables and operation; searches depend on more than the document.
            Self::Near { .. } | Self::Text(_) | Self::Expr(_) => false,
        }
    }

    /// The path that this node itself tests; `None` for logical nodes and `$expr`.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Compare { path, .. }
            | Self::In { path, .. }
            | Self::Regex { path, .. }
            | Self::Exists { path }
            | Self::Type { path, .. }
            | Self::Mod { path, .. }
            | Self::Size { path, .. }
            | Self::ElemMatchObject { path, .. }
            | Self::ElemMatchValue { path, .. }
            | Self::Bits { path, .. }
            | Self::Geo { path, .. }
            | Self::Near { path, .. } => Some(path),
            Self::And(_)
            | Self::Or(_)
            | Self::Nor(_)
            | Self::Not(_)
            | Self::JsonSchema(_)
            | Self::BucketGeo { .. }
            | Self::Text(_)
            | Self::Expr(_)
            | Self::AlwaysTrue
            | Self::AlwaysFalse => None,
        }
    }

    /// Calls `visit` with each path that is relative to the whole subject: not with those inside `$elemMatch`.
    pub(crate) fn for_each_path_mut(&mut self, visit: &mut impl FnMut(&mut Path)) {
        match self {
            Self::And(children) | Self::Or(children) | Self::Nor(children) => {
                for child in children {
                    child.for_each_path_mut(visit);
                }
            }
            Self::Not(child) => child.for_each_path_mut(visit),
            Self::Compare { path, .. }
            | Self::In { path, .. }
            | Self::Regex { path, .. }
            | Self::Exists { path }
            | Self::Type { path, .. }
            | Self::Mod { path, .. }
            | Self::Size { path, .. }
            | Self::ElemMatchObject { path, .. }
            | Self::ElemMatchValue { path, .. }
            | Self::Bits { path, .. }
            | Self::Geo { path, .. }
            | Self::Near { path, .. } => visit(path),
            Self::JsonSchema(_)
            | Self::BucketGeo { .. }
            | Self::Text(_)
            | Self::Expr(_)
            | Self::AlwaysTrue
            | Self::AlwaysFalse => {}
        }
    }

    /// The rank of this kind of node among its siblings: cheap and selective nodes first.
    /// Source: the order in which MongoDB's explain prints `parsedQuery`.
    fn rank(&self) -> u8 {
        match self {
            Self::And(_) => 0,
            Self::Or(_) => 1,
            Self::ElemMatchObject { .. } => 2,
            Self::ElemMatchValue { .. } => 3,
            Self::Size { .. } => 4,
            Self::Compare { op: Comparison::Eq, .. } => 5,
            Self::Compare { op: Comparison::Lte, .. } => 6,
            Self::Compare { op: Comparison::Lt, .. } => 7,
            Self::Compare { op: Comparison::Gt, .. } => 8,
            Self::Compare { op: Comparison::Gte, .. } => 9,
            Self::Regex { .. } => 10,
            Self::Mod { .. } => 11,
            Self::Exists { .. } => 12,
            Self::In { .. } => 13,
            Self::Bits { .. } => 14,
            Self::Not(_) => 15,
            Self::Nor(_) => 16,
            Self::Type { .. } => 17,
            Self::JsonSchema(_) => 18,
            Self::Geo { .. } | Self::BucketGeo { .. } => 19,
            Self::Expr(_) => 20,
            Self::AlwaysFalse => 21,
            Self::AlwaysTrue => 22,
            Self::Near { .. } => 23,
            Self::Text(_) => 24,
        }
    }
}

fn sort(children: &mut [Expression]) {
    children.sort_by(|a, b| {
        a.rank().cmp(&b.rank()).then_with(|| a.path().map(Path::as_str).cmp(&b.path().map(Path::as_str)))
    });
}

/// The caller's context for parsing a filter: it compiles the operand of `$expr` in another crate, and has the string
/// order and the operation.
pub trait ExprCompiler {
    /// Compiles one operand.
    /// # Errors
    /// Errors of the expression's parser.
    fn compile(&self, expression: ValueRef<'_>) -> Result<Arc<dyn ExprPredicate>>;

    /// Compiles the text of a `$where`.
    /// # Errors
    /// `BadValue` if `$where` is not allowed here; errors of the script's compiler.
    fn compile_where(&self, text: &str) -> Result<Arc<dyn ExprPredicate>> {
        let _ = text;
        Err(Failure::bad_value("$where is not allowed in this context"))
    }

    /// The order in which the filter compares strings.
    fn strings(&self) -> &StringOrder {
        StringOrder::BYTES
    }

    /// The operation of the parsing, which can interrupt it and limit its memory. Every caller provides one if it can:
    /// a filter may have a million values.
    fn operation(&self) -> Option<&OperationContext>;
}

/// A compiled `$expr` or `$where`.
pub trait ExprPredicate: Send + Sync {
    /// Whether the expression is true for the document. The work counts for `operation`, if given, unless the
    /// expression has an operation of its own.
    /// # Errors
    /// Errors of the evaluation, such as a division by zero.
    fn matches(&self, document: DocumentRef<'_>, operation: Option<&OperationContext>) -> Result<bool>;

    /// The truth of the expression, if it is equal for every document.
    fn constant(&self) -> Option<bool> {
        None
    }

    /// Comparisons of fields with constants that hold for every document for which the expression is true.
    fn implied(&self) -> &[ExprComparison] {
        &[]
    }

    /// The result of the expression, for the details of a failed validation; `None` for a missing value.
    /// # Errors
    /// As [`ExprPredicate::matches`].
    fn result(&self, document: DocumentRef<'_>, operation: Option<&OperationContext>) -> Result<Option<Value>> {
        Ok(Some(Value::Boolean(self.matches(document, operation)?)))
    }
}

/// A comparison of a field with a constant inside an `$expr`. It orders all values of all types, a missing one as
/// undefined, and compares arrays whole.
#[derive(Clone, Debug)]
pub struct ExprComparison {
    /// The dotted path of the field. Its components are names, never array positions.
    pub path: String,
    /// How the field compares with the value.
    pub op: Comparison,
    /// The constant; not undefined, and no array.
    pub value: Value,
}

/// `$expr` or `$where` in the tree.
#[derive(Clone)]
pub struct Expr {
    pub(crate) name: &'static str,
    pub(crate) source: Value,
    pub(crate) predicate: Arc<dyn ExprPredicate>,
    /// The implied comparisons with values in the form of an index's keys, if the planner translated them.
    in_keys: Option<Arc<[ExprComparison]>>,
}

impl Expr {
    pub(crate) fn new(name: &'static str, source: Value, predicate: Arc<dyn ExprPredicate>) -> Self {
        Self { name, source, predicate, in_keys: None }
    }

    /// The operand as written.
    pub fn source(&self) -> ValueRef<'_> {
        self.source.as_ref()
    }

    /// Comparisons that hold for every document for which the expression is true.
    pub fn implied(&self) -> &[ExprComparison] {
        self.in_keys.as_deref().unwrap_or_else(|| self.predicate.implied())
    }

    /// A copy for bounds, whose implied comparisons have other values.
    #[must_use]
    pub fn with_implied_values(&self, value: impl Fn(&Value) -> Value) -> Self {
        let of = |implied: &ExprComparison| ExprComparison { value: value(&implied.value), ..implied.clone() };
        Self { in_keys: Some(self.implied().iter().map(of).collect()), ..self.clone() }
    }
}

impl fmt::Debug for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expr").field(&self.source).finish()
    }
}
