//! What Tollgate is tested against: call traces with their right answers, and a literal model that
//! gives those answers from the definitions alone.
//!
//! Depends on nothing of Tollgate's, so that it can bear witness.

mod config;
mod model;
mod random;
mod trace;

pub use config::{Algorithm, Anchor, Config};
pub use model::Model;
pub use random::Random;
pub use trace::{Answer, Call, Trace, TraceError, traces_below};

use std::path::PathBuf;

/// The traces that come with this crate: `worked`, `random` and `store`.
#[must_use]
pub fn traces_dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("traces")
}
