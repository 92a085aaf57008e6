//! The limiter of many clients against the literal model: every answer and every length, through
//! refunds, debits, bans, changes of the limit and restarts.
//!
//! Left out are charges that are cancelled: the model cannot tell the call that is meant from
//! others of its time, once something else was given back or its client was forgotten and came
//! back. The library's own tests have them where they can be told.

use std::time::Duration;

use arbitrary::{Arbitrary, Unstructured};
use tollgate::{
    AnyLimit, ChangeError, Decision, KeyedLimiter, KeyedLimiterBuilder, ManualClock, Tokens,
};
use tollgate_testkit::{self as testkit, Algorithm, Answer, Config, Model};

use crate::harness::{Keyed, answer, any_limit, at};
use crate::script::{Script, Step, Verb};

/// Reads a limiter and its calls.
///
/// # Panics
///
/// If the limiter and the model differ, or a bound is not kept.
pub fn run(bytes: &[u8]) {
    let Ok(script) = Script::arbitrary_take_rest(Unstructured::new(bytes)) else {
        return;
    };
    let setup = Setup::new(&script);
    let clock = ManualClock::default();
    let built = setup.builder(&clock).build();
    assert_eq!(built.is_ok(), setup.builds(), "{setup:?}: {built:?}");
    let Ok(limiter) = built else {
        return;
    };
    let mut pair = Pair {
        limiter,
        clock,
        model: Model::new(setup.config.clone()).largest_debt(setup.largest_debt),
        is_wide: setup.is_wide(),
        setup,
        latest_ns: 0,
    };
    for (n, step) in script.steps.iter().enumerate() {
        pair.both(step)
            .unwrap_or_else(|differ| panic!("step {n}, {step:?}: {differ} in {script:?}"));
    }
    pair.assert_bounded();
}

/// What a limiter is built from, and built from again at a restart.
#[derive(Clone, Debug)]
struct Setup {
    config: Config,
    largest_debt: u64,
    idles_by_default: bool,
}

impl Setup {
    fn new(script: &Script) -> Self {
        let mut setup = Self {
            config: script.config.clone(),
            largest_debt: script.largest_debt,
            idles_by_default: script.idles_by_default,
        };
        setup.hold_to(script.config.algorithm.clone());
        setup
    }

    /// With another limit, which the default idle time follows.
    fn hold_to(&mut self, algorithm: Algorithm) {
        self.config.algorithm = algorithm;
        if self.idles_by_default && self.builds() {
            self.config.idle_ns = self.settles_after_ns();
        }
    }

    /// As the harness of the library's tests, but keeping the clock.
    fn builder(&self, clock: &ManualClock) -> KeyedLimiterBuilder<AnyLimit, ManualClock> {
        let config = &self.config;
        let most = config.max_clients.unwrap_or(u64::MAX);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let builder = KeyedLimiter::builder(any_limit(&config.algorithm), most)
            .largest_debt(self.largest_debt)
            .clock(clock.clone());
        match config.idle_ns {
            _ if self.idles_by_default => builder,
            Some(idle_ns) => builder.idle(Duration::from_nanos(idle_ns)),
            None => builder.never_forget(),
        }
    }

    /// Whether the numbers are within the bounds that the library states.
    fn builds(&self) -> bool {
        let is_valid = self.is_valid(&self.config.algorithm);
        is_valid && self.config.max_clients != Some(0) && (self.idles_by_default || self.idles())
    }

    /// Whether the idle time is one, and long enough that nobody is forgotten who owes tokens.
    fn idles(&self) -> bool {
        let is_enough = |idle_ns| {
            self.settles_after_ns()
                .is_some_and(|least| least <= idle_ns)
        };
        match self.config.idle_ns {
            Some(idle_ns) => idle_ns > 0 && (self.largest_debt == 0 || is_enough(idle_ns)),
            None => true,
        }
    }

    /// Whether a limit's are.
    fn is_valid(&self, algorithm: &Algorithm) -> bool {
        let with_debt = |limit: u64| limit.checked_add(self.largest_debt);
        match *algorithm {
            Algorithm::TokenBucket {
                tokens,
                per_ns,
                burst,
            }
            | Algorithm::LeakyBucket {
                tokens,
                per_ns,
                burst,
            } => tokens > 0 && per_ns > 0 && burst > 0 && self.fits(algorithm, 127),
            Algorithm::SlidingLog { limit, window_ns } => {
                let most = with_debt(limit).is_some_and(|most| most <= 65_536);
                limit > 0 && most && window_ns > 0
            }
            Algorithm::FixedWindow {
                limit, window_ns, ..
            }
            | Algorithm::SlidingWindowCounter { limit, window_ns } => {
                limit > 0 && with_debt(limit).is_some() && window_ns > 0
            }
            ref other => unreachable!("not one of the script's: {other:?}"),
        }
    }

    /// Whether levels take 128 bits.
    fn is_wide(&self) -> bool {
        !self.fits(&self.config.algorithm, 63)
    }

    /// Whether (burst + largest debt) x q + p is below two to the power of `bits`, with p/q the
    /// rate in lowest terms. Windows have no such number.
    fn fits(&self, algorithm: &Algorithm, bits: u32) -> bool {
        let Some((p, q, burst)) = lowest_terms(algorithm) else {
            return true;
        };
        let span = (u128::from(burst) + u128::from(self.largest_debt)).checked_mul(u128::from(q));
        let sum = span.and_then(|span| span.checked_add(u128::from(p)));
        sum.is_some_and(|sum| sum < 1 << bits)
    }

    /// Nanoseconds by which clients are settled, who may owe tokens; `None` beyond 2^64.
    fn settles_after_ns(&self) -> Option<u64> {
        let Some((p, q, burst)) = lowest_terms(&self.config.algorithm) else {
            return self.config.algorithm.settles_after_ns();
        };
        let span = (u128::from(burst) + u128::from(self.largest_debt)) * u128::from(q);
        span.div_ceil(u128::from(p)).try_into().ok()
    }
}

/// Of a bucket, p, q and the burst, with p/q the rate in lowest terms.
fn lowest_terms(algorithm: &Algorithm) -> Option<(u64, u64, u64)> {
    let (Algorithm::TokenBucket {
        tokens,
        per_ns,
        burst,
    }
    | Algorithm::LeakyBucket {
        tokens,
        per_ns,
        burst,
    }) = *algorithm
    else {
        return None;
    };
    let (mut divisor, mut rest) = (tokens, per_ns);
    while rest != 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    let divisor = divisor.max(1);
    Some((tokens / divisor, per_ns / divisor, burst))
}

struct Pair {
    limiter: Keyed,
    clock: ManualClock,
    model: Model,
    setup: Setup,
    /// The limiter was built for levels of 128 bits.
    is_wide: bool,
    /// The latest time that both were told.
    latest_ns: u64,
}

impl Pair {
    /// Asks both; what differs is the error.
    fn both(&mut self, step: &Step) -> Result<(), String> {
        let client = step.client.to_string();
        match step.verb {
            Verb::TakeAt(cost) => {
                self.latest_ns = self.latest_ns.max(step.at_ns);
                let wanted = self.model.call(&client, cost, step.at_ns);
                let got = self
                    .limiter
                    .try_acquire_at(client.as_str(), cost, at(step.at_ns));
                same(answer(got), as_durations(wanted))
            }
            Verb::Take(cost) => {
                let now_ns = self.set_clock(step);
                let wanted = self.model.call(&client, cost, now_ns);
                let got = self.limiter.try_acquire(client.as_str(), cost);
                same(answer(Ok(got)), as_durations(wanted))
            }
            Verb::Peek => {
                let now_ns = self.set_clock(step);
                let wanted = self.model.call(&client, 0, now_ns);
                let got = self.limiter.peek(client.as_str());
                same(answer(Ok(got)), as_durations(wanted))
            }
            Verb::Allow => {
                let now_ns = self.set_clock(step);
                let wanted = self.model.call(&client, 1, now_ns);
                let got = self.limiter.allow(client.as_str());
                same(got, matches!(wanted, Answer::Allowed { .. }))
            }
            Verb::Remove => {
                let now_ns = self.set_clock(step);
                let wanted = self.model.remove(&client, now_ns);
                same(self.limiter.remove(client.as_str()), wanted)
            }
            Verb::ForgetIdle => {
                let now_ns = self.set_clock(step);
                self.forget_idle(now_ns);
                // How many were still there to be forgotten depends on what was looked at before.
                self.limiter.forget_idle();
                same(self.limiter.len(), self.model.len())
            }
            Verb::LenAt => {
                let got = self.limiter.len_at(at(step.at_ns));
                if step.at_ns < self.latest_ns {
                    return same(got.is_err(), true);
                }
                self.latest_ns = step.at_ns;
                self.forget_idle(step.at_ns);
                same(got, Ok(self.model.len()))
            }
            Verb::Refund(tokens) => {
                let now_ns = self.set_clock(step);
                self.limiter.refund(client.as_str(), tokens);
                self.model.refund(&client, tokens, None, now_ns);
                Ok(())
            }
            Verb::UpTo(most) => {
                let now_ns = self.set_clock(step);
                let got = self.limiter.acquire_up_to(client.as_str(), most);
                same(got, self.up_to(&client, most, now_ns))
            }
            Verb::Debit(tokens) => {
                let now_ns = self.set_clock(step);
                self.debit(&client, tokens, now_ns)
            }
            Verb::Ban(wait_ns) => {
                let now_ns = self.set_clock(step);
                let until_ns = now_ns.saturating_add(wait_ns);
                let wanted = self.model.ban(&client, until_ns, now_ns);
                let wait = Duration::from_nanos(wait_ns);
                same(self.limiter.ban(client.as_str(), wait), wanted)
            }
            Verb::Change(ref next, tokens) => {
                let now_ns = self.set_clock(step);
                self.change(next, tokens, now_ns)
            }
            Verb::Settle => {
                self.set_clock(step);
                self.limiter.settle();
                Ok(())
            }
            Verb::Restart => {
                self.set_clock(step);
                self.restart()
            }
        }
    }

    /// What the model takes, up to `most`: all there is, or else an attempt at one token.
    fn up_to(&mut self, client: &str, most: u64, now_ns: u64) -> u64 {
        if most == 0 {
            return 0;
        }
        let cost = match self.model.call(client, 0, now_ns) {
            Answer::Allowed { remaining, .. } => remaining.min(most).max(1),
            _ => 1,
        };
        let took = self.model.call(client, cost, now_ns);
        if matches!(took, Answer::Allowed { .. }) {
            cost
        } else {
            0
        }
    }

    fn debit(&mut self, client: &str, tokens: u64, now_ns: u64) -> Result<(), String> {
        let got = self.limiter.debit(client, tokens);
        let wanted = self.model.debit(client, tokens, now_ns);
        same(got.taken(), wanted.unwrap_or(0))?;
        if wanted.is_none() {
            return same(got.next(), Decision::ClientLimit);
        }
        // What one token more would be answered; if it is there, or after no tokens, a look.
        let next = self.model.judge(client, 1, now_ns);
        let next = if tokens == 0 || matches!(next, Answer::Allowed { .. }) {
            self.model.call(client, 0, now_ns)
        } else {
            next
        };
        same(answer(Ok(got.next())), as_durations(next))
    }

    fn change(
        &mut self,
        next: &Algorithm,
        tokens: testkit::Tokens,
        now_ns: u64,
    ) -> Result<(), String> {
        let (ours, limit) = (ours(tokens), any_limit(next));
        let mut changed = self.limiter.set_quota(limit, ours);
        if changed == Err(ChangeError::HistoryFull { most: 15 }) {
            self.limiter.settle();
            changed = self.limiter.set_quota(limit, ours);
        }
        let is_bucket = lowest_terms(next).is_some();
        if !self.setup.is_valid(next) {
            let is_refused = matches!(changed, Err(ChangeError::Invalid(_)));
            return same((is_refused, changed), (true, changed));
        }
        if !is_bucket && tokens == testkit::Tokens::Proportional {
            return same(changed, Err(ChangeError::NotProportional));
        }
        if !self.is_wide && !self.setup.fits(next, 63) {
            return same(changed, Err(ChangeError::NeedsMoreBits));
        }
        if tokens != testkit::Tokens::Reset && is_alike(&self.setup.config.algorithm, next) {
            // The limit that holds already: nobody is looked at.
            self.setup.config.algorithm = next.clone();
            return same(changed, Ok(()));
        }
        let held = core::mem::replace(&mut self.setup.config.algorithm, next.clone());
        if !self.setup.idles_by_default && !self.setup.idles() {
            self.setup.config.algorithm = held;
            let is_refused = matches!(changed, Err(ChangeError::Invalid(_)));
            return same((is_refused, changed), (true, changed));
        }
        same(changed, Ok(()))?;
        self.setup.hold_to(next.clone());
        let idle_ns = self.setup.config.idle_ns;
        self.model.change(next.clone(), idle_ns, tokens, now_ns);
        Ok(())
    }

    /// Another limiter with the same clients.
    fn restart(&mut self) -> Result<(), String> {
        self.assert_bounded();
        let snapshot = self.limiter.snapshot();
        let restored = self.setup.builder(&self.clock).restore(&snapshot);
        self.limiter = restored.map_err(|error| error.to_string())?;
        self.is_wide = self.setup.is_wide();
        same(self.limiter.len(), self.model.len())
    }

    fn assert_bounded(&self) {
        let hold = self.limiter.longest_hold();
        assert!(hold.positions <= 64 && hold.rebuilds <= 1, "{hold:?}");
    }

    /// Puts the clock to the step's time, but never back: a limiter panics at that by design.
    fn set_clock(&mut self, step: &Step) -> u64 {
        self.latest_ns = self.latest_ns.max(step.at_ns);
        self.clock.set(at(self.latest_ns));
        self.forget_idle(self.latest_ns);
        self.latest_ns
    }

    /// To remove nobody only makes the model forget who is idle.
    fn forget_idle(&mut self, now_ns: u64) {
        assert!(!self.model.remove("nobody", now_ns));
    }
}

/// The same word in the library.
fn ours(tokens: testkit::Tokens) -> Tokens {
    match tokens {
        testkit::Tokens::Kept => Tokens::Kept,
        testkit::Tokens::Proportional => Tokens::Proportional,
        testkit::Tokens::Reset => Tokens::Reset,
    }
}

/// Whether two limits are one, however their rate is written.
fn is_alike(one: &Algorithm, other: &Algorithm) -> bool {
    match (lowest_terms(one), lowest_terms(other)) {
        (Some(one), Some(other)) => one == other,
        _ => one == other,
    }
}

fn same<T: PartialEq + std::fmt::Debug>(got: T, wanted: T) -> Result<(), String> {
    if got == wanted {
        Ok(())
    } else {
        Err(format!("{got:?}, the model: {wanted:?}"))
    }
}

/// The model counts to 2^128; a wait beyond the longest `Duration` reads as that.
fn as_durations(answer: Answer) -> Answer {
    let capped = |ns: u128| ns.min(Duration::MAX.as_nanos());
    match answer {
        Answer::Allowed {
            remaining,
            delay_ns,
            reset_after_ns,
        } => Answer::Allowed {
            remaining,
            delay_ns: capped(delay_ns),
            reset_after_ns: capped(reset_after_ns),
        },
        Answer::Limited {
            remaining,
            retry_after_ns,
            reset_after_ns,
        } => Answer::Limited {
            remaining,
            retry_after_ns: capped(retry_after_ns),
            reset_after_ns: capped(reset_after_ns),
        },
        bare => bare,
    }
}
