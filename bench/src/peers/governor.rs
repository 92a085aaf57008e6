//! governor, with its defaults: a `DashMap` of `String`s, its own clock, no cap.

use std::hash::{BuildHasher, Hash};
use std::num::NonZeroU32;
use std::time::Duration;

use dashmap::DashMap;
use governor::clock::{Clock, DefaultClock};
use governor::state::InMemoryState;
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};

use super::{Contender, GENEROUS_A_SECOND, GENEROUS_BURST, Keyed, Load, Single};
use crate::keys::Name;
use crate::row::Answer;

/// With any hasher and clock.
pub(crate) type Governor<S, C> = RateLimiter<
    String,
    DashMap<String, InMemoryState, S>,
    C,
    governor::middleware::NoOpMiddleware<<C as Clock>::Instant>,
>;

/// `tokens` a second, `burst` at once; zero of either counts as one.
pub(crate) fn a_second(tokens: u32, burst: u32) -> Quota {
    let positive = |n| NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN);
    Quota::per_second(positive(tokens)).allow_burst(positive(burst))
}

fn quota(load: Load) -> Quota {
    match load {
        Load::Generous => a_second(GENEROUS_A_SECOND, GENEROUS_BURST),
        Load::Drained => {
            let hour = Quota::with_period(Duration::from_secs(3_600));
            hour.unwrap_or_else(|| a_second(1, 1))
        }
    }
}

/// The same as `RateLimiter::keyed` where `S` is the standard library's.
pub(crate) fn with_clock<S, C>(quota: Quota, hasher: S, clock: C) -> Governor<S, C>
where
    S: BuildHasher + Clone,
    C: Clock,
    String: Hash,
{
    RateLimiter::new(quota, DashMap::with_hasher(hasher), clock)
}

pub(crate) fn keyed<S>(answer: Answer, hasher: S) -> Box<dyn Contender>
where
    S: BuildHasher + Clone + Send + Sync + 'static,
{
    let limiter = with_clock(quota(answer.into()), hasher, DefaultClock::default());
    Box::new(Keyed(move |name: &Name| {
        limiter.check_key(name.as_string()).is_ok()
    }))
}

pub(crate) fn single(answer: Answer) -> Box<dyn Contender> {
    let limiter: DefaultDirectRateLimiter = RateLimiter::direct(quota(answer.into()));
    Box::new(Single(move || limiter.check().is_ok()))
}
