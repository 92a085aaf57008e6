//! The limiter that everyone writes first: one lock, one map, tokens as `f64`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{Contender, GENEROUS_A_SECOND, GENEROUS_BURST, Keyed, Load, Slow};
use crate::cpu::wall;
use crate::keys::Name;
use crate::row::Answer;

struct Bucket {
    tokens: f64,
    refilled: Instant,
}

pub(crate) struct Textbook {
    a_second: f64,
    burst: f64,
    buckets: Mutex<HashMap<String, Bucket>>,
}

impl Textbook {
    pub(crate) fn new(load: Load) -> Self {
        let (a_second, burst) = match load {
            Load::Generous => (f64::from(GENEROUS_A_SECOND), f64::from(GENEROUS_BURST)),
            Load::Drained => (1.0 / 3_600.0, 1.0),
        };
        Self {
            a_second,
            burst,
            buckets: Mutex::default(),
        }
    }

    pub(crate) fn allow(&self, name: &Name) -> bool {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let now = wall();
        self.decide(&mut buckets, name, now)
    }

    /// Forgets whoever's bucket has been full since, before it decides: every call looks at every
    /// client.
    fn sweep_and_allow(&self, name: &Name) -> bool {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let now = wall();
        let idle = Duration::from_secs_f64(self.burst / self.a_second);
        buckets.retain(|_, bucket| now.saturating_duration_since(bucket.refilled) < idle);
        self.decide(&mut buckets, name, now)
    }

    fn decide(&self, buckets: &mut HashMap<String, Bucket>, name: &Name, now: Instant) -> bool {
        let Some(bucket) = buckets.get_mut(name.as_str()) else {
            let bucket = Bucket {
                tokens: self.burst - 1.0,
                refilled: now,
            };
            buckets.insert(name.as_string().clone(), bucket);
            return true;
        };
        let elapsed = now.saturating_duration_since(bucket.refilled).as_secs_f64();
        bucket.tokens = (bucket.tokens + elapsed * self.a_second).min(self.burst);
        bucket.refilled = now;
        let admitted = bucket.tokens >= 1.0;
        if admitted {
            bucket.tokens -= 1.0;
        }
        admitted
    }
}

pub(crate) fn keyed(answer: Answer) -> Box<dyn Contender> {
    let limiter = Textbook::new(answer.into());
    Box::new(Keyed(move |name: &Name| limiter.allow(name)))
}

pub(crate) fn sweep() -> Box<dyn Contender> {
    let limiter = Arc::new(Textbook::new(Load::Generous));
    let filled = Arc::clone(&limiter);
    Box::new(Slow(
        Keyed(move |name: &Name| filled.allow(name)),
        Keyed(move |name: &Name| limiter.sweep_and_allow(name)),
    ))
}
