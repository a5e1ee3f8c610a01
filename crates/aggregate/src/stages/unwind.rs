//! `$unwind`: one document for each element of an array.

use super::around::{Around, ReadFields};
use super::{Definition, Reads, Stage, Stages};
use crate::effect::Effect;
use crate::stream::{StandInVisitor, StandIns};
use crate::unwinding::{Unwinding, WithoutElements, indexed};
use crate::{DocumentStream, Environment, Flow};
use bunko_bson::{ArrayRef, DocumentBuf, DocumentRef, Elements, StringUse, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::{Dependencies, FieldPath, PathChanges, with_path};
use bunko_operation::OperationContext;
use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) const DEFINITION: Definition =
    Definition { facts: &bunko_stages::UNWIND, strings: StringUse::AsBytes, parse };

struct Unwind {
    path: FieldPath,
    index_path: Option<FieldPath>,
    without_elements: WithoutElements,
    /// Fields that later stages read, if known.
    read: Option<ReadFields>,
}

fn failure(code: i32, message: String) -> Failure {
    Failure::new(ErrorCode(code), message)
}

fn parse(value: ValueRef<'_>, _: &Environment) -> Result<Stages> {
    let specification = match value {
        ValueRef::String(_) => DocumentBuf::new().with("path", value),
        ValueRef::Document(document) => document.to_owned(),
        other => {
            let kind = other.kind().alias();
            let message =
                format!("expected either a string or an object as specification for $unwind stage, got {kind}");
            return Err(failure(15981, message));
        }
    };
    // Paths are checked after all options are known.
    let mut path = "";
    let mut index_path = None;
    let mut without_elements = WithoutElements::Dropped;
    for element in specification.as_ref() {
        let kind = element.value.kind().alias();
        match (element.name, element.value) {
            ("path", ValueRef::String(text)) => path = text,
            ("path", _) => {
                return Err(failure(28808, format!("expected a string as the path for $unwind stage, got {kind}")));
            }
            ("preserveNullAndEmptyArrays", ValueRef::Boolean(preserve)) => {
                without_elements = if preserve { WithoutElements::Preserved } else { WithoutElements::Dropped };
            }
            ("preserveNullAndEmptyArrays", _) => {
                let message = format!(
                    "expected a boolean for the preserveNullAndEmptyArrays option to $unwind stage, got {kind}"
                );
                return Err(failure(28809, message));
            }
            ("includeArrayIndex", ValueRef::String(text)) if text.starts_with('$') => {
                let message =
                    format!("includeArrayIndex option to $unwind stage should not be prefixed with a '$': {text}");
                return Err(failure(28822, message));
            }
            ("includeArrayIndex", ValueRef::String(text)) if !text.is_empty() => index_path = Some(text),
            ("includeArrayIndex", _) => {
                let message = format!(
                    "expected a non-empty string for the includeArrayIndex  option to $unwind stage, got {kind}"
                );
                return Err(failure(28810, message));
            }
            (other, _) => return Err(failure(28811, format!("unrecognized option to $unwind stage: {other}"))),
        }
    }
    let path = parse_path(path)?;
    let index_path = index_path.map(FieldPath::parse).transpose()?;
    Ok(vec![Box::new(Unwind { path, index_path, without_elements, read: None })])
}

fn parse_path(text: &str) -> Result<FieldPath> {
    match text.strip_prefix('$') {
        Some(path) if path.contains('\0') => {
            Err(failure(16419, "field path must not contain embedded null characters".to_owned()))
        }
        Some(path) => FieldPath::parse(path),
        None if text.is_empty() => Err(failure(28812, "no path specified to $unwind stage".to_owned())),
        None => Err(failure(28818, format!("path option to $unwind stage should be prefixed with a '$': {text}"))),
    }
}

impl Stage for Unwind {
    fn name(&self) -> &'static str {
        DEFINITION.facts.name
    }

    fn open(
        self: Arc<Self>,
        input: Box<dyn DocumentStream>,
        environment: &Arc<Environment>,
    ) -> Box<dyn DocumentStream> {
        Box::new(Unwound {
            stage: self,
            input,
            environment: Arc::clone(environment),
            current: None,
            buffer: Vec::new(),
            spare: None,
        })
    }

    fn add_dependencies(&self, dependencies: &mut Dependencies) -> Reads {
        dependencies.add(self.path.dotted());
        Reads::OthersToo
    }

    fn read_only(&mut self, fields: &BTreeSet<String>) {
        self.read = Some(ReadFields::new(self.path.components(), fields));
    }

    fn effect(&self) -> Effect {
        let paths = std::iter::once(&self.path).chain(&self.index_path);
        Effect::Unwinds(PathChanges::computing(paths.filter_map(|path| path.components().first()).map(|name| &**name)))
    }

    fn unwinding(&self) -> Option<Unwinding> {
        let Self { path, index_path, without_elements, .. } = self;
        Some(Unwinding { path: path.clone(), index_path: index_path.clone(), without_elements: *without_elements })
    }
}

/// A document being unwound: the parts around the array, and the remaining elements.
struct Elementwise<'d> {
    document: DocumentRef<'d>,
    /// The parts around the array, unless an index is wanted. In this common case the document is taken apart once, and
    /// the parts are copied whole for each element.
    around: Option<Around>,
    elements: Elements<'d>,
    index: i64,
}

impl<'d> Elementwise<'d> {
    /// `spare` comes from an earlier document; its memory is reused.
    fn new(stage: &Unwind, document: DocumentRef<'d>, array: ArrayRef<'d>, spare: Option<Around>) -> Self {
        let around = stage.index_path.is_none().then(|| {
            let mut around = spare.unwrap_or_default();
            around.take_apart(document, stage.path.components(), stage.read.as_ref());
            around
        });
        Self { document, around, elements: array.as_document().iter(), index: 0 }
    }

    /// Builds the document of the next element in `buffer`.
    fn next(&mut self, stage: &Unwind, buffer: &mut Vec<u8>, operation: &OperationContext) -> Result<bool> {
        let Some(element) = self.elements.next() else { return Ok(false) };
        buffer.clear();
        match (&self.around, stage.path.components()) {
            (Some(around), path) => around.write(path, element.value, buffer),
            (None, path) => {
                let unwound = with_path(self.document, path, Some(element.value));
                *buffer = stage.indexed(unwound, ValueRef::Int64(self.index)).into_bytes();
            }
        }
        self.index += 1;
        operation.work(1 + buffer.len() / 64)?;
        Ok(true)
    }
}

/// The result for a document.
enum Outcome<'d> {
    Dropped,
    /// Unchanged.
    Kept,
    Changed(DocumentBuf),
    /// One document per element.
    Elements(ArrayRef<'d>),
}

impl Unwind {
    /// # Errors
    /// 5984700 for paths too long to read or write.
    fn outcome<'d>(&self, document: DocumentRef<'d>) -> Result<Outcome<'d>> {
        FieldPath::check_place(self.path.components().len())?;
        let outcome = self.outcome_at_path(document);
        if let (Some(index_path), false) = (&self.index_path, matches!(outcome, Outcome::Dropped)) {
            FieldPath::check_place(index_path.components().len())?;
        }
        Ok(outcome)
    }

    fn outcome_at_path<'d>(&self, document: DocumentRef<'d>) -> Outcome<'d> {
        match through_documents(document, self.path.components()) {
            Some(ValueRef::Array(array)) if !array.is_empty() => Outcome::Elements(array),
            None | Some(ValueRef::Null | ValueRef::Undefined | ValueRef::Array(_))
                if self.without_elements == WithoutElements::Dropped =>
            {
                Outcome::Dropped
            }
            // An empty array has no element to put there, so the field is removed.
            Some(ValueRef::Array(_)) => {
                let without = with_path(document, self.path.components(), None);
                Outcome::Changed(self.indexed(without, ValueRef::Null))
            }
            _ if self.index_path.is_some() => Outcome::Changed(self.indexed(document.to_owned(), ValueRef::Null)),
            _ => Outcome::Kept,
        }
    }

    fn indexed(&self, document: DocumentBuf, index: ValueRef<'_>) -> DocumentBuf {
        indexed(self.index_path.as_ref(), document, index)
    }
}

/// The value at a path that leads only through documents.
fn through_documents<'a>(document: DocumentRef<'a>, path: &[Box<str>]) -> Option<ValueRef<'a>> {
    let (name, rest) = path.split_first()?;
    let value = document.get(name)?;
    if rest.is_empty() { Some(value) } else { through_documents(value.as_document()?, rest) }
}

struct Unwound {
    stage: Arc<Unwind>,
    input: Box<dyn DocumentStream>,
    environment: Arc<Environment>,
    /// The input document being unwound.
    current: Option<Pulled>,
    /// Reused between visited documents.
    buffer: Vec<u8>,
    spare: Option<Around>,
}

/// A document unwound element by element, so that later elements take no memory yet.
struct Pulled {
    document: DocumentBuf,
    around: Option<Around>,
    /// Bytes of the elements already returned.
    passed_bytes: usize,
    index: i64,
}

impl Pulled {
    fn new(document: DocumentBuf) -> Self {
        Self { document, around: None, passed_bytes: 0, index: 0 }
    }

    /// As [`Elementwise::next`], continuing after the last element.
    fn next(&mut self, stage: &Unwind, buffer: &mut Vec<u8>, operation: &OperationContext) -> Result<bool> {
        let document = self.document.as_ref();
        // The path was checked when the document was taken from the input.
        let Some(ValueRef::Array(array)) = through_documents(document, stage.path.components()) else {
            return Ok(false);
        };
        let rest = &array.as_document().iter().rest()[self.passed_bytes..];
        let mut unwinding = match self.around.take() {
            None if self.index == 0 => Elementwise::new(stage, document, array, None),
            around => Elementwise { document, around, elements: Elements::resume(rest), index: self.index },
        };
        let is_one = unwinding.next(stage, buffer, operation)?;
        self.passed_bytes += rest.len() - unwinding.elements.rest().len();
        (self.index, self.around) = (unwinding.index, unwinding.around);
        Ok(is_one)
    }
}

impl DocumentStream for Unwound {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        loop {
            if let Some(current) = &mut self.current {
                let mut bytes = Vec::new();
                if current.next(&self.stage, &mut bytes, self.environment.operation())? {
                    return Ok(Some(DocumentBuf::from_trusted(bytes)));
                }
                self.current = None;
            }
            let Some(document) = self.input.next()? else { return Ok(None) };
            match self.stage.outcome(document.as_ref())? {
                Outcome::Dropped => {}
                Outcome::Changed(changed) => return Ok(Some(changed)),
                Outcome::Kept => return Ok(Some(document)),
                Outcome::Elements(_) => self.current = Some(Pulled::new(document)),
            }
        }
    }

    fn stand_in_path(&self) -> Option<FieldPath> {
        self.stage.index_path.is_none().then(|| self.stage.path.clone())
    }

    fn visit_with_stand_ins(&mut self, visitor: &mut StandInVisitor<'_>) -> Result<()> {
        if self.current.is_some() {
            return self.visit(&mut |document| visitor(document, None));
        }
        let Self { stage, input, .. } = self;
        input.visit(&mut |document| match stage.outcome(document)? {
            Outcome::Dropped => Ok(Flow::More),
            Outcome::Kept => visitor(document, None),
            Outcome::Changed(changed) => visitor(changed.as_ref(), None),
            Outcome::Elements(values) => visitor(document, Some(StandIns { path: &stage.path, values })),
        })
    }

    fn visit(&mut self, visitor: &mut dyn FnMut(DocumentRef<'_>) -> Result<Flow>) -> Result<()> {
        let Self { stage, input, environment, current, buffer, spare } = self;
        let operation = environment.operation();
        if let Some(mut current) = current.take() {
            while current.next(stage, buffer, operation)? {
                if visitor(DocumentRef::trusted(buffer))? == Flow::Stop {
                    return Ok(());
                }
            }
        }
        input.visit(&mut |document| match stage.outcome(document)? {
            Outcome::Dropped => Ok(Flow::More),
            Outcome::Kept => visitor(document),
            Outcome::Changed(changed) => visitor(changed.as_ref()),
            Outcome::Elements(array) => {
                let mut unwinding = Elementwise::new(stage, document, array, spare.take());
                while unwinding.next(stage, buffer, operation)? {
                    if visitor(DocumentRef::trusted(buffer))? == Flow::Stop {
                        return Ok(Flow::Stop);
                    }
                }
                *spare = unwinding.around;
                Ok(Flow::More)
            }
        })
    }
}
