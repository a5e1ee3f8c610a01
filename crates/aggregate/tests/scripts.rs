//! Runs the scripts: pipelines over documents in shell syntax, and what the planner takes of them.

use bunko_aggregate::{DocumentStream, Documents, Environment, Flow, Pipeline};
use bunko_bson::{DocumentBuf, ValueRef};
use bunko_errors::Failure;
use bunko_operation::OperationContext;
use bunko_query::QueryScope;
use bunko_testkit::{script, shell};
use std::sync::Arc;

fn document(line: &str) -> DocumentBuf {
    shell::parse_document(line).unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn pipeline(line: &str) -> Result<Pipeline, Failure> {
    let source = shell::parse_value(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    let stages = source.as_ref().as_array().expect("a pipeline is an array");
    Pipeline::parse(stages, Environment::new(Arc::new(QueryScope::new(0, OperationContext::unlimited()))))
}

/// First line a pipeline, the others its documents. Pulled and visited, which must agree.
fn run(input: &str) -> Result<String, Failure> {
    let mut lines = input.lines();
    let pipeline = pipeline(lines.next().expect("a pipeline"))?;
    let source: Vec<_> = lines.map(document).collect();
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
    // An empty output would end a case before it began.
    Ok(if pulled.is_empty() { "no documents".to_owned() } else { pulled.join("\n") })
}

/// What the planner takes, what is left, and the fields that the whole depends on.
fn split(input: &str) -> Result<String, Failure> {
    let dependencies = pipeline(input)?.dependencies();
    let (part, rest) = pipeline(input)?.split_for_planner();
    let filters: Vec<_> = part.filters.iter().map(|filter| shell::print(ValueRef::from(filter))).collect();
    let sort: Vec<_> = part.sort.iter().flat_map(|sort| sort.parts().map(|(path, _)| path.dotted())).collect();
    let left: Vec<_> = rest.stages().map(bunko_aggregate::Stage::name).collect();
    Ok(format!(
        "filters: [{}]\nsort: {sort:?} skip: {} limit: {:?}\nleft: {left:?}\ndepends on: {dependencies:?}",
        filters.join(", "),
        part.skip,
        part.limit
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
