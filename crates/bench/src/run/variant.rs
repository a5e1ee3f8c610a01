//! One variant on one target: its database, its connections, the state of its data.

use super::archive::Archive;
use super::workers::{Rendezvous, WorkerPosition, server_time};
use super::{Plan, Round, RunOptions, durability};
use crate::BenchError;
use crate::clock;
use crate::database::{self, Collections};
use crate::operation::Share;
use crate::reference;
use crate::server::{Probe, ServerDescription, SetProbe};
use crate::target::OpenTarget;
use bunko_bson::number;
use bunko_client::{Connection, Host, ReadPreference, Uri, WriteConcern};
use bunko_dataset::{Compressible, Dataset};
use bunko_report::result::{StorageRecord, TargetRecord, Transport};
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub(super) struct Session<'t> {
    pub target: OpenTarget<'t>,
    pub uri: Uri,
    pub control: Connection,
    pub probe: Probe,
    /// The members of the server's replica set, if it has others.
    pub set: Option<SetProbe>,
    pub role: DataRole,
    pub dataset: Arc<Dataset>,
    pub collections: Collections,
    pub indexes: Vec<String>,
    pub seed: u64,
    pub place: Round,
    pub write_concern: WriteConcern,
    pub data: DataState,
    /// Requests per second that phases reached in this repetition, by name.
    pub reached: HashMap<String, f64>,
    pub share: Share,
    pub rendezvous: Option<Rendezvous>,
    pub stop: Arc<AtomicBool>,
    pub server: ServerDescription,
    /// The last dump.
    pub archive: Option<Archive>,
    /// Directory where dumps are made.
    pub archive_directory: PathBuf,
    compressible: Compressible,
    experiment: Option<String>,
    pid: Option<u32>,
    label: String,
    variant: Vec<(String, String)>,
}

/// Which generator makes, checks and drops the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DataRole {
    /// This generator.
    Owner,
    /// The first of several generators; this one is another.
    Guest,
}

/// Contents of the collection.
#[derive(Default)]
pub(super) struct DataState {
    /// Number of documents, from the dataset's first on, that all exist.
    pub base: u64,
    /// Beyond `base`, numbers of this generator's share that were taken.
    pub issued: u64,
    /// Beyond `base`, documents of this generator's share that all exist.
    pub own: u64,
    /// Expected number of documents, according to acknowledgements.
    pub expected: u64,
    /// Top-level fields that no longer have the dataset's values.
    pub changed: BTreeSet<String>,
    /// Whether the collection exists.
    pub exists: bool,
}

impl<'t> Session<'t> {
    pub fn begin(
        plan: &Plan,
        target: OpenTarget<'t>,
        options: &RunOptions,
        place: Round,
        label: &str,
    ) -> Result<Self, BenchError> {
        let uri: Uri = target.uri.parse()?;
        if uri.read_preference != ReadPreference::Primary {
            let detail = format!("readPreference={}: the lab writes, so it measures the primary", uri.read_preference);
            return Err(BenchError::Option { name: "uri", detail });
        }
        let mut control = Connection::connect(&uri)?;
        let mut rendezvous = match options.worker.filter(|worker| worker.count > 1) {
            Some(worker) => Some(Rendezvous::open(&mut control, worker)?),
            None => None,
        };
        let role = match options.worker {
            Some(WorkerPosition { index: 1.., .. }) => DataRole::Guest,
            _ => DataRole::Owner,
        };
        if role == DataRole::Owner {
            database::create(&mut control, options.existing)?;
        }
        if let Some(rendezvous) = &mut rendezvous {
            rendezvous.meet(&mut control, &options.stop)?;
        }
        let server = ServerDescription::read(&mut control);
        let pid = match (&target.running, control.host()) {
            (Some(running), _) => Some(running.pid),
            (None, Host::Tcp { name, port }) => bunko_host::local_server(name, *port, server.pid),
            (None, Host::Unix(path)) => bunko_host::local_unix_server(path, server.pid),
        };
        let data_directory = data_directory(&target, &server, pid);
        let probe = Probe::new(control.open_another()?, pid, data_directory);
        let set = SetProbe::open(&uri, &mut control);
        let of_scenario = plan.common_write_concern();
        let write_concern = of_scenario.or_else(|| uri.write_concern.clone()).unwrap_or_default();
        let worker = options.worker.unwrap_or(WorkerPosition { index: 0, count: 1 });
        let dataset = super::settled::dataset(&plan.scenario);
        let dataset = dataset.map_err(|detail| BenchError::Option { name: "set", detail })?;
        Ok(Self {
            collections: Collections::new(plan.scenario.dataset.collections, dataset.documents()),
            dataset,
            archive: None,
            archive_directory: options.archive_directory.clone(),
            indexes: plan.scenario.dataset.indexes.clone(),
            compressible: plan.scenario.dataset.compressible,
            experiment: plan.scenario.experiment.clone(),
            seed: plan.scenario.seed,
            share: Share { index: worker.index.into(), count: worker.count.into() },
            variant: plan.variant.clone(),
            stop: Arc::clone(&options.stop),
            label: label.to_owned(),
            data: DataState::default(),
            reached: HashMap::new(),
            target,
            uri,
            control,
            probe,
            set,
            role,
            place,
            write_concern,
            rendezvous,
            server,
            pid,
        })
    }

    /// Waits for the other generators, if there are any.
    pub fn meet(&mut self) -> Result<(), BenchError> {
        self.sum(0).map(|_| ())
    }

    /// As [`Self::meet`]; returns the sum of all generators' numbers.
    pub fn sum(&mut self, mine: u64) -> Result<u64, BenchError> {
        match &mut self.rendezvous {
            Some(rendezvous) => rendezvous.sum(&mut self.control, &self.stop, mine),
            None => Ok(mine),
        }
    }

    /// The report's description of the server, whose members are told unless the variants differ in them.
    pub fn target_record(&self, swept: &[(String, String)]) -> TargetRecord {
        let directory = self.probe.data_directory();
        let label = match (self.label.as_str(), &self.target.running) {
            ("", Some(_)) => "embedded".to_owned(),
            ("", None) => self.uri.address(),
            (label, _) => label.to_owned(),
        };
        let mut settings = match &self.target.running {
            Some(running) => running.settings.clone(),
            None => self.server.settings.clone(),
        };
        if let Some(set) = self.set.as_ref().filter(|_| !swept.iter().any(|(setting, _)| setting == "server.members")) {
            settings.push(("members".to_owned(), set.states()));
        }
        TargetRecord {
            label,
            address: self.uri.address(),
            // Each variant adds its own transport.
            transports: Vec::new(),
            embedded: self.target.running.is_some(),
            local: self.pid.is_some(),
            version: self.server.version.clone(),
            storage_engine: self.server.storage_engine.clone(),
            durability: durability::statement(&self.server, &self.write_concern),
            settings,
            data_directory: directory.map(|directory| directory.display().to_string()),
            filesystem: directory.and_then(|directory| bunko_host::filesystem_of(directory)).map(|found| found.kind),
        }
    }

    /// Transport of the control connection.
    pub fn transport(&self) -> Transport {
        match (self.control.host(), &self.uri.tls) {
            (Host::Unix(_), _) => Transport::Unix,
            (Host::Tcp { .. }, Some(_)) => Transport::Tls,
            (Host::Tcp { .. }, None) => Transport::Tcp,
        }
    }

    /// Size of the documents in bytes, divided by their compression ratio; `None` for constant padding, which has no
    /// ratio.
    pub fn live_bytes(&self) -> Option<f64> {
        let bytes = self.data.expected as f64 * self.dataset.document_bytes() as f64;
        match self.compressible {
            Compressible::Constant => None,
            Compressible::Ratio(ratio) => Some(bytes / ratio),
        }
    }

    /// Size of the data on the server.
    pub fn storage_record(&mut self) -> StorageRecord {
        let statistics = database::statistics(&mut self.control);
        let number = |name: &str| statistics.as_ref().get(name).and_then(number::as_f64);
        let on_disk = self.probe.data_directory().map(|directory| bunko_host::directory_bytes(directory) as f64);
        StorageRecord {
            target: self.place.target,
            variant: self.variant.clone(),
            repetition: self.place.repetition,
            objects: number("objects"),
            data_size: number("dataSize"),
            storage_size: number("storageSize"),
            index_size: number("indexSize"),
            file_size: number("fileSize").or(on_disk),
            live_size: self.live_bytes(),
            reference: reference::storage(self.experiment.as_deref(), self.server.storage_engine.as_deref()),
        }
    }

    /// This machine's clock minus the server's, in milliseconds, measured at the middle of the shortest of nine round
    /// trips.
    pub fn clock_offset_ms(&mut self) -> Result<f64, BenchError> {
        let mut best: Option<(f64, f64)> = None;
        for _ in 0..9 {
            let (began, wall) = (clock::now(), clock::MACHINE.since_1970());
            let server = server_time(&mut self.control)?;
            let round_trip = clock::since(began).as_secs_f64() * 1e3;
            let here = wall.as_secs_f64() * 1e3 + round_trip / 2.0;
            if best.is_none_or(|(shortest, _)| round_trip < shortest) {
                best = Some((round_trip, here - server as f64));
            }
        }
        Ok(best.map_or(0.0, |(_, offset)| offset))
    }

    /// Renews everything that refers to the server's process after a restart.
    pub fn reconnect(&mut self) -> Result<(), BenchError> {
        self.uri = self.target.uri.parse()?;
        self.control = Connection::connect(&self.uri)?;
        self.pid = self.target.running.as_ref().map(|running| running.pid);
        let data_directory = data_directory(&self.target, &self.server, self.pid);
        self.probe = Probe::new(self.control.open_another()?, self.pid, data_directory);
        Ok(())
    }

    /// Drops the database.
    pub fn end(mut self) -> Result<(), BenchError> {
        if let Some(rendezvous) = self.rendezvous.take() {
            rendezvous.close(&mut self.control, &self.stop)?;
        }
        match self.role {
            DataRole::Owner => database::drop(&mut self.control),
            DataRole::Guest => Ok(()),
        }
    }
}

/// Data directory of a local server.
fn data_directory(target: &OpenTarget<'_>, server: &ServerDescription, pid: Option<u32>) -> Option<PathBuf> {
    match (&target.running, pid) {
        (Some(running), _) => Some(running.data_directory.clone()),
        (None, Some(_)) => server.data_directory.clone().filter(|directory| directory.is_dir()),
        (None, None) => None,
    }
}
