//! Spans of operations, and their way to a collector of OpenTelemetry.
//!
//! A thread that ends an operation puts a [`Span`] into the [`SpanQueue`]. One thread, the [`Exporter`], takes batches from
//! the queue and posts them to the collector: OTLP over HTTP, in the binary encoding of Protocol Buffers.
//!
//! **Invariant:** no operation waits for the collector. The queue takes at most [`SPANS_MAX`] spans; further ones are
//! dropped and counted.
//!
//! **Invariant:** a span has no values of queries and documents, so a collector learns no more than names, counts and
//! durations.
//! Source: OpenTelemetry Protocol specification 1.9, "OTLP/HTTP"; `opentelemetry/proto/trace/v1/trace.proto`.
#![forbid(unsafe_code)]

mod backoff;
mod encoding;
mod endpoint;
mod exporter;
mod http;
mod operation_trace;
mod protobuf;
mod queue;
mod response;
mod span;
mod trace_parent;

pub use endpoint::Endpoint;
pub use exporter::{Exporter, ExporterOptions};
pub use operation_trace::OperationTrace;
pub use queue::{SPANS_MAX, SpanCounts, SpanQueue};
pub use span::{Attribute, AttributeValue, Span, SpanContext, SpanKind};
pub use trace_parent::TraceParent;
