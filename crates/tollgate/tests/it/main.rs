//! The library at its public face, with time as an argument.

#![cfg(test)]

mod allocations;
mod bounds;
mod cases;
mod changes;
mod each_limit;
mod either;
mod field_bucket;
mod field_changes;
mod field_together;
mod field_waits;
mod field_windows;
mod full;
mod harness;
mod interleavings;
mod observed;
mod plans;
mod properties;
mod refunds;
mod snapshots;
mod threads;
mod together;
mod traces;
