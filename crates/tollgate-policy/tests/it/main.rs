//! The policy at its public face.

#![cfg(test)]

mod addresses;
mod files;
mod gate;
mod keys;
mod paths;
mod plans;
mod reloads;
mod request;
mod rules;
