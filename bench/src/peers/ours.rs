//! Tollgate.

use std::hint::black_box;

use tollgate::{Decision, KeyedLimiter, Limiter, Quota, Rate};

use super::{Calls, Contender, GENEROUS_A_SECOND, GENEROUS_BURST, Keyed, Load, Single};
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

/// Calls in one batch: as many as the library looks up together.
const BATCH: usize = 16;

/// One that decides sixteen calls at a time, whose names are made before any of them is decided.
/// The answers go into the vector, which is empty before and after, if they go anywhere.
struct Batched<F>(F);

impl<F: Fn(&[Name], &mut Vec<Decision>) -> usize + Send + Sync> Contender for Batched<F> {
    fn run(&self, calls: &Calls<'_>) -> usize {
        let mut names = [(); BATCH].map(|()| Name::new(calls.name_len));
        let mut decisions = Vec::with_capacity(BATCH);
        let mut admitted = 0;
        for clients in calls.clients.chunks(BATCH) {
            for (name, client) in names.iter_mut().zip(clients) {
                name.set(calls.offset + client);
            }
            let made = names.get(..clients.len()).unwrap_or(&names);
            admitted += black_box((self.0)(black_box(made), &mut decisions));
        }
        admitted
    }
}

/// The names of a batch, and nothing decided.
pub(crate) fn no_batch() -> Box<dyn Contender> {
    Box::new(Batched(|names: &[Name], _: &mut Vec<Decision>| {
        let is_named = |name: &&Name| !black_box(name.as_str()).is_empty();
        names.iter().filter(is_named).count()
    }))
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
        Call::TryAcquireInTurn => {
            Box::new(Batched(move |names: &[Name], _: &mut Vec<Decision>| {
                let decide = |name: &Name| usize::from(used(limiter.try_acquire(name.as_str(), 1)));
                names.iter().map(decide).sum()
            }))
        }
        Call::TryAcquireEach => Box::new(Batched(
            move |names: &[Name], decisions: &mut Vec<Decision>| {
                let calls = names.iter().map(|name| (name.as_str(), 1));
                limiter.try_acquire_each(calls, decisions);
                let decided = decisions.drain(..);
                decided.map(|decision| usize::from(used(decision))).sum()
            },
        )),
    })
}

pub(crate) fn single(call: Call, answer: Answer) -> Result<Box<dyn Contender>, Error> {
    let limiter = Limiter::new(quota(answer.into()))?;
    Ok(match call {
        Call::Allow => Box::new(Single(move || limiter.allow())),
        Call::TryAcquire => Box::new(Single(move || used(limiter.try_acquire(1)))),
        Call::TryAcquireInTurn | Call::TryAcquireEach => {
            return Err(Error::new("one bucket has no batches"));
        }
    })
}

/// Whether the call was admitted, after using what remains and how long to wait.
#[inline]
fn used(decision: Decision) -> bool {
    black_box(decision.remaining());
    black_box(decision.retry_after());
    decision.is_allowed()
}
