//! The kinds of messages, and their numbers.

use std::fmt;

/// The kind of message in a frame.
/// Source: MongoDB wire protocol, "Opcodes" and "Legacy Opcodes".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum OpCode {
    /// OP_REPLY: the answer to OP_QUERY and OP_GET_MORE.
    Reply = 1,
    /// OP_UPDATE: recognised so that it can be refused.
    Update = 2001,
    /// OP_INSERT: recognised so that it can be refused.
    Insert = 2002,
    /// OP_QUERY: a query, or on `<database>.$cmd` a command.
    Query = 2004,
    /// OP_GET_MORE: the next batch of a cursor that OP_QUERY opened.
    GetMore = 2005,
    /// OP_DELETE: recognised so that it can be refused.
    Delete = 2006,
    /// OP_KILL_CURSORS: no reply.
    KillCursors = 2007,
    /// OP_COMPRESSED: any other opcode, compressed.
    Compressed = 2012,
    /// OP_MSG: all that current drivers send.
    Message = 2013,
}

impl OpCode {
    /// The opcode with this number, if there is one.
    #[inline]
    pub fn from_code(code: i32) -> Option<Self> {
        Some(match code {
            1 => Self::Reply,
            2001 => Self::Update,
            2002 => Self::Insert,
            2004 => Self::Query,
            2005 => Self::GetMore,
            2006 => Self::Delete,
            2007 => Self::KillCursors,
            2012 => Self::Compressed,
            2013 => Self::Message,
            _ => return None,
        })
    }

    /// The number on the wire.
    #[inline]
    pub fn code(self) -> i32 {
        self as i32
    }

    /// The protocol's name of the opcode.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reply => "OP_REPLY",
            Self::Update => "OP_UPDATE",
            Self::Insert => "OP_INSERT",
            Self::Query => "OP_QUERY",
            Self::GetMore => "OP_GET_MORE",
            Self::Delete => "OP_DELETE",
            Self::KillCursors => "OP_KILL_CURSORS",
            Self::Compressed => "OP_COMPRESSED",
            Self::Message => "OP_MSG",
        }
    }
}

impl fmt::Display for OpCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
