//! MongoDB wire protocol frames: OP_MSG, OP_COMPRESSED and the legacy opcodes.
