//! Tollgate.

use std::hint::black_box;

use tollgate::{Decision, KeyedLimiter, Limiter, Quota, Rate};

use super::{Contender, GENEROUS_A_SECOND, GENEROUS_BURST, Keyed, Load, Single};
use crate::error::Error;
use crate::keys::Name;
use crate::row::{Answer, Call};

fn quota(load: Load) -> Quota {
    match load {
        Load::Generous => {
            Rate::per_second(u64::from(GENEROUS_A_SECOND)).burst(u64::from(GENEROUS_BURST))
        }
        Load::Drained => Rate::per_hour(1).burst(1),
    }
}

pub(crate) fn keyed(
    call: Call,
    answer: Answer,
    max_clients: usize,
) -> Result<Box<dyn Contender>, Error> {
    let limiter = KeyedLimiter::new(quota(answer.into()), max_clients)?;
    Ok(match call {
        Call::Allow => Box::new(Keyed(move |name: &Name| limiter.allow(name.as_str()))),
        Call::TryAcquire => Box::new(Keyed(move |name: &Name| {
            used(limiter.try_acquire(name.as_str(), 1))
        })),
    })
}

pub(crate) fn single(call: Call, answer: Answer) -> Result<Box<dyn Contender>, Error> {
    let limiter = Limiter::new(quota(answer.into()))?;
    Ok(match call {
        Call::Allow => Box::new(Single(move || limiter.allow())),
        Call::TryAcquire => Box::new(Single(move || used(limiter.try_acquire(1)))),
    })
}

/// Whether the call was admitted, after using what remains and how long to wait.
#[inline]
fn used(decision: Decision) -> bool {
    black_box(decision.remaining());
    black_box(decision.retry_after());
    decision.is_allowed()
}
