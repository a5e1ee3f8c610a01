//! `$unwind`: one document for each element of an array.

use super::{Definition, Reads, Stage, Stages};
use crate::{DocumentStream, Environment, Flow};
use bunko_bson::{ArrayRef, DocumentBuf, DocumentRef, ValueRef, Writer};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::{Dependencies, FieldPath};
use std::collections::VecDeque;
use std::sync::Arc;

pub(super) const DEFINITION: Definition = Definition { name: "$unwind", parse };

struct Unwind {
    path: FieldPath,
    index_path: Option<FieldPath>,
    without_elements: WithoutElements,
}

/// What becomes of a document whose field is missing, null or an empty array.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WithoutElements {
    Dropped,
    Preserved,
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
    let mut path = None;
    let mut index_path = None;
    let mut without_elements = WithoutElements::Dropped;
    for element in specification.as_ref() {
        let kind = element.value.kind().alias();
        match (element.name, element.value) {
            ("path", ValueRef::String(text)) => path = Some(parse_path(text)?),
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
            ("includeArrayIndex", ValueRef::String(text)) if !text.is_empty() => {
                index_path = Some(FieldPath::parse(text)?);
            }
            ("includeArrayIndex", _) => {
                let message = format!(
                    "expected a non-empty string for the includeArrayIndex  option to $unwind stage, got {kind}"
                );
                return Err(failure(28810, message));
            }
            (other, _) => return Err(failure(28811, format!("unrecognized option to $unwind stage: {other}"))),
        }
    }
    let path = path.ok_or_else(|| failure(28812, "no path specified to $unwind stage".to_owned()))?;
    Ok(vec![Box::new(Unwind { path, index_path, without_elements })])
}

fn parse_path(text: &str) -> Result<FieldPath> {
    match text.strip_prefix('$') {
        Some(path) => FieldPath::parse(path),
        None => Err(failure(28818, format!("path option to $unwind stage should be prefixed with a '$': {text}"))),
    }
}

impl Stage for Unwind {
    fn name(&self) -> &'static str {
        DEFINITION.name
    }

    fn open(self: Arc<Self>, input: Box<dyn DocumentStream>, _: &Arc<Environment>) -> Box<dyn DocumentStream> {
        Box::new(Unwound { stage: self, input, pending: VecDeque::new(), buffer: Vec::new() })
    }

    fn add_dependencies(&self, dependencies: &mut Dependencies) -> Reads {
        dependencies.add(self.path.dotted());
        Reads::OthersToo
    }
}

impl Unwind {
    /// Visits what becomes of one document. `buffer` is for building.
    fn each(
        &self,
        document: DocumentRef<'_>,
        buffer: &mut Vec<u8>,
        visitor: &mut dyn FnMut(DocumentRef<'_>) -> Result<Flow>,
    ) -> Result<Flow> {
        match through_documents(document, self.path.components()) {
            Some(ValueRef::Array(array)) if !array.is_empty() => self.each_element(document, array, buffer, visitor),
            None | Some(ValueRef::Null | ValueRef::Undefined | ValueRef::Array(_))
                if self.without_elements == WithoutElements::Dropped =>
            {
                Ok(Flow::More)
            }
            // An empty array is not one of its elements: the field goes.
            Some(ValueRef::Array(_)) => {
                let without = with_path(document, self.path.components(), None);
                visitor(self.indexed(without, ValueRef::Null).as_ref())
            }
            _ if self.index_path.is_some() => visitor(self.indexed(document.to_owned(), ValueRef::Null).as_ref()),
            _ => visitor(document),
        }
    }

    fn each_element(
        &self,
        document: DocumentRef<'_>,
        array: ArrayRef<'_>,
        buffer: &mut Vec<u8>,
        visitor: &mut dyn FnMut(DocumentRef<'_>) -> Result<Flow>,
    ) -> Result<Flow> {
        if let ([name], None) = (self.path.components(), &self.index_path) {
            return each_top_level(document, name, array, buffer, visitor);
        }
        for (index, element) in array.iter().enumerate() {
            let unwound = with_path(document, self.path.components(), Some(element));
            if visitor(self.indexed(unwound, ValueRef::Int64(index as i64)).as_ref())? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::More)
    }

    fn indexed(&self, document: DocumentBuf, index: ValueRef<'_>) -> DocumentBuf {
        match &self.index_path {
            None => document,
            Some(path) => with_path(document.as_ref(), path.components(), Some(index)),
        }
    }
}

/// The common case: the fields around the array are taken apart once and copied whole for each element.
fn each_top_level(
    document: DocumentRef<'_>,
    name: &str,
    array: ArrayRef<'_>,
    buffer: &mut Vec<u8>,
    visitor: &mut dyn FnMut(DocumentRef<'_>) -> Result<Flow>,
) -> Result<Flow> {
    let (mut before, mut behind) = (DocumentBuf::new(), DocumentBuf::new());
    let mut found = false;
    for element in document {
        match (found, element.name == name) {
            (false, true) => found = true,
            (false, false) => {
                before.append(element.name, element.value);
            }
            (true, _) => {
                behind.append(element.name, element.value);
            }
        }
    }
    for element in array.iter() {
        buffer.clear();
        Writer::new(buffer).extend(before.as_ref()).append(name, element).extend(behind.as_ref()).end();
        if visitor(DocumentRef::trusted(buffer))? == Flow::Stop {
            return Ok(Flow::Stop);
        }
    }
    Ok(Flow::More)
}

/// The value at a path that leads through documents only.
fn through_documents<'a>(document: DocumentRef<'a>, path: &[Box<str>]) -> Option<ValueRef<'a>> {
    let (name, rest) = path.split_first()?;
    let value = document.get(name)?;
    if rest.is_empty() { Some(value) } else { through_documents(value.as_document()?, rest) }
}

/// The document with the value at a path set, or the field removed.
fn with_path(document: DocumentRef<'_>, path: &[Box<str>], value: Option<ValueRef<'_>>) -> DocumentBuf {
    let mut changed = DocumentBuf::new();
    let Some((name, rest)) = path.split_first() else { return changed };
    let mut found = false;
    for element in document {
        if found || *element.name != **name {
            changed.append(element.name, element.value);
            continue;
        }
        found = true;
        set_field(&mut changed, name, rest, element.value.as_document().unwrap_or(DocumentRef::EMPTY), value);
    }
    if !found && value.is_some() {
        set_field(&mut changed, name, rest, DocumentRef::EMPTY, value);
    }
    changed
}

fn set_field(
    into: &mut DocumentBuf,
    name: &str,
    rest: &[Box<str>],
    inner: DocumentRef<'_>,
    value: Option<ValueRef<'_>>,
) {
    if !rest.is_empty() {
        into.append(name, &with_path(inner, rest, value));
    } else if let Some(value) = value {
        into.append(name, value);
    }
}

struct Unwound {
    stage: Arc<Unwind>,
    input: Box<dyn DocumentStream>,
    /// What the last document of the input became and was not pulled yet.
    pending: VecDeque<DocumentBuf>,
    /// Reused between visited documents.
    buffer: Vec<u8>,
}

impl DocumentStream for Unwound {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        while self.pending.is_empty() {
            let Some(document) = self.input.next()? else { return Ok(None) };
            let pending = &mut self.pending;
            self.stage.each(document.as_ref(), &mut self.buffer, &mut |unwound| {
                pending.push_back(unwound.to_owned());
                Ok(Flow::More)
            })?;
        }
        Ok(self.pending.pop_front())
    }

    fn visit(&mut self, visitor: &mut dyn FnMut(DocumentRef<'_>) -> Result<Flow>) -> Result<()> {
        while let Some(document) = self.pending.pop_front() {
            if visitor(document.as_ref())? == Flow::Stop {
                return Ok(());
            }
        }
        let Self { stage, input, buffer, .. } = self;
        input.visit(&mut |document| stage.each(document, buffer, visitor))
    }
}
