//! Instruction tables: syntax, documentation and lowering to micro-ops, one folder per dialect.
