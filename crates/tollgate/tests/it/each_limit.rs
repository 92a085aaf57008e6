//! One limit of each algorithm, for what must hold under all of them.

use std::time::Duration;

use tollgate::{AnyLimit, FixedWindow, LeakyBucket, Rate, SlidingLog, SlidingWindowCounter};

/// Each algorithm, with `limit` tokens in `window`.
pub(crate) fn each_limit(limit: u64, window: Duration) -> [AnyLimit; 6] {
    let rate = Rate::new(limit, window);
    [
        rate.burst(limit).into(),
        LeakyBucket::new(rate.burst(limit)).into(),
        FixedWindow::new(limit, window).into(),
        FixedWindow::new(limit, window).aligned().into(),
        SlidingLog::new(limit, window).into(),
        SlidingWindowCounter::new(limit, window).into(),
    ]
}
