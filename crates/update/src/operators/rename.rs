//! `$rename`: moves a field to another path.
//!
//! Two modifiers share the work: one sets the value at the new path, the other removes it at the old path. Both read
//! the original document; no other modification of the update can touch either path.

use super::{Effect, Modifier, Operator, Scene};
use crate::array_filters::ArrayFilters;
use crate::dotted_path::{DottedPath, as_index, is_below};
use crate::immutable_id::{self, ID};
use crate::trie::Plan;
use bunko_bson::text::ElementText;
use bunko_bson::{Element, StringUse, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};

pub(super) const OPERATOR: Operator = Operator { name: "$rename", strings: StringUse::AsBytes, parse };

/// The modifier at the new path.
#[derive(Debug)]
struct Destination {
    from: String,
    to: String,
}

/// The modifier at the old path.
#[derive(Debug)]
struct Source;

fn parse(plan: &mut Plan, field: Element<'_>) -> Result<()> {
    let ValueRef::String(to) = field.value else {
        let message = format!("The 'to' field for $rename must be a string: {}", ElementText(field));
        return Err(Failure::bad_value(message));
    };
    check_paths(field, to)?;
    plan.looked_up.extend([field.name.to_owned(), to.to_owned()]);
    plan.modify(to, Destination { from: field.name.to_owned(), to: to.to_owned() })?;
    plan.modify(field.name, Source)
}

fn check_paths(field: Element<'_>, to: &str) -> Result<()> {
    let from = field.name;
    if to.contains('\0') {
        let message = "The 'to' field for $rename cannot contain an embedded null byte";
        return Err(Failure::new(ErrorCode(9_867_600), message));
    }
    if from == to {
        let message = format!("The source and target field for $rename must differ: {}", ElementText(field));
        return Err(Failure::bad_value(message));
    }
    if is_below(from, to) || is_below(to, from) {
        return Err(Failure::bad_value(format!(
            "The source and target field for $rename must not be on the same path: {}",
            ElementText(field)
        )));
    }
    for (which, path) in [("source", from), ("destination", to)] {
        // Identifiers need no array filter here, since every dynamic path is refused.
        let is_dynamic = path.split('.').any(|part| part.starts_with("$["))
            || DottedPath::parse(path, &mut ArrayFilters::default())?.is_dynamic();
        if is_dynamic {
            return Err(Failure::bad_value(format!("The {which} field for $rename may not be dynamic: {path}")));
        }
    }
    Ok(())
}

impl Modifier for Destination {
    fn modify<'a>(&'a self, _current: Option<ValueRef<'a>>, scene: &Scene<'a>) -> Result<Effect<'a>> {
        let Some(value) = find(scene, &self.from)? else { return Ok(Effect::Keep) };
        // Even an equal value must not replace `_id`.
        if is_id(&self.to) && scene.document.get(ID).is_some() {
            return Err(immutable_id::modified_by(&self.to));
        }
        for (which, path) in [("source", &self.from), ("destination", &self.to)] {
            if let Some(array) = array_above(scene, path) {
                return Err(Failure::bad_value(format!(
                    "The {which} field cannot be an array element, '{path}' in doc with {} has an array field called '{array}'",
                    scene.id()
                )));
            }
        }
        Ok(Effect::Set(value))
    }
}

fn is_id(path: &str) -> bool {
    path == ID || is_below(path, ID)
}

impl Modifier for Source {
    fn modify<'a>(&'a self, _current: Option<ValueRef<'a>>, _scene: &Scene<'a>) -> Result<Effect<'a>> {
        Ok(Effect::Remove)
    }
}

/// The value at a path without positional components.
/// # Errors
/// `PathNotViable` if the path leads through a scalar, or by a name into an array.
fn find<'a>(scene: &Scene<'a>, path: &'a str) -> Result<Option<ValueRef<'a>>> {
    let mut value = ValueRef::Document(scene.document);
    let mut name = "";
    for part in path.split('.') {
        let next = match (value, as_index(part)) {
            (ValueRef::Document(document), _) => scene.fields.get(document, part),
            (ValueRef::Array(array), Some(index)) => array.get(index),
            _ => {
                let element = ElementText(Element { name, value });
                let message = format!("cannot use the part ({name} of {path}) to traverse the element ({{{element}}})");
                return Err(Failure::new(ErrorCode::PATH_NOT_VIABLE, message));
            }
        };
        let Some(next) = next else { return Ok(None) };
        (value, name) = (next, part);
    }
    Ok(Some(value))
}

/// Returns the name of the innermost array on a path, as far as the path exists in the document.
fn array_above<'a>(scene: &Scene<'a>, path: &'a str) -> Option<&'a str> {
    let mut value = ValueRef::Document(scene.document);
    let mut innermost = None;
    let (parents, _) = path.rsplit_once('.')?;
    for name in parents.split('.') {
        let next = match (value, as_index(name)) {
            (ValueRef::Document(document), _) => scene.fields.get(document, name),
            (ValueRef::Array(array), Some(index)) => array.get(index),
            _ => None,
        };
        let Some(next) = next else { break };
        if matches!(next, ValueRef::Array(_)) {
            innermost = Some(name);
        }
        value = next;
    }
    innermost
}
