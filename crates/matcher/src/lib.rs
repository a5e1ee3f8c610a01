//! Query filters: parsed once, matched against raw documents.
