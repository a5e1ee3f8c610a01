//! Shapes in the plane and on the sphere: parsing, containment, intersection, distance, and cells for indexes.
//!
//! [`Region`] is the operand of `$geoWithin` and `$geoIntersects`, [`Near`] that of `$near`; [`Stored`] is the geometry
//! of a document. Edges on the sphere are arcs of great circles; polygons in the plane are those of `$box` and
//! `$polygon`.
//!
//! **Invariant:** pure, and no input makes it panic. Computations over many edges ask an [`Effort`] whether to go on.
//! **Invariant:** a parsed shape is valid: rings are closed and do not cross, and holes are inside the ring and beside
//! each other.
//! **Invariant:** the side of an edge on which a point lies is decided as S2 decides it (`orientation.rs`), so that
//! polygons with common borders are related as on MongoDB.
#![forbid(unsafe_code)]

mod border_check;
mod cap;
mod cell;
mod corner;
mod covering;
mod edge_walk;
mod effort;
mod elements;
mod flat;
mod geohash;
mod geojson;
mod near;
mod orientation;
mod polygon;
mod region;
mod ring;
mod ring_relation;
mod shape;
mod stored;
mod vector;

pub use cap::Cap;
pub use cell::Cell;
pub use covering::{covering_of_cap, covering_of_shape};
pub use effort::{Effort, Unlimited};
pub use elements::{stored_at, values_at};
pub use flat::{FlatPoint, FlatShape};
pub use geohash::{Grid, GridCell};
pub use near::{Centre, Near, NearFailure};
pub use region::{Question, Region};
pub use shape::Shape;
pub use stored::Stored;
pub use vector::Vector;

/// The Earth's radius in metres, for distances on the sphere.
/// Source: MongoDB manual, "Calculate Distances Using Spherical Geometry".
pub const EARTH_RADIUS_METERS: f64 = 6_378_100.0;
