//! From a trace's words to a limiter, and from its answers to a trace's words.

use std::time::Duration;

use tollgate::{
    AnyLimit, BuildError, ClockWentBackwards, Decision, FixedWindow, KeyedLimiter, LeakyBucket,
    ManualClock, Rate, SlidingLog, SlidingWindowCounter, Timestamp,
};
use tollgate_testkit::{Algorithm, Anchor, Answer, Config};

pub(crate) type Keyed = KeyedLimiter<AnyLimit, ManualClock>;

pub(crate) fn any_limit(algorithm: &Algorithm) -> AnyLimit {
    let rate = |tokens, per_ns| Rate::new(tokens, Duration::from_nanos(per_ns));
    match *algorithm {
        Algorithm::TokenBucket {
            tokens,
            per_ns,
            burst,
        } => rate(tokens, per_ns).burst(burst).into(),
        Algorithm::LeakyBucket {
            tokens,
            per_ns,
            burst,
        } => LeakyBucket::new(rate(tokens, per_ns).burst(burst)).into(),
        Algorithm::FixedWindow {
            limit,
            window_ns,
            anchor,
        } => {
            let window = FixedWindow::new(limit, Duration::from_nanos(window_ns));
            if anchor == Anchor::Aligned {
                window.aligned().into()
            } else {
                window.into()
            }
        }
        Algorithm::SlidingLog { limit, window_ns } => {
            SlidingLog::new(limit, Duration::from_nanos(window_ns)).into()
        }
        Algorithm::SlidingWindowCounter { limit, window_ns } => {
            SlidingWindowCounter::new(limit, Duration::from_nanos(window_ns)).into()
        }
        ref other => panic!("an algorithm that the harness does not know: {other:?}"),
    }
}

pub(crate) fn keyed(config: &Config) -> Result<Keyed, BuildError> {
    let most = config
        .max_clients
        .map_or(usize::MAX, |most| usize::try_from(most).unwrap());
    let builder =
        KeyedLimiter::builder(any_limit(&config.algorithm), most).clock(ManualClock::default());
    match config.idle_ns {
        Some(idle_ns) => builder.idle(Duration::from_nanos(idle_ns)).build(),
        None => builder.never_forget().build(),
    }
}

pub(crate) fn answer(decided: Result<Decision, ClockWentBackwards>) -> Answer {
    match decided {
        Ok(Decision::Allowed {
            remaining,
            delay,
            reset_after,
        }) => Answer::Allowed {
            remaining,
            delay_ns: delay.as_nanos(),
            reset_after_ns: reset_after.as_nanos(),
        },
        Ok(Decision::Limited {
            remaining,
            retry_after,
            reset_after,
        }) => Answer::Limited {
            remaining,
            retry_after_ns: retry_after.as_nanos(),
            reset_after_ns: reset_after.as_nanos(),
        },
        Ok(Decision::Banned { retry_after }) => Answer::Banned {
            retry_after_ns: retry_after.as_nanos(),
        },
        Ok(Decision::ClientLimit) => Answer::ClientLimit,
        Ok(Decision::TooLarge { .. }) => Answer::TooLarge,
        Ok(other) => panic!("an answer that the traces have no word for: {other:?}"),
        Err(_) => Answer::ClockBackwards,
    }
}

pub(crate) fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}
