//! A limiter and what is done to it, made of any bytes.
//!
//! Plain random numbers seldom meet: here times gather at refills, window edges and idle edges,
//! costs around the burst, and numbers at every order of magnitude.

use arbitrary::{Arbitrary, Result, Unstructured};
use tollgate_testkit::{Algorithm, Anchor, Config, Tokens};

/// The model asks every client a few hundred times a call.
const MOST_STEPS: usize = 48;

/// A limiter and what is done to it. Its numbers may be such that it does not build.
#[derive(Clone, Debug)]
pub struct Script {
    /// The limiter.
    pub config: Config,
    /// How many tokens a client may be left owing.
    pub largest_debt: u64,
    /// Idle is the default, which follows the limit, and the config's idle time is not used.
    pub idles_by_default: bool,
    /// At most 48, in order.
    pub steps: Vec<Step>,
}

/// One call.
#[derive(Clone, Debug)]
pub struct Step {
    /// When; now and then before the step before.
    pub at_ns: u64,
    /// One of a few.
    pub client: u8,
    /// What.
    pub verb: Verb,
}

/// What is asked of a limiter.
#[derive(Clone, Debug)]
pub enum Verb {
    /// So many tokens, 0 being a look, at a time that is brought.
    TakeAt(u64),
    /// So many tokens, at the clock's time.
    Take(u64),
    /// One token, at the clock's time: yes or no.
    Allow,
    /// A look, at the clock's time.
    Peek,
    /// That the client be forgotten, at the clock's time.
    Remove,
    /// That those who are idle be forgotten, at the clock's time.
    ForgetIdle,
    /// How many clients there are, at a time that is brought.
    LenAt,
    /// That the client be given so many tokens, at the clock's time, as are all from here on.
    Refund(u64),
    /// As many tokens as there are, up to so many.
    UpTo(u64),
    /// So many tokens, whether they are there or not.
    Debit(u64),
    /// That the client be refused everything for so many nanoseconds.
    Ban(u64),
    /// Another limit of the same kind.
    Change(Algorithm, Tokens),
    /// That all clients be brought over to the limit that holds.
    Settle,
    /// A snapshot, and a new limiter made of it in the place of this one.
    Restart,
}

impl<'a> Arbitrary<'a> for Script {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let algorithm = algorithm(u)?;
        let max_clients = match u.int_in_range(0..=7_u8)? {
            few @ 0..=5 => Some(u64::from(few)),
            _ => None,
        };
        let idle_ns = match u.int_in_range(0..=3_u8)? {
            0 => None,
            1 => Some(number(u)?),
            _ => {
                let span_ns = span_ns(u, &algorithm)?;
                Some(around(u, span_ns)?)
            }
        };
        let config = Config {
            algorithm,
            max_clients,
            idle_ns,
        };
        let largest_debt = match u.int_in_range(0..=3_u8)? {
            0 | 1 => 0,
            2 => around(u, config.algorithm.burst())?,
            _ => number(u)?,
        };
        // Most other idle times are too short to go with a debt.
        let idles_by_default = u.arbitrary()? || (largest_debt > 0 && !u.ratio(1, 8)?);
        let clients = u.int_in_range(1..=6_u8)?;
        let mut now_ns = if u.arbitrary()? { number(u)? } else { 0 };
        // Of the limit that was asked for last: it may have been refused.
        let mut latest = config.clone();
        let mut steps = Vec::new();
        while steps.len() < MOST_STEPS && !u.is_empty() {
            let at_ns = time(u, &latest, now_ns)?;
            now_ns = now_ns.max(at_ns);
            let client = u.int_in_range(1..=clients)?;
            let verb = verb(u, &latest.algorithm, largest_debt)?;
            if let Verb::Change(next, _) = &verb {
                latest.algorithm = next.clone();
            }
            steps.push(Step {
                at_ns,
                client,
                verb,
            });
        }
        Ok(Self {
            config,
            largest_debt,
            idles_by_default,
            steps,
        })
    }
}

fn algorithm(u: &mut Unstructured<'_>) -> Result<Algorithm> {
    let kind = u.int_in_range(0..=6_u8)?;
    let (most, length_ns) = (number(u)?, number(u)?);
    Ok(match kind {
        0..=2 => Algorithm::TokenBucket {
            tokens: number(u)?,
            per_ns: length_ns,
            burst: most,
        },
        3 => Algorithm::LeakyBucket {
            tokens: number(u)?,
            per_ns: length_ns,
            burst: most,
        },
        4 => Algorithm::FixedWindow {
            limit: most,
            window_ns: length_ns,
            anchor: *u.choose(&[Anchor::First, Anchor::Aligned])?,
        },
        5 => Algorithm::SlidingLog {
            limit: most,
            window_ns: length_ns,
        },
        _ => Algorithm::SlidingWindowCounter {
            limit: most,
            window_ns: length_ns,
        },
    })
}

fn time(u: &mut Unstructured<'_>, config: &Config, now_ns: u64) -> Result<u64> {
    let step_ns = match u.int_in_range(0..=11_u8)? {
        0..=3 => 0,
        4 => u64::from(u.arbitrary::<u8>()?),
        5 | 6 => {
            let span_ns = span_ns(u, &config.algorithm)?;
            around(u, span_ns)?
        }
        7 => {
            let idle_ns = config.idle_ns.unwrap_or(1);
            around(u, idle_ns)?
        }
        8 => {
            let span_ns = span_ns(u, &config.algorithm)?.max(1);
            around(u, span_ns - now_ns % span_ns)?
        }
        9 => number(u)?,
        10 => return Ok(now_ns.saturating_sub(number(u)?)),
        _ => return around(u, u64::MAX),
    };
    Ok(now_ns.saturating_add(step_ns))
}

fn verb(u: &mut Unstructured<'_>, algorithm: &Algorithm, largest_debt: u64) -> Result<Verb> {
    let burst = algorithm.burst();
    Ok(match u.int_in_range(0..=24_u8)? {
        0..=3 => Verb::TakeAt(1),
        4 => Verb::TakeAt(0),
        5 => Verb::TakeAt(around(u, burst)?),
        6 | 7 => Verb::TakeAt(number(u)?),
        8 => Verb::Take(around(u, burst / 2)?),
        9 => Verb::Allow,
        10 => Verb::Peek,
        11 => Verb::Remove,
        12 => Verb::ForgetIdle,
        13 => Verb::LenAt,
        14 => Verb::Refund(around(u, burst / 2)?),
        15 => Verb::Refund(number(u)?),
        16 => Verb::UpTo(around(u, burst)?),
        17 => Verb::Debit(around(u, largest_debt)?),
        18 => Verb::Debit(number(u)?),
        19 => {
            let span_ns = span_ns(u, algorithm)?;
            Verb::Ban(around(u, span_ns)?)
        }
        20..=22 => {
            let tokens = *u.choose(&[Tokens::Kept, Tokens::Reset, Tokens::Proportional])?;
            Verb::Change(another(u, algorithm)?, tokens)
        }
        23 => Verb::Settle,
        _ => Verb::Restart,
    })
}

/// The same kind of limit, with other numbers or some of the same.
fn another(u: &mut Unstructured<'_>, algorithm: &Algorithm) -> Result<Algorithm> {
    let mut next = algorithm.clone();
    let numbers = match &mut next {
        Algorithm::TokenBucket {
            tokens,
            per_ns,
            burst,
        }
        | Algorithm::LeakyBucket {
            tokens,
            per_ns,
            burst,
        } => [Some(burst), Some(per_ns), Some(tokens)],
        Algorithm::FixedWindow {
            limit, window_ns, ..
        }
        | Algorithm::SlidingLog { limit, window_ns }
        | Algorithm::SlidingWindowCounter { limit, window_ns } => {
            [Some(limit), Some(window_ns), None]
        }
        other => unreachable!("not one of the script's: {other:?}"),
    };
    for own in numbers.into_iter().flatten() {
        *own = match u.int_in_range(0..=5_u8)? {
            0..=2 => *own,
            3 => around(u, *own)?,
            // A rate with both numbers doubled is the same one.
            4 => own.saturating_mul(2),
            _ => number(u)?,
        };
    }
    Ok(next)
}

/// A length of time at which something happens: one token, two or a whole burst of them; one
/// window or two.
fn span_ns(u: &mut Unstructured<'_>, algorithm: &Algorithm) -> Result<u64> {
    let most = match *algorithm {
        Algorithm::TokenBucket { burst, .. } | Algorithm::LeakyBucket { burst, .. } => burst,
        _ => 2,
    };
    let count = *u.choose(&[1, 2, most])?;
    Ok(algorithm.span_ns(count).unwrap_or(u64::MAX))
}

/// `n`, or one more or less.
fn around(u: &mut Unstructured<'_>, n: u64) -> Result<u64> {
    Ok(*u.choose(&[n, n.saturating_add(1), n.saturating_sub(1)])?)
}

/// One that people write, or any, every order of magnitude as likely.
fn number(u: &mut Unstructured<'_>) -> Result<u64> {
    const WRITTEN: [u64; 12] = [
        1,
        2,
        3,
        5,
        7,
        10,
        100,
        1_000,
        1_000_000_000,
        60_000_000_000,
        86_400_000_000_000,
        u64::MAX,
    ];
    let kind: u8 = u.arbitrary()?;
    match WRITTEN.get(usize::from(kind)) {
        Some(&written) => Ok(written),
        None => Ok(u.arbitrary::<u64>()? >> (kind % 64)),
    }
}
