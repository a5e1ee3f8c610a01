//! The compressors, their names and numbers, and the choice of one for a connection.

/// A way to compress frames.
/// Source: MongoDB specifications, "Wire Compression in Drivers", "Compressor IDs".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Compressor {
    /// Snappy's block format.
    Snappy = 1,
    /// Deflate in zlib's wrapper.
    Zlib = 2,
    /// Zstandard.
    Zstd = 3,
}

impl Compressor {
    /// All compressors, the server's default order.
    /// Source: MongoDB manual, `net.compression.compressors`.
    pub const ALL: [Self; 3] = [Self::Snappy, Self::Zstd, Self::Zlib];

    /// The name in `hello`, connection strings and configuration files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Snappy => "snappy",
            Self::Zlib => "zlib",
            Self::Zstd => "zstd",
        }
    }

    /// The compressor of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|compressor| compressor.name() == name)
    }

    /// The number in OP_COMPRESSED.
    pub fn id(self) -> u8 {
        self as u8
    }

    /// The compressor with this number.
    pub(crate) fn from_id(id: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|compressor| compressor.id() == id)
    }

    /// Greatest number of bytes that one compressed byte can stand for, rounded up.
    pub(crate) fn expansion_max(self) -> usize {
        match self {
            // A copy of 64 bytes takes 3.
            Self::Snappy => 22,
            // 258 bytes take two codes of one bit each.
            Self::Zlib => 1032,
            // A block of one repeated byte, at most 128 KiB, takes 4 bytes.
            Self::Zstd => 32 * 1024,
        }
    }
}

/// The compressors that both sides have, in the client's order of preference, for the reply to `hello`: its field
/// `compression` names them, and is missing if there are none. Unknown names are ignored.
/// Source: MongoDB specifications, "Wire Compression in Drivers", "MongoDB Handshake Amendment".
pub fn negotiate<'n>(client_list: impl IntoIterator<Item = &'n str>, ours: &[Compressor]) -> Vec<Compressor> {
    let mut shared = Vec::with_capacity(ours.len());
    for compressor in client_list.into_iter().filter_map(Compressor::from_name) {
        if ours.contains(&compressor) && !shared.contains(&compressor) {
            shared.push(compressor);
        }
    }
    shared
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_lead_back() {
        for compressor in Compressor::ALL {
            assert_eq!(Compressor::from_id(compressor.id()), Some(compressor));
            assert_eq!(Compressor::from_name(compressor.name()), Some(compressor));
        }
        assert_eq!((Compressor::from_id(0), Compressor::from_id(4)), (None, None));
    }

    #[test]
    fn the_clients_order_counts() {
        let client = ["lz4", "zlib", "snappy", "zlib", "Zstd"];
        assert_eq!(negotiate(client, &Compressor::ALL), [Compressor::Zlib, Compressor::Snappy]);
        assert_eq!(negotiate(client, &[Compressor::Zstd, Compressor::Snappy]), [Compressor::Snappy]);
        assert_eq!(negotiate([], &Compressor::ALL), []);
    }
}
