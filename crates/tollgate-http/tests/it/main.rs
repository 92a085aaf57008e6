//! The middlewares at their public face.

#![cfg(test)]

mod actix;
mod answers;
mod bypass;
mod cases;
mod examples;
mod grpc;
mod harness;
mod headers;
mod held;
mod keys;
mod properties;
mod requests;
mod services;
mod stores;
