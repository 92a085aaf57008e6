//! Nothing is allocated for a client already tracked, but for the entries of a sliding log.

use std::time::Duration;

use allocation_counter::measure;
use tollgate::{AnyLimit, FixedWindow, KeyedLimiter, LeakyBucket, Rate, SlidingWindowCounter};

use crate::harness::at;

#[test]
fn a_tracked_client_allocates_nothing() {
    let minute = Duration::from_secs(60);
    for limit in [
        AnyLimit::from(Rate::per_minute(50).burst(50)),
        Rate::per_day(1).burst(1 << 50).into(),
        LeakyBucket::new(Rate::per_minute(50).burst(50)).into(),
        FixedWindow::new(50, minute).into(),
        SlidingWindowCounter::new(50, minute).into(),
    ] {
        let limiter = KeyedLimiter::builder(limit, 10_000).build().unwrap();
        let names: Vec<String> = (0..1_000)
            .map(|n| format!("client-{n}-with-a-long-name"))
            .collect();
        let round = |second: u64| {
            for name in &names {
                for short_or_long in [name.as_str(), &name[..10]] {
                    let now = at(second * 1_000_000_000);
                    let _ = limiter.try_acquire_at(short_or_long, 1, now).unwrap();
                }
            }
        };
        round(0);
        // Admitted and refused, with positions that come due and are corrected.
        let counted = measure(|| (1..200).for_each(round));
        assert_eq!(counted.count_total, 0, "{limit:?}");
    }
}
