//! The fields of a command that belong to its query shape.

/// How a field contributes to the shape.
#[derive(Clone, Copy)]
pub enum ShapePart {
    /// By its value.
    Exact,
    /// As an expression, or a document of expressions.
    Expressions,
    /// As a filter.
    Filter,
    /// By whether it counts as true.
    Flag,
    /// As a pipeline.
    Pipeline,
    /// As a projection.
    Projection,
    /// By its type.
    Value,
    /// By the fields and types of its values.
    Values,
}
