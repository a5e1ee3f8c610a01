//! Results besides those of a load.

use super::{Finding, LoopDeviceUse};
use serde::{Deserialize, Serialize};

/// `dbStats` of the scenario's database at the end of a variant, in bytes. `None` for values that the server did not
/// report.
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
    /// `fileSize` (MMAPv1), or the size of the data directory on disk, if the lab can see it.
    pub file_size: Option<f64>,
    /// Size of the documents at the compression ratio that the scenario declares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live_size: Option<f64>,
    /// Published sizes for the same data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<StorageReference>,
}

/// Published sizes, in bytes, of the corresponding engine.
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

/// Time of allocating one file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AllocationRecord {
    /// Directory of the file.
    pub directory: String,
    /// Its filesystem, as the kernel names it.
    pub filesystem: String,
    /// `fallocate`, `zero-fill`, `recycle`
    pub method: String,
    /// The file's size in bytes.
    pub bytes: u64,
    /// Seconds until the file has its size, one entry per repetition.
    pub seconds: Vec<f64>,
    /// Seconds of the `fdatasync` after it, one entry per repetition.
    pub sync_seconds: Vec<f64>,
    /// The reason why there are no figures, such as "fallocate: Operation not supported".
    pub refused: Option<String>,
    /// The loop device below the files, and its use over all repetitions; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loop_device: Option<LoopDeviceUse>,
}

impl AllocationRecord {
    /// The findings on its figures; empty without figures.
    pub fn findings(&self) -> Vec<Finding> {
        let few = Finding::of_runs(self.seconds.len());
        let on_loop = self.loop_device.clone().filter(|_| !self.seconds.is_empty()).map(Finding::LoopDevice);
        few.into_iter().chain(on_loop).collect()
    }
}
