//! Views. Each is a document of its database's `system.views`, an ordinary collection that only the server writes.

use crate::collection;
use crate::waiting::lock;
use crate::{Catalog, Collection, Namespace, Order, Target, Verdict, from_storage};
use bunko_bson::text::ValueText;
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, StringOrder, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationSource;
use bunko_store::{Direction, Lsn, RecordRange, View};
use std::borrow::Cow;
use std::sync::Arc;

const SYSTEM_VIEWS: &str = Namespace::VIEWS_COLLECTION;

/// Definition of a view.
#[derive(Clone, Debug)]
pub struct ViewDefinition {
    /// The name of the underlying collection or view. It may be a name that no collection can have.
    pub view_on: String,
    /// The stages through which the view passes the documents of `view_on`.
    pub pipeline: ArrayBuf,
    /// The document in `system.views`: `_id`, `viewOn`, `pipeline`, perhaps `collation`.
    pub document: DocumentBuf,
}

impl ViewDefinition {
    /// A view with this name.
    pub fn new(
        namespace: &Namespace,
        view_on: &str,
        pipeline: ArrayRef<'_>,
        collation: Option<DocumentRef<'_>>,
    ) -> Self {
        let mut document =
            DocumentBuf::new().with("_id", namespace.as_str()).with("viewOn", view_on).with("pipeline", pipeline);
        if let Some(collation) = collation {
            document.append("collation", collation);
        }
        Self { view_on: view_on.to_owned(), pipeline: pipeline.to_owned(), document }
    }

    fn read(namespace: &Namespace, document: DocumentRef<'_>) -> Result<Self> {
        let view_on = document.get("viewOn").and_then(ValueRef::as_str);
        let pipeline = document.get("pipeline").and_then(ValueRef::as_array);
        let (Some(view_on), Some(pipeline)) = (view_on, pipeline) else {
            return Err(invalid(format!("the definition of the view {namespace} lacks 'viewOn' or 'pipeline'")));
        };
        // `create` refuses a stage that writes, so this definition came with files of another server. Reading a view
        // must not write, because no check of privileges expects it.
        let mut stages = pipeline.iter().filter_map(ValueRef::as_document).filter_map(DocumentRef::first);
        if let Some(stage) = stages.find(|stage| bunko_stages::is_writing(stage.name)) {
            return Err(invalid(format!("the definition of the view {namespace} has the stage {}", stage.name)));
        }
        Ok(Self { view_on: view_on.to_owned(), pipeline: pipeline.to_owned(), document: document.to_owned() })
    }

    /// The view's collation.
    /// # Errors
    /// As `bunko_collation::parse` for its collation.
    pub fn strings(&self) -> Result<StringOrder> {
        collection::strings(self.document.as_ref())
    }

    /// The view's options as `listCollections` shows them.
    pub fn options(&self) -> DocumentBuf {
        let mut options = DocumentBuf::new();
        for element in self.document.as_ref().iter().filter(|element| element.name != "_id") {
            options.append(element.name, element.value);
        }
        options
    }
}

/// The failure for a document of `system.views` that does not define a view.
fn invalid(message: String) -> Failure {
    Failure::new(ErrorCode::INVALID_VIEW_DEFINITION, message)
}

/// The refusal of a command that views do not support.
fn on_view(message: String) -> Failure {
    Failure::new(ErrorCode::COMMAND_NOT_SUPPORTED_ON_VIEW, message)
}

impl Catalog {
    /// The view with this name, if there is one. No collection has the name then.
    /// # Errors
    /// Failures of the storage; `InvalidViewDefinition` (182) for a damaged definition.
    pub fn view(&self, namespace: &Namespace) -> Result<Option<ViewDefinition>> {
        let Some(views) = self.system_views(namespace.database())? else { return Ok(None) };
        let mut document = Vec::new();
        if views.find_latest(ValueRef::String(namespace.as_str()), &mut document)?.is_none() {
            return Ok(None);
        }
        ViewDefinition::read(namespace, DocumentRef::trusted(&document)).map(Some)
    }

    /// All views of a database, ordered by name.
    /// # Errors
    /// As [`Self::view`].
    pub fn views(&self, database: &str) -> Result<Vec<(Namespace, ViewDefinition)>> {
        let Some(views) = self.system_views(database)? else { return Ok(Vec::new()) };
        let snapshot = views.snapshot();
        let mut cursor = snapshot.records(views.records(), RecordRange::ALL, Direction::Forward);
        let mut found = Vec::new();
        while let Some((_, _, bytes)) = cursor.next().map_err(from_storage)? {
            let document = DocumentRef::trusted(bytes);
            let name = document.get("_id").and_then(ValueRef::as_str).and_then(|name| Namespace::parse(name).ok());
            let namespace = name.filter(|namespace| namespace.database() == database).ok_or_else(|| {
                let id = ValueText(document.get("_id").unwrap_or(ValueRef::Undefined));
                invalid(format!("found invalid view definition in {database}.{SYSTEM_VIEWS}: _id {id} names no view"))
            })?;
            let view = ViewDefinition::read(&namespace, document)?;
            found.push((namespace, view));
        }
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(found)
    }

    fn system_views(&self, database: &str) -> Result<Option<Arc<Collection>>> {
        Ok(self.collection(&Namespace::new(database, SYSTEM_VIEWS)?))
    }

    /// Refuses a command on a view.
    /// # Errors
    /// `CommandNotSupportedOnView` if the namespace is a view.
    pub fn refuse_view(&self, namespace: &Namespace) -> Result<()> {
        if self.collection(namespace).is_none() && self.view(namespace)?.is_some() {
            return Err(on_view(format!("Namespace {namespace} is a view, not a collection")));
        }
        Ok(())
    }

    /// Stores a view's definition, which the caller has checked.
    /// # Errors
    /// `NamespaceExists` if a collection or view has the name; `InvalidNamespace` for a name that is too long.
    pub fn create_view(
        &self,
        namespace: &Namespace,
        view: &ViewDefinition,
        operation: &dyn OperationSource,
    ) -> Result<Option<Lsn>> {
        namespace.check_length()?;
        let system_views = Namespace::new(namespace.database(), SYSTEM_VIEWS)?;
        self.collection_or_create(&system_views, operation)?;
        let _changes = lock(&self.changes, operation)?;
        if self.collection(namespace).is_some() || self.view(namespace)?.is_some() {
            let message = format!("a view already exists. NS: {namespace}");
            return Err(Failure::new(ErrorCode::NAMESPACE_EXISTS, message));
        }
        if !view.strings()?.is_bytes() {
            self.note_collation();
        }
        let bytes = Cow::Owned(view.document.clone().into_bytes());
        let mut inserted = self.insert(&system_views, &[bytes], Order::Ordered, operation)?;
        match inserted.failures.pop() {
            Some((_, failure)) => Err(failure),
            None => inserted.stopped_by.map_or(Ok(inserted.lsn), Err),
        }
    }

    /// Replaces the definition of a view.
    /// # Errors
    /// `NamespaceNotFound` if there is no such view.
    pub fn change_view(
        &self,
        namespace: &Namespace,
        view: &ViewDefinition,
        operation: &dyn OperationSource,
    ) -> Result<Lsn> {
        if !view.strings()?.is_bytes() {
            self.note_collation();
        }
        let changed = self.change_definition(namespace, operation, &mut || Verdict::Replace(view.document.clone()))?;
        changed.ok_or_else(|| Failure::new(ErrorCode::NAMESPACE_NOT_FOUND, format!("ns does not exist: {namespace}")))
    }

    /// Drops a view. Returns the LSN of the drop, or `None` if there is no such view.
    /// # Errors
    /// As [`Catalog::change`].
    pub fn drop_view(&self, namespace: &Namespace, operation: &dyn OperationSource) -> Result<Option<Lsn>> {
        self.change_definition(namespace, operation, &mut || Verdict::Delete)
    }

    fn change_definition(
        &self,
        namespace: &Namespace,
        operation: &dyn OperationSource,
        verdict: &mut dyn FnMut() -> Verdict,
    ) -> Result<Option<Lsn>> {
        let _changes = lock(&self.changes, operation)?;
        let Some(views) = self.system_views(namespace.database())? else { return Ok(None) };
        let id = ValueRef::String(namespace.as_str());
        let Some(record) = views.record_of_id(id, operation)? else { return Ok(None) };
        self.change(&views, Target::Id(record, id), operation, &mut |_| Ok(verdict()))
    }
}
