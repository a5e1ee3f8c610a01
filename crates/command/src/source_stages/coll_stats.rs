//! `$collStats`: what `collStats` says, and how long operations on the collection took.

use super::{SourceStage, Subject};
use crate::collection_statistics::{CollectionStatistics, smallest_integer};
use crate::fields::Fields;
use crate::invocation::Invocation;
use crate::operation_class::OperationClass;
use crate::statistics_scale::scale;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, Writer};
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure, Result};

pub(super) const STAGE: SourceStage = SourceStage { name: "$collStats", subject: Subject::Collection, documents };

fn documents(
    invocation: &Invocation<'_>,
    namespace: &Namespace,
    specification: ValueRef<'_>,
) -> Result<Vec<DocumentBuf>> {
    let Some(body) = specification.as_document() else {
        let kind = specification.kind().alias();
        let message = format!("$collStats must take a nested object but found a value of type {kind}");
        return Err(Failure::new(ErrorCode(5_447_000), message));
    };
    let asked = Fields::new("$collStats", body);
    check_fields(&asked, &["latencyStats", "storageStats", "count", "queryExecStats"])?;
    let mut described = Vec::new();
    let mut writer = Writer::new(&mut described);
    writer
        .append("ns", namespace.as_str())
        .append("host", invocation.service.facts.host.as_str())
        .append("localTime", ValueRef::DateTime(invocation.service.world.now_ms()));
    if let Some(options) = asked.document("latencyStats")? {
        write_latencies(&mut writer, invocation, namespace, options)?;
    }
    if let Some(options) = asked.document("storageStats")? {
        write_storage(&mut writer, invocation, namespace, options)?;
    }
    if let Some(options) = asked.document("count")? {
        if !options.is_empty() {
            return Err(Failure::new(ErrorCode(31170), "the count option of $collStats takes an empty document"));
        }
        let collection = invocation.collection_not_view(namespace)?.ok_or_else(|| {
            let message = format!(
                "Unable to retrieve count in $collStats stage :: caused by :: Collection [{namespace}] not found."
            );
            Failure::new(ErrorCode::NAMESPACE_NOT_FOUND, message)
        })?;
        writer.append("count", smallest_integer(collection.count()));
    }
    if asked.document("queryExecStats")?.is_some() {
        return Err(asked.unsupported("queryExecStats"));
    }
    writer.end();
    Ok(vec![DocumentBuf::from_trusted(described)])
}

fn check_fields(fields: &Fields<'_>, known: &[&str]) -> Result<()> {
    match fields.body.iter().find(|field| !known.contains(&field.name)) {
        None => Ok(()),
        Some(field) => Err(Failure::new(
            ErrorCode::IDL_UNKNOWN_FIELD,
            format!("BSON field '{}.{}' is an unknown field.", fields.command, field.name),
        )),
    }
}

fn write_latencies(
    writer: &mut Writer<'_>,
    invocation: &Invocation<'_>,
    namespace: &Namespace,
    options: DocumentRef<'_>,
) -> Result<()> {
    let fields = Fields::new("$collStats.latencyStats", options);
    check_fields(&fields, &["histograms"])?;
    if fields.strict_boolean("histograms", false)? {
        return Err(fields.unsupported("histograms"));
    }
    let usage = invocation.service.counters.namespaces().remove(namespace.as_str()).unwrap_or_default();
    writer.begin_document("latencyStats");
    for (class, name) in
        [(OperationClass::Read, "reads"), (OperationClass::Write, "writes"), (OperationClass::Command, "commands")]
    {
        let latency = usage.class(class);
        writer
            .begin_document(name)
            .append("latency", latency.micros as i64)
            .append("ops", latency.operations as i64)
            .end();
    }
    writer.end();
    Ok(())
}

fn write_storage(
    writer: &mut Writer<'_>,
    invocation: &Invocation<'_>,
    namespace: &Namespace,
    options: DocumentRef<'_>,
) -> Result<()> {
    let fields = Fields::new("$collStats.storageStats", options);
    let scale = scale(&fields)?;
    writer.begin_document("storageStats");
    let collection = invocation.collection_not_view(namespace)?.ok_or_else(|| {
        let message = format!(
            "Unable to retrieve storageStats in $collStats stage :: caused by :: Collection [{namespace}] not found."
        );
        Failure::new(ErrorCode::NAMESPACE_NOT_FOUND, message)
    })?;
    CollectionStatistics::of(&collection).write(writer, scale);
    writer.end();
    Ok(())
}
