//! The tree that a filter is parsed into: what the planner reads and documents are matched against.

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
/// **Invariant:** trees are in normal form: `And` holds no `And`, `Or` no `Or`, neither holds exactly one child, no
/// `Not` holds a `Not`; children stand in `rank`'s order, as explain shows them. The empty `And` is
/// the empty filter. `$ne` is `Not(Compare Eq)`, `$nin` is `Not(In)`, `{$exists: false}` is `Not(Exists)`, `$all` is
/// an `And`.
///
/// The paths of an [`Expression::ElemMatchObject`]'s `filter` are relative to the element; those in an
/// [`Expression::ElemMatchValue`]'s `condition` all are [`Path::is_itself`].
#[derive(Clone, Debug)]
pub enum Expression {
    /// All children match. Empty: everything does.
    And(Vec<Expression>),
    /// At least one child matches.
    Or(Vec<Expression>),
    /// No child matches.
    Nor(Vec<Expression>),
    /// The child does not match.
    Not(Box<Expression>),
    /// Some value at the path compares so, within the operand's type bracket.
    Compare {
        /// Where.
        path: Path,
        /// How.
        op: Comparison,
        /// The operand; never undefined, a regex only under `$eq`.
        value: Value,
    },
    /// Some value at the path is one of `values` or matches one of `regexes`. Nothing matches when both are empty
    /// (`{$in: []}`, `{$all: []}`).
    In {
        /// Where.
        path: Path,
        /// Sorted in the filter's order, each once.
        values: Arc<Vec<Value>>,
        /// In the order given.
        regexes: Vec<Regex>,
    },
    /// Some string at the path matches, or some value is that very regex.
    Regex {
        /// Where.
        path: Path,
        /// Compiled.
        regex: Regex,
    },
    /// The path leads to some value.
    Exists {
        /// Where.
        path: Path,
    },
    /// Some value at the path has one of the types.
    Type {
        /// Where.
        path: Path,
        /// Which.
        types: TypeSet,
    },
    /// Some number at the path, truncated, leaves `remainder` when divided by `divisor` (never 0).
    Mod {
        /// Where.
        path: Path,
        /// Not 0.
        divisor: i64,
        /// Signed as in C: that of the dividend.
        remainder: i64,
    },
    /// The array at the path has that many elements.
    Size {
        /// Where.
        path: Path,
        /// Number of elements.
        size: u64,
    },
    /// Some document (or array) in the array at the path matches the filter.
    ElemMatchObject {
        /// Where.
        path: Path,
        /// Matched against each element as a document.
        filter: Box<Expression>,
    },
    /// Some element of the array at the path satisfies the condition.
    ElemMatchValue {
        /// Where.
        path: Path,
        /// Matched against each element itself.
        condition: Box<Expression>,
    },
    /// Some integer or binary value at the path has those bits so.
    Bits {
        /// Where.
        path: Path,
        /// All or any, set or clear.
        test: BitTest,
        /// Which bits.
        mask: BitMask,
    },
    /// The whole document satisfies a schema.
    JsonSchema(Arc<Schema>),
    /// Some geometry at the path answers the question with yes.
    Geo {
        /// Where.
        path: Path,
        /// What is asked.
        geo: Geo,
    },
    /// Some measurement of a bucket of a time series has a place in a region.
    BucketGeo {
        /// Where, in a measurement.
        field: Path,
        /// Which region.
        geo: Geo,
    },
    /// Documents by the distance of a geometry at the path, nearest first: for the planner. Everything matches.
    Near {
        /// Where.
        path: Path,
        /// Which point.
        point: NearPoint,
    },
    /// Documents by the words of their texts.
    Text(Arc<TextSearch>),
    /// An aggregation expression over the whole document, or a script, is true.
    Expr(Expr),
    /// Everything matches: `{$alwaysTrue: 1}`.
    AlwaysTrue,
    /// Nothing matches: `{$alwaysFalse: 1}`.
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

    /// The only child, or all of them in order.
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

    /// Whether `$expr` or `$where` stands somewhere, which it may wherever a whole document is asked.
    pub(crate) fn holds_expr(&self) -> bool {
        match self {
            Self::Expr(_) => true,
            Self::And(children) | Self::Or(children) | Self::Nor(children) => children.iter().any(Self::holds_expr),
            Self::Not(child) => child.holds_expr(),
            _ => false,
        }
    }

    /// Whether no part of it is an expression, a script, a schema or a search.
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
            // Expressions have variables and an operation of their own; searches know more than the document.
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

    /// Calls `visit` with each path that is relative to the whole subject: all but those inside `$elemMatch`.
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

    /// Where this kind of node stands among its siblings: cheap and selective first.
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

/// What a filter's parser is brought by its caller: how the operand of `$expr` becomes a predicate, which is another crate's
/// affair, the order of strings, and for whom the filter is parsed.
pub trait ExprCompiler {
    /// Compiles one operand.
    /// # Errors
    /// What the expression's parser reports.
    fn compile(&self, expression: ValueRef<'_>) -> Result<Arc<dyn ExprPredicate>>;

    /// Compiles the text of a `$where`.
    /// # Errors
    /// `BadValue` where none may stand; what the script's compiler reports.
    fn compile_where(&self, text: &str) -> Result<Arc<dyn ExprPredicate>> {
        let _ = text;
        Err(Failure::bad_value("$where is not allowed in this context"))
    }

    /// In which order the filter compares strings.
    fn strings(&self) -> &StringOrder {
        StringOrder::BYTES
    }

    /// The operation that the filter is parsed for, which is asked whether it has to stop and before memory is taken. Every
    /// caller says which: a filter may have a million values.
    fn operation(&self) -> Option<&OperationContext>;
}

/// A compiled `$expr` or `$where`.
pub trait ExprPredicate: Send + Sync {
    /// Whether the expression is true for the document. It is work of `operation`, if one asks and the expression is not
    /// another's already.
    /// # Errors
    /// What the expression's evaluation reports, such as a division by zero.
    fn matches(&self, document: DocumentRef<'_>, operation: Option<&OperationContext>) -> Result<bool>;

    /// Whether the expression is true, if that is the same for every document.
    fn constant(&self) -> Option<bool> {
        None
    }

    /// What the expression comes to, as the details of a failed validation tell it; `None` for a missing value.
    /// # Errors
    /// As [`ExprPredicate::matches`].
    fn result(&self, document: DocumentRef<'_>, operation: Option<&OperationContext>) -> Result<Option<Value>> {
        Ok(Some(Value::Boolean(self.matches(document, operation)?)))
    }
}

/// `$expr` or `$where` in the tree.
#[derive(Clone)]
pub struct Expr {
    pub(crate) name: &'static str,
    pub(crate) source: Value,
    pub(crate) predicate: Arc<dyn ExprPredicate>,
}

impl Expr {
    /// The operand as it was written.
    pub fn source(&self) -> ValueRef<'_> {
        self.source.as_ref()
    }
}

impl fmt::Debug for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expr").field(&self.source).finish()
    }
}
