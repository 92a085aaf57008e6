//! Testing code that is limited, without sleeping: a clock that stands still until it is moved.
#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::time::Duration;

use tollgate::{BuildError, Clock, Limiter, ManualClock, Rate, TokenBucket};

/// What is under test takes any clock.
struct Mailer<C: Clock>(Limiter<TokenBucket, C>);

impl<C: Clock> Mailer<C> {
    fn send(&self) -> Result<(), Option<Duration>> {
        let decision = self.0.try_acquire(1);
        decision
            .is_allowed()
            .then_some(())
            .ok_or(decision.retry_after())
    }
}

fn main() -> Result<(), BuildError> {
    let clock = ManualClock::default();
    let quota = Rate::per_second(2).burst(3);
    let mailer = Mailer(Limiter::builder(quota).clock(clock.clone()).build()?);

    assert!((0..3).all(|_| mailer.send().is_ok()));
    assert_eq!(mailer.send(), Err(Some(Duration::from_millis(500))));

    // 300 ms earn 0.6 of a token: not one, and not lost either.
    clock.advance(Duration::from_millis(300));
    assert_eq!(mailer.send(), Err(Some(Duration::from_millis(200))));
    clock.advance(Duration::from_millis(200));
    assert_eq!(mailer.send(), Ok(()));
    println!("three at once, then one every 500 ms");
    Ok(())
}
