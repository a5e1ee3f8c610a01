//! A graph of neighbours in layers (HNSW), in which a search walks from vector to vector towards the query.
//!
//! Each node is in the layers from 0 up to a level that is drawn at random, so that each layer has about one in
//! `edges_max` of the nodes of the layer below. A search goes down greedily to layer 0, and there keeps the best
//! `width` nodes that it visits. Nodes are numbered in the order in which they were added, and never removed.
//! Source: Y. Malkov, D. Yashunin, "Efficient and robust approximate nearest neighbor search using Hierarchical
//! Navigable Small World graphs", 2016.

use crate::bitmap::Bitmap;
use crate::nearest::Ordered;
use bunko_errors::Result;
use bunko_operation::OperationContext;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Greatest number of layers above the lowest, enough for any number of nodes.
const LEVEL_MAX: usize = 12;

/// Compares the nodes of a graph.
pub(crate) trait Closeness {
    /// How near two nodes are: more is nearer.
    fn between(&self, one: u32, other: u32) -> f32;
}

/// The graph. It does not hold the vectors.
#[derive(Debug)]
pub(crate) struct Graph {
    edges_max: usize,
    candidates: usize,
    /// Neighbours in layer 0: for each node a run of fixed length, with a count and the neighbours.
    ground: Vec<u32>,
    /// For each node, its neighbours in the layers from 1 up to its level.
    upper: Vec<Box<[Vec<u32>]>>,
    /// The node at which a search begins. It has the highest level.
    entry: Option<u32>,
    random: u64,
}

/// A closeness and the node that has it; greater is nearer.
type Near = (Ordered, u32);

impl Graph {
    pub(crate) fn new(edges_max: usize, candidates: usize) -> Self {
        let upper = Vec::new();
        Self { edges_max, candidates, ground: Vec::new(), upper, entry: None, random: 0x9e37_79b9_7f4a_7c15 }
    }

    /// Number of nodes.
    pub(crate) fn count(&self) -> usize {
        self.upper.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        let above: usize = self.upper.iter().map(|layers| layers.len() * (24 + self.edges_max * 4)).sum();
        self.ground.capacity() * 4 + self.upper.capacity() * 16 + above
    }

    /// Length of a node's run: nodes have twice as many neighbours in the lowest layer.
    fn run(&self) -> usize {
        1 + self.edges_max * 2
    }

    fn neighbours(&self, node: u32, layer: usize) -> &[u32] {
        if layer > 0 {
            return self.upper[node as usize].get(layer - 1).map_or(&[], Vec::as_slice);
        }
        let start = node as usize * self.run();
        let count = self.ground[start] as usize;
        &self.ground[start + 1..=start + count]
    }

    fn set_neighbours(&mut self, node: u32, layer: usize, neighbours: &[u32]) {
        if layer > 0 {
            self.upper[node as usize][layer - 1] = neighbours.to_vec();
            return;
        }
        let start = node as usize * self.run();
        self.ground[start] = neighbours.len() as u32;
        self.ground[start + 1..=start + neighbours.len()].copy_from_slice(neighbours);
    }

    fn level(&mut self) -> usize {
        // xorshift64* from a fixed seed, so that the graph is the same wherever it is built.
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        let drawn = (self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1_u64 << 53) as f64;
        let level = -(drawn.max(f64::MIN_POSITIVE)).ln() / (self.edges_max as f64).ln();
        (level as usize).min(LEVEL_MAX)
    }

    /// Adds the next node, whose number is [`Self::count`].
    pub(crate) fn insert(&mut self, closeness: &impl Closeness) {
        let node = self.count() as u32;
        let level = self.level();
        self.ground.resize(self.ground.len() + self.run(), 0);
        self.upper.push(vec![Vec::new(); level].into());
        let Some(entry) = self.entry else {
            self.entry = Some(node);
            return;
        };
        let near = |other: u32| closeness.between(node, other);
        let top = self.upper[entry as usize].len();
        let mut at = (Ordered(near(entry)), entry);
        for layer in (level + 1..=top).rev() {
            at = self.descend(at, layer, &near);
        }
        let mut entries = vec![at];
        for layer in (0..=level.min(top)).rev() {
            let no_stop = &mut |_| Ok(());
            let found = self.layer(&entries, layer, self.candidates, &near, &|_| true, no_stop).unwrap_or_default();
            let chosen = choose(&found, self.edges_max, closeness);
            self.set_neighbours(node, layer, &chosen);
            for other in chosen {
                self.connect(other, node, layer, closeness);
            }
            entries = found;
        }
        if level > top {
            self.entry = Some(node);
        }
    }

    /// Adds `new` to the neighbours of `node`, which may have to give one up.
    fn connect(&mut self, node: u32, new: u32, layer: usize, closeness: &impl Closeness) {
        let most = if layer == 0 { self.edges_max * 2 } else { self.edges_max };
        let mut neighbours = self.neighbours(node, layer).to_vec();
        neighbours.push(new);
        if neighbours.len() > most {
            let mut near: Vec<Near> =
                neighbours.iter().map(|other| (Ordered(closeness.between(node, *other)), *other)).collect();
            near.sort_unstable_by_key(|near| Reverse(*near));
            neighbours = choose(&near, most, closeness);
        }
        self.set_neighbours(node, layer, &neighbours);
    }

    /// Walks through a layer to nearer nodes, until no neighbour is nearer.
    fn descend(&self, mut at: Near, layer: usize, near: &impl Fn(u32) -> f32) -> Near {
        loop {
            let steps = self.neighbours(at.1, layer).iter().map(|node| (Ordered(near(*node)), *node));
            match steps.max() {
                Some(step) if step.0 > at.0 => at = step,
                _ => return at,
            }
        }
    }

    /// Walks through a layer from `entries`. Returns the best `width` visited nodes that `takes` accepts, the best
    /// first.
    fn layer(
        &self,
        entries: &[Near],
        layer: usize,
        width: usize,
        near: &impl Fn(u32) -> f32,
        takes: &impl Fn(u32) -> bool,
        count: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<Vec<Near>> {
        let mut met = Bitmap::empty(self.count());
        let mut open: BinaryHeap<Near> = BinaryHeap::new();
        let mut found: BinaryHeap<Reverse<Near>> = BinaryHeap::with_capacity(width.min(self.count()) + 1);
        for entry in entries {
            if met.add(entry.1) {
                open.push(*entry);
                if takes(entry.1) {
                    found.push(Reverse(*entry));
                }
            }
        }
        while found.len() > width {
            found.pop();
        }
        while let Some((closeness, node)) = open.pop() {
            let worst = found.peek().map(|worst| worst.0.0);
            if found.len() == width && worst.is_some_and(|worst| closeness < worst) {
                break;
            }
            let neighbours = self.neighbours(node, layer);
            count(neighbours.len())?;
            for other in neighbours {
                if !met.add(*other) {
                    continue;
                }
                let step = (Ordered(near(*other)), *other);
                let is_full = found.len() == width;
                if is_full && found.peek().is_some_and(|worst| step < worst.0) {
                    continue;
                }
                open.push(step);
                if takes(*other) {
                    found.push(Reverse(step));
                    if is_full {
                        found.pop();
                    }
                }
            }
        }
        Ok(found.into_sorted_vec().into_iter().map(|Reverse(near)| near).collect())
    }

    /// Returns the best `width` nodes that a walk visits and `takes` accepts, the best first.
    /// # Errors
    /// As [`OperationContext::work`].
    pub(crate) fn search(
        &self,
        width: usize,
        near: &impl Fn(u32) -> f32,
        takes: &impl Fn(u32) -> bool,
        operation: &OperationContext,
    ) -> Result<Vec<(f32, u32)>> {
        let Some(entry) = self.entry else { return Ok(Vec::new()) };
        let mut at = (Ordered(near(entry)), entry);
        for layer in (1..=self.upper[entry as usize].len()).rev() {
            at = self.descend(at, layer, near);
        }
        let found = self.layer(&[at], 0, width.max(1), near, takes, &mut |nodes| operation.work(nodes))?;
        Ok(found.into_iter().map(|(closeness, node)| (closeness.0, node)).collect())
    }
}

/// Chooses a node's neighbours among `near`, which has the nearest first. Nodes that are nearer to the node itself than
/// to any chosen one come first, so that neighbours lead into different directions; then the nearest of the others.
fn choose(near: &[Near], most: usize, closeness: &impl Closeness) -> Vec<u32> {
    let mut chosen: Vec<u32> = Vec::with_capacity(most + 1);
    let mut others = Vec::new();
    for (own, node) in near {
        if chosen.len() == most {
            return chosen;
        }
        if chosen.iter().all(|chosen| closeness.between(*chosen, *node) < own.0) {
            chosen.push(*node);
        } else {
            others.push(*node);
        }
    }
    let room = most.saturating_sub(chosen.len());
    chosen.extend(others.into_iter().take(room));
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Line(Vec<f32>);

    impl Closeness for Line {
        fn between(&self, one: u32, other: u32) -> f32 {
            -(self.0[one as usize] - self.0[other as usize]).abs()
        }
    }

    fn graph_of(points: usize) -> (Graph, Line) {
        // Neighbours on the line are inserted long after each other.
        let line = Line((0..points).map(|i| (i * 7919 % points) as f32).collect());
        let mut graph = Graph::new(8, 40);
        for _ in 0..points {
            graph.insert(&line);
        }
        (graph, line)
    }

    #[test]
    fn the_nearest_on_a_line_are_found() {
        let (graph, line) = graph_of(2_000);
        let operation = OperationContext::unlimited();
        for target in [0.0_f32, 17.0, 999.5, 1_999.0] {
            let near = |node: u32| -(line.0[node as usize] - target).abs();
            let found = graph.search(10, &near, &|_| true, &operation).unwrap();
            assert_eq!(found.len(), 10);
            assert!(found.iter().all(|(closeness, _)| *closeness >= -10.0), "{target}: {found:?}");
        }
        let near = |node: u32| -line.0[node as usize];
        let even =
            graph.search(5, &near, &|node| (line.0[node as usize] as u32).is_multiple_of(2), &operation).unwrap();
        let even: Vec<f32> = even.iter().map(|(closeness, _)| -closeness).collect();
        assert_eq!(even, [0.0, 2.0, 4.0, 6.0, 8.0]);
    }

    #[test]
    fn no_node_has_too_many_neighbours_and_an_empty_graph_finds_nothing() {
        let (graph, _) = graph_of(500);
        for node in 0..500 {
            assert!(graph.neighbours(node, 0).len() <= 16 && graph.neighbours(node, 1).len() <= 8);
        }
        let empty = Graph::new(8, 40);
        assert!(empty.search(5, &|_| 0.0, &|_| true, &OperationContext::unlimited()).unwrap().is_empty());
    }
}
