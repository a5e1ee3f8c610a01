//! Reading projections.

use super::{ArrayOperator, Child, Mode, Node, Projection, ProjectionKind};
use crate::field_path::FieldPath;
use crate::{Expression, ParseScope};
use bunko_bson::{DocumentRef, Value, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};

fn failure(code: i32, message: impl Into<String>) -> Failure {
    Failure::new(ErrorCode(code), message)
}

/// A path and what a projection asks of it.
struct Request {
    path: String,
    child: Child,
}

impl Projection {
    /// Reads the projection of `find` or `$project`.
    /// # Errors
    /// 31253 and 31254 where inclusion and exclusion mix, 31249 and 31250 where paths collide, 31252 for an expression
    /// in an exclusion, 51270 and 51272 for empty documents; those of its expressions and paths.
    pub fn parse(specification: DocumentRef<'_>, kind: ProjectionKind<'_>, scope: &ParseScope) -> Result<Self> {
        if specification.is_empty() && matches!(kind, ProjectionKind::Aggregate) {
            return Err(failure(51272, "projection specification must have at least one field"));
        }
        let mut reader = Reader { kind, scope, requests: Vec::new(), positional: None };
        reader.fields(specification, "")?;
        let mode = mode_of(&reader.requests)?;
        let mut root = Node::default();
        let names_id = reader.requests.iter().any(|request| is_id(&request.path));
        if mode == Mode::Inclusion && !names_id {
            root.children.push(("_id".into(), Child::Include));
        }
        for request in reader.requests {
            if mode == Mode::Exclusion && matches!(request.child, Child::Include) {
                // Only `_id` may be included here, which it is anyway.
                continue;
            }
            if mode == Mode::Inclusion && matches!(request.child, Child::Exclude) {
                continue;
            }
            root.insert(&request.path, request.child)?;
        }
        Ok(Self { mode, root, positional: reader.positional })
    }

    /// Reads what `$addFields` adds.
    /// # Errors
    /// As [`Self::parse`].
    pub fn parse_addition(specification: DocumentRef<'_>, scope: &ParseScope) -> Result<Self> {
        let mut root = Node::default();
        add_fields(&mut root, specification, "", scope)?;
        if root.children.is_empty() {
            return Err(failure(40177, "specification must have at least one field"));
        }
        Ok(Self { mode: Mode::Addition, root, positional: None })
    }

    /// A projection that excludes these dotted paths.
    /// # Errors
    /// 31249 and 31250 where paths collide; those of the paths.
    pub fn excluding<'p>(paths: impl IntoIterator<Item = &'p str>) -> Result<Self> {
        let mut root = Node::default();
        for path in paths {
            root.insert(path, Child::Exclude)?;
        }
        Ok(Self { mode: Mode::Exclusion, root, positional: None })
    }
}

fn is_id(path: &str) -> bool {
    path == "_id" || path.starts_with("_id.")
}

fn joined(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") }
}

struct Reader<'s, 'c> {
    kind: ProjectionKind<'c>,
    scope: &'s ParseScope,
    requests: Vec<Request>,
    positional: Option<String>,
}

impl Reader<'_, '_> {
    fn fields(&mut self, specification: DocumentRef<'_>, prefix: &str) -> Result<()> {
        for element in specification {
            let path = joined(prefix, element.name);
            match (self.kind, element.name.strip_suffix(".$")) {
                (ProjectionKind::Find(_), Some(array)) => self.positional(joined(prefix, array), element.value)?,
                _ => self.field(path, element.value)?,
            }
        }
        Ok(())
    }

    fn positional(&mut self, path: String, value: ValueRef<'_>) -> Result<()> {
        if !crate::Evaluated::Ref(value).is_true() {
            return Err(failure(31395, "positional projection cannot be used with exclusion"));
        }
        if self.positional.is_some() {
            return Err(failure(31276, "Cannot specify more than one positional projection per query."));
        }
        self.positional = Some(path.clone());
        self.requests.push(Request { path, child: Child::Array(ArrayOperator::Positional) });
        Ok(())
    }

    fn field(&mut self, path: String, value: ValueRef<'_>) -> Result<()> {
        let child = match value {
            ValueRef::Boolean(_) => sense(value),
            number if number.is_number() => sense(number),
            ValueRef::Document(document) => match document.first() {
                None => {
                    let message = "An empty sub-projection is not a valid value. Found empty object at path";
                    return Err(failure(51270, message));
                }
                Some(first) if first.name.starts_with('$') => self.operator(&path, first.name, first.value, value)?,
                Some(_) => return self.fields(document, &path),
            },
            _ => Child::Computed(Expression::parse(value, self.scope)?),
        };
        self.requests.push(Request { path, child });
        Ok(())
    }

    fn operator(&self, path: &str, name: &str, argument: ValueRef<'_>, whole: ValueRef<'_>) -> Result<Child> {
        match (self.kind, name, argument) {
            (ProjectionKind::Find(_), "$slice", argument) if !is_slice_expression(argument) => {
                Ok(Child::Array(ArrayOperator::parse_slice(argument)?))
            }
            (ProjectionKind::Find(compile), "$elemMatch", ValueRef::Document(condition)) => {
                if path.contains('.') {
                    return Err(failure(31275, "Cannot use $elemMatch projection on a nested field"));
                }
                Ok(Child::Array(ArrayOperator::ElemMatch(compile(condition)?)))
            }
            (ProjectionKind::Find(_), "$elemMatch", _) => Err(failure(
                31274,
                "elemMatch: Invalid argument, object required, but got ".to_owned() + argument.kind().alias(),
            )),
            _ => Ok(Child::Computed(Expression::parse(whole, self.scope)?)),
        }
    }
}

/// Whether `$slice` is the expression on an array and numbers, which find's projections may hold too.
fn is_slice_expression(argument: ValueRef<'_>) -> bool {
    argument.as_array().is_some_and(|array| array.count() == 3 || array.get(0).is_some_and(|first| !first.is_number()))
}

fn sense(value: ValueRef<'_>) -> Child {
    if crate::Evaluated::Ref(value).is_true() { Child::Include } else { Child::Exclude }
}

/// What the first field but `_id` says, `_id` only alone; all others must agree.
fn mode_of(requests: &[Request]) -> Result<Mode> {
    let says = |request: &Request| match &request.child {
        Child::Exclude => Some(Mode::Exclusion),
        Child::Array(ArrayOperator::Slice { .. }) => None,
        Child::Include | Child::Computed(_) | Child::Array(_) | Child::Nested(_) => Some(Mode::Inclusion),
    };
    let others = requests.iter().filter(|request| request.path != "_id" || matches!(request.child, Child::Computed(_)));
    let decided = others.clone().find_map(says);
    let alone = requests.len() == 1;
    let mode = decided.or_else(|| if alone { says(&requests[0]) } else { None }).unwrap_or(Mode::Exclusion);
    for request in others {
        match (mode, &request.child) {
            (Mode::Inclusion, Child::Exclude) => {
                let message = format!("Cannot do exclusion on field {} in inclusion projection", request.path);
                return Err(failure(31254, message));
            }
            (Mode::Exclusion, Child::Include) => {
                let message = format!("Cannot do inclusion on field {} in exclusion projection", request.path);
                return Err(failure(31253, message));
            }
            (Mode::Exclusion, Child::Computed(_)) => {
                return Err(failure(31252, "Cannot use expression other than $meta in exclusion projection"));
            }
            (Mode::Exclusion, Child::Array(ArrayOperator::Positional)) => {
                return Err(failure(31395, "positional projection cannot be used with exclusion"));
            }
            (Mode::Exclusion, Child::Array(ArrayOperator::ElemMatch(_))) => {
                return Err(failure(31255, "Cannot use an expression $elemMatch in an exclusion projection"));
            }
            _ => {}
        }
    }
    Ok(mode)
}

fn add_fields(root: &mut Node, fields: DocumentRef<'_>, prefix: &str, scope: &ParseScope) -> Result<()> {
    for element in fields {
        let path = joined(prefix, element.name);
        match element.value {
            ValueRef::Document(nested) if nested.first().is_some_and(|first| !first.name.starts_with('$')) => {
                add_fields(root, nested, &path, scope)?;
            }
            // An empty document is a value here, not a projection without fields.
            ValueRef::Document(empty) if empty.is_empty() => {
                root.insert(&path, Child::Computed(Expression::literal(Value::Document(empty.to_owned()))))?;
            }
            value => root.insert(&path, Child::Computed(Expression::parse(value, scope)?))?,
        }
    }
    Ok(())
}

impl Node {
    fn insert(&mut self, path: &str, child: Child) -> Result<()> {
        let parsed = FieldPath::parse(path)?;
        self.insert_at(parsed.components(), path, child)
    }

    fn insert_at(&mut self, components: &[Box<str>], path: &str, child: Child) -> Result<()> {
        let Some((name, rest)) = components.split_first() else { return Ok(()) };
        self.computes |= matches!(child, Child::Computed(_) | Child::Array(ArrayOperator::ElemMatch(_)));
        let existing = self.children.iter_mut().find(|(known, _)| known == name).map(|(_, child)| child);
        match (existing, rest.is_empty()) {
            (None, true) => self.children.push((name.clone(), child)),
            (None, false) => {
                let mut node = Self::default();
                node.insert_at(rest, path, child)?;
                self.children.push((name.clone(), Child::Nested(node)));
            }
            (Some(Child::Nested(node)), false) => node.insert_at(rest, path, child)?,
            (Some(_), true) => return Err(failure(31250, format!("Path collision at {path}"))),
            (Some(_), false) => {
                let remaining = rest.join(".");
                return Err(failure(31249, format!("Path collision at {path} remaining portion {remaining}")));
            }
        }
        Ok(())
    }
}
