//! throttlecrab, as its documentation shares one between threads: behind a mutex, with the store
//! that its README takes. No cap.

use std::sync::{Mutex, PoisonError};

use throttlecrab::{PeriodicStore, RateLimiter};

use super::{Contender, GENEROUS_A_SECOND, GENEROUS_BURST, Keyed, Load};
use crate::cpu::calendar;
use crate::keys::Name;
use crate::row::Answer;

/// Not for refused calls: a client with a burst of one expires in the instant that made it known,
/// so that nobody is ever refused.
pub(crate) fn keyed(answer: Answer) -> Box<dyn Contender> {
    let (burst, tokens, seconds) = match answer.into() {
        Load::Generous => (GENEROUS_BURST, GENEROUS_A_SECOND, 1),
        Load::Drained => (1, 1, 3_600),
    };
    let (burst, tokens) = (i64::from(burst), i64::from(tokens));
    let limiter = Mutex::new(RateLimiter::new(PeriodicStore::new()));
    Box::new(Keyed(move |name: &Name| {
        // Before the lock, which is held the shorter for it.
        let now = calendar();
        let mut limiter = limiter.lock().unwrap_or_else(PoisonError::into_inner);
        let decision = limiter.rate_limit(name.as_str(), burst, tokens, seconds, 1, now);
        decision.is_ok_and(|(admitted, _)| admitted)
    }))
}
