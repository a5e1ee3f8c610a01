//! Runs the scripts: pipelines over documents in shell syntax, and the split for the planner.

use bunko_aggregate::{Access, DocumentStream, Documents, Environment, Flow, Pipeline, SourceName, Sources};
use bunko_bson::{ArrayRef, DocumentBuf, StringOrder, ValueRef};
use bunko_errors::Failure;
use bunko_operation::OperationContext;
use bunko_query::QueryScope;
use bunko_testkit::{script, shell};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Other collections by name.
#[derive(Debug, Default)]
pub struct Collections(pub BTreeMap<String, Vec<DocumentBuf>>);

impl Sources for Collections {
    fn note(&self, _: &SourceName, _: &StringOrder) -> Result<(), Failure> {
        Ok(())
    }

    fn open(
        &self,
        source: &SourceName,
        pipeline: ArrayRef<'_>,
        environment: &Environment,
    ) -> Result<Box<dyn DocumentStream>, Failure> {
        let documents = self.0.get(&source.collection).cloned().unwrap_or_default();
        Ok(Pipeline::parse_extended(pipeline, environment.clone())?.open(Box::new(Documents::new(documents))))
    }

    fn access(&self, _: &SourceName, _: &str, _: &StringOrder) -> Access {
        Access::Scan
    }
}

fn document(line: &str) -> DocumentBuf {
    shell::parse_document(line).unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn pipeline(line: &str, collections: Collections) -> Result<Pipeline, Failure> {
    let source = shell::parse_value(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    let stages = source.as_ref().as_array().expect("a pipeline is an array");
    let environment = Environment::new(Arc::new(QueryScope::new(0, OperationContext::unlimited())));
    Pipeline::parse(stages, environment.with_sources(Arc::new(collections)))
}

/// Runs a pipeline from the first line over the documents of the other lines; lines with `@` and a name start the
/// documents of other collections. Results by pulling and by visiting must agree.
fn run(input: &str) -> Result<String, Failure> {
    let mut lines = input.lines();
    let first = lines.next().expect("a pipeline");
    let (mut source, mut collections) = (Vec::new(), Collections::default());
    for line in lines {
        match line.strip_prefix('@').and_then(|line| line.split_once(' ')) {
            Some((name, line)) => collections.0.entry(name.to_owned()).or_default().push(document(line)),
            None => source.push(document(line)),
        }
    }
    let pipeline = pipeline(first, collections)?;
    let mut visited = Vec::new();
    let mut stream = pipeline.open(Box::new(Documents::new(source.clone())));
    stream.visit(&mut |document| {
        visited.push(shell::print(ValueRef::Document(document)));
        Ok(Flow::More)
    })?;
    let mut stream: Box<dyn DocumentStream> = pipeline.open(Box::new(Documents::new(source)));
    let mut pulled = Vec::new();
    while let Some(document) = stream.next()? {
        pulled.push(shell::print(ValueRef::from(&document)));
    }
    assert_eq!(pulled, visited, "{input}");
    // An empty output would end the case too early.
    Ok(if pulled.is_empty() { "no documents".to_owned() } else { pulled.join("\n") })
}

/// Prints the planner's part, the remaining stages, and the fields that the pipeline depends on.
fn split(input: &str) -> Result<String, Failure> {
    let dependencies = pipeline(input, Collections::default())?.dependencies();
    let (part, rest) = pipeline(input, Collections::default())?.split_for_planner();
    let filters: Vec<_> = part.filters.iter().map(|filter| shell::print(ValueRef::from(filter))).collect();
    let sort: Vec<_> = part.sort.iter().flat_map(|sort| sort.parts().map(|(path, _)| path.dotted())).collect();
    let left: Vec<_> = rest.stages().map(bunko_aggregate::Stage::name).collect();
    Ok(format!(
        "filters: [{}]\nsort: {sort:?} skip: {} limit: {:?} projection: {}\nleft: {left:?}\ndepends on: {dependencies:?}",
        filters.join(", "),
        part.skip,
        part.limit,
        part.projection.map_or_else(|| "none".to_owned(), |projection| shell::print(ValueRef::from(&projection.sent)))
    ))
}

#[test]
fn scripts() {
    script::run("tests/scripts", |case| {
        let input = case.input.trim_end();
        let result = if case.directive == "split" { split(input) } else { run(input) };
        result.unwrap_or_else(|error| format!("error {} {}", error.code().0, error.message())) + "\n"
    });
}
