//! Any interleaving of everything that a limiter is asked for, against the model.

use std::mem::discriminant;
use std::time::Duration;

use tollgate::{
    AnyLimit, ChangeError, Charge, Clock, Decision, KeyedLimiter, KeyedLimiterBuilder, Limiter,
    ManualClock, Tokens, acquire_all,
};
use tollgate_testkit::{self as testkit, Algorithm, Anchor, Answer, Config, Model, Random};

use crate::harness::{Keyed, answer, any_limit, at};

/// A limiter and its model, driven together.
struct Pair {
    limiter: Keyed,
    clock: ManualClock,
    model: Model,
    config: Config,
    debt: u64,
    /// Idle is the default, which follows the limit.
    idles_by_default: bool,
    /// (client, cost, time, charge)
    charges: Vec<(String, u64, u64, Charge)>,
}

/// Nanoseconds by which clients are settled, who may owe tokens.
fn settles_after_ns(algorithm: &Algorithm, debt: u64) -> Option<u64> {
    if is_bucket(algorithm) {
        algorithm.span_ns(algorithm.burst() + debt)
    } else {
        algorithm.settles_after_ns()
    }
}

/// A limit of the same kind, with other numbers or, now and then, with some of the same.
fn another(random: &mut Random, algorithm: &Algorithm) -> Algorithm {
    let anchor = |algorithm: &Algorithm| {
        let aligned = Anchor::Aligned;
        matches!(algorithm, Algorithm::FixedWindow { anchor, .. } if *anchor == aligned)
    };
    loop {
        let mut next = if random.one_in(2) {
            random.bucket()
        } else {
            random.window()
        };
        if discriminant(&next) != discriminant(algorithm) || anchor(&next) != anchor(algorithm) {
            continue;
        }
        let keeps = random.one_in(2);
        match (&mut next, algorithm) {
            (
                Algorithm::TokenBucket { tokens, per_ns, .. }
                | Algorithm::LeakyBucket { tokens, per_ns, .. },
                Algorithm::TokenBucket {
                    tokens: own_tokens,
                    per_ns: own_ns,
                    ..
                }
                | Algorithm::LeakyBucket {
                    tokens: own_tokens,
                    per_ns: own_ns,
                    ..
                },
            ) if keeps => (*tokens, *per_ns) = (*own_tokens, *own_ns),
            (
                Algorithm::FixedWindow { window_ns, .. }
                | Algorithm::SlidingLog { window_ns, .. }
                | Algorithm::SlidingWindowCounter { window_ns, .. },
                Algorithm::FixedWindow {
                    window_ns: own_ns, ..
                }
                | Algorithm::SlidingLog {
                    window_ns: own_ns, ..
                }
                | Algorithm::SlidingWindowCounter {
                    window_ns: own_ns, ..
                },
            ) if keeps => *window_ns = *own_ns,
            _ => {}
        }
        return next;
    }
}

fn is_bucket(algorithm: &Algorithm) -> bool {
    matches!(
        algorithm,
        Algorithm::TokenBucket { .. } | Algorithm::LeakyBucket { .. }
    )
}

fn builder(
    config: &Config,
    debt: u64,
    idles_by_default: bool,
    clock: ManualClock,
) -> KeyedLimiterBuilder<AnyLimit, ManualClock> {
    let most = config.max_clients.unwrap_or(1 << 20) as usize;
    let builder = KeyedLimiter::builder(any_limit(&config.algorithm), most)
        .largest_debt(debt)
        .clock(clock);
    match config.idle_ns {
        _ if idles_by_default => builder,
        Some(idle_ns) => builder.idle(Duration::from_nanos(idle_ns)),
        None => builder.never_forget(),
    }
}

/// The same word on both sides.
fn tokens(random: &mut Random, algorithm: &Algorithm) -> (Tokens, testkit::Tokens) {
    let kept = (Tokens::Kept, testkit::Tokens::Kept);
    let reset = (Tokens::Reset, testkit::Tokens::Reset);
    let proportional = (Tokens::Proportional, testkit::Tokens::Proportional);
    if is_bucket(algorithm) {
        random.pick(kept, &[kept, reset, proportional])
    } else {
        random.pick(kept, &[reset])
    }
}

impl Pair {
    /// `None` if the debt does not fit the limit.
    fn new(random: &mut Random) -> Option<Self> {
        let mut config = random.config();
        let idles_by_default = config.idle_ns.is_some() && random.one_in(2);
        // With a shorter idle time than it takes to fill from a debt a limiter is not built.
        let debt = if idles_by_default || config.idle_ns.is_none() {
            random.pick(0, &[0, 1, 3, 1_000])
        } else {
            0
        };
        if idles_by_default {
            config.idle_ns = settles_after_ns(&config.algorithm, debt);
        }
        let clock = ManualClock::default();
        let mut pair = Self {
            limiter: builder(&config, debt, idles_by_default, clock.clone())
                .build()
                .ok()?,
            clock,
            model: Model::new(config.clone()).largest_debt(debt),
            config,
            debt,
            idles_by_default,
            charges: Vec::new(),
        };
        // Now and then a clock that has run for a while.
        let start = random.pick(0, &[0, 1 << 40]);
        pair.clock.advance(Duration::from_nanos(start));
        pair.model.touch("nobody", start);
        Some(pair)
    }

    /// Another limiter with the same clients.
    fn restart(&mut self) {
        let snapshot = self.limiter.snapshot();
        let clock = self.clock.clone();
        let builder = builder(&self.config, self.debt, self.idles_by_default, clock);
        self.limiter = builder.restore(&snapshot).unwrap();
        self.charges.clear();
    }

    fn now_ns(&self) -> u64 {
        self.clock.now().as_nanos()
    }

    /// A change of the limit, if the limiter takes it.
    fn change(&mut self, random: &mut Random, told: &dyn Fn(&str) -> String) {
        let next = another(random, &self.config.algorithm);
        let (ours, models) = tokens(random, &next);
        let limit = any_limit(&next);
        let mut changed = self.limiter.set_quota(limit, ours);
        if changed == Err(ChangeError::HistoryFull { most: 15 }) {
            assert!(self.limiter.settle() > 0);
            changed = self.limiter.set_quota(limit, ours);
        }
        match changed {
            Ok(()) => {}
            Err(ChangeError::NeedsMoreBits | ChangeError::Invalid(_)) => return,
            Err(other) => panic!("{}", told(&format!("{other}"))),
        }

        let same = next == self.config.algorithm && ours != Tokens::Reset;
        if same {
            return;
        }
        if self.idles_by_default {
            self.config.idle_ns = settles_after_ns(&next, self.debt);
        }
        self.model
            .change(next.clone(), self.config.idle_ns, models, self.now_ns());
        if !is_bucket(&next) {
            // A window of another length does not tell the calls before it apart.
            self.charges.clear();
        }
        self.config.algorithm = next;
    }

    fn step(&mut self, random: &mut Random, name: &str, cost: u64, told: &dyn Fn(&str) -> String) {
        let now_ns = self.now_ns();
        match random.below(14) {
            0 if !self.charges.is_empty() => {
                let which = random.below(self.charges.len() as u64) as usize;
                let (name, cost, taken_at_ns, charge) = self.charges.swap_remove(which);
                self.limiter.cancel(charge);
                self.model.refund(&name, cost, Some(taken_at_ns), now_ns);
            }
            1 => {
                self.limiter.refund(name, cost);
                self.model.refund(name, cost, None, now_ns);
                // What was given back by the way cannot be told from what was charged.
                self.charges.retain(|charge| charge.0 != name);
            }
            2 => {
                let removed = self.limiter.remove(name);
                let wanted = self.model.remove(name, now_ns);
                assert_eq!(removed, wanted, "{}", told("remove"));
                self.charges.retain(|charge| charge.0 != name);
            }
            3 | 4 => {
                let wanted = self.model.call(name, cost, now_ns);
                let got = match self.limiter.charge(name, cost) {
                    Ok(charge) => {
                        let decision = charge.decision();
                        // Who is forgotten before it is settled, and returns, cannot be told from
                        // who was there all the time.
                        if self.idles_by_default {
                            self.charges.push((name.to_owned(), cost, now_ns, charge));
                        }
                        decision
                    }
                    Err(refused) => refused,
                };
                assert_eq!(answer(Ok(got)), wanted, "{}", told("charge"));
            }
            5 if cost > 0 => {
                let got = self.limiter.acquire_up_to(name, cost);
                let looked = self.model.call(name, 0, now_ns);
                let cost = if let Answer::Allowed { remaining, .. } = looked {
                    remaining.min(cost).max(1)
                } else {
                    1
                };
                let took = matches!(self.model.call(name, cost, now_ns), Answer::Allowed { .. });
                assert_eq!(got, if took { cost } else { 0 }, "{}", told("up to"));
            }
            6 | 7 => {
                let got = self.limiter.debit(name, cost);
                let wanted = self.model.debit(name, cost, now_ns);
                assert_eq!(got.taken(), wanted.unwrap_or(0), "{}", told("debit"));
                if wanted.is_some() && cost > 0 {
                    let mut next = self.model.judge(name, 1, now_ns);
                    if matches!(next, Answer::Allowed { .. }) {
                        next = self.model.call(name, 0, now_ns);
                    }
                    assert_eq!(answer(Ok(got.next())), next, "{}", told("next"));
                } else if cost > 0 {
                    assert_eq!(got.next(), Decision::ClientLimit);
                }
            }
            8 if random.one_in(3) => {
                let wait = random.magnitude(1 << 40);
                let banned = self.limiter.ban(name, Duration::from_nanos(wait));
                let wanted = self.model.ban(name, now_ns.saturating_add(wait), now_ns);
                assert_eq!(banned, wanted, "{}", told("ban"));
            }
            9 if random.one_in(2) => self.change(random, told),
            10 if random.one_in(20) => {
                self.limiter.settle();
            }
            11 if random.one_in(10) => self.restart(),
            _ => {
                let wanted = self.model.call(name, cost, now_ns);
                let got = self.limiter.try_acquire(name, cost);
                assert_eq!(answer(Ok(got)), wanted, "{}", told("call"));
            }
        }
    }
}

#[test]
fn any_interleaving_is_answered_as_by_the_model() {
    for seed in 0..4_000_u64 {
        let mut random = Random::new(seed ^ 0x4ef4_0d5e);
        let Some(mut pair) = Pair::new(&mut random) else {
            continue;
        };
        let calls = random.calls(&pair.config, 120);
        for (step, made) in calls.into_iter().enumerate() {
            let now_ns = made.at_ns.max(pair.now_ns());
            pair.clock.set(at(now_ns));
            let config = pair.config.clone();
            let debt = pair.debt;
            let told = |what: &str| {
                format!("seed {seed}, step {step}, {what}: {made:?} {config:?} debt {debt}")
            };
            pair.step(&mut random, &made.client, made.cost, &told);
            if step % 4 == 3 {
                let wanted = pair.model.len_at(now_ns);
                assert_eq!(pair.limiter.len(), wanted, "{}", told("len"));
            }
        }
    }
}

/// One bucket, the same way: it is one client that is never forgotten.
#[test]
fn one_bucket_is_answered_as_by_the_model() {
    for seed in 0..1_500_u64 {
        let mut random = Random::new(seed ^ 0x0073_696e);
        let mut config = random.config();
        (config.max_clients, config.idle_ns) = (None, None);
        let debt = random.pick(0, &[0, 1, 3, 1_000]);
        let clock = ManualClock::default();
        let builder = |config: &Config| {
            Limiter::builder(any_limit(&config.algorithm))
                .largest_debt(debt)
                .clock(clock.clone())
        };
        let Ok(mut limiter) = builder(&config).build() else {
            continue;
        };
        let mut model = Model::new(config.clone()).largest_debt(debt);
        // The model's bucket is there from its first attempt on, the limiter's from the start.
        let wanted = model.call("all", 1, 0);
        assert_eq!(answer(Ok(limiter.try_acquire(1))), wanted);
        for (step, made) in random.calls(&config, 100).into_iter().enumerate() {
            let now_ns = made.at_ns.max(clock.now().as_nanos());
            clock.set(at(now_ns));
            let cost = made.cost;
            let told = |what: &str| format!("seed {seed}, step {step}, {what} {cost}: {config:?}");
            match random.below(10) {
                0 => {
                    limiter.refund(cost);
                    model.refund("all", cost, None, now_ns);
                }
                1 => {
                    let taken = limiter.debit(cost).taken();
                    let wanted = model.debit("all", cost, now_ns);
                    assert_eq!(Some(taken), wanted, "{}", told("debit"));
                }
                2 if random.one_in(3) => {
                    let wait = random.magnitude(1 << 40);
                    limiter.ban(Duration::from_nanos(wait));
                    assert!(model.ban("all", now_ns.saturating_add(wait), now_ns));
                }
                3 if random.one_in(2) => {
                    let next = another(&mut random, &config.algorithm);
                    let (ours, models) = tokens(&mut random, &next);
                    if limiter.set_quota(any_limit(&next), ours).is_ok() {
                        model.change(next.clone(), None, models, now_ns);
                        config.algorithm = next;
                    }
                }
                4 if random.one_in(5) => {
                    limiter = builder(&config).restore(&limiter.snapshot()).unwrap();
                }
                5 => {
                    let got = acquire_all(&mut [limiter.ask(cost)]).decision();
                    let wanted = model.call("all", cost, now_ns);
                    if wanted != Answer::TooLarge || cost > 0 {
                        assert_eq!(answer(Ok(got)), wanted, "{}", told("ask"));
                    }
                }
                _ => {
                    let wanted = model.call("all", cost, now_ns);
                    let got = limiter.try_acquire(cost);
                    assert_eq!(answer(Ok(got)), wanted, "{}", told("call"));
                }
            }
        }
    }
}
