//! Checks the definition of a view from `create` or `collMod`.

use crate::aggregation::first_name;
use crate::context::PipelineContext;
use crate::resolved::VIEW_DEPTH_MAX;
use crate::source_stages::SourcedPipeline;
use crate::sources::PipelineSources;
use crate::surroundings::Surroundings;
use bunko_aggregate::{Environment, Pipeline, SourceName, involved_collections};
use bunko_bson::{ArrayBuf, ArrayRef, DocumentRef, Timestamp, ValueRef};
use bunko_catalog::{Catalog, Namespace, ViewDefinition};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_oplog::check_streams;
use bunko_query::QueryScope;
use bunko_stages::{CHANGE_STREAM, DOCUMENTS, Subject};
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum number of bytes of a view's pipeline, together with the pipelines of the views below it.
/// Source: MongoDB 8.2, "View pipeline exceeds size limit".
const PIPELINE_BYTES_MAX: usize = 16_000_000;

/// Parses a definition. Nulls in the pipeline are dropped.
/// # Errors
/// `BadValue` and `InvalidNamespace` for `view_on`, `OptionNotSupportedOnView` for stages that write and for a
/// collation other than that of a view below, 195 for a pipeline that is too large, `GraphContainsCycle`,
/// `ViewDepthLimitExceeded`; errors of the stages.
pub fn parse(
    context: &dyn PipelineContext,
    namespace: &Namespace,
    view_on: &str,
    pipeline: ArrayRef<'_>,
    collation: Option<DocumentRef<'_>>,
) -> Result<ViewDefinition> {
    if view_on.is_empty() {
        return Err(Failure::bad_value("'viewOn' cannot be empty"));
    }
    if view_on.starts_with(['.', '$']) || view_on.contains('\0') {
        let message = format!("Invalid namespace specified '{}.{view_on}'", namespace.database());
        return Err(Failure::new(ErrorCode::INVALID_NAMESPACE, message));
    }
    let pipeline: ArrayBuf = pipeline.iter().filter(|stage| !stage.is_nullish()).collect();
    let stages = pipeline.as_ref();
    check_bytes(pipeline_bytes(stages))?;
    let view = ViewDefinition::new(namespace, view_on, stages, collation);
    refuse_writes(namespace, stages)?;
    let surroundings = context.surroundings();
    let catalog = &surroundings.catalog;
    check_stages(&surroundings, &context.scope(), (namespace, view_on), &view)?;
    Graph { catalog, new: (namespace, &view) }.check()?;
    check_collation(catalog, namespace, &view)?;
    Ok(view)
}

fn pipeline_bytes(stages: ArrayRef<'_>) -> usize {
    stages.iter().filter_map(ValueRef::as_document).map(DocumentRef::len_bytes).sum()
}

fn check_bytes(pipeline_bytes: usize) -> Result<()> {
    if pipeline_bytes > PIPELINE_BYTES_MAX {
        let message = format!("View pipeline exceeds size limit; maximum size is {PIPELINE_BYTES_MAX}");
        return Err(Failure::new(ErrorCode::VIEW_PIPELINE_MAX_SIZE_EXCEEDED, message));
    }
    Ok(())
}

/// Checks that a view has the collation of the views that it reads.
fn check_collation(catalog: &Catalog, namespace: &Namespace, view: &ViewDefinition) -> Result<()> {
    let own = view.strings()?;
    for below in below(namespace, view) {
        if catalog.view_strings(&below)?.is_some_and(|strings| strings != own)
            && bunko_series::find(catalog, &below)?.is_none()
        {
            let message = format!("View {namespace} has a collation that does not match the collation of view {below}");
            return Err(Failure::new(ErrorCode::OPTION_NOT_SUPPORTED_ON_VIEW, message));
        }
    }
    Ok(())
}

/// Lists the collections and views that a view reads.
fn below(namespace: &Namespace, view: &ViewDefinition) -> Vec<Namespace> {
    let mut names = involved_collections(view.pipeline.as_ref());
    names.push(&view.view_on);
    names.into_iter().filter_map(|name| Namespace::new(namespace.database(), name).ok()).collect()
}

fn refuse_writes(namespace: &Namespace, pipeline: ArrayRef<'_>) -> Result<()> {
    let mut names = pipeline.iter().filter_map(|stage| Some(stage.as_document()?.first()?.name));
    match names.find(|name| bunko_stages::is_writing(name)) {
        Some(name) => Err(Failure::new(
            ErrorCode::OPTION_NOT_SUPPORTED_ON_VIEW,
            format!(
                "The aggregation stage {name} in location 0 of the pipeline cannot be used in the view definition of {namespace}"
            ),
        )),
        None => Ok(()),
    }
}

fn check_stages(
    surroundings: &Surroundings,
    scope: &QueryScope,
    (namespace, view_on): (&Namespace, &str),
    view: &ViewDefinition,
) -> Result<()> {
    let pipeline = view.pipeline.as_ref();
    // A missing cluster time is reported when the view is read.
    let any_time = Timestamp { seconds: 0, increment: 0 };
    let variables = scope.variables.clone().with_cluster_time(scope.variables.cluster_time().or(Some(any_time)));
    let scope = Arc::new(QueryScope { variables, strings: view.strings()?, ..scope.clone() });
    let sources = PipelineSources::new(surroundings.clone(), namespace.database(), &scope);
    let environment = Environment::new(scope).with_sources(sources).over(Some(&SourceName::here(view_on)));
    let needs_none = |name: &str| {
        Failure::new(
            ErrorCode::INVALID_NAMESPACE,
            format!("{name} is not allowed in the definition of a view: it needs no collection"),
        )
    };
    if first_name(pipeline) == Some(DOCUMENTS.name) {
        return Err(needs_none(DOCUMENTS.name));
    }
    if first_name(pipeline) == Some(CHANGE_STREAM.name) {
        check_streams(surroundings.catalog.store())?;
        let message = format!("{} cannot be used in the view definition of {namespace}", CHANGE_STREAM.name);
        return Err(Failure::new(ErrorCode::OPTION_NOT_SUPPORTED_ON_VIEW, message));
    }
    match SourcedPipeline::take_off(pipeline)? {
        // Such a stage reads the server's own data, whatever the view is on.
        Some(sourced)
            if matches!(sourced.stage.facts.subject, Subject::Server | Subject::Admin | Subject::Sessions) =>
        {
            Err(needs_none(sourced.stage.facts.name))
        }
        _ => Pipeline::parse(pipeline, environment).map(drop),
    }
}

/// The chain of views that read each other, the new one included.
struct Graph<'g> {
    catalog: &'g Catalog,
    new: (&'g Namespace, &'g ViewDefinition),
}

/// Number of views that stand on each other, and bytes of their pipelines together: each for the path on which it is
/// largest.
#[derive(Clone, Copy, Default)]
struct Height {
    views: usize,
    bytes: usize,
}

impl Height {
    fn max(self, other: Self) -> Self {
        Self { views: self.views.max(other.views), bytes: self.bytes.max(other.bytes) }
    }

    fn with(self, view: &ViewDefinition) -> Self {
        Self { views: self.views + 1, bytes: self.bytes + pipeline_bytes(view.pipeline.as_ref()) }
    }
}

impl Graph<'_> {
    /// Checks depth and size of the views below the new one together with the views above it.
    fn check(&self) -> Result<()> {
        let (new, definition) = self.new;
        let mut known = HashMap::new();
        let mut down = Height::default();
        for next in below(new, definition) {
            down = down.max(self.height_below(&next, 1, &mut known)?);
        }
        let mut above: HashMap<Namespace, Vec<Namespace>> = HashMap::new();
        let mut views: HashMap<Namespace, ViewDefinition> = HashMap::new();
        let defined = match self.catalog.views(new.database()) {
            // No view can be read in that case, so the views above the new one do not matter.
            Err(failure) if failure.code() == ErrorCode::INVALID_VIEW_DEFINITION => Vec::new(),
            defined => defined?,
        };
        for (namespace, view) in defined {
            if namespace != *new {
                for next in below(&namespace, &view) {
                    above.entry(next).or_default().push(namespace.clone());
                }
                views.insert(namespace, view);
            }
        }
        let up = height_above(new, (&above, &views), &mut HashMap::new());
        check_depth(down.views + up.views + 1)?;
        check_bytes(down.bytes + up.bytes + pipeline_bytes(definition.pipeline.as_ref()))
    }

    /// Height of `namespace` and the views below it. `depth` views are above it.
    fn height_below(
        &self,
        namespace: &Namespace,
        depth: usize,
        known: &mut HashMap<Namespace, Height>,
    ) -> Result<Height> {
        let (new, _) = self.new;
        if namespace == new {
            let message = format!("View cycle detected: {new} => ... => {new}");
            return Err(Failure::new(ErrorCode::GRAPH_CONTAINS_CYCLE, message));
        }
        if let Some(height) = known.get(namespace) {
            return Ok(*height);
        }
        if self.catalog.collection(namespace).is_some() {
            return Ok(Height::default());
        }
        let Some(view) = self.catalog.view(namespace)? else { return Ok(Height::default()) };
        check_depth(depth + 1)?;
        let mut height = Height::default();
        for next in below(namespace, &view) {
            height = height.max(self.height_below(&next, depth + 1, known)?);
        }
        let height = height.with(&view);
        known.insert(namespace.clone(), height);
        Ok(height)
    }
}

/// Height of the views above `namespace`. They have no cycle: each was checked when it was defined.
fn height_above(
    namespace: &Namespace,
    (above, views): (&HashMap<Namespace, Vec<Namespace>>, &HashMap<Namespace, ViewDefinition>),
    known: &mut HashMap<Namespace, Height>,
) -> Height {
    if let Some(height) = known.get(namespace) {
        return *height;
    }
    // If another program damaged the definitions, they may have a cycle, which this entry ends.
    known.insert(namespace.clone(), Height::default());
    let mut height = Height::default();
    for next in above.get(namespace).into_iter().flatten() {
        if let Some(view) = views.get(next) {
            height = height.max(height_above(next, (above, views), known).with(view));
        }
    }
    known.insert(namespace.clone(), height);
    height
}

fn check_depth(views: usize) -> Result<()> {
    if views > VIEW_DEPTH_MAX {
        let message = format!("View depth limit exceeded; maximum depth is {VIEW_DEPTH_MAX}");
        return Err(Failure::new(ErrorCode::VIEW_DEPTH_LIMIT_EXCEEDED, message));
    }
    Ok(())
}
