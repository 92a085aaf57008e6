//! The library at its public face, with time as an argument.

#![cfg(test)]

mod allocations;
mod bounds;
mod cases;
mod harness;
mod interleavings;
mod properties;
mod refunds;
mod snapshots;
mod threads;
mod together;
mod traces;
