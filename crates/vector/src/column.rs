//! The vectors of one field: a lane for each kind, and a graph over the 32-bit numbers if there are many.

use crate::bitmap::Bitmap;
use crate::graph::{Closeness, Graph};
use crate::lane::Lane;
use crate::nearest::Nearest;
use crate::request::Prepared;
use crate::similarity::normalize;
use crate::{Components, Similarity, VectorField};
use bunko_bson::DocumentRef;
use bunko_errors::Result;
use bunko_operation::OperationContext;
use parking_lot::{RwLock, RwLockWriteGuard};

/// Number of vectors from which on a graph is built. With fewer, a scan of all is quicker than a walk.
pub const GRAPH_FROM: usize = 10_000;

/// Number of nodes that are added to a graph at once; searches wait meanwhile.
const NODES_AT_ONCE: usize = 4;

/// Whether a graph has all vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growing {
    /// Some vectors are not in the graph.
    On,
    /// All vectors are in the graph, or there are too few for one.
    Done,
}

/// The vectors of one field.
#[derive(Debug)]
pub(crate) struct Column {
    field: VectorField,
    numbers: Lane<f32>,
    bytes: Lane<i8>,
    bits: Lane<u8>,
    /// Graph over the first vectors of `numbers`, as many as it has nodes.
    graph: RwLock<Graph>,
}

/// The vectors of a lane, in the form in which a graph compares them.
struct InLane<'c>(&'c Lane<f32>, Similarity);

impl Closeness for InLane<'_> {
    fn between(&self, one: u32, other: u32) -> f32 {
        self.1.closeness(self.0.vector(one as usize), self.0.vector(other as usize))
    }
}

impl Column {
    pub(crate) fn new(field: &VectorField) -> Self {
        Self {
            numbers: Lane::new(field.dimensions),
            bytes: Lane::new(field.dimensions),
            bits: Lane::new(field.dimensions.div_ceil(8)),
            graph: RwLock::new(Graph::new(field.edges_max, field.edge_candidates)),
            field: field.clone(),
        }
    }

    /// Reads a document's vector in the form in which the column keeps it; `None` if the document has none that is
    /// indexed.
    pub(crate) fn vector_of(field: &VectorField, document: DocumentRef<'_>) -> Option<Components> {
        let value = crate::dotted::through_documents(document, &field.path)?;
        let mut components = Components::stored(value)?;
        let is_indexed = components.dimensions() == field.dimensions
            && match (&mut components, field.similarity) {
                (Components::Float32(numbers), Similarity::Cosine) => normalize(numbers),
                (Components::Bits(_), similarity) => similarity == Similarity::Euclidean,
                _ => true,
            };
        is_indexed.then_some(components)
    }

    /// Adds a row's vector. Rows ascend.
    pub(crate) fn push(&mut self, row: u32, vector: &Components) {
        match vector {
            Components::Float32(numbers) => self.numbers.push(row, numbers),
            Components::Int8(bytes) => self.bytes.push(row, bytes),
            Components::Bits(bits) => self.bits.push(row, bits),
        };
    }

    pub(crate) fn bytes(&self) -> usize {
        self.numbers.bytes() + self.bytes.bytes() + self.bits.bytes() + self.graph.read().bytes()
    }

    fn is_worth_graph(&self) -> bool {
        self.field.has_graph && self.numbers.count() >= GRAPH_FROM
    }

    /// Adds a few vectors to the graph, if there are enough for one.
    pub(crate) fn grow(&self) -> Growing {
        if !self.is_worth_graph() {
            return Growing::Done;
        }
        let mut graph = self.graph.write();
        for _ in 0..NODES_AT_ONCE {
            if graph.count() == self.numbers.count() {
                return Growing::Done;
            }
            graph.insert(&InLane(&self.numbers, self.field.similarity));
        }
        // A waiting search gets the lock before the next few are added.
        RwLockWriteGuard::unlock_fair(graph);
        Growing::On
    }

    /// Number of vectors that should be in the graph and are not.
    pub(crate) fn outside_graph(&self) -> usize {
        if self.is_worth_graph() { self.numbers.count() - self.graph.read().count() } else { 0 }
    }

    /// Returns the nearest rows among those in `takes`, the best first.
    /// # Errors
    /// As [`OperationContext::work`].
    pub(crate) fn search(
        &self,
        prepared: &Prepared<'_>,
        takes: &Bitmap,
        operation: &OperationContext,
    ) -> Result<Vec<(f32, u32)>> {
        let (limit, similarity) = (prepared.request.limit, self.field.similarity);
        let mut nearest = Nearest::new(limit);
        match &prepared.query {
            Components::Float32(query) => {
                let close = |position: usize| similarity.closeness(query, self.numbers.vector(position));
                let mut from = 0;
                if let Some(candidates) = prepared.request.candidates {
                    from = self.walk(query, candidates, takes, operation, &mut nearest)?;
                }
                scan(&self.numbers, from, takes, operation, &mut nearest, close)?;
                let scored = nearest.into_sorted().into_iter();
                return Ok(scored.map(|(closeness, row)| (similarity.score(closeness), row)).collect());
            }
            Components::Int8(query) => {
                let score = |position| similarity.score_of_bytes(query, self.bytes.vector(position));
                scan(&self.bytes, 0, takes, operation, &mut nearest, score)?;
            }
            Components::Bits(query) => {
                let score = |position| Similarity::score_of_bits(query, self.bits.vector(position));
                scan(&self.bits, 0, takes, operation, &mut nearest, score)?;
            }
        }
        Ok(nearest.into_sorted())
    }

    /// Walks the graph if that is quicker than a scan. Returns the number of vectors, from the first, that need no
    /// scan.
    fn walk(
        &self,
        query: &[f32],
        candidates: usize,
        takes: &Bitmap,
        operation: &OperationContext,
        nearest: &mut Nearest<u32>,
    ) -> Result<usize> {
        let graph = self.graph.read();
        let (nodes, taken) = (graph.count(), takes.count());
        // A walk looks at some neighbours of each candidate, and at more of them the fewer rows may be found.
        if nodes == 0 || taken.saturating_mul(taken) < candidates.saturating_mul(16).saturating_mul(nodes) {
            return Ok(0);
        }
        let near = |node: u32| self.field.similarity.closeness(query, self.numbers.vector(node as usize));
        let taken = |node: u32| takes.has(self.numbers.row(node as usize));
        for (closeness, node) in graph.search(candidates, &near, &taken, operation)? {
            nearest.offer(closeness, self.numbers.row(node as usize));
        }
        Ok(nodes)
    }
}

/// Offers the vectors of a lane from position `from` on.
fn scan<E: Copy>(
    lane: &Lane<E>,
    from: usize,
    takes: &Bitmap,
    operation: &OperationContext,
    nearest: &mut Nearest<u32>,
    score: impl Fn(usize) -> f32,
) -> Result<()> {
    for position in from..lane.count() {
        let row = lane.row(position);
        if takes.has(row) {
            operation.work(1 + lane.width() / 64)?;
            nearest.offer(score(position), row);
        }
    }
    Ok(())
}
