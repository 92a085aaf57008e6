//! The limiters, each behind the same loop.

pub(crate) mod governor;
mod limitador;
pub(crate) mod ours;
mod rate_net;
mod ratelimit;
pub(crate) mod textbook;
mod throttlecrab;

use std::hint::black_box;

use crate::error::Error;
use crate::keys::Name;
use crate::row::{Answer, Call, Limiter};

/// Calls to make, one after another.
pub(crate) struct Calls<'a> {
    /// Whose turn it is.
    pub(crate) clients: &'a [u32],
    /// Added to each, so that the same sequence can stand for clients not seen before.
    pub(crate) offset: u32,
    pub(crate) name_len: usize,
}

/// A limiter under measurement.
pub(crate) trait Contender: Send + Sync {
    /// Makes the calls; returns how many were admitted. The loop is inside, so that the decision is
    /// inlined into it as it would be in a program.
    fn run(&self, calls: &Calls<'_>) -> usize;

    /// Makes clients known, by a cheaper way where there is one.
    fn learn(&self, calls: &Calls<'_>) {
        self.run(calls);
    }
}

/// One that decides by name.
pub(crate) struct Keyed<F>(pub(crate) F);

impl<F: Fn(&Name) -> bool + Send + Sync> Contender for Keyed<F> {
    fn run(&self, calls: &Calls<'_>) -> usize {
        let mut name = Name::new(calls.name_len);
        let mut admitted = 0;
        for client in calls.clients {
            name.set(calls.offset + client);
            admitted += usize::from(black_box((self.0)(black_box(&name))));
        }
        admitted
    }
}

/// One whose calls take too long to make a hundred thousand of them only to fill it: the second
/// decides, the first fills.
pub(crate) struct Slow<F, G>(pub(crate) Keyed<F>, pub(crate) Keyed<G>);

impl<F, G> Contender for Slow<F, G>
where
    F: Fn(&Name) -> bool + Send + Sync,
    G: Fn(&Name) -> bool + Send + Sync,
{
    fn run(&self, calls: &Calls<'_>) -> usize {
        self.1.run(calls)
    }

    fn learn(&self, calls: &Calls<'_>) {
        self.0.run(calls);
    }
}

/// One bucket for everybody.
pub(crate) struct Single<F>(pub(crate) F);

impl<F: Fn() -> bool + Send + Sync> Contender for Single<F> {
    fn run(&self, calls: &Calls<'_>) -> usize {
        let decide = |_| usize::from(black_box((self.0)()));
        calls.clients.iter().map(decide).sum()
    }
}

/// Which limiter, asked how, in a state in which it answers what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) name: Limiter,
    pub(crate) call: Call,
    pub(crate) answer: Answer,
}

impl Entry {
    pub(crate) fn new(name: Limiter, call: Call, answer: Answer) -> Self {
        Self { name, call, answer }
    }

    /// A limiter with a bucket a client; at most `max_clients` of them where it has such a bound.
    pub(crate) fn keyed(self, max_clients: usize) -> Result<Box<dyn Contender>, Error> {
        Ok(match self.name {
            Limiter::Tollgate => ours::keyed(self.call, self.answer, max_clients)?,
            Limiter::Governor => {
                governor::keyed(self.answer, std::collections::hash_map::RandomState::new())
            }
            Limiter::GovernorAhash => governor::keyed(self.answer, ahash::RandomState::new()),
            Limiter::Textbook => textbook::keyed(self.answer),
            Limiter::RateNet => rate_net::keyed(self.answer, max_clients)?,
            Limiter::Throttlecrab => throttlecrab::keyed(self.answer),
            Limiter::Limitador => limitador::keyed(self.answer, max_clients)?,
            Limiter::Ratelimit => return Err(self.without("keys")),
            Limiter::Sweep => textbook::sweep(),
            Limiter::TowerGovernor | Limiter::TowerGovernorHeaders => {
                return Err(self.without("limiter of its own"));
            }
            Limiter::Baseline => match self.call {
                Call::TryAcquireInTurn | Call::TryAcquireEach => ours::no_batch(),
                Call::Allow | Call::TryAcquire => {
                    Box::new(Keyed(|name: &Name| !name.as_str().is_empty()))
                }
            },
        })
    }

    /// A limiter with one bucket.
    pub(crate) fn single(self) -> Result<Box<dyn Contender>, Error> {
        match self.name {
            Limiter::Tollgate => ours::single(self.call, self.answer),
            Limiter::Governor => Ok(governor::single(self.answer)),
            Limiter::RateNet => rate_net::single(self.answer),
            Limiter::Ratelimit => ratelimit::single(self.answer),
            Limiter::Baseline => Ok(Box::new(Single(|| true))),
            Limiter::GovernorAhash
            | Limiter::Textbook
            | Limiter::Sweep
            | Limiter::Throttlecrab
            | Limiter::Limitador
            | Limiter::TowerGovernor
            | Limiter::TowerGovernorHeaders => Err(self.without("single bucket")),
        }
    }

    fn without(self, what: &str) -> Error {
        Error::new(format!("{:?} has no {what}", self.name))
    }
}

/// A quota under which every call of a row gets the same answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Load {
    /// 10,000 a second, a million at once: a row makes fewer calls for any one client.
    Generous,
    /// One an hour, one at once: drained by the call that made the client known.
    Drained,
}

/// A bucket's size and rate under [`Load::Generous`].
pub(crate) const GENEROUS_BURST: u32 = 1_000_000;
pub(crate) const GENEROUS_A_SECOND: u32 = 10_000;

impl From<Answer> for Load {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Admitted | Answer::ClientLimit | Answer::Mixed => Self::Generous,
            Answer::Refused => Self::Drained,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYED: [Limiter; 7] = [
        Limiter::Tollgate,
        Limiter::Governor,
        Limiter::GovernorAhash,
        Limiter::RateNet,
        Limiter::Throttlecrab,
        Limiter::Limitador,
        Limiter::Textbook,
    ];
    const SINGLE: [Limiter; 4] = [
        Limiter::Tollgate,
        Limiter::Governor,
        Limiter::RateNet,
        Limiter::Ratelimit,
    ];

    /// How many of the clients' calls are admitted, each client by its own name or all by none.
    fn admitted(name: Limiter, answer: Answer, name_len: usize, clients: &[u32]) -> usize {
        let entry = Entry::new(name, Call::Allow, answer);
        let contender = match name_len {
            0 => entry.single(),
            _ => entry.keyed(10),
        };
        let calls = Calls {
            clients,
            offset: 0,
            name_len,
        };
        contender.expect("a limiter").run(&calls)
    }

    #[test]
    fn a_generous_bucket_admits() {
        let answer = Answer::Admitted;
        for name in KEYED {
            assert_eq!(admitted(name, answer, 36, &[7, 7, 8, 7]), 4, "{name:?}");
        }
        for name in SINGLE {
            assert_eq!(admitted(name, answer, 0, &[7, 7, 8, 7]), 4, "{name:?}");
        }
    }

    /// One batch and a part of another, in which two clients call twice.
    #[test]
    fn a_batch_is_answered_call_by_call() {
        let clients: Vec<u32> = (0..18).chain([0, 17]).collect();
        for call in [Call::TryAcquireInTurn, Call::TryAcquireEach] {
            for (answer, expected) in [(Answer::Admitted, 20), (Answer::Refused, 18)] {
                let limiter = Entry::new(Limiter::Tollgate, call, answer).keyed(100);
                let calls = Calls {
                    clients: &clients,
                    offset: 7,
                    name_len: 36,
                };
                let admitted = limiter.expect("a limiter").run(&calls);
                assert_eq!(admitted, expected, "{call:?} {answer:?}");
            }
        }
    }

    #[test]
    fn a_drained_bucket_refuses() {
        let answer = Answer::Refused;
        for name in KEYED {
            // Whoever has a burst of one expires in the instant of the first call.
            let expected = if name == Limiter::Throttlecrab { 4 } else { 2 };
            let admitted = admitted(name, answer, 36, &[7, 7, 8, 7]);
            assert_eq!(admitted, expected, "{name:?}");
        }
        for name in SINGLE {
            assert_eq!(admitted(name, answer, 0, &[7, 7, 8, 7]), 1, "{name:?}");
        }
    }
}
