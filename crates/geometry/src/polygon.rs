//! Polygons: a ring and the holes in it.

use crate::border_check::{Extent, Placed, budget, each_near_pair, too_complex};
use crate::edge_walk::Crossing;
use crate::effort::{Budget, Effort};
use crate::ring::Ring;
use crate::ring_relation::{SharedCorners, Standing};
use crate::vector::{Edge, Vector};
use std::collections::HashMap;

/// **Invariant:** without a fault, the holes are inside the ring, no hole is inside another, and no two rings cross or
/// share an edge. A hole shares at most one vertex with the ring.
#[derive(Clone, Debug)]
pub(crate) struct Polygon {
    outer: Ring,
    holes: Vec<Ring>,
    /// Why the rings are not a polygon. Documents of an earlier version may have such rings, and their keys must be found
    /// when they are removed.
    fault: Option<Box<str>>,
}

impl Polygon {
    pub fn new(outer: Ring, holes: Vec<Ring>) -> Self {
        let mut polygon = Self { outer, holes, fault: None };
        if !polygon.holes.is_empty() {
            polygon.fault = polygon.check_rings().err().map(String::into_boxed_str);
        }
        polygon
    }

    /// Why the rings are not a polygon: a hole is not inside the ring, crosses another ring, is inside another hole, or
    /// shares an edge or two vertices; or there are too many edges to compare.
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    fn rings(&self) -> impl Iterator<Item = &Ring> {
        std::iter::once(&self.outer).chain(&self.holes)
    }

    pub fn edges(&self) -> impl Iterator<Item = Edge> + '_ {
        self.rings().flat_map(Ring::edges)
    }

    /// Number of edges of all rings.
    pub fn len(&self) -> usize {
        self.rings().map(|ring| ring.vertices().len()).sum()
    }

    /// Whether a point is inside or on the border.
    pub fn contains(&self, point: Vector, effort: &mut dyn Effort) -> bool {
        !effort.goes_on(2 * self.len()) || self.is_strictly_inside(point) || self.is_on_border(point)
    }

    fn is_on_border(&self, point: Vector) -> bool {
        self.rings().any(|ring| ring.is_on_border(point))
    }

    /// Whether a point is inside. The answer for points on the border is arbitrary.
    fn is_strictly_inside(&self, point: Vector) -> bool {
        self.outer.surrounds(point) && !self.holes.iter().any(|hole| hole.surrounds(point))
    }

    /// The angle between a point and the nearest point of the polygon, in radians; 0 inside.
    pub fn distance(&self, point: Vector, effort: &mut dyn Effort) -> f64 {
        if !effort.goes_on(2 * self.len()) || self.is_strictly_inside(point) {
            return 0.0;
        }
        self.rings().map(|ring| ring.distance(point)).fold(f64::INFINITY, f64::min)
    }

    /// Whether an edge of the polygon crosses this one.
    fn is_crossed_by(&self, edge: Edge, effort: &mut dyn Effort) -> bool {
        !effort.goes_on(self.len()) || self.edges().any(|own| own.crosses(edge))
    }

    /// Whether an edge has no point outside.
    pub fn contains_edge(&self, edge: Edge, effort: &mut dyn Effort) -> bool {
        self.contains(edge.from, effort)
            && self.contains(edge.to, effort)
            && self.contains(edge.at(0.5), effort)
            && !self.is_crossed_by(edge, effort)
    }

    /// Whether an edge has a point inside or on the border.
    pub fn meets_edge(&self, edge: Edge, effort: &mut dyn Effort) -> bool {
        self.contains(edge.from, effort) || self.contains(edge.to, effort) || self.is_crossed_by(edge, effort)
    }

    /// Whether the other polygon has no point outside this one.
    pub fn contains_polygon(&self, other: &Self, effort: &mut dyn Effort) -> bool {
        if self.holes.is_empty() && other.holes.is_empty() {
            return self.outer.contains_ring(&other.outer, effort);
        }
        self.standing(&other.outer, effort) == Standing::Containing
            && self.holes.iter().all(|hole| other.standing(hole, effort) == Standing::Elsewhere)
    }

    /// Whether the insides overlap: a common border is not enough.
    pub fn meets_polygon(&self, other: &Self, effort: &mut dyn Effort) -> bool {
        if self.holes.is_empty() && other.holes.is_empty() {
            return self.outer.meets_ring(&other.outer, effort);
        }
        self.meets_outer_of(other, effort) || other.meets_outer_of(self, effort)
    }

    /// The polygon's relation to another ring. The polygon contains it if an odd number of the polygon's rings do.
    fn standing(&self, other: &Ring, effort: &mut dyn Effort) -> Standing {
        let mut is_inside = false;
        for ring in self.rings() {
            match ring.standing(other, effort) {
                Standing::Crossing => return Standing::Crossing,
                Standing::Containing => is_inside = !is_inside,
                Standing::Elsewhere => {}
            }
        }
        if is_inside { Standing::Containing } else { Standing::Elsewhere }
    }

    fn meets_outer_of(&self, other: &Self, effort: &mut dyn Effort) -> bool {
        let mut is_inside = false;
        for ring in self.rings() {
            if ring.contains_ring(&other.outer, effort) {
                is_inside = !is_inside;
            } else if !other.outer.contains_ring(ring, effort) && ring.meets_ring(&other.outer, effort) {
                return true;
            }
        }
        is_inside
    }

    fn check_rings(&self) -> Result<(), String> {
        let rings: Vec<&Ring> = self.rings().collect();
        let mut budget = budget();
        let meetings = Meetings::of(&rings, &mut budget)?;
        for (number, hole) in rings.iter().enumerate().skip(1) {
            let shared = meetings.between(0, number);
            let first = hole.vertices()[0];
            if !budget.goes_on(2 * self.outer.vertices().len()) {
                return Err(too_complex(self.len()));
            }
            let has_place = self.outer.surrounds(first) || self.outer.vertices().contains(&first);
            if meetings.crossing == Some((0, number)) || shared.leaves || shared.crosses || !has_place {
                return Err(
                    "Secondary loops not contained by first exterior loop - secondary loops must be holes".into()
                );
            }
        }
        meetings.check()?;
        check_nesting(&rings, &meetings, &mut budget)
    }
}

/// Points that the edges and corners of several rings share. A pair's first ring has the smaller number.
struct Meetings {
    /// The first two rings whose edges cross.
    crossing: Option<(usize, usize)>,
    same_edge: Option<String>,
    corners: HashMap<(usize, usize), SharedCorners>,
}

impl Meetings {
    /// # Errors
    /// If there are too many edges.
    fn of(rings: &[&Ring], budget: &mut Budget) -> Result<Self, String> {
        let edges = rings.iter().enumerate().flat_map(|(number, ring)| {
            ring.edges().enumerate().map(move |(index, edge)| Placed::new(number, index, edge))
        });
        let mut meetings = Self { crossing: None, same_edge: None, corners: HashMap::new() };
        each_near_pair(edges.collect(), budget, &mut |one, other| {
            let (one, other) = if one.ring < other.ring { (one, other) } else { (other, one) };
            if one.ring != other.ring {
                meetings.add(rings, one, other);
            }
            Ok(())
        })?;
        Ok(meetings)
    }

    fn add(&mut self, rings: &[&Ring], one: &Placed, other: &Placed) {
        let pair = (one.ring, other.ring);
        match one.edge.crossing(other.edge) {
            Crossing::None => {}
            // The crossings of the outer ring are reported first.
            Crossing::Inner => self.crossing = Some(self.crossing.map_or(pair, |known| known.min(pair))),
            Crossing::End => {
                let (from, to) = (other.edge.from, other.edge.to);
                if (one.edge.from, one.edge.to) == (from, to) || (one.edge.to, one.edge.from) == (from, to) {
                    self.same_edge = Some(format!(
                        "Duplicate edge: loop {}, edge {} and loop {}, edge {}",
                        other.ring, other.index, one.ring, one.index
                    ));
                }
                if one.edge.to == to {
                    let corners = (rings[one.ring].corner(one.index), rings[other.ring].corner(other.index));
                    self.corners.entry(pair).or_default().add(&corners.0, &corners.1);
                }
            }
        }
    }

    fn between(&self, one: usize, other: usize) -> SharedCorners {
        self.corners.get(&(one, other)).copied().unwrap_or_default()
    }

    fn check(&self) -> Result<(), String> {
        if let Some(same_edge) = &self.same_edge {
            return Err(format!("Polygon isn't valid: {same_edge}"));
        }
        let at_corner = self.corners.iter().filter(|(_, shared)| shared.crosses).map(|(pair, _)| *pair);
        if let Some((one, other)) = self.crossing.into_iter().chain(at_corner).min() {
            return Err(format!("Polygon isn't valid: Loop {one} crosses loop {other}"));
        }
        let shares_two = |(pair, shared): &(&(usize, usize), &SharedCorners)| pair.0 == 0 && shared.count > 1;
        match self.corners.iter().filter(shares_two).map(|(pair, _)| pair.1).min() {
            Some(hole) => Err(format!("Loop {hole} shares more than one vertex with its parent loop 0")),
            None => Ok(()),
        }
    }
}

/// Refuses a hole that is inside another hole, for holes that do not cross.
fn check_nesting(rings: &[&Ring], meetings: &Meetings, budget: &mut Budget) -> Result<(), String> {
    let boxes: Vec<Option<Extent>> = rings.iter().map(|ring| Extent::around(ring.edges())).collect();
    let are_near =
        |one: usize, other: usize| boxes[one].zip(boxes[other]).is_some_and(|(one, other)| one.meets(&other));
    for number in 1..rings.len() {
        for other in number + 1..rings.len() {
            let is_near = are_near(number, other);
            let steps = if is_near { rings[number].vertices().len() + rings[other].vertices().len() } else { 1 };
            if !budget.goes_on(steps) {
                return Err(too_complex(rings.iter().map(|ring| ring.vertices().len()).sum()));
            }
            let shared = meetings.between(number, other);
            let is_nested = if shared.count > 0 {
                shared.is_nested()
            } else {
                is_near
                    && (rings[number].surrounds(rings[other].vertices()[0])
                        || rings[other].surrounds(rings[number].vertices()[0]))
            };
            if is_nested {
                return Err("Polygon interior loops cannot be nested".to_owned());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::Winding;

    fn ring(points: &[(f64, f64)]) -> Ring {
        let vertices = points.iter().map(|(longitude, latitude)| Vector::at(*longitude, *latitude)).collect();
        Ring::new(vertices, Winding::Any).expect("a ring")
    }

    fn square(low: (f64, f64), high: (f64, f64)) -> Ring {
        ring(&[low, (high.0, low.1), high, (low.0, high.1)])
    }

    #[test]
    fn holes_are_apart_inside_and_share_no_edge() {
        let shell = || square((0.0, 0.0), (10.0, 10.0));
        let reason = |holes: Vec<Ring>| Polygon::new(shell(), holes).fault().unwrap_or_default().to_owned();
        let apart = square((1.0, 1.0), (2.0, 2.0));
        assert_eq!(reason(vec![apart.clone(), square((3.0, 3.0), (4.0, 4.0))]), "");
        // A hole may share one vertex with the outer ring and one with another hole.
        assert_eq!(reason(vec![ring(&[(0.0, 0.0), (2.0, 1.0), (1.0, 2.0)])]), "");
        assert_eq!(reason(vec![apart.clone(), square((2.0, 2.0), (3.0, 3.0))]), "");
        for (holes, said) in [
            (vec![square((9.0, 9.0), (11.0, 11.0))], "not contained"),
            (vec![square((20.0, 20.0), (21.0, 21.0))], "not contained"),
            (vec![square((2.0, 6.0), (6.0, 9.0)), square((5.0, 4.0), (8.0, 7.0))], "Loop 1 crosses loop 2"),
            (vec![apart.clone(), apart.clone()], "Duplicate edge"),
            (vec![apart.clone(), square((2.0, 1.0), (3.0, 2.0))], "Duplicate edge"),
            (vec![square((1.0, 1.0), (5.0, 5.0)), square((2.0, 2.0), (3.0, 3.0))], "nested"),
            (vec![square((2.0, 2.0), (3.0, 3.0)), square((1.0, 1.0), (5.0, 5.0))], "nested"),
            (vec![ring(&[(0.0, 0.0), (5.0, 1.0), (10.0, 10.0)])], "more than one vertex"),
            (vec![shell()], "Duplicate edge"),
        ] {
            let reason = reason(holes);
            assert!(reason.contains(said), "{said}: {reason}");
        }
    }

    /// Squares of whole degrees. For pairs that share no part of a border, the answers are those of the plane.
    #[test]
    fn squares_contain_and_meet_as_in_the_plane() {
        let corners: Vec<f64> = (0..4).map(f64::from).collect();
        let mut squares = Vec::new();
        for &x in &corners {
            for &y in &corners {
                for width in 1..3 {
                    squares.push((
                        x + 0.001 * squares.len() as f64,
                        y + 0.002 * squares.len() as f64,
                        f64::from(width),
                    ));
                }
            }
        }
        let polygon = |(x, y, width): (f64, f64, f64)| Polygon::new(square((x, y), (x + width, y + width)), Vec::new());
        for &one in &squares {
            for &other in &squares {
                let overlaps = |a: f64, b: f64| a < b + other.2 && b < a + one.2;
                let holds = |a: f64, b: f64| a <= b && b + other.2 <= a + one.2;
                let (a, b) = (polygon(one), polygon(other));
                let meets = overlaps(one.0, other.0) && overlaps(one.1, other.1);
                assert_eq!(a.meets_polygon(&b, &mut crate::Unlimited), meets, "{one:?} {other:?}");
                assert_eq!(b.meets_polygon(&a, &mut crate::Unlimited), meets, "{other:?} {one:?}");
                // An edge is not a parallel of latitude, so containment along one is left to the other tests.
                if one == other || !meets {
                    assert_eq!(a.contains_polygon(&b, &mut crate::Unlimited), one == other, "{one:?} {other:?}");
                } else if !holds(one.0, other.0) {
                    assert!(!a.contains_polygon(&b, &mut crate::Unlimited), "{one:?} {other:?}");
                }
            }
        }
    }

    /// Pseudo-random numbers below a bound, the same in every run.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % bound
        }
    }

    /// A star around a place. Its vertices are at half degrees, so that several stars share vertices and lines.
    fn star(numbers: &mut Numbers) -> Option<Polygon> {
        let (x, y) = (numbers.below(5) as f64, numbers.below(5) as f64);
        let directions =
            [(1.0, 0.0), (1.0, 1.0), (0.0, 1.0), (-1.0, 1.0), (-1.0, 0.0), (-1.0, -1.0), (0.0, -1.0), (1.0, -1.0)];
        let points: Vec<(f64, f64)> = directions
            .iter()
            .filter_map(|(right, up)| {
                let length = 0.5 * numbers.below(5) as f64;
                (length > 0.0).then_some((x + right * length, y + up * length))
            })
            .collect();
        let vertices = points.iter().map(|(longitude, latitude)| Vector::at(*longitude, *latitude)).collect();
        (points.len() > 2).then(|| Ring::new(vertices, Winding::Any).ok())?.map(|ring| Polygon::new(ring, Vec::new()))
    }

    #[test]
    fn relations_of_random_polygons_follow_from_each_other() {
        let mut numbers = Numbers(7);
        let polygons: Vec<Polygon> = (0..300).filter_map(|_| star(&mut numbers)).collect();
        let effort = &mut crate::Unlimited;
        let mut held = [0; 3];
        for one in &polygons {
            assert!(one.contains_polygon(one, effort) && one.meets_polygon(one, effort), "{one:?}");
            for other in &polygons {
                let (meets, contains) = (one.meets_polygon(other, effort), one.contains_polygon(other, effort));
                assert_eq!(meets, other.meets_polygon(one, effort), "{one:?} {other:?}");
                assert!(meets || !contains, "{one:?} contains what it does not meet: {other:?}");
                let has_vertex = other
                    .outer
                    .vertices()
                    .iter()
                    .any(|vertex| one.is_strictly_inside(*vertex) && !one.is_on_border(*vertex));
                assert!(meets || !has_vertex, "{one:?} has a vertex of {other:?}");
                let is_outside = |vertex: &Vector| !one.is_strictly_inside(*vertex) && !one.is_on_border(*vertex);
                assert!(!contains || !other.outer.vertices().iter().any(is_outside), "{one:?} {other:?}");
                // A polygon that is inside and shares at most a vertex is accepted as a hole.
                let is_hole = Polygon::new(one.outer.clone(), vec![other.outer.clone()]).fault().is_none();
                assert!(contains || !is_hole, "{one:?} has {other:?} as a hole");
                for (count, is_so) in held.iter_mut().zip([meets, contains, is_hole]) {
                    *count += u32::from(is_so);
                }
            }
        }
        assert!(held.iter().all(|count| *count > 40), "{held:?}");
    }

    #[test]
    fn an_edge_along_and_beyond_anothers_meets_as_on_mongodb() {
        let one = Polygon::new(square((-1.0, -1.0), (1.0, 1.0)), Vec::new());
        let other = Polygon::new(square((-2.0, -1.5), (-1.0, 1.5)), Vec::new());
        assert!(one.meets_polygon(&other, &mut crate::Unlimited));
        assert!(other.meets_polygon(&one, &mut crate::Unlimited));
    }
}
