//! The flag words of the opcodes that have one.

/// A flag word as sent: unknown bits are kept, named bits are tested.
macro_rules! flag_word {
    ($(#[$about:meta])* $name:ident { $($(#[$bit_about:meta])* $flag:ident = $bit:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name(pub u32);

        impl $name {
            /// No flags.
            pub const NONE: Self = Self(0);
            $($(#[$bit_about])* pub const $flag: Self = Self(1 << $bit);)*

            /// Whether all of `flags` are set.
            #[inline]
            pub const fn contains(self, flags: Self) -> bool {
                self.0 & flags.0 == flags.0
            }

            /// Both flag words' bits.
            #[must_use]
            pub const fn with(self, flags: Self) -> Self {
                Self(self.0 | flags.0)
            }
        }
    };
}

flag_word! {
    /// Flags of OP_MSG. Bits 0 to 15 must be understood by the receiver, bits 16 to 31 may be ignored.
    /// Source: MongoDB wire protocol, "OP_MSG", "Flag Bits".
    MessageFlags {
        /// The frame ends with a CRC-32C of all bytes before it.
        CHECKSUM_PRESENT = 0,
        /// The sender goes on without waiting: a request that wants no reply, or a reply that another one follows.
        MORE_TO_COME = 1,
        /// The client is ready for several replies to this request.
        EXHAUST_ALLOWED = 16,
    }
}

flag_word! {
    /// Flags of OP_QUERY.
    /// Source: MongoDB wire protocol, "OP_QUERY".
    QueryFlags {
        /// The cursor stays open at a capped collection's end.
        TAILABLE_CURSOR = 1,
        /// A secondary may answer.
        SECONDARY_OK = 2,
        /// Ignored by servers since 4.4.
        OPLOG_REPLAY = 3,
        /// The cursor does not time out while idle.
        NO_CURSOR_TIMEOUT = 4,
        /// With a tailable cursor: wait a while for data before an empty batch.
        AWAIT_DATA = 5,
        /// Send all batches without being asked for more.
        EXHAUST = 6,
        /// Shards that are down do not fail the query.
        PARTIAL = 7,
    }
}

flag_word! {
    /// Flags of OP_REPLY.
    /// Source: MongoDB wire protocol, "OP_REPLY".
    ReplyFlags {
        /// OP_GET_MORE named a cursor that does not exist (any more).
        CURSOR_NOT_FOUND = 0,
        /// The one document returned is an error with a `$err` field.
        QUERY_FAILURE = 1,
        /// The server honours [`QueryFlags::AWAIT_DATA`]; every server since 1.6 says so.
        AWAIT_CAPABLE = 3,
    }
}
