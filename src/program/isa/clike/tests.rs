//! Tests of the C-like front end.
