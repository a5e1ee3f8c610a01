//! Stages that transform each document on its own: `$addFields`, `$project`, `$unset` and `$replaceRoot`, in pipelines
//! and in updates.

mod added_fields;
mod new_root;
mod unset;

use crate::projection::ProjectionKind;
use crate::{Dependencies, EvaluationContext, ParseScope, PathChanges, Projection};
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use new_root::NewRoot;
use std::sync::Arc;

/// One entry of the table.
struct Kind {
    /// The stage's name, with its `$`.
    name: &'static str,
    parse: fn(&'static str, ValueRef<'_>, &ParseScope) -> Result<Change>,
}

static KINDS: &[Kind] = &[
    Kind { name: "$addFields", parse: added_fields::parse },
    Kind { name: "$project", parse: project },
    Kind { name: "$replaceRoot", parse: new_root::parse },
    Kind { name: "$replaceWith", parse: new_root::parse_alone },
    Kind { name: "$set", parse: added_fields::parse },
    Kind { name: "$unset", parse: unset::parse },
];

/// A parsed stage that makes one document from another.
pub struct Reshaping {
    name: &'static str,
    change: Change,
}

enum Change {
    Fields(Arc<Projection>),
    Root(NewRoot),
}

impl Reshaping {
    /// Parses the specification of the stage `name`; `None` if `name` is not in the table.
    /// # Errors
    /// MongoDB's errors of each stage.
    pub fn parse(name: &str, specification: ValueRef<'_>, scope: &ParseScope) -> Option<Result<Self>> {
        let kind = KINDS.iter().find(|kind| kind.name == name)?;
        let change = (kind.parse)(kind.name, specification, scope);
        Some(change.map(|change| Self { name: kind.name, change }))
    }

    /// The stage's name, with its `$`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Applies the stage to the context's document.
    /// # Errors
    /// Errors of the expressions; 40228 for a new root that is not a document.
    pub fn apply(&self, context: &EvaluationContext<'_>) -> Result<DocumentBuf> {
        match &self.change {
            Change::Fields(projection) => {
                // Reserves room for a few fields: growing the buffer costs more than writing them.
                let mut bytes = Vec::with_capacity(context.root().len_bytes().clamp(32, 256));
                projection.apply(context, None, &mut bytes)?;
                Ok(DocumentBuf::from_trusted(bytes))
            }
            Change::Root(root) => root.made(self.name, context),
        }
    }

    /// Passes the result to `take`. A result that lies in the context's document is not copied; a computed document is
    /// written to `buffer`.
    /// # Errors
    /// As [`Self::apply`], and errors of `take`.
    pub fn lend<T>(
        &self,
        context: &EvaluationContext<'_>,
        buffer: &mut Vec<u8>,
        take: impl FnOnce(DocumentRef<'_>) -> Result<T>,
    ) -> Result<T> {
        match &self.change {
            Change::Fields(projection) => {
                buffer.clear();
                projection.apply(context, None, buffer)?;
                take(DocumentRef::trusted(buffer))
            }
            Change::Root(root) => root.lend(self.name, context, take),
        }
    }

    /// Adds the fields that the stage reads if the result contains nothing else of the document; all fields otherwise.
    pub fn add_dependencies(&self, dependencies: &mut Dependencies) {
        match &self.change {
            Change::Fields(projection) if projection.is_inclusion() => projection.add_dependencies(dependencies),
            Change::Fields(_) => dependencies.add_all(),
            Change::Root(root) => root.add_dependencies(dependencies),
        }
    }

    /// How the stage treats paths; `None` if that is not known before it runs.
    pub fn path_changes(&self) -> Option<PathChanges> {
        match &self.change {
            Change::Fields(projection) => Some(projection.path_changes()),
            Change::Root(root) => root.path_changes(),
        }
    }

    /// The dotted path whose value takes the document's place, if the stage does nothing else.
    pub fn new_root_path(&self) -> Option<String> {
        match &self.change {
            Change::Fields(_) => None,
            Change::Root(root) => root.path(),
        }
    }

    /// Whether the stage is known to fail for no document.
    pub fn cannot_fail(&self) -> bool {
        match &self.change {
            Change::Fields(projection) => projection.cannot_fail(),
            Change::Root(_) => false,
        }
    }

    /// The projection of a `$project` that leaves out all fields that it does not name.
    pub fn inclusion(&self) -> Option<&Arc<Projection>> {
        match &self.change {
            Change::Fields(projection) if projection.is_inclusion() => Some(projection),
            Change::Fields(_) | Change::Root(_) => None,
        }
    }

    /// Whether the result contains only values made of the fields that it reads.
    pub fn leaves_nothing_else(&self) -> bool {
        match &self.change {
            Change::Fields(projection) => projection.is_inclusion(),
            Change::Root(_) => true,
        }
    }
}

/// `$project`: includes, excludes or computes fields.
fn project(_: &'static str, value: ValueRef<'_>, scope: &ParseScope) -> Result<Change> {
    let ValueRef::Document(specification) = value else {
        return Err(Failure::new(ErrorCode(15969), "$project specification must be an object"));
    };
    let projection = Projection::parse(specification, ProjectionKind::Aggregate, scope);
    let projection = projection.map_err(|failure| failure.with_prefix("Invalid $project :: caused by :: "))?;
    Ok(Change::Fields(Arc::new(projection)))
}
