//! What Tollgate is tested against: call traces with their right answers, and a literal model that
//! gives those answers from the definitions alone.
//!
//! The model is slow, sweeps every client on every call, and shares neither code nor arithmetic
//! with the library: this crate does not depend on it, so that the two can bear witness against
//! each other. The rules that both follow are in `traces/README.md`.
//!
//! ```
//! use tollgate_testkit::{Answer, Model, Trace};
//!
//! let trace = Trace::parse(
//!     r#"{"name": "one a second, two at once",
//!         "config": {"algorithm": "token-bucket",
//!                    "rate": {"tokens": 1, "per_ns": 1000000000}, "burst": 2},
//!         "calls": [{"at_ns": 0, "client": "a", "cost": 2}, {"at_ns": 1, "client": "a"}]}"#,
//! )?;
//! let mut model = Model::new(trace.config);
//! let answers = trace.calls.iter().map(|call| model.call(&call.client, call.cost, call.at_ns));
//! assert_eq!(
//!     answers.last(),
//!     Some(Answer::Limited {
//!         remaining: 0,
//!         retry_after_ns: 999_999_999,
//!         reset_after_ns: 1_999_999_999,
//!     })
//! );
//! # Ok::<(), tollgate_testkit::TraceError>(())
//! ```

mod config;
mod error;
mod files;
mod json;
mod model;
mod random;
mod trace;

pub use config::{Algorithm, Anchor, Config};
pub use error::TraceError;
pub use files::{traces_below, traces_dir};
pub use model::{Model, Tokens};
pub use random::Random;
pub use trace::{Answer, Call, Trace};
