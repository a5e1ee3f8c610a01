//! What tests share: shell-syntax documents, script runner, crash harness.
