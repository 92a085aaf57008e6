//! rate-net, with its defaults (shards under read locks, the system's clock) but for the cap.

use std::time::Duration;

use rate_net::{Builder, Eviction, RateLimiter, RateLimiterError};

use super::{Contender, GENEROUS_A_SECOND, GENEROUS_BURST, Keyed, Load, Single};
use crate::error::Error;
use crate::keys::Name;
use crate::row::Answer;

fn builder(load: Load) -> Builder {
    let builder = RateLimiter::builder();
    match load {
        Load::Generous => builder.per_second(GENEROUS_A_SECOND).burst(GENEROUS_BURST),
        Load::Drained => builder.quota(1, Duration::from_secs(3_600)),
    }
}

fn told(error: RateLimiterError) -> Error {
    Error::new(format!("rate-net: {error}"))
}

/// By `check_bytes`, its call for names longer than 22 bytes: of those `check` makes a copy on the
/// heap every time. Shorter ones take no longer by it.
pub(crate) fn keyed(answer: Answer, max_clients: usize) -> Result<Box<dyn Contender>, Error> {
    let builder = builder(answer.into()).eviction(Eviction::capacity(max_clients));
    let limiter = builder.try_build().map_err(told)?;
    Ok(Box::new(Keyed(move |name: &Name| {
        limiter.check_bytes(name.as_str()).is_allow()
    })))
}

pub(crate) fn single(answer: Answer) -> Result<Box<dyn Contender>, Error> {
    let limiter = builder(answer.into()).try_build_direct().map_err(told)?;
    Ok(Box::new(Single(move || limiter.check().is_allow())))
}
