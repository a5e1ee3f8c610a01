//! `apiVersion` and related fields: with them a client asks for features that later servers also have.

use crate::Request;
use crate::facts::{Changes, CommandFacts, Stability};
use crate::fields::wrong_type;
use crate::inner_pipelines::pipelines_in;
use bunko_bson::{ArrayRef, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_stages::ApiUse;

/// The field with the UUID that a client expects a collection to have. In version 1 of the Stable API no command has
/// it.
pub const COLLECTION_UUID: &str = "collectionUUID";
/// Index options that are not in version 1 of the Stable API.
/// Source: MongoDB manual, "Stable API".
const INDEX_OPTIONS_OUTSIDE: &[&str] = &["background", "bucketSize", "sparse", "storageEngine"];

/// The Stable API fields of a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct StableApi {
    has_version: bool,
    has_wish: bool,
    is_strict: bool,
}

impl StableApi {
    /// Parses one of the three fields.
    /// # Errors
    /// `TypeMismatch`; `APIVersionError` for a version other than 1.
    pub fn read(&mut self, name: &str, value: ValueRef<'_>) -> Result<()> {
        match (name, value) {
            ("apiVersion", ValueRef::String("1")) => self.has_version = true,
            ("apiVersion", ValueRef::String(_)) => {
                return Err(Failure::new(ErrorCode::API_VERSION_ERROR, "API version must be \"1\""));
            }
            ("apiVersion", _) => return Err(wrong_type(name, value, "string")),
            (_, ValueRef::Boolean(wish)) => {
                self.has_wish = true;
                self.is_strict |= name == "apiStrict" && wish;
            }
            _ => return Err(wrong_type(name, value, "bool")),
        }
        Ok(())
    }

    /// Checks the fields together.
    /// # Errors
    /// 4886600 for `apiStrict` or `apiDeprecationErrors` without a version; `APIStrictError` if a strict client uses a
    /// command, a field or a stage that is not in version 1.
    pub fn check(self, command: &CommandFacts, request: &Request<'_>) -> Result<()> {
        if self.has_wish && !self.has_version {
            return Err(Failure::new(
                ErrorCode(4_886_600),
                "Provided apiStrict and/or apiDeprecationErrors without passing apiVersion",
            ));
        }
        if self.is_strict { check_strictly(command, request) } else { Ok(()) }
    }
}

fn refusal(message: String) -> Failure {
    Failure::new(ErrorCode::API_STRICT_ERROR, message)
}

fn check_strictly(command: &CommandFacts, request: &Request<'_>) -> Result<()> {
    let name = command.name;
    let Stability::Version1 { fields_outside } = command.stable_api else {
        let message = format!(
            "Provided apiStrict:true, but the command {name} is not in API Version 1. Information on supported commands \
             and migrations in API Version 1 can be found at https://dochub.mongodb.org/core/manual-versioned-api."
        );
        return Err(refusal(message));
    };
    if writes_functions(command, request) {
        let message = format!("Provided apiStrict:true, but the command {name} attempts to write to system.js.");
        return Err(refusal(message));
    }
    let body = request.body;
    let is_outside = |field: &str| field == COLLECTION_UUID || fields_outside.contains(&field);
    if let Some(element) = body.iter().find(|element| is_outside(element.name)) {
        return Err(refusal(format!("BSON field '{name}.{}' is not allowed with apiStrict:true.", element.name)));
    }
    match (body.get("pipeline"), body.get("indexes")) {
        (Some(ValueRef::Array(stages)), _) => check_stages(stages),
        (_, Some(ValueRef::Array(indexes))) => check_indexes(name, indexes),
        _ => Ok(()),
    }
}

/// Whether the command writes to the collection of stored functions, which is not in version 1.
fn writes_functions(command: &CommandFacts, request: &Request<'_>) -> bool {
    const FUNCTIONS: &str = "system.js";
    match command.changes {
        Changes::Documents => request.argument().as_str() == Some(FUNCTIONS),
        Changes::DocumentsOfSeveral => {
            request.bulk_namespaces().any(|full| full.split_once('.').is_some_and(|(_, name)| name == FUNCTIONS))
        }
        Changes::None | Changes::Other | Changes::Output(_) => false,
    }
}

/// Refuses text indexes, and index options that are not in version 1.
/// Source: MongoDB manual, "Stable API", "Unsupported Index Types" and "Parameters".
fn check_indexes(command: &str, indexes: ArrayRef<'_>) -> Result<()> {
    let mut options = indexes.iter().filter_map(ValueRef::as_document).flatten();
    if let Some(option) = options.find(|option| INDEX_OPTIONS_OUTSIDE.contains(&option.name)) {
        let message = format!("BSON field '{command}.indexes.{}' is not allowed with apiStrict:true.", option.name);
        return Err(refusal(message));
    }
    let mut keys = indexes.iter().filter_map(|index| index.as_document()?.get("key")?.as_document());
    if keys.any(|key| key.iter().any(|field| field.value.as_str() == Some("text"))) {
        return Err(refusal("text indexes cannot be created with apiStrict: true".to_owned()));
    }
    Ok(())
}

/// Checks stages, and stages of inner pipelines. Malformed stages are refused elsewhere.
fn check_stages(stages: ArrayRef<'_>) -> Result<()> {
    for stage in stages.iter().filter_map(|stage| stage.as_document()?.first()) {
        let Some(entry) = bunko_stages::find(stage.name) else { continue };
        let name = entry.name;
        match entry.stable_api {
            ApiUse::Outside => {
                let message = format!("stage {name} is not allowed with 'apiStrict: true' in API Version 1");
                return Err(refusal(message));
            }
            ApiUse::Version1With { field }
                if stage
                    .value
                    .as_document()
                    .is_some_and(|options| options.iter().any(|option| option.name != field)) =>
            {
                let message = format!(
                    "{name} with anything but '{field}' is not allowed with 'apiStrict: true' in API Version 1"
                );
                return Err(refusal(message));
            }
            ApiUse::Version1With { .. } | ApiUse::Version1 => {}
        }
        pipelines_in(entry, stage.value).try_for_each(check_stages)?;
    }
    Ok(())
}
