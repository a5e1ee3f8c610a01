//! Sockets: reads frames, runs commands, writes replies.
