//! The windows: the calls that were admitted, and which of them count.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::ToPrimitive;

use super::Tokens;
use super::search::{rounded_down, up_to, whole};

/// Which of the admitted calls count against the limit at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counting {
    /// Those in the window that the first of them opened, until it closes.
    FromFirst,
    /// Those in the same aligned window.
    Aligned,
    /// Those less than a window old.
    Log,
    /// Those in the same aligned window, and the share that still overlaps of those in the one
    /// before it.
    Weighed,
}

/// A client's admitted calls.
#[derive(Clone, Debug)]
pub(super) struct Window {
    counting: Counting,
    limit: BigInt,
    window_ns: u128,
    /// In the order of their times. A call that has ceased to count never counts again, and is
    /// left out; from the first, that ends for all calls of a window at once, so what is left
    /// begins with a call that opened one.
    admitted: Vec<Admitted>,
}

#[derive(Clone, Copy, Debug)]
struct Admitted {
    at_ns: u128,
    /// More than a call can have where those of two windows were added up.
    cost: u128,
}

/// What counts against the limit.
struct Counted {
    in_full: BigInt,
    /// Of the window before, its cost x the share of it that still overlaps.
    weighed: BigRational,
}

impl Window {
    pub(super) fn without_calls(counting: Counting, limit: u64, window_ns: u64) -> Self {
        Self {
            counting,
            limit: limit.into(),
            window_ns: u128::from(window_ns.max(1)),
            admitted: Vec::new(),
        }
    }

    pub(super) fn admits(&self, cost: u64) -> impl Fn(u128) -> bool {
        let left = &self.limit - cost;
        move |at_ns| {
            let Counted { in_full, weighed } = self.counted(at_ns);
            weighed <= whole(&left - in_full)
        }
    }

    pub(super) fn is_as_new(&self) -> impl Fn(u128) -> bool {
        |at_ns| !self.admitted.iter().any(self.counts_at(at_ns))
    }

    pub(super) fn remaining(&self, at_ns: u128) -> u64 {
        let Counted { in_full, weighed } = self.counted(at_ns);
        rounded_down(&(whole(&self.limit - in_full) - weighed))
    }

    pub(super) fn take(&mut self, cost: u64, at_ns: u128) {
        let counts = self.counts_at(at_ns);
        self.admitted.retain(counts);
        self.admitted.push(Admitted {
            at_ns,
            cost: cost.into(),
        });
    }

    /// Takes what is left and what may be owed; how many that is. A call that takes nothing opens
    /// no window.
    pub(super) fn debit(&mut self, tokens: u64, largest_debt: u64, at_ns: u128) -> u64 {
        let Counted { in_full, weighed } = self.counted(at_ns);
        let left = whole(&self.limit + largest_debt - in_full) - weighed;
        let taken = up_to(tokens, left);
        if taken > 0 {
            self.take(taken, at_ns);
        }
        taken
    }

    /// Goes on as a window of other numbers, of the same counting and without calls so far, in
    /// which what counted until then still counts.
    pub(super) fn change(&mut self, mut to: Self, tokens: Tokens, at_ns: u128) {
        if tokens != Tokens::Reset {
            to.admitted = self.carried(to.window_ns, at_ns);
        }
        *self = to;
    }

    /// The calls that count, as a window of another length has them.
    fn carried(&self, window_ns: u128, at_ns: u128) -> Vec<Admitted> {
        let counts = self.counts_at(at_ns);
        let calls = self.admitted.iter().copied().filter(counts);
        match self.counting {
            Counting::FromFirst => {
                // Over the shorter length, a later call would seem to have opened the next one.
                let closes_ns = self.opened_ns().map(|opened_ns| opened_ns + window_ns);
                let is_open = closes_ns.is_some_and(|closes_ns| at_ns < closes_ns);
                calls.filter(|_| is_open).collect()
            }
            Counting::Aligned => {
                let opened_ns = at_ns - at_ns % window_ns;
                let dated = |call: Admitted| Admitted {
                    at_ns: call.at_ns.max(opened_ns),
                    ..call
                };
                calls.map(dated).collect()
            }
            Counting::Weighed if window_ns != self.window_ns => {
                let Counted { in_full, weighed } = self.counted(at_ns);
                let used = (whole(in_full) + weighed).ceil().to_integer();
                let cost = used.to_u128().unwrap_or(0);
                let calls = (cost > 0).then_some(Admitted { at_ns, cost });
                calls.into_iter().collect()
            }
            Counting::Log | Counting::Weighed => calls.collect(),
        }
    }

    /// As if so much less had been taken by the calls of that time, or by the latest ones; of the
    /// window before, nothing is given back for the latter.
    pub(super) fn refund(&mut self, tokens: u64, taken_at_ns: Option<u128>, at_ns: u128) {
        let counts = self.counts_at(at_ns);
        let window = |time_ns: u128| time_ns / self.window_ns;
        let weighed = self.counting == Counting::Weighed;
        let mut owed = u128::from(tokens);
        for call in self.admitted.iter_mut().rev() {
            let is_meant = match taken_at_ns {
                Some(taken_at_ns) => call.at_ns == taken_at_ns,
                None => !weighed || window(call.at_ns) == window(at_ns),
            };
            if is_meant && counts(call) {
                let given = owed.min(call.cost);
                call.cost -= given;
                owed -= given;
            }
        }
        // A call that took nothing was none; but of a window that others use, the first is its
        // opening. A window of which nothing is used was never opened.
        let is_used = self
            .admitted
            .iter()
            .any(|call| counts(call) && call.cost > 0);
        let opens = self.counting == Counting::FromFirst;
        self.admitted
            .retain(|call| call.cost > 0 || (opens && is_used));
    }

    fn counted(&self, at_ns: u128) -> Counted {
        let counts = self.counts_at(at_ns);
        let (mut in_full, mut of_previous) = (0, 0);
        for call in self.admitted.iter().filter(|call| counts(call)) {
            let is_current = call.at_ns / self.window_ns == at_ns / self.window_ns;
            if self.counting != Counting::Weighed || is_current {
                in_full += call.cost;
            } else {
                of_previous += call.cost;
            }
        }
        let overlap_ns = self.window_ns - at_ns % self.window_ns;
        // Not in lowest terms, as what flows into a bucket.
        let weighed = BigInt::from(of_previous) * overlap_ns;
        let weighed = BigRational::new_raw(weighed, self.window_ns.into());
        Counted {
            in_full: in_full.into(),
            weighed,
        }
    }

    fn counts_at(&self, at_ns: u128) -> impl Fn(&Admitted) -> bool + use<> {
        let window_ns = self.window_ns;
        let (opened_ns, counting) = (self.opened_ns(), self.counting);
        move |call| match counting {
            Counting::FromFirst => {
                let opened_ns = opened_ns.unwrap_or(0);
                opened_ns <= call.at_ns && at_ns < opened_ns + window_ns
            }
            Counting::Aligned => call.at_ns / window_ns == at_ns / window_ns,
            Counting::Log => at_ns < call.at_ns + window_ns,
            Counting::Weighed => at_ns / window_ns - call.at_ns / window_ns <= 1,
        }
    }

    /// When the latest of the windows opened that the calls opened as they came.
    fn opened_ns(&self) -> Option<u128> {
        self.admitted
            .iter()
            .fold(None, |opened_ns, call| match opened_ns {
                Some(opened_ns) if call.at_ns < opened_ns + self.window_ns => Some(opened_ns),
                _ => Some(call.at_ns),
            })
    }
}
