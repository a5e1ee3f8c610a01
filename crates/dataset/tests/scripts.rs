//! Runs the scripts in `tests/scripts`, which pin the results of seeds. A changed answer makes figures of different
//! versions incomparable.
//!
//! Each line of input is `option: value`; missing options have the values of [`Options::new`].
//! Directive `documents`: the first `show` documents in the order of insertion, with their size.
//! Directive `ids`: their `_id`s alone.
//! Directive `keys`: the first `show` keys of a stream.
//! Directive `verify`: a generated document in which `set: {...}` replaces or adds fields and `unset: name` removes
//! one, compared with the original.

use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_dataset::{Compressible, Dataset, DatasetOptions, Distribution, KeyOrder, KeyStream};
use bunko_testkit::{script, shell};

struct Options {
    dataset: DatasetOptions,
    distribution: Distribution,
    stream: u64,
    keys: u64,
    show: u64,
    index: u64,
    set: DocumentBuf,
    unset: String,
    except: String,
}

impl Options {
    fn new() -> Self {
        let dataset = DatasetOptions {
            seed: 7,
            shape: "plain".to_owned(),
            documents: 1_000,
            document_bytes: None,
            compressible: Compressible::default(),
            key_order: KeyOrder::Ascending,
            id: None,
        };
        let (unset, except) = (String::new(), String::new());
        let distribution = Distribution::Uniform;
        Self {
            dataset,
            distribution,
            stream: 0,
            keys: 1_000,
            show: 3,
            index: 0,
            set: DocumentBuf::new(),
            unset,
            except,
        }
    }

    fn parse(input: &str) -> Self {
        let mut options = Self::new();
        for line in input.lines() {
            let (name, value) = line.split_once(": ").unwrap_or_else(|| panic!("no option: {line}"));
            options.set(name, value);
        }
        options
    }

    fn set(&mut self, name: &str, value: &str) {
        let number = || value.parse::<u64>().unwrap_or_else(|error| panic!("{name}: {value}: {error}"));
        match name {
            "seed" => self.dataset.seed = number(),
            "shape" => value.clone_into(&mut self.dataset.shape),
            "documents" => self.dataset.documents = number(),
            "document_bytes" => self.dataset.document_bytes = Some(number() as usize),
            "compressible" => self.dataset.compressible = value.parse().expect("a ratio"),
            "key_order" => self.dataset.key_order = value.parse().expect("a key order"),
            "id" => self.dataset.id = Some(value.parse().expect("a kind of _id")),
            "distribution" => self.distribution = value.parse().expect("a distribution"),
            "stream" => self.stream = number(),
            "keys" => self.keys = number(),
            "show" => self.show = number(),
            "index" => self.index = number(),
            "set" => self.set = shell::parse_document(value).expect("a document"),
            "unset" => value.clone_into(&mut self.unset),
            "except" => value.clone_into(&mut self.except),
            other => panic!("unknown option {other}"),
        }
    }

    fn dataset(&self) -> Dataset {
        Dataset::new(&self.dataset).unwrap_or_else(|error| panic!("{error}"))
    }
}

fn documents(options: &Options) -> String {
    let dataset = options.dataset();
    let lines = (0..options.show).map(|index| {
        let mut encoded = Vec::new();
        dataset.write(index, &mut encoded);
        let document = DocumentRef::parse(&encoded).expect("well formed");
        format!("{} bytes: {}", encoded.len(), shell::print(ValueRef::Document(document)))
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn ids(options: &Options) -> String {
    let dataset = options.dataset();
    let lines = (0..options.show).map(|index| shell::print(dataset.id(index).as_value()));
    lines.collect::<Vec<_>>().join("\n")
}

fn keys(options: &Options) -> String {
    let mut stream = KeyStream::new(options.distribution, options.dataset.seed, options.stream);
    let keys = (0..options.show).map(|_| stream.next(options.keys).to_string());
    keys.collect::<Vec<_>>().join(" ")
}

fn verify(options: &Options) -> String {
    let dataset = options.dataset();
    let mut encoded = Vec::new();
    dataset.write(options.index, &mut encoded);
    let mut stored = DocumentBuf::new();
    for element in DocumentRef::trusted(&encoded).iter().filter(|element| element.name != options.unset) {
        stored.append(element.name, options.set.as_ref().get(element.name).unwrap_or(element.value));
    }
    for element in options.set.as_ref() {
        if stored.as_ref().get(element.name).is_none() {
            stored.append(element.name, element.value);
        }
    }
    let except: Vec<&str> = options.except.split(' ').collect();
    dataset.verify(options.index, stored.as_ref(), &except).map_or_else(|error| error, |()| "same".to_owned())
}

#[test]
fn scripts() {
    script::run("tests/scripts", |case| {
        let options = Options::parse(&case.input);
        match case.directive.as_str() {
            "documents" => documents(&options),
            "ids" => ids(&options),
            "keys" => keys(&options),
            "verify" => verify(&options),
            other => panic!("unknown directive {other}"),
        }
    });
}
