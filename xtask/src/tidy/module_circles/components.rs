//! Strongly connected components (Tarjan).

use std::collections::BTreeSet;

/// The components of more than one node, by their smallest node.
pub fn circles(arrows: &[BTreeSet<usize>]) -> Vec<BTreeSet<usize>> {
    let mut search = Search {
        arrows,
        order: vec![None; arrows.len()],
        lowest: vec![0; arrows.len()],
        open: Vec::new(),
        next: 0,
        found: Vec::new(),
    };
    for node in 0..arrows.len() {
        if search.order[node].is_none() {
            search.visit(node);
        }
    }
    search.found.sort();
    search.found
}

struct Search<'a> {
    arrows: &'a [BTreeSet<usize>],
    /// When each node was first seen.
    order: Vec<Option<usize>>,
    /// The earliest node that each node reaches among the open ones.
    lowest: Vec<usize>,
    /// Nodes whose component is not complete yet.
    open: Vec<usize>,
    next: usize,
    found: Vec<BTreeSet<usize>>,
}

impl Search<'_> {
    fn visit(&mut self, node: usize) {
        let order = self.next;
        self.next += 1;
        self.order[node] = Some(order);
        self.lowest[node] = order;
        self.open.push(node);
        for &target in &self.arrows[node] {
            match self.order[target] {
                None => {
                    self.visit(target);
                    self.lowest[node] = self.lowest[node].min(self.lowest[target]);
                }
                Some(seen) if self.open.contains(&target) => self.lowest[node] = self.lowest[node].min(seen),
                Some(_) => {}
            }
        }
        if self.lowest[node] == order {
            let start = self.open.iter().position(|&open| open == node).expect("the node is open");
            let component: BTreeSet<_> = self.open.split_off(start).into_iter().collect();
            if component.len() > 1 {
                self.found.push(component);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::circles;

    #[test]
    fn circles_are_told_from_chains() {
        let arrows = [&[1][..], &[2], &[1, 3], &[], &[0, 5], &[4]].map(|targets| targets.iter().copied().collect());
        assert_eq!(circles(&arrows), [BTreeSet::from([1, 2]), BTreeSet::from([4, 5])]);
    }
}
