//! ratelimit: one bucket of atomics, on the system's clock. It has no keys.

use std::time::Duration;

use ratelimit::Ratelimiter;

use super::{Contender, GENEROUS_A_SECOND, GENEROUS_BURST, Load, Single};
use crate::error::Error;
use crate::row::Answer;

/// Full from the start, as the others are; its own default is empty.
pub(crate) fn single(answer: Answer) -> Result<Box<dyn Contender>, Error> {
    let (tokens, period, burst) = match answer.into() {
        Load::Generous => (GENEROUS_A_SECOND, Duration::from_secs(1), GENEROUS_BURST),
        Load::Drained => (1, Duration::from_secs(3_600), 1),
    };
    let limiter = Ratelimiter::builder(u64::from(tokens))
        .period(period)
        .max_tokens(u64::from(burst))
        .initial_available(u64::from(burst))
        .build()
        .map_err(|error| Error::new(error.to_string()))?;
    Ok(Box::new(Single(move || limiter.try_wait().is_ok())))
}
