//! Results that are not a load's.

use super::{Finding, LoopDeviceUse};
use serde::{Deserialize, Serialize};

/// `dbStats` of the scenario's database at the end of a variant; bytes. `None` where the server did not say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StorageRecord {
    /// Index into [`super::Report::targets`].
    pub target: usize,
    /// As [`super::Step::variant`].
    pub variant: Vec<(String, String)>,
    /// From 1.
    pub repetition: u32,
    /// Documents.
    pub objects: Option<f64>,
    /// `dataSize`
    pub data_size: Option<f64>,
    /// `storageSize`
    pub storage_size: Option<f64>,
    /// `indexSize`
    pub index_size: Option<f64>,
    /// `fileSize` (MMAPv1) or what the data directory takes on disk, where it can be seen.
    pub file_size: Option<f64>,
    /// What the documents come to at the ratio by which the scenario says that they compress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live_size: Option<f64>,
    /// What others published for the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<StorageReference>,
}

/// Published sizes, in bytes, of the engine whose role the target's plays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StorageReference {
    /// System and engine, in a few words.
    pub source: String,
    /// Documents per second of the load.
    pub documents_per_second: f64,
    /// Documents.
    pub objects: f64,
    /// `dataSize`
    pub data_size: f64,
    /// `storageSize`
    pub storage_size: f64,
    /// `indexSize`
    pub index_size: f64,
    /// `fileSize`, which only MMAPv1 has.
    pub file_size: Option<f64>,
}

/// How long one file's allocation took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AllocationRecord {
    /// Where.
    pub directory: String,
    /// Its filesystem, as the kernel names it.
    pub filesystem: String,
    /// `fallocate`, `zero-fill`, `recycle`
    pub method: String,
    /// The file's size in bytes.
    pub bytes: u64,
    /// One entry per repetition, until the file has its size.
    pub seconds: Vec<f64>,
    /// One entry per repetition: `fdatasync` after it.
    pub sync_seconds: Vec<f64>,
    /// Why there are no figures, such as "fallocate: Operation not supported".
    pub refused: Option<String>,
    /// The loop device that the files lay on, and its use over all repetitions; `None` elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loop_device: Option<LoopDeviceUse>,
}

impl AllocationRecord {
    /// The findings on its figures; none where it has no figures.
    pub fn findings(&self) -> Vec<Finding> {
        let few = Finding::of_runs(self.seconds.len());
        let on_loop = self.loop_device.clone().filter(|_| !self.seconds.is_empty()).map(Finding::LoopDevice);
        few.into_iter().chain(on_loop).collect()
    }
}
