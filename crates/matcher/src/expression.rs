//! The tree of a parsed filter: the planner reads it, and documents are matched against it.

use crate::comparison::Comparison;
use crate::expr::Expr;
use crate::json_schema::Schema;
use crate::operands::{BitMask, BitTest, Geo, NearPoint, Regex, TextSearch, TypeSet};
use crate::path::Path;
use bunko_bson::Value;
use std::sync::Arc;

/// A parsed filter, or a part of one.
///
/// **Invariant:** trees are in normal form: `And` contains no `And`, `Or` no `Or`, neither has exactly one child, and
/// no `Not` contains a `Not`; children are in the order of `rank`, as explain shows them. The empty `And` is the empty
/// filter. `$ne` is `Not` of an equality, `$nin` of a list, `{$exists: false}` of `Exists`; `$all` is an `And`.
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
    /// The values at the path satisfy the condition.
    OnPath(Path, Condition),
    /// The whole document satisfies a schema.
    JsonSchema(Arc<Schema>),
    /// Some measurement of a time series bucket has a location in a region.
    BucketGeo {
        /// The path in a measurement.
        field: Path,
        /// The region.
        geo: Geo,
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

/// A condition on the values at a path.
#[derive(Clone, Debug)]
pub enum Condition {
    /// Some value compares this way, within the operand's type bracket. The operand is never undefined, and a regex only
    /// under `$eq`.
    Compare(Comparison, Value),
    /// Some value is one of `values` or matches one of `regexes`. If both are empty (`{$in: []}`, `{$all: []}`), nothing
    /// matches.
    In {
        /// Values, sorted in the filter's string order, without duplicates.
        values: Arc<Vec<Value>>,
        /// Patterns, in the order of the filter.
        regexes: Vec<Regex>,
    },
    /// Some string matches, or some value is an equal regex.
    Regex(Regex),
    /// The path leads to some value.
    Exists,
    /// Some value has one of the types.
    Type(TypeSet),
    /// Some number, truncated, leaves `remainder` when divided by `divisor` (never 0).
    Mod {
        /// The divisor; not 0.
        divisor: i64,
        /// The sign is that of the dividend, as in C.
        remainder: i64,
    },
    /// The array at the path has this many elements.
    Size(u64),
    /// Some document (or array) in the array at the path matches the filter, whose paths are relative to it.
    ElemMatchObject(Box<Expression>),
    /// Some element of the array at the path satisfies the conditions, whose paths all are [`Path::is_itself`].
    ElemMatchValue(Box<Expression>),
    /// Some integer or binary value satisfies the bit test.
    Bits(BitTest, BitMask),
    /// Some geometry satisfies the geo condition.
    Geo(Geo),
    /// Documents by distance of a geometry, nearest first. Only the planner uses it; as a condition every document
    /// matches.
    Near(NearPoint),
}

impl Condition {
    /// Makes an expression of the condition and a path.
    pub(crate) fn at(self, path: &Path) -> Expression {
        Expression::OnPath(path.clone(), self)
    }

    /// The values and patterns of a list. A list with one member is an equality or a regex match, as the planner and
    /// explain expect it.
    pub(crate) fn one_of(mut values: Vec<Value>, mut regexes: Vec<Regex>) -> Self {
        match (values.len(), regexes.len()) {
            (1, 0) => Self::Compare(Comparison::Eq, values.remove(0)),
            (0, 1) => Self::Regex(regexes.remove(0)),
            _ => Self::In { values: Arc::new(values), regexes },
        }
    }

    /// As [`Expression::rank`].
    fn rank(&self) -> u8 {
        match self {
            Self::ElemMatchObject(_) => 2,
            Self::ElemMatchValue(_) => 3,
            Self::Size(_) => 4,
            Self::Compare(Comparison::Eq, _) => 5,
            Self::Compare(Comparison::Lte, _) => 6,
            Self::Compare(Comparison::Lt, _) => 7,
            Self::Compare(Comparison::Gt, _) => 8,
            Self::Compare(Comparison::Gte, _) => 9,
            Self::Regex(_) => 10,
            Self::Mod { .. } => 11,
            Self::Exists => 12,
            Self::In { .. } => 13,
            Self::Bits(..) => 14,
            Self::Type(_) => 17,
            Self::Geo(_) => 19,
            Self::Near(_) => 23,
        }
    }
}

impl Expression {
    /// Joins `children` by `$and`, in normal form.
    pub(crate) fn and(children: Vec<Self>) -> Self {
        Self::joined(children, Self::And, |child| if let Self::And(inner) = child { Ok(inner) } else { Err(child) })
    }

    /// Joins `children` by `$or`, in normal form.
    pub(crate) fn or(children: Vec<Self>) -> Self {
        Self::joined(children, Self::Or, |child| if let Self::Or(inner) = child { Ok(inner) } else { Err(child) })
    }

    /// Joins `children` by `$nor`, in normal form.
    pub(crate) fn nor(mut children: Vec<Self>) -> Self {
        sort(&mut children);
        Self::Nor(children)
    }

    /// Negates `child`, in normal form.
    pub(crate) fn not(child: Self) -> Self {
        if let Self::Not(inner) = child { *inner } else { Self::Not(Box::new(child)) }
    }

    /// The only child, or all children in rank order. A child that is such a list itself is replaced by its members.
    fn joined(children: Vec<Self>, all: fn(Vec<Self>) -> Self, members: fn(Self) -> Result<Vec<Self>, Self>) -> Self {
        let mut flat = Vec::with_capacity(children.len());
        for child in children {
            match members(child) {
                Ok(inner) => flat.extend(inner),
                Err(other) => flat.push(other),
            }
        }
        sort(&mut flat);
        match (flat.pop(), flat.is_empty()) {
            (Some(only), true) => only,
            (last, _) => {
                flat.extend(last);
                all(flat)
            }
        }
    }

    /// The expressions that all hold where this one does: the children of an `And`, or the expression itself.
    pub fn conjuncts(&self) -> &[Self] {
        if let Self::And(children) = self { children } else { std::slice::from_ref(self) }
    }

    /// Whether this is the empty filter.
    pub fn is_empty(&self) -> bool {
        self.conjuncts().is_empty()
    }

    /// The expressions from which this one is made: those of a logical node, or the one inside an `$elemMatch`.
    pub fn parts(&self) -> &[Self] {
        match self {
            Self::And(children) | Self::Or(children) | Self::Nor(children) => children,
            Self::Not(child)
            | Self::OnPath(_, Condition::ElemMatchObject(child) | Condition::ElemMatchValue(child)) => {
                std::slice::from_ref(&**child)
            }
            _ => &[],
        }
    }

    /// Whether the tree contains `$expr` or `$where`; it may occur wherever a whole document is tested.
    pub(crate) fn holds_expr(&self) -> bool {
        matches!(self, Self::Expr(_)) || self.parts().iter().any(Self::holds_expr)
    }

    /// Whether the tree contains no expression, script or search.
    pub(crate) fn looks_at_values_only(&self) -> bool {
        match self {
            // Expressions have their own variables and operation; searches depend on more than the document.
            Self::OnPath(_, Condition::Near(_)) | Self::Text(_) | Self::Expr(_) => false,
            Self::And(_)
            | Self::Or(_)
            | Self::Nor(_)
            | Self::Not(_)
            | Self::OnPath(..)
            | Self::JsonSchema(_)
            | Self::BucketGeo { .. }
            | Self::AlwaysTrue
            | Self::AlwaysFalse => self.parts().iter().all(Self::looks_at_values_only),
        }
    }

    /// The path that this node itself tests; `None` for logical nodes and conditions on whole documents.
    pub fn path(&self) -> Option<&Path> {
        if let Self::OnPath(path, _) = self { Some(path) } else { None }
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
            Self::OnPath(path, _) => visit(path),
            _ => {}
        }
    }

    /// The rank of this kind of node among its siblings: cheap and selective nodes first.
    /// Source: the order in which MongoDB's explain prints `parsedQuery`.
    fn rank(&self) -> u8 {
        match self {
            Self::And(_) => 0,
            Self::Or(_) => 1,
            Self::OnPath(_, condition) => condition.rank(),
            Self::Not(_) => 15,
            Self::Nor(_) => 16,
            Self::JsonSchema(_) => 18,
            Self::BucketGeo { .. } => 19,
            Self::Expr(_) => 20,
            Self::AlwaysFalse => 21,
            Self::AlwaysTrue => 22,
            Self::Text(_) => 24,
        }
    }
}

fn sort(children: &mut [Expression]) {
    children.sort_by(|a, b| {
        a.rank().cmp(&b.rank()).then_with(|| a.path().map(Path::as_str).cmp(&b.path().map(Path::as_str)))
    });
}
