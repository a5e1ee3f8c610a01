//! Reading projections.

use super::array_operator::SLICE_LIMIT;
use super::{ArrayOperator, Child, Mode, Node, Projection, ProjectionKind};
use crate::field_path::{FieldPath, check_component};
use crate::{Evaluated, Expression, ParseScope, operators};
use bunko_bson::text::{ElementText, ValueText};
use bunko_bson::{DocumentRef, Element, Value, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};

fn failure(code: i32, message: impl Into<String>) -> Failure {
    Failure::new(ErrorCode(code), message)
}

impl Projection {
    /// Reads the projection of `find` or `$project`.
    /// # Errors
    /// 31253 and 31254 where inclusion and exclusion mix, 31249 and 31250 where paths collide, 31252 and 31310 for an
    /// expression in an exclusion, 31325 for an unknown expression, 51270 and 51272 for empty documents; errors of
    /// expressions, paths, `$slice`, `$elemMatch` and `a.$`.
    pub fn parse(specification: DocumentRef<'_>, kind: ProjectionKind<'_>, scope: &ParseScope) -> Result<Self> {
        if specification.is_empty() && matches!(kind, ProjectionKind::Aggregate) {
            return Err(failure(51272, "projection specification must have at least one field"));
        }
        let mut reader = Reader {
            kind,
            scope,
            root: Node::default(),
            mode: None,
            id: None,
            positional: None,
            slices: false,
            matches_elements: false,
            shows_metadata: false,
        };
        reader.fields(specification, "")?;
        Ok(reader.finish())
    }

    /// Reads the specification of `$addFields`.
    /// # Errors
    /// As [`Self::parse`].
    pub fn parse_addition(specification: DocumentRef<'_>, scope: &ParseScope) -> Result<Self> {
        let mut root = Node::default();
        add_fields(&mut root, specification, "", scope)?;
        Ok(Self::new(Mode::Addition, root, None))
    }

    /// A projection that excludes these dotted paths.
    /// # Errors
    /// 31249 and 31250 where paths collide; errors of the paths.
    pub fn excluding<'p>(paths: impl IntoIterator<Item = &'p str>) -> Result<Self> {
        let mut root = Node::default();
        for path in paths {
            root.insert(path, Child::Exclude)?;
        }
        Ok(Self::new(Mode::Exclusion, root, None))
    }
}

fn joined(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") }
}

/// Reads fields one by one. The first field that includes or excludes decides the projection's mode.
struct Reader<'s, 'c> {
    kind: ProjectionKind<'c>,
    scope: &'s ParseScope,
    root: Node,
    mode: Option<Mode>,
    /// The mode of `_id`, which may differ from the other fields' mode and counts only where they set none.
    id: Option<Mode>,
    positional: Option<String>,
    slices: bool,
    matches_elements: bool,
    shows_metadata: bool,
}

impl Reader<'_, '_> {
    fn finish(mut self) -> Projection {
        let mode = self.mode.unwrap_or(match self.id {
            _ if self.matches_elements && !self.slices => Mode::Inclusion,
            _ if self.shows_metadata && matches!(self.kind, ProjectionKind::Aggregate) => Mode::Inclusion,
            Some(mode) => mode,
            None => Mode::Exclusion,
        });
        if mode == Mode::Inclusion && self.root.position(b"_id").is_none() {
            self.root.add("_id", Child::Include);
        }
        Projection::new(mode, self.root, self.positional)
    }

    fn fields(&mut self, specification: DocumentRef<'_>, prefix: &str) -> Result<()> {
        specification.iter().try_for_each(|element| self.field(element, prefix))
    }

    fn field(&mut self, element: Element<'_>, prefix: &str) -> Result<()> {
        self.scope.work(1)?;
        let array = element.name.strip_suffix(".$");
        if array.is_some() && matches!(self.kind, ProjectionKind::Aggregate) {
            return Err(failure(31324, "Cannot use positional projection in aggregation projection"));
        }
        if element.name.contains(".$.") {
            let message = "As of 4.4, it's illegal to specify positional operator in the middle of a path.\
                           Positional projection may only be used at the end, for example: a.b.$. If the query \
                           previously used a form like a.b.$.d, remove the parts following the '$' and the results \
                           will be equivalent.";
            return Err(failure(31394, message));
        }
        if let Some(array) = array {
            return self.positional(element, joined(prefix, array));
        }
        let path = joined(prefix, element.name);
        match element.value {
            ValueRef::Document(document) => self.document(&path, document),
            value if value.is_number() || matches!(value, ValueRef::Boolean(_)) => self.sense(element, &path),
            value => {
                self.root.insert(&path, Child::Computed(Expression::parse(value, self.scope)?))?;
                let message =
                    || format!("Cannot use an expression {} in an exclusion projection", ElementText(element));
                self.agree(Mode::Inclusion, || failure(31310, message()))
            }
        }
    }

    /// Sets the projection's mode, unless an earlier field set the other one.
    fn agree(&mut self, mode: Mode, refusal: impl FnOnce() -> Failure) -> Result<()> {
        if *self.mode.get_or_insert(mode) == mode { Ok(()) } else { Err(refusal()) }
    }

    /// `{a: 1}` and `{a: 0}`.
    fn sense(&mut self, element: Element<'_>, path: &str) -> Result<()> {
        let (mode, child) = if Evaluated::Ref(element.value).is_true() {
            (Mode::Inclusion, Child::Include)
        } else {
            (Mode::Exclusion, Child::Exclude)
        };
        self.root.insert(path, child)?;
        if path == "_id" {
            self.id = Some(mode);
            return Ok(());
        }
        self.agree(mode, || contrary(mode, element.name))
    }

    /// `{'a.$': 1}`.
    fn positional(&mut self, element: Element<'_>, path: String) -> Result<()> {
        match element.value {
            ValueRef::Document(_) => {
                let message = "positional projection cannot be used with an expression or sub object";
                return Err(failure(31271, message));
            }
            value if !value.is_number() && !matches!(value, ValueRef::Boolean(_)) => {
                return Err(failure(31308, "positional projection cannot be used with a literal"));
            }
            value if !Evaluated::Ref(value).is_true() => {
                return Err(failure(31395, "positional projection cannot be used with exclusion"));
            }
            _ if self.positional.is_some() => {
                return Err(failure(31276, "Cannot specify more than one positional projection per query."));
            }
            _ if self.matches_elements => {
                return Err(failure(31256, "Cannot specify positional operator and $elemMatch."));
            }
            _ if element.name == ".$" => {
                return Err(failure(5_392_900, format!("Projection on field {} is invalid", element.name)));
            }
            _ => {}
        }
        self.root.insert(&path, Child::Array(ArrayOperator::Positional))?;
        self.positional = Some(path);
        self.agree(Mode::Inclusion, || contrary(Mode::Inclusion, element.name))
    }

    /// A projection of the fields inside a field, or an operator.
    fn document(&mut self, path: &str, document: DocumentRef<'_>) -> Result<()> {
        let Some(first) = document.first() else {
            let message = "An empty sub-projection is not a valid value. Found empty object at path";
            return Err(failure(51270, message));
        };
        if document.count() > 1 || !first.name.starts_with('$') {
            document.iter().try_for_each(|field| check_component(field.name.split('.').next().unwrap_or_default()))?;
            return self.fields(document, path);
        }
        match (self.kind, first.name) {
            (_, "$meta") => {
                // Metadata is allowed in inclusions and in exclusions.
                self.shows_metadata = true;
                self.insert_expression(path, document)
            }
            (ProjectionKind::Find(_), "$slice") => self.slice(path, first.value, document),
            (ProjectionKind::Find(_), "$elemMatch") => self.elem_match(path, first.value),
            (ProjectionKind::Aggregate, "$elemMatch") => {
                Err(Failure::new(ErrorCode::INVALID_PIPELINE_OPERATOR, "Cannot use $elemMatch in this context"))
            }
            (_, name) if !operators::exists(name) => {
                let unknown = || failure(31325, format!("Unknown expression {name}"));
                Err(operators::missing(name).unwrap_or_else(unknown))
            }
            _ => self.expression(path, document),
        }
    }

    fn expression(&mut self, path: &str, document: DocumentRef<'_>) -> Result<()> {
        let message = "Cannot use expression other than $meta in exclusion projection";
        self.agree(Mode::Inclusion, || failure(31252, message))?;
        self.insert_expression(path, document)
    }

    fn insert_expression(&mut self, path: &str, document: DocumentRef<'_>) -> Result<()> {
        let expression = Expression::parse(ValueRef::Document(document), self.scope)?;
        self.root.insert(path, Child::Computed(expression))
    }

    /// `find`'s `$slice`, or the expression of that name.
    fn slice(&mut self, path: &str, argument: ValueRef<'_>, document: DocumentRef<'_>) -> Result<()> {
        let refusal = match ArrayOperator::parse_slice(argument) {
            Ok(slice) => {
                self.slices = true;
                match self.root.insert(path, Child::Array(slice)) {
                    Ok(()) => return Ok(()),
                    Err(collision) => collision,
                }
            }
            Err(refusal) => refusal,
        };
        self.expression(path, document).map_err(|failure| {
            failure.with_prefix(&format!(
                "Invalid $slice syntax. The given syntax {} did not match the find() syntax because :: {refusal} :: The \
                 given syntax did not match the expression $slice syntax. :: caused by :: ",
                ValueText(ValueRef::Document(document))
            ))
        })?;
        if refusal.code() == SLICE_LIMIT {
            // An expression on two numbers fails for every document.
            let kind = argument.as_array().and_then(|pair| pair.get(0)).map_or("missing", |first| first.kind().alias());
            let message = format!("First argument to $slice must be an array, but is of type: {kind}");
            return Err(failure(28724, message));
        }
        Ok(())
    }

    fn elem_match(&mut self, path: &str, argument: ValueRef<'_>) -> Result<()> {
        let (ProjectionKind::Find(compile), ValueRef::Document(condition)) = (self.kind, argument) else {
            let kind = argument.kind().alias();
            return Err(failure(31274, format!("elemMatch: Invalid argument, object required, but got {kind}")));
        };
        if self.positional.is_some() {
            return Err(failure(31255, "Cannot specify positional operator and $elemMatch."));
        }
        FieldPath::parse(path)?;
        if path.contains('.') {
            return Err(failure(31275, "Cannot use $elemMatch projection on a nested field."));
        }
        self.matches_elements = true;
        self.root.insert(path, Child::Array(ArrayOperator::ElemMatch(compile(condition)?)))
    }
}

fn contrary(mode: Mode, name: &str) -> Failure {
    if mode == Mode::Inclusion {
        return failure(31253, format!("Cannot do inclusion on field {name} in exclusion projection"));
    }
    failure(31254, format!("Cannot do exclusion on field {name} in inclusion projection"))
}

fn add_fields(root: &mut Node, fields: DocumentRef<'_>, prefix: &str, scope: &ParseScope) -> Result<()> {
    for element in fields {
        scope.work(1)?;
        let path = joined(prefix, element.name);
        match element.value {
            ValueRef::Document(nested) if nested.first().is_some_and(|first| !first.name.starts_with('$')) => {
                add_fields(root, nested, &path, scope)?;
            }
            // An empty document is a value here, not an empty projection.
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
        self.is_cut |= matches!(child, Child::Array(ArrayOperator::Positional));
        let existing = self.position(name.as_bytes()).and_then(|position| self.children.get_mut(position));
        match (existing.map(|(_, child)| child), rest.is_empty()) {
            (None, true) => self.add(name, child),
            (None, false) => {
                let mut node = Self::default();
                node.insert_at(rest, path, child)?;
                self.add(name, Child::Nested(node));
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
