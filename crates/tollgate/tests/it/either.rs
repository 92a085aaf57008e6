//! One bucket, or that of one client of many: asked alike, so that a case is told once.

use std::fmt;
use std::time::Duration;

use tollgate::{
    AnyLimit, Ask, ChangeError, Charge, ClockWentBackwards, Debit, Decision, KeyedLimiter, Limiter,
    ManualClock, Quota, Rate, TokenBucket, Tokens,
};

use crate::harness::{Keyed, at};

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1_000_000_000;

pub(crate) const fn per_ns(tokens: u64, period_ns: u64, burst: u64) -> Quota {
    Rate::new(tokens, Duration::from_nanos(period_ns)).burst(burst)
}

/// What a row of a table says of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Told {
    /// It passed, and so many tokens are left.
    Left(u64),
    /// It was refused, and passes after so many nanoseconds.
    Wait(u64),
    /// It was refused, and no wait helps.
    Never,
}

impl From<Decision> for Told {
    fn from(decision: Decision) -> Self {
        match decision.retry_after() {
            None => Self::Never,
            Some(_) if decision.is_allowed() => Self::Left(decision.remaining()),
            Some(wait) => Self::Wait(u64::try_from(wait.as_nanos()).unwrap()),
        }
    }
}

/// A bucket, and its clock, which starts at zero.
pub(crate) struct Either {
    kind: Kind,
    name: &'static str,
    clock: ManualClock,
}

enum Kind {
    One(Box<Limiter<AnyLimit, ManualClock>>),
    Client(Box<Keyed>),
}

/// The same call of either, a client's with its name.
macro_rules! ask {
    ($either:ident.$call:ident($($argument:expr),*)) => {
        match &$either.kind {
            Kind::One(limiter) => limiter.$call($($argument),*),
            Kind::Client(limiter) => limiter.$call("alice", $($argument),*),
        }
    };
}

/// A bucket of each kind.
pub(crate) fn each(limit: impl Into<AnyLimit>) -> Vec<Either> {
    each_owing(limit, 0)
}

/// A bucket of each kind that may come to owe tokens. A client is forgotten when that changes no
/// answer, in either way of telling when that is.
pub(crate) fn each_owing(limit: impl Into<AnyLimit>, debt: u64) -> Vec<Either> {
    let limit = limit.into();
    let client = |settled| {
        let clock = ManualClock::default();
        let builder = KeyedLimiter::builder(limit, 100)
            .largest_debt(debt)
            .clock(clock.clone());
        let (name, builder) = if settled {
            ("a client, forgotten once settled", builder.forget_settled())
        } else {
            ("a client", builder)
        };
        let kind = Kind::Client(Box::new(builder.build().unwrap()));
        Either { kind, name, clock }
    };
    vec![one(limit, debt), client(false), client(true)]
}

/// A bucket of each kind that holds `initial` tokens at `from_ns`. Its client is never forgotten:
/// it would start with that many again.
pub(crate) fn each_from(quota: Quota, initial: u64, from_ns: u64) -> [Either; 2] {
    let limit = TokenBucket::new(quota).initial_tokens(initial).into();
    let clock = ManualClock::default();
    let client = KeyedLimiter::builder(limit, 100)
        .never_forget()
        .clock(clock.clone())
        .build()
        .unwrap();
    let client = Either {
        kind: Kind::Client(Box::new(client)),
        name: "a client, never forgotten",
        clock,
    };
    let each = [one(limit, 0), client];
    if initial < quota.burst() {
        for bucket in &each {
            // A bucket is there from its first attempt on, and this one takes nothing.
            let refused = bucket.at(from_ns).take(initial + 1);
            assert!(!refused.is_allowed() && refused.remaining() == initial);
        }
    }
    each
}

fn one(limit: AnyLimit, debt: u64) -> Either {
    let clock = ManualClock::default();
    let limiter = Limiter::builder(limit)
        .largest_debt(debt)
        .clock(clock.clone())
        .build()
        .unwrap();
    Either {
        kind: Kind::One(Box::new(limiter)),
        name: "one bucket",
        clock,
    }
}

/// Calls for (time, cost), in turn, of every bucket.
pub(crate) fn check(each: impl IntoIterator<Item = Either>, rows: &[(u64, u64, Told)]) {
    for bucket in each {
        for (row, (at_ns, cost, wanted)) in rows.iter().enumerate() {
            let told = bucket.told(*at_ns, *cost);
            assert_eq!(told, *wanted, "{bucket}, row {row}: {cost} at {at_ns} ns");
        }
    }
}

impl Either {
    /// The same at another time.
    pub(crate) fn at(&self, now_ns: u64) -> &Self {
        self.clock.set(at(now_ns));
        self
    }

    pub(crate) fn take(&self, cost: u64) -> Decision {
        ask!(self.try_acquire(cost))
    }

    pub(crate) fn told(&self, now_ns: u64, cost: u64) -> Told {
        self.at(now_ns).take(cost).into()
    }

    /// At a time brought to the call, which the clock does not see.
    pub(crate) fn take_at(&self, cost: u64, now_ns: u64) -> Result<Decision, ClockWentBackwards> {
        ask!(self.try_acquire_at(cost, at(now_ns)))
    }

    /// How many of these times a call for one token passes at.
    pub(crate) fn passed(&self, times_ns: impl IntoIterator<Item = u64>) -> usize {
        let passes = |at_ns: &u64| self.at(*at_ns).take(1).is_allowed();
        times_ns.into_iter().filter(passes).count()
    }

    pub(crate) fn look(&self) -> Decision {
        ask!(self.peek())
    }

    pub(crate) fn remaining(&self) -> u64 {
        self.look().remaining()
    }

    pub(crate) fn take_up_to(&self, most: u64) -> u64 {
        ask!(self.acquire_up_to(most))
    }

    pub(crate) fn charge(&self, cost: u64) -> Result<Charge, Decision> {
        ask!(self.charge(cost))
    }

    pub(crate) fn cancel(&self, charge: Charge) {
        match &self.kind {
            Kind::One(limiter) => limiter.cancel(charge),
            Kind::Client(limiter) => limiter.cancel(charge),
        }
    }

    pub(crate) fn refund(&self, tokens: u64) {
        ask!(self.refund(tokens));
    }

    pub(crate) fn debit(&self, tokens: u64) -> Debit {
        ask!(self.debit(tokens))
    }

    pub(crate) fn ban(&self, time: Duration) {
        match &self.kind {
            Kind::One(limiter) => limiter.ban(time),
            Kind::Client(limiter) => assert!(limiter.ban("alice", time)),
        }
    }

    pub(crate) fn set_quota(
        &self,
        limit: impl Into<AnyLimit>,
        tokens: Tokens,
    ) -> Result<(), ChangeError> {
        match &self.kind {
            Kind::One(limiter) => limiter.set_quota(limit.into(), tokens),
            Kind::Client(limiter) => limiter.set_quota(limit.into(), tokens),
        }
    }

    /// Its part of a call to several at once.
    pub(crate) fn ask(&self, cost: u64) -> Ask<'_> {
        ask!(self.ask(cost))
    }
}

impl fmt::Display for Either {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
