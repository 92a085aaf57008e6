//! A policy and the limiters that keep its buckets in this process.

use std::convert::Infallible;
use std::time::Duration;

use tollgate::{
    AnyLimit, Ask, BuildError, Clock, ClockWentBackwards, Decision, KeyedLimiter, Timestamp,
    acquire_all,
};

use crate::key::Client;
use crate::policy::{Answer, Call, Policy};
use crate::request::Request;

/// A policy put to use: it answers requests.
///
/// ```
/// use tollgate::{ManualClock, Rate};
/// use tollgate_policy::{Gate, Limit, Policy, Rule};
/// # use tollgate_policy::proxies::Peer;
/// # use tollgate_policy::request::Request;
/// # struct Get;
/// # impl Request for Get {
/// #     fn method(&self) -> &[u8] { b"GET" }
/// #     fn target(&self) -> &[u8] { b"/" }
/// #     fn peer(&self) -> Peer { Peer::Address([192, 0, 2, 1].into()) }
/// #     fn header(&self, _: &str, _: &mut dyn FnMut(&[u8])) {}
/// # }
///
/// let limit = Limit::new("per-address", Rule::TokenBucket(Rate::per_hour(1).burst(1)))?;
/// let gate = Gate::new(Policy::new(vec![limit])?, ManualClock::default())?;
/// assert!(gate.admit(&Get).is_allowed());
/// let refused = gate.admit(&Get);
/// assert_eq!(refused.refused_by().map(|said| said.limit), Some(0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Gate<C: Clock> {
    policy: Policy,
    /// By place, those of the policy's limits.
    limiters: Vec<KeyedLimiter<AnyLimit, C>>,
}

impl<C: Clock + Clone> Gate<C> {
    /// A limiter for each limit, with a clock of that kind.
    ///
    /// # Errors
    ///
    /// An idle time of 0, or no client.
    pub fn new(policy: Policy, clock: C) -> Result<Self, BuildError> {
        let limits = policy.limits().iter();
        let limiters = limits.map(|limit| limit.limiter(clock.clone()));
        let limiters = limiters.collect::<Result<_, _>>()?;
        Ok(Self { policy, limiters })
    }
}

impl<C: Clock> Gate<C> {
    /// The policy.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The limiter of the limit at that place.
    #[must_use]
    pub fn limiter(&self, limit: usize) -> Option<&KeyedLimiter<AnyLimit, C>> {
        self.limiters.get(limit)
    }

    /// Whether a request may proceed.
    ///
    /// All limits that hold for it are asked at once: they let it pass and take its cost, or none
    /// takes anything. One that it lacks a key for refuses it before any is asked. Limits that only
    /// count are asked about what the others let pass, each for itself; their refusals change
    /// nothing.
    ///
    /// # Panics
    ///
    /// If a clock not known to be monotonic went back.
    pub fn admit(&self, request: &impl Request) -> Verdict {
        self.decide(&self.policy.calls(request))
    }

    /// The same for what a request asks of this gate's policy; a call of a limit that it has not is
    /// passed over.
    ///
    /// # Panics
    ///
    /// If a clock not known to be monotonic went back.
    pub fn decide(&self, calls: &[Call]) -> Verdict {
        let verdict = self.judge(calls, |limiter, client, cost| {
            Ok::<_, Infallible>(limiter.ask(client, cost))
        });
        match verdict {
            Ok(verdict) => verdict,
            Err(never) => match never {},
        }
    }

    /// The same at a time that the caller brings.
    ///
    /// # Errors
    ///
    /// [`ClockWentBackwards`] if a later time was seen before; nothing was taken then.
    pub fn decide_at(&self, calls: &[Call], now: Timestamp) -> Result<Verdict, ClockWentBackwards> {
        self.judge(calls, |limiter, client, cost| {
            limiter.ask_at(client, cost, now)
        })
    }

    fn judge<'g, E>(
        &'g self,
        calls: &[Call],
        ask: impl Fn(&'g KeyedLimiter<AnyLimit, C>, &Client, u64) -> Result<Ask<'g>, E>,
    ) -> Result<Verdict, E> {
        let mut verdict = Verdict {
            said: Vec::with_capacity(calls.len()),
            refused_by: None,
        };
        let (mut asks, mut places, mut counting) = (Vec::new(), Vec::new(), Vec::new());
        for call in calls {
            let place = verdict.said.len();
            let limiter = self.limiters.get(call.limit);
            let limit = self.policy.limits().get(call.limit);
            let (Some(limiter), Some(limit)) = (limiter, limit) else {
                continue;
            };
            let mut said = Said {
                limit: call.limit,
                is_shadow: limit.is_shadow(),
                cost: 0,
                outcome: Outcome::NotAsked,
            };
            match &call.answer {
                Answer::Takes { client, cost } => {
                    said.cost = *cost;
                    let ask = ask(limiter, client, *cost)?;
                    if said.is_shadow {
                        counting.push((place, ask));
                    } else {
                        asks.push(ask);
                        places.push(place);
                    }
                }
                Answer::Unidentified => {
                    said.outcome = Outcome::Unidentified;
                    if !said.is_shadow {
                        verdict.refused_by.get_or_insert(place);
                    }
                }
                Answer::Passes => continue,
            }
            verdict.said.push(said);
        }
        if verdict.refused_by.is_none() {
            let together = acquire_all(&mut asks);
            verdict.refused_by = together.refused_by().and_then(|at| places.get(at).copied());
            for (place, ask) in places.into_iter().zip(&asks) {
                verdict.note(place, ask.decision());
            }
        }
        if verdict.refused_by.is_none() {
            for (place, ask) in counting {
                let mut alone = [ask];
                let _ = acquire_all(&mut alone);
                let [ask] = alone;
                verdict.note(place, ask.decision());
            }
        }
        Ok(verdict)
    }
}

/// What the limits of a policy said to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a verdict that is not looked at limits nobody"]
pub struct Verdict {
    said: Vec<Said>,
    /// By place in `said`.
    refused_by: Option<usize>,
}

/// What one limit said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Said {
    /// Which, by its place in [`Policy::limits`].
    pub limit: usize,
    /// Whether it only counts.
    pub is_shadow: bool,
    /// How many tokens it was asked for.
    pub cost: u64,
    /// What it answered.
    pub outcome: Outcome,
}

/// What a limit answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// As its limiter did.
    Decided(Decision),
    /// The request lacks a part of its key.
    Unidentified,
    /// Nothing: another limit had refused already.
    NotAsked,
}

impl Outcome {
    /// Whether it is a refusal.
    #[must_use]
    pub fn refuses(self) -> bool {
        match self {
            Self::Decided(decision) => !decision.is_allowed(),
            Self::Unidentified => true,
            Self::NotAsked => false,
        }
    }
}

impl Verdict {
    fn note(&mut self, place: usize, decision: Decision) {
        if let Some(said) = self.said.get_mut(place) {
            said.outcome = Outcome::Decided(decision);
        }
    }

    /// Whether the request may proceed.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.refused_by.is_none()
    }

    /// Which limit refused: of several the one whose refusal lasts longest, and any that lacks a
    /// key before those.
    #[must_use]
    pub fn refused_by(&self) -> Option<&Said> {
        self.refused_by.and_then(|place| self.said.get(place))
    }

    /// What each limit said that holds for the request, but for those that it passes by.
    #[must_use]
    pub fn said(&self) -> &[Said] {
        &self.said
    }

    /// How long a request that may proceed is to be held back.
    #[must_use]
    pub fn delay(&self) -> Duration {
        let delays = self.enforced().map(|(_, decision)| decision.delay());
        delays.max().unwrap_or_default()
    }

    /// The one limit whose figures a client is shown: the one that refused, or the one under which
    /// the fewest more such requests pass; of equals the one that takes longest to be as new, then
    /// the first. `None` if no limiter was asked, or none that refuses.
    #[must_use]
    pub fn shown(&self) -> Option<(&Said, Decision)> {
        if let Some(said) = self.refused_by() {
            return match said.outcome {
                Outcome::Decided(decision) => Some((said, decision)),
                Outcome::Unidentified | Outcome::NotAsked => None,
            };
        }
        let more = |(said, decision): &(&Said, Decision)| {
            let left = decision.remaining().checked_div(said.cost).unwrap_or(0);
            (left, std::cmp::Reverse(decision.reset_after()))
        };
        self.enforced().min_by_key(more)
    }

    /// The decisions of limits that refuse.
    fn enforced(&self) -> impl Iterator<Item = (&Said, Decision)> {
        let enforced = self.said.iter().filter(|said| !said.is_shadow);
        enforced.filter_map(|said| match said.outcome {
            Outcome::Decided(decision) => Some((said, decision)),
            Outcome::Unidentified | Outcome::NotAsked => None,
        })
    }
}
