//! Compares random `$set`, `$inc` and `$unset` with a naive tree that applies one path after the other.

use bunko_bson::{ArrayBuf, DocumentBuf, Timestamp, Value, ValueRef};
use bunko_operation::OperationContext;
use bunko_update::{ApplyContext, Insertion, Outcome, ParseContext, Update};
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
enum Tree {
    Document(Vec<(String, Tree)>),
    List(Vec<Tree>),
    Number(i32),
    Null,
}

#[derive(Clone, Debug)]
enum Operator {
    Set(Tree),
    Inc(i32),
    Unset,
}

type Modification = (String, Operator);

/// The update is refused.
#[derive(Debug)]
struct Refused;

impl Tree {
    fn value(&self) -> Value {
        match self {
            Self::Document(_) => Value::Document(self.document()),
            Self::List(values) => {
                let mut array = ArrayBuf::new();
                for value in values {
                    array.push(&value.value());
                }
                Value::Array(array)
            }
            Self::Number(number) => Value::Int32(*number),
            Self::Null => Value::Null,
        }
    }

    fn document(&self) -> DocumentBuf {
        let Self::Document(fields) = self else { panic!("not a document") };
        let mut document = DocumentBuf::new();
        for (name, value) in fields {
            document.append(name, &value.value());
        }
        document
    }

    fn modify(&mut self, path: &[&str], operator: &Operator) -> Result<(), Refused> {
        let (name, below) = path.split_first().expect("a path has parts");
        let creates = !matches!(operator, Operator::Unset);
        match self {
            Self::Document(fields) => {
                let Some(position) = fields.iter().position(|(field, _)| field == name) else {
                    if creates {
                        fields.push(((*name).to_owned(), created(below, operator)));
                    }
                    return Ok(());
                };
                match (below.is_empty(), operator) {
                    (true, Operator::Unset) => {
                        fields.remove(position);
                        Ok(())
                    }
                    (true, _) => fields[position].1.replace(operator),
                    (false, _) => fields[position].1.modify(below, operator),
                }
            }
            Self::List(values) if name.parse::<usize>().is_ok() => {
                let index: usize = name.parse().expect("just checked");
                if index >= values.len() {
                    if creates {
                        values.resize(index, Self::Null);
                        values.push(created(below, operator));
                    }
                    return Ok(());
                }
                match (below.is_empty(), operator) {
                    (true, Operator::Unset) => {
                        values[index] = Self::Null;
                        Ok(())
                    }
                    (true, _) => values[index].replace(operator),
                    (false, _) => values[index].modify(below, operator),
                }
            }
            _ if creates => Err(Refused),
            _ => Ok(()),
        }
    }

    fn replace(&mut self, operator: &Operator) -> Result<(), Refused> {
        *self = match (operator, &*self) {
            (Operator::Set(value), _) => value.clone(),
            (Operator::Inc(by), Self::Number(number)) => Self::Number(number + by),
            _ => return Err(Refused),
        };
        Ok(())
    }
}

fn created(below: &[&str], operator: &Operator) -> Tree {
    let leaf = match operator {
        Operator::Set(value) => value.clone(),
        Operator::Inc(by) => Tree::Number(*by),
        Operator::Unset => Tree::Null,
    };
    below.iter().rev().fold(leaf, |tree, name| Tree::Document(vec![((*name).to_owned(), tree)]))
}

/// Applies modifications in path order; numbers come first.
fn apply_naively(document: &Tree, modifications: &[Modification]) -> Result<Tree, Refused> {
    let mut sorted: Vec<&Modification> = modifications.iter().collect();
    sorted.sort_by_key(|(path, _)| {
        path.split('.')
            .map(|part| part.parse::<usize>().map_or((1, 0, part), |number| (0, number, "")))
            .collect::<Vec<_>>()
    });
    let mut tree = document.clone();
    for (path, operator) in sorted {
        tree.modify(&path.split('.').collect::<Vec<_>>(), operator)?;
    }
    Ok(tree)
}

fn conflict(modifications: &[Modification]) -> bool {
    modifications.iter().enumerate().any(|(index, (path, _))| {
        modifications[..index].iter().any(|(other, _)| {
            let (path, other) = (format!("{path}."), format!("{other}."));
            path.starts_with(&other) || other.starts_with(&path)
        })
    })
}

fn update_document(modifications: &[Modification]) -> DocumentBuf {
    let mut operators: BTreeMap<&str, DocumentBuf> = BTreeMap::new();
    for (path, operator) in modifications {
        let (name, argument) = match operator {
            Operator::Set(value) => ("$set", value.value()),
            Operator::Inc(by) => ("$inc", Value::Int32(*by)),
            Operator::Unset => ("$unset", Value::Boolean(true)),
        };
        operators.entry(name).or_default().append(path, &argument);
    }
    let mut update = DocumentBuf::new();
    for (name, paths) in &operators {
        update.append(name, paths);
    }
    update
}

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "0", "1", "3", "10"]).prop_map(str::to_owned)
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![(-9..9).prop_map(Tree::Number), Just(Tree::Null)];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![fields(inner.clone()), prop::collection::vec(inner, 0..4).prop_map(Tree::List)]
    })
}

fn fields(value: impl Strategy<Value = Tree>) -> impl Strategy<Value = Tree> {
    prop::collection::btree_map(name(), value, 0..5)
        .prop_map(|fields| Tree::Document(fields.into_iter().rev().collect()))
}

fn modification() -> impl Strategy<Value = Modification> {
    let path = prop::collection::vec(name(), 1..4).prop_map(|parts| parts.join("."));
    let operator = prop_oneof![tree().prop_map(Operator::Set), (-9..9).prop_map(Operator::Inc), Just(Operator::Unset)];
    (path, operator)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_a_naive_tree(document in fields(tree()), modifications in prop::collection::vec(modification(), 1..5)) {
        let encoded = document.document();
        let update = update_document(&modifications);
        let parsed = Update::parse(ValueRef::Document(update.as_ref()), &ParseContext::plain());
        prop_assert_eq!(parsed.is_err(), conflict(&modifications));
        let Ok(parsed) = parsed else { return Ok(()) };
        let operation = OperationContext::unlimited();
        let context = ApplyContext {
            matched_position: None,
            now_ms: 0,
            timestamp: Timestamp { seconds: 0, increment: 0 },
            insert: Insertion::No,
            operation: &operation,
        };
        let outcome = parsed.apply(encoded.as_ref(), &context);
        match apply_naively(&document, &modifications) {
            Err(Refused) => prop_assert!(outcome.is_err(), "{outcome:?}"),
            Ok(tree) if tree.document() == encoded => prop_assert_eq!(outcome.expect("not refused"), Outcome::Unchanged),
            Ok(tree) => prop_assert_eq!(outcome.expect("not refused"), Outcome::Changed(tree.document())),
        }
    }
}
