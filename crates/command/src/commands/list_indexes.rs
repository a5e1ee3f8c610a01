//! `listIndexes`: the indexes of a collection, in the form of their specifications.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::document_list::{parse_batch_size, write_document_list};
use crate::invocation::Invocation;
use crate::target::Target;
use bunko_access::Action;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, Writer, number};
use bunko_catalog::{Index, Namespace};
use bunko_errors::{ErrorCode, Failure};
use bunko_request::facts::{CommandFacts, Queueing, Stability, UnstoredUse};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::Fields;
use bunko_session::Halt;
use std::sync::Arc;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "listIndexes",
        fields: &[
            field("cursor", Kind::Object),
            field("includeBuildUUIDs", Kind::BooleanLike),
            field("includeIndexBuildInfo", Kind::BooleanLike),
        ],
        stable_api: Stability::Version1 { fields_outside: &["includeBuildUUIDs", "includeIndexBuildInfo"] },
        queueing: Queueing::AtOnce,
        unstored: UnstoredUse::Reads,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCollection(Action::ListIndexes),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let namespace = invocation.namespace_or_uuid()?;
    let (form, batch_size) = (Form::parse(invocation)?, parse_batch_size(invocation)?);
    let specs = match Target::of(&invocation.service.catalog, invocation, &namespace)? {
        Target::Unstored(_) => Vec::new(),
        Target::TimeSeries(series) => {
            let indexes = series.buckets.indexes();
            // The `_id` index of the buckets is not an index of the time series.
            let indexes = indexes.iter().filter(|index| !index.is_id());
            let spec = |index: &Index| bunko_series::of_measurements(index.spec().document.as_ref(), &series.options);
            indexes.map(|index| form.of(index, spec(index))).collect()
        }
        Target::Collection(collection) => {
            // MongoDB's profile collection has no index. Bunko's has one on `_id`, like all collections, which is not
            // shown.
            let is_shown =
                |index: &&Arc<Index>| namespace.collection() != Namespace::PROFILE_COLLECTION || !index.is_id();
            let shown =
                |index: &Index| bunko_series::shown_index(&collection, listed(index.document.as_ref()).as_ref());
            let indexes = collection.indexes();
            indexes.iter().filter(is_shown).map(|index| form.of(index, shown(index))).collect()
        }
        Target::View | Target::Absent => {
            invocation.service.catalog.refuse_view(&namespace)?;
            let message = format!("ns does not exist: {namespace}");
            return Err(Failure::new(ErrorCode::NAMESPACE_NOT_FOUND, message).into());
        }
    };
    Ok(write_document_list(invocation, reply, &namespace, specs, batch_size)?)
}

/// A specification in the form that is listed: the bounds of a `2d` index are doubles, whichever number type the client
/// sent.
pub(super) fn listed(spec: DocumentRef<'_>) -> DocumentBuf {
    let key = spec.get("key").and_then(ValueRef::as_document);
    if !key.is_some_and(|key| key.iter().any(|field| field.value.as_str() == Some("2d"))) {
        return spec.to_owned();
    }
    let mut listed = DocumentBuf::new();
    for element in spec {
        match number::as_f64(element.value).filter(|_| matches!(element.name, "min" | "max")) {
            Some(bound) => listed.append(element.name, bound),
            None => listed.append(element.name, element.value),
        };
    }
    listed
}

/// The form in which indexes are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// The specification.
    Specification,
    /// The specification, and the progress of the build if the index is being built.
    BuildsTold,
    /// Each specification inside a document, with the progress of the build if the index is being built.
    AllWithBuilds,
}

impl Form {
    fn parse(fields: &Fields<'_>) -> Result<Self, Failure> {
        let tells_builds = fields.boolean("includeBuildUUIDs", false)?;
        match (fields.boolean("includeIndexBuildInfo", false)?, tells_builds) {
            (true, true) => Err(Failure::new(
                ErrorCode::INVALID_OPTIONS,
                "The includeBuildUUIDs flag and includeBuildIndexInfo flag cannot both be set to true",
            )),
            (true, false) => Ok(Self::AllWithBuilds),
            (false, true) => Ok(Self::BuildsTold),
            (false, false) => Ok(Self::Specification),
        }
    }

    /// Describes an index. Builds have no UUIDs here, so the numbers of processed records and of all records are shown
    /// instead.
    fn of(self, index: &Index, spec: DocumentBuf) -> DocumentBuf {
        let build = index.build_progress().filter(|_| self != Self::Specification);
        let shown = DocumentBuf::new().with("spec", &spec);
        match build {
            Some((done, total)) => {
                let progress = DocumentBuf::new().with("done", done as i64).with("total", total as i64);
                shown.with("indexBuildInfo", &progress)
            }
            None if self == Self::AllWithBuilds => shown,
            None => spec,
        }
    }
}
