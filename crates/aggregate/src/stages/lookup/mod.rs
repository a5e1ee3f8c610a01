//! `$lookup`: adds to each document an array of its matches in another collection.
//!
//! `Joining::joined` chooses how the matches of a document are found:
//!
//! | The stage has | Matches come from |
//! |---|---|
//! | `localField`, and no pipeline, or one that begins with an ordinary stage | `EqualityJoin`: `_id`, an index, or a table made once (`equality_join.rs`) |
//! | `localField`, and a pipeline that begins by finding documents, as by `$geoNear` | the pipeline with a `$match`, planned for each document |
//! | `let`, and an `$expr` with an equality at the start of the pipeline | `CorrelatedJoin`: an index, or a table made once (`correlated.rs`) |
//! | `let` otherwise | the pipeline, planned for each document |
//! | neither | the pipeline, run once; its documents are kept (`Constant`) |
//!
//! `Sources` opens the other collection and knows its indexes; `pipelines` implements it.

mod correlated;
mod parse;

use correlated::{CorrelatedJoin, Correlation};
pub(super) use parse::variables;

use super::around::{Around, ReadFields};
use super::{Definition, Reads, Stage};
use crate::effect::{Effect, Joined, JoinedSide};
use crate::equality_join::{EqualityJoin, Matching, match_any, over};
use crate::joined_path::local_values;
use crate::sub_pipeline::SubPipeline;
use crate::unwinding::Unwinding;
use crate::{DocumentStream, Environment, Flow};
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, StringUse, ValueRef, Writer};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::{Dependencies, Expression, FieldPath, PathChanges, Variables, with_path};
use bunko_operation::Gatherer;
use bunko_query::append_spilled;
use bunko_scratch::{Spool, SpoolReader};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) const DEFINITION: Definition =
    Definition { facts: &bunko_stages::LOOKUP, strings: StringUse::Collated, parse: parse::parse };

/// Maximum size in bytes of the documents joined with one document, if they become an array.
/// Source: MongoDB 8.2, parameter `internalLookupStageIntermediateDocumentMaxSizeBytes`.
const JOINED_BYTES_MAX: usize = 100 * 1024 * 1024;

struct Lookup {
    as_path: FieldPath,
    equality: Option<Equality>,
    /// Variables by name, evaluated on the joining document.
    variables: Vec<(String, Expression)>,
    /// The equality with the joining document by which the pipeline begins, if there is one.
    correlation: Option<Correlation>,
    /// The pipeline over the other collection.
    inner: SubPipeline,
    /// The environment of that pipeline, without the values of its variables.
    inside: Environment,
    /// The `$unwind` of the array that followed: with it, the array is never made.
    unwinding: Option<Unwinding>,
    /// A filter on the joined documents, if they are joined by equality alone.
    matching: Option<Matching>,
    /// Fields that later stages read, if known.
    read: Option<ReadFields>,
}

/// Documents match if these fields are equal.
struct Equality {
    local: FieldPath,
    foreign: FieldPath,
}

impl Lookup {
    /// Makes the inner pipeline's environment for one document, with the values of its variables.
    fn world(&self, document: DocumentRef<'_>, environment: &Environment) -> Result<Cow<'_, Environment>> {
        if self.variables.is_empty() {
            return Ok(Cow::Borrowed(&self.inside));
        }
        let mut variables: Variables = environment.scope.variables.clone();
        let context = environment.context(document);
        for (name, expression) in &self.variables {
            variables.define(name, expression.evaluate(&context)?.into_value())?;
        }
        Ok(Cow::Owned(self.inside.with_variables(variables)))
    }
}

impl Stage for Lookup {
    fn name(&self) -> &'static str {
        DEFINITION.facts.name
    }

    fn open(
        self: Arc<Self>,
        input: Box<dyn DocumentStream>,
        environment: &Arc<Environment>,
    ) -> Box<dyn DocumentStream> {
        let plainly = self.equality.as_ref().zip(self.inner.reads_plainly());
        let join = plainly
            .map(|(equality, source)| EqualityJoin::new(source.clone(), equality.foreign.clone(), Gatherer::Lookup))
            .map(|join| join.matching(self.matching.clone()));
        let environment = Arc::clone(environment);
        let correlated = (environment.rewrites.are_applied()).then(CorrelatedJoin::default);
        let joining = Joining {
            stage: self,
            environment,
            join,
            correlated,
            constant: Constant::Unknown,
            around: Around::default(),
            array: Vec::new(),
        };
        Box::new(LookedUp { input, joining, current: None })
    }

    fn read_only(&mut self, fields: &BTreeSet<String>) {
        self.read = Some(ReadFields::new(self.as_path.components(), fields));
    }

    fn add_dependencies(&self, dependencies: &mut Dependencies) -> Reads {
        if let Some(equality) = &self.equality {
            dependencies.add(equality.local.dotted());
        }
        self.variables.iter().for_each(|(_, expression)| expression.add_dependencies(dependencies));
        Reads::OthersToo
    }

    fn effect(&self) -> Effect {
        let index_path = self.unwinding.as_ref().and_then(|unwinding| unwinding.index_path.as_ref());
        let paths = std::iter::once(&self.as_path).chain(index_path);
        let tops = paths.filter_map(|path| path.components().first()).map(|name| &**name);
        let side = match (&self.unwinding, self.as_path.components()) {
            (Some(unwinding), [field]) if unwinding.index_path.is_none() => {
                Some(JoinedSide { field: field.to_string(), keeps_unmatched: unwinding.preserves_without_elements() })
            }
            _ => None,
        };
        Effect::Joins(Joined { changes: PathChanges::computing(tops), side })
    }

    fn take_inside(&mut self, filter: DocumentRef<'_>) -> Result<()> {
        if let Some(unwinding) = &mut self.unwinding {
            unwinding.drop_without_elements();
        }
        if self.equality.is_none() || !self.inner.is_empty() {
            self.inner.add_filter(filter);
            return Ok(());
        }
        self.matching.get_or_insert_default().add(filter);
        Ok(())
    }

    fn makes_one_of_each(&self) -> bool {
        self.unwinding.is_none()
    }

    fn absorb(&mut self, next: &dyn Stage) -> bool {
        match next.unwinding() {
            Some(unwinding) if self.unwinding.is_none() && unwinding.path == self.as_path => {
                self.unwinding = Some(unwinding);
                true
            }
            _ => false,
        }
    }
}

/// The joined documents, if they do not depend on the joining document.
enum Constant {
    /// Nothing was joined yet.
    Unknown,
    Known(SpoolReader),
    /// The documents exceed a stage's memory and the room on disk, so they are read again each time.
    TooLarge,
}

struct LookedUp {
    input: Box<dyn DocumentStream>,
    joining: Joining,
    /// The document whose joined documents are being returned one by one.
    current: Option<Unwound>,
}

/// Finds the matches of a document.
struct Joining {
    stage: Arc<Lookup>,
    environment: Arc<Environment>,
    /// `None` without an equality, or if the pipeline finds its documents itself.
    join: Option<EqualityJoin>,
    /// Finds documents by the stage's correlation; `None` if the pipeline may not be rewritten.
    correlated: Option<CorrelatedJoin>,
    constant: Constant,
    /// Reused between documents.
    around: Around,
    array: Vec<u8>,
}

struct Unwound {
    document: DocumentBuf,
    joined: Box<dyn DocumentStream>,
    index: i64,
}

impl Joining {
    fn joined(&mut self, document: DocumentRef<'_>) -> Result<Box<dyn DocumentStream>> {
        let stage = Arc::clone(&self.stage);
        if let Some(equality) = &stage.equality {
            let mut values = local_values(document, equality.local.components());
            if values.is_empty() {
                values.push(ValueRef::Null);
            }
            let world = stage.world(document, &self.environment)?;
            return match &mut self.join {
                Some(join) => join.open(&values, stage.inner.stages(), &world),
                None => stage.inner.open(&[ValueRef::from(&match_any(&equality.foreign, &values))], &world),
            };
        }
        if !stage.variables.is_empty() {
            let world = stage.world(document, &self.environment)?;
            if let (Some(join), Some(correlation), Some(source)) =
                (&mut self.correlated, &stage.correlation, &stage.inner.source)
                && let Some(found) = join.find(correlation, source, &world)?
            {
                return over(found, stage.inner.stages(), &world.over(Some(source)));
            }
            return stage.inner.open(&[], &world);
        }
        if let Constant::Unknown = self.constant {
            self.constant = self.read_constant()?;
        }
        match &self.constant {
            Constant::Known(documents) => {
                Ok(Box::new(Kept { documents: documents.again(), environment: Arc::clone(&self.environment) }))
            }
            _ => stage.inner.open(&[], &stage.inside),
        }
    }

    fn read_constant(&self) -> Result<Constant> {
        let operation = self.environment.operation();
        let bytes_max = operation.stage_bytes_max(Gatherer::Lookup);
        let mut documents = Spool::new(Gatherer::Lookup, DEFINITION.facts.name);
        let mut stream = self.stage.inner.open(&[], &self.stage.inside)?;
        while let Some(document) = stream.next()? {
            if operation.scratch().is_none() && documents.held_bytes() + 2 * document.len_bytes() > bytes_max {
                return Ok(Constant::TooLarge);
            }
            documents.add(document.as_ref().as_bytes(), operation)?;
        }
        Ok(Constant::Known(documents.finish()?))
    }

    /// Gathers all documents joined with a document into `self.array`.
    fn gather(&mut self, document: DocumentRef<'_>) -> Result<()> {
        let mut array = std::mem::take(&mut self.array);
        array.clear();
        let mut gathering = Gathering { writer: Writer::new(&mut array), count: 0 };
        if !self.gather_by_value(document, &mut gathering)? {
            let mut joined = self.joined(document)?;
            while let Some(one) = joined.next()? {
                gathering.push(one.as_ref(), self)?;
            }
        }
        gathering.writer.end();
        self.array = array;
        Ok(())
    }

    /// As [`Self::gather`], for a single value whose matches need no plan and no pipeline; returns whether that was
    /// possible.
    fn gather_by_value(&mut self, document: DocumentRef<'_>, gathering: &mut Gathering<'_>) -> Result<bool> {
        let stage = Arc::clone(&self.stage);
        let (Some(equality), Some(join)) = (&stage.equality, self.join.take()) else { return Ok(false) };
        let value = match equality.local.components() {
            [name] if stage.variables.is_empty() && stage.inner.is_empty() => document.get(name),
            _ => None,
        };
        let mut join = join;
        let is_told = match value {
            None | Some(ValueRef::Array(_)) => Ok(false),
            Some(value) => join.visit(value, &stage.inside, &mut |one| gathering.push(one, self)),
        };
        self.join = Some(join);
        is_told
    }

    /// Writes the document with the array of its joined documents.
    fn write_with_array(&mut self, document: DocumentRef<'_>, buffer: &mut Vec<u8>) -> Result<()> {
        self.gather(document)?;
        let path = self.stage.as_path.components();
        self.around.take_apart(document, path, self.stage.read.as_ref());
        buffer.clear();
        let array = ArrayRef::from_document(DocumentRef::trusted(&self.array));
        self.around.write(path, ValueRef::Array(array), buffer);
        Ok(())
    }
}

/// An array of joined documents while it is written.
struct Gathering<'b> {
    writer: Writer<'b>,
    count: usize,
}

impl Gathering<'_> {
    fn push(&mut self, one: DocumentRef<'_>, joining: &Joining) -> Result<()> {
        joining.environment.operation().work(1 + one.len_bytes() / 64)?;
        self.writer.push(self.count, ValueRef::Document(one));
        self.count += 1;
        if self.writer.len_bytes() > JOINED_BYTES_MAX {
            let message = format!(
                "Total size of documents in {} matching pipeline's $lookup stage exceeds {JOINED_BYTES_MAX} bytes",
                joining.stage.inner.source.as_ref().map_or("", |source| source.collection.as_str())
            );
            return Err(Failure::new(ErrorCode(4568), message));
        }
        Ok(())
    }
}

impl LookedUp {
    /// Makes the next result of unwinding the joined documents; `None` at the end of the input.
    fn next_unwound(&mut self, unwinding: &Unwinding) -> Result<Option<DocumentBuf>> {
        loop {
            if self.current.is_none() {
                let Some(document) = self.input.next()? else { return Ok(None) };
                let joined = self.joining.joined(document.as_ref())?;
                self.current = Some(Unwound { document, joined, index: 0 });
            }
            let Some(current) = &mut self.current else { return Ok(None) };
            let document = current.document.as_ref();
            if let Some(one) = current.joined.next()? {
                self.joining.environment.operation().work(1 + (document.len_bytes() + one.len_bytes()) / 64)?;
                let unwound = with_path(document, unwinding.path.components(), Some(ValueRef::from(&one)));
                let indexed = unwinding.indexed(unwound, ValueRef::Int64(current.index));
                current.index += 1;
                return Ok(Some(indexed));
            }
            let unmatched = (current.index == 0 && unwinding.preserves_without_elements()).then(|| {
                // The path to the array is made even though the array is then removed.
                let (path, empty) = (unwinding.path.components(), ArrayBuf::new());
                let with_array = with_path(document, path, Some(ValueRef::from(&empty)));
                let without = with_path(with_array.as_ref(), path, None);
                unwinding.indexed(without, ValueRef::Null)
            });
            self.current = None;
            if unmatched.is_some() {
                return Ok(unmatched);
            }
        }
    }
}

impl DocumentStream for LookedUp {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        let stage = Arc::clone(&self.joining.stage);
        if let Some(unwinding) = &stage.unwinding {
            return self.next_unwound(unwinding);
        }
        let Some(document) = self.input.next()? else { return Ok(None) };
        let mut buffer = Vec::new();
        self.joining.write_with_array(document.as_ref(), &mut buffer)?;
        Ok(Some(DocumentBuf::from_trusted(buffer)))
    }

    fn visit(&mut self, visitor: &mut dyn FnMut(DocumentRef<'_>) -> Result<Flow>) -> Result<()> {
        if self.joining.stage.unwinding.is_some() {
            while let Some(document) = self.next()? {
                if visitor(document.as_ref())? == Flow::Stop {
                    break;
                }
            }
            return Ok(());
        }
        let mut buffer = Vec::new();
        let joining = &mut self.joining;
        self.input.visit(&mut |document| {
            joining.write_with_array(document, &mut buffer)?;
            visitor(DocumentRef::trusted(&buffer))
        })
    }

    fn describe_run(&self, facts: &mut DocumentBuf) {
        let mut spilled = self.joining.join.as_ref().map(EqualityJoin::spilled).unwrap_or_default();
        if let Some(correlated) = &self.joining.correlated {
            spilled += correlated.spilled();
        }
        if let Constant::Known(documents) = &self.joining.constant {
            spilled += documents.spilled();
        }
        if spilled.spills > 0 {
            append_spilled(facts, spilled);
        }
    }
}

/// The documents of a pipeline that gives the same ones for every joining document (`Constant::Known`).
struct Kept {
    documents: SpoolReader,
    environment: Arc<Environment>,
}

impl DocumentStream for Kept {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        let document = self.documents.next(self.environment.operation())?;
        Ok(document.map(|document| DocumentBuf::from_trusted(document.to_vec())))
    }
}
