//! The vectors of one field: a lane for each kind, and a graph over the numbers where there are many.

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

/// So many vectors are worth a graph: below that all are looked at sooner than a walk ends.
pub const GRAPH_FROM: usize = 10_000;

/// Nodes that are added to a graph at a time, while searches wait.
const NODES_AT_ONCE: usize = 4;

/// Whether a graph has all vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growing {
    /// Some are not in it.
    On,
    /// All are, or it is not worth one.
    Done,
}

/// The vectors of one field.
#[derive(Debug)]
pub(crate) struct Column {
    field: VectorField,
    numbers: Lane<f32>,
    bytes: Lane<i8>,
    bits: Lane<u8>,
    /// Of the first numbers of the lane, as many as it has nodes.
    graph: RwLock<Graph>,
}

/// The vectors of a lane as a graph compares them.
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

    /// The vector of a document, as it is kept, if it has one that is indexed.
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

    /// Adds a few vectors to the graph, where one is worth it.
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
        // A search that waits comes before the next few.
        RwLockWriteGuard::unlock_fair(graph);
        Growing::On
    }

    /// How many vectors the graph does not have that should.
    pub(crate) fn outside_graph(&self) -> usize {
        if self.is_worth_graph() { self.numbers.count() - self.graph.read().count() } else { 0 }
    }

    /// The rows of `takes` that are nearest, the best first.
    /// # Errors
    /// What the operation says.
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

    /// Walks the graph, where that is quicker than to look at all; how many vectors it answered for.
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
        // A walk looks at some neighbours of each candidate, and at the more the fewer are taken.
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

/// Offers the vectors of a lane from a position on.
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
