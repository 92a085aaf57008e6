//! A steady client that asks for more than its rate: one request every 200 ms against a bucket of
//! ten that earns two a second. The burst carries it a while; then it gets its rate.
#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use tollgate::{Decision, Limiter, Rate, Timestamp};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let limiter = Limiter::new(Rate::per_second(2).burst(10))?;
    let mut refused = Vec::new();
    for request in 0..20_u64 {
        let at_ms = request * 200;
        let decision = limiter.try_acquire_at(1, Timestamp::from_nanos(at_ms * 1_000_000))?;
        println!("{at_ms:>5} ms  {decision}");
        if let Decision::Limited { retry_after, .. } = decision {
            refused.push((request + 1, retry_after.as_millis()));
        }
    }
    // The first fifteen pass, and one more; the seventeenth is 0.6 of a token short.
    println!("refused: {refused:?}");
    assert_eq!(refused.first(), Some(&(17, 300)));
    Ok(())
}
