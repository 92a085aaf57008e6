//! The flaw of the fixed window: around an edge, two windows' worth within a moment. A token bucket
//! of the same numbers has no edge.
#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::time::Duration;

use tollgate::{AnyLimit, FixedWindow, Limiter, Rate, Timestamp};

/// How many of five calls just before the minute and five just after it pass.
fn admitted_around_the_edge(limit: AnyLimit) -> Result<usize, Box<dyn std::error::Error>> {
    let limiter = Limiter::builder(limit).build()?;
    let mut admitted = 0;
    for at_ms in [59_900, 60_100] {
        for _ in 0..5 {
            let now = Timestamp::from_nanos(at_ms * 1_000_000);
            admitted += usize::from(limiter.try_acquire_at(1, now)?.is_allowed());
        }
    }
    Ok(admitted)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let window = FixedWindow::new(5, Duration::from_secs(60)).aligned();
    let in_windows = admitted_around_the_edge(window.into())?;
    let in_bucket = admitted_around_the_edge(Rate::per_minute(5).burst(5).into())?;
    println!("within 200 ms, at five a minute: window {in_windows}, bucket {in_bucket}");
    assert_eq!((in_windows, in_bucket), (10, 5));
    Ok(())
}
