//! Compression of a dump.

use bunko_archive::compression::Compression;
use clap::Args;

/// zstd's own default.
const ZSTD_LEVEL: &str = "3";

/// The flags for compression, of which at most one may be given.
#[derive(Args)]
#[command(next_help_heading = "Compression")]
#[group(multiple = false)]
pub struct CompressionArguments {
    /// Compress with gzip, in members that classic tools read one after another
    #[arg(long)]
    gzip: bool,
    /// Compress with zstd, in frames that can be read one without the others; LEVEL is 1 to 22
    #[arg(long, value_name = "LEVEL", num_args = 0..=1, require_equals = true, default_missing_value = ZSTD_LEVEL, value_parser = clap::value_parser!(i32).range(1..=22))]
    zstd: Option<i32>,
    /// Compress with lz4, in frames that can be read one without the others
    #[arg(long)]
    lz4: bool,
}

impl CompressionArguments {
    /// The chosen compression.
    pub fn get(&self) -> Compression {
        match self {
            Self { zstd: Some(level), .. } => Compression::Zstd { level: *level },
            Self { gzip: true, .. } => Compression::Gzip,
            Self { lz4: true, .. } => Compression::Lz4,
            _ => Compression::None,
        }
    }
}
