//! An API gateway: five requests a second and ten at once for each client, at most two clients
//! tracked, and a client that stays away for a minute is forgotten. On a clock moved by hand.
#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::time::Duration;

use tollgate::{BuildError, Decision, KeyedLimiter, ManualClock, Rate};

fn main() -> Result<(), BuildError> {
    let clock = ManualClock::default();
    let gateway = KeyedLimiter::builder(Rate::per_second(5).burst(10), 2)
        .idle(Duration::from_secs(60))
        .clock(clock.clone())
        .build()?;

    let admitted = (0..12).filter(|_| gateway.allow("alice")).count();
    println!("alice: {admitted} of 12 at once");
    assert_eq!(admitted, 10);

    // A refusal took nothing: after 200 ms the next token is there.
    clock.advance(Duration::from_millis(200));
    assert!(gateway.allow("alice") && !gateway.allow("alice"));

    // Two clients are all that are tracked. A third is told so, and nobody is forgotten for it.
    assert!(gateway.allow("bob"));
    let carol = gateway.try_acquire("carol", 1);
    println!("carol: {carol}");
    assert_eq!(carol, Decision::ClientLimit);

    // One nanosecond short of a minute alice and bob still have their places; then they go.
    clock.advance(Duration::from_secs(60) - Duration::from_nanos(1));
    assert_eq!(gateway.try_acquire("carol", 1), Decision::ClientLimit);
    clock.advance(Duration::from_nanos(1));
    assert!(gateway.allow("carol"));
    println!("a minute later: {} client tracked", gateway.len());
    assert_eq!(gateway.len(), 1);
    Ok(())
}
