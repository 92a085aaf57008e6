//! Several limiters asked in one call: all of them are charged, or none.
//!
//! All locks that a call needs are held at once, taken in an order that is the same for all calls,
//! so that no two of them can wait for each other. With all of them held, the call is decided
//! without anything being changed; places for newcomers are promised, or none is; and then
//! everybody is charged. No list of locks is kept: each is held by one step of a recursion, which
//! charges on its way back.

use core::fmt;
use core::time::Duration;

use crate::charge::Issuer;
use crate::keyed::key::Key;
use crate::keyed::{Limitless, Plan};
use crate::{Charge, Decision, Timestamp, observe};

/// The most that one call asks for.
///
/// Each may have a lock of its own, and each lock held is one step deeper into the stack.
pub(crate) const MOST_ASKS: usize = 256;

/// What one limiter is asked for in a call to [`acquire_all`]: made by
/// [`KeyedLimiter::ask`](crate::KeyedLimiter::ask) and [`Limiter::ask`](crate::Limiter::ask).
pub struct Ask<'a> {
    party: &'a dyn Party,
    issuer: Issuer,
    pub(crate) key: Key,
    pub(crate) plan: u8,
    /// It is of a plan that asks no bucket, and costs that much there.
    limitless: Option<(Limitless, u64)>,
    pub(crate) cost: u64,
    /// The longest delay with which it is to be allowed.
    pub(crate) max_delay: Duration,
    /// When it is asked; once a lock is held, when that is decided.
    pub(crate) now: u64,
    /// The lock that guards its bucket.
    lock: Lock,
    /// Where in the call it stands.
    ordinal: usize,
    /// It needs a place as a newcomer.
    pub(crate) new: bool,
    /// It is new to a full table.
    pub(crate) full: bool,
    decision: Decision,
    /// How long after the last call, which was allowed, the same one would be again.
    again_after: Duration,
    /// The last call took its cost from this client's own bucket.
    charged: bool,
}

impl<'a> Ask<'a> {
    #[inline]
    pub(crate) fn new(party: &'a dyn Party, issuer: Issuer, key: Key, cost: u64, now: u64) -> Self {
        Self {
            party,
            issuer,
            key,
            plan: 0,
            limitless: None,
            cost,
            max_delay: Duration::MAX,
            now,
            lock: Lock::default(),
            ordinal: 0,
            new: false,
            full: false,
            decision: Decision::ClientLimit,
            again_after: Duration::ZERO,
            charged: false,
        }
    }

    /// The same, but refused where a leaky bucket would delay it for longer: as
    /// [`Limited`](Decision::Limited), with the wait after which it would not.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{LeakyBucket, Limiter, ManualClock, Rate, acquire_all};
    ///
    /// let queue = LeakyBucket::new(Rate::per_second(2).burst(10));
    /// let limiter = Limiter::builder(queue).clock(ManualClock::default()).build()?;
    /// let ask = || acquire_all(&mut [limiter.ask(1).within(Duration::from_millis(700))]);
    /// assert_eq!(ask().decision().delay(), Duration::ZERO);
    /// assert_eq!(ask().decision().delay(), Duration::from_millis(500));
    /// let refused = ask().decision(); // it would be delayed by a second
    /// assert_eq!(refused.retry_after(), Some(Duration::from_millis(300)));
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn within(self, max_delay: Duration) -> Self {
        Self { max_delay, ..self }
    }

    /// The same for a client of that plan.
    #[must_use]
    #[inline]
    pub fn plan(self, plan: Plan) -> Self {
        match plan.limit() {
            Ok(plan) => Self { plan, ..self },
            // All that is asked of the bucket is whether its client is banned.
            Err(limitless) => Self {
                limitless: Some((limitless, self.cost)),
                cost: 0,
                ..self
            },
        }
    }

    /// What this limiter answered to the last call: if all were charged, what it would have
    /// answered alone; if not, its refusal, or what there is at the limiters that did not refuse.
    #[inline]
    pub fn decision(&self) -> Decision {
        self.decision
    }

    /// The time at which the last call was judged; before it, that at which this ask was made.
    #[must_use]
    #[inline]
    pub fn judged_at(&self) -> Timestamp {
        Timestamp::from_nanos(self.now)
    }

    /// How long after the last call the same one would be allowed by this limiter, if nothing else
    /// happened: of a refusal its [`retry_after`](Decision::retry_after); zero if it would be at
    /// once; `None` if no wait can be promised to suffice.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Limiter, ManualClock, Rate, acquire_all};
    ///
    /// let quota = Rate::per_second(1).burst(3);
    /// let limiter = Limiter::builder(quota).clock(ManualClock::default()).build()?;
    /// let mut asks = [limiter.ask(2)];
    /// assert!(acquire_all(&mut asks).is_allowed());
    /// assert_eq!(asks[0].again_after(), Some(Duration::from_secs(1)));
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn again_after(&self) -> Option<Duration> {
        match self.decision.retry_after() {
            Some(Duration::ZERO) => Some(self.again_after),
            refused => refused,
        }
    }

    /// Notes how a call was charged for, and how long after it the same one would be allowed.
    pub(crate) fn charged(&mut self, decision: Decision, again_after: Duration) {
        self.decide(decision);
        // Of a plan that asks no bucket, nothing was taken.
        if self.limitless.is_none() {
            self.again_after = again_after;
        }
    }

    /// The tokens that the last call took, for who may give them back
    /// ([`KeyedLimiter::cancel`](crate::KeyedLimiter::cancel)); `None` if it took none, or took
    /// them from the bucket that newcomers share.
    ///
    /// ```
    /// use tollgate::{KeyedLimiter, Rate, acquire_all};
    ///
    /// let limiter = KeyedLimiter::new(Rate::per_hour(1).burst(1), 100)?;
    /// let mut asks = [limiter.ask("alice", 1)];
    /// assert!(acquire_all(&mut asks).is_allowed());
    /// let [ask] = asks;
    /// let charge = ask.into_charge().expect("it was charged");
    /// assert!(!limiter.allow("alice"));
    /// limiter.cancel(charge);
    /// assert!(limiter.allow("alice"));
    /// # Ok::<(), tollgate::BuildError>(())
    /// ```
    #[must_use = "dropped, the tokens stay taken"]
    #[inline]
    pub fn into_charge(self) -> Option<Charge> {
        let took = self.charged && self.cost > 0;
        let decided = (self.decision, self.now);
        let charge = || self.issuer.charge(self.key, self.cost, decided);
        took.then(charge)?.ok()
    }

    /// Notes a decision; returns whether it refuses.
    pub(crate) fn decide(&mut self, decision: Decision) -> bool {
        self.decision = match self.limitless {
            Some((limitless, cost)) => limitless.answer(decision, cost),
            None => decision,
        };
        self.refuses()
    }

    fn refuses(&self) -> bool {
        !self.decision.is_allowed()
    }
}

impl fmt::Debug for Ask<'_> {
    /// How much, and what was answered; the client stays out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ask")
            .field("cost", &self.cost)
            .field("decision", &self.decision)
            .finish_non_exhaustive()
    }
}

/// What several limiters answered together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a decision that is not looked at limits nobody"]
pub struct Together {
    decision: Decision,
    refused_by: Option<usize>,
}

impl Together {
    /// Whether all were charged: the call may proceed.
    #[must_use]
    pub const fn is_allowed(self) -> bool {
        self.refused_by.is_none()
    }

    /// Which of the limiters refused, by its place in the call: of several, the one whose wait is
    /// the longest.
    #[must_use]
    pub const fn refused_by(self) -> Option<usize> {
        self.refused_by
    }

    /// The answer of all together: the refusal of that limiter, or the least that remains at any
    /// and the longest of the delays and of the times to be as new.
    pub const fn decision(self) -> Decision {
        self.decision
    }
}

/// Takes from each of several limiters what it is asked for, if each can give it; else from none.
///
/// A client, its address and a whole service; ten a second and a thousand an hour of one client:
/// whatever the limiters are, and in whatever order, threads that ask for several at once never
/// wait for each other in a circle. Two asks for one client of one limiter count as one of their
/// sum.
///
/// A refused call takes nothing anywhere. It counts as an attempt of the clients that are known
/// to their limiters, and tracks nobody new but who is refused for having too few initial tokens. A
/// cost of 0 looks: it takes nothing, and refuses only who is banned. At most 256 asks are
/// judged, whose locks are held together; more are refused as
/// [`ClientLimit`](Decision::ClientLimit). An ask is judged at the time at which it was made: make
/// it anew for each call. Of asks for one client under several plans the first that costs something
/// says which plan holds.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{KeyedLimiter, Limiter, ManualClock, Rate, acquire_all};
///
/// let clock = ManualClock::default();
/// let keyed = |quota| KeyedLimiter::builder(quota, 100_000).clock(clock.clone()).build();
/// let seconds = keyed(Rate::per_second(10).burst(10))?;
/// let hours = keyed(Rate::per_hour(1_000).burst(11))?;
/// let service = Limiter::builder(Rate::per_second(500).burst(500)).clock(clock.clone()).build()?;
///
/// let ask = |cost| {
///     acquire_all(&mut [seconds.ask("alice", cost), hours.ask("alice", cost), service.ask(cost)])
/// };
/// assert!(ask(10).is_allowed());
/// let refused = ask(2); // neither of hers has two left
/// assert_eq!(refused.refused_by(), Some(1), "her hour's wait is the longer");
/// assert_eq!(refused.decision().retry_after(), Some(Duration::from_millis(3_600)));
/// assert_eq!(service.peek().remaining(), 490, "nothing was taken for it");
/// # Ok::<(), tollgate::BuildError>(())
/// ```
pub fn acquire_all(asks: &mut [Ask<'_>]) -> Together {
    let too_many = asks.len() > MOST_ASKS;
    for (ordinal, ask) in asks.iter_mut().enumerate() {
        ask.ordinal = ordinal;
        ask.full = false;
        ask.decision = Decision::ClientLimit;
        ask.charged = false;
        ask.again_after = Duration::ZERO;
    }
    if too_many {
        return summary(asks);
    }
    if let [ask] = asks
        && ask.limitless.is_none()
        && ask.party.alone(ask)
    {
        ask.charged = ask.decision.is_allowed();
        let together = Together {
            decision: ask.decision,
            refused_by: (!ask.charged).then_some(0),
        };
        let _ = observe::answered(together.decision);
        return together;
    }
    loop {
        for ask in asks.iter_mut() {
            ask.lock = ask.party.lock_of(ask);
        }
        asks.sort_unstable_by_key(|ask| (ask.lock, ask.key, ask.ordinal));
        match descend(asks, None, false) {
            Verdict::Charged => {
                for ask in asks.iter_mut() {
                    ask.charged = !ask.full;
                }
                break;
            }
            Verdict::Refused => break,
            Verdict::Full { lock } => {
                // No lock is held here: whoever is idle may be looked for.
                look_for_room(asks, lock);
            }
        }
    }
    asks.sort_unstable_by_key(|ask| ask.ordinal);
    let together = summary(asks);
    let _ = observe::answered(together.decision);
    together
}

/// Looks for room for those under that lock who need it. If there is none, the asks are noted as
/// those of newcomers to a full table.
fn look_for_room(asks: &mut [Ask<'_>], lock: Lock) {
    let Some(first) = asks.iter().find(|ask| ask.lock == lock && ask.new) else {
        return;
    };
    let (party, now) = (first.party, first.now);
    let is_same = |ask: &&Ask<'_>| core::ptr::addr_eq(ask.party, party) && ask.new;
    let places = u64::try_from(asks.iter().filter(is_same).count()).unwrap_or(u64::MAX);
    if !party.make_room(places, now) {
        for ask in asks.iter_mut().filter(|ask| ask.lock == lock && ask.new) {
            ask.full = true;
        }
    }
}

/// The answer of all together.
fn summary(asks: &[Ask<'_>]) -> Together {
    let (mut all, mut refuser) = (
        Decision::Allowed {
            remaining: u64::MAX,
            delay: Duration::ZERO,
            reset_after: Duration::ZERO,
        },
        None::<&Ask<'_>>,
    );
    for ask in asks {
        let longer = refuser.is_none_or(|longest| ask.decision.outlasts(longest.decision));
        if ask.refuses() && longer {
            refuser = Some(ask);
        }
        let own = ask.decision;
        all = Decision::Allowed {
            remaining: all.remaining().min(own.remaining()),
            delay: all.delay().max(own.delay()),
            reset_after: all.reset_after().max(own.reset_after()),
        };
    }
    Together {
        decision: refuser.map_or(all, |ask| ask.decision),
        refused_by: refuser.map(|ask| ask.ordinal),
    }
}

/// Which lock: of which limiter, and which of its locks. Locks are taken in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lock {
    pub(crate) limiter: u64,
    pub(crate) number: usize,
}

/// The shortest of the delays within which asks for one bucket are to be answered.
pub(crate) fn shortest_delay(asks: &[Ask<'_>]) -> Duration {
    let delays = asks.iter().map(|ask| ask.max_delay);
    delays.min().unwrap_or(Duration::MAX)
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All were charged.
    Charged,
    /// Somebody refused.
    Refused,
    /// No bucket refused, but one of those that this lock guards is new, and as many as may be are
    /// tracked or promised places. Nothing was changed.
    Full {
        /// Which it is.
        lock: Lock,
    },
}

/// Whatever guards buckets by locks.
pub trait Party: Send + Sync {
    /// The lock that guards what is asked for.
    fn lock_of(&self, ask: &Ask<'_>) -> Lock;

    /// Takes that lock and judges what is asked for of the buckets that it guards, sorted by key,
    /// without changing any; lets the others be judged, while it is held; and then charges, or
    /// notes the attempt, as their verdict is.
    fn hold(&self, asks: &mut [Ask<'_>], others: &mut Others<'_>) -> Verdict;

    /// Does all that is to be done for one ask that is all of a call, where that is less than for
    /// several; returns whether it did.
    fn alone(&self, _: &mut Ask<'_>) -> bool {
        false
    }

    /// Looks for room for so many newcomers, with no lock held; returns whether it is worth trying
    /// again.
    fn make_room(&self, places: u64, now: u64) -> bool;
}

/// The rest of a call: whether anybody has refused so far, and places needed, to a verdict.
pub(crate) type Others<'a> = dyn FnMut(bool, Option<&dyn Room>) -> Verdict + 'a;

/// Places for newcomers under one lock, which is held.
pub trait Room {
    /// Promises them, all or none.
    fn promise(&self) -> bool;
    /// Gives them up again.
    fn withdraw(&self);
}

/// The places that the locks held so far need, the latest lock's first.
struct Needed<'a> {
    places: &'a dyn Room,
    lock: Lock,
    before: Option<&'a Self>,
}

/// Judges asks sorted by lock, the locks of those before them being held.
fn descend(asks: &mut [Ask<'_>], needed: Option<&Needed<'_>>, refused: bool) -> Verdict {
    let Some((party, lock)) = asks.first().map(|ask| (ask.party, ask.lock)) else {
        // Places are asked for also if the call is refused, so that each limiter's answer is the
        // one that it would give alone.
        return match promise(needed) {
            Err(lock) => Verdict::Full { lock },
            Ok(()) if refused => {
                withdraw(needed);
                Verdict::Refused
            }
            Ok(()) => Verdict::Charged,
        };
    };
    let of_it = asks.iter().take_while(|ask| ask.lock == lock).count();
    let (own, others) = asks.split_at_mut(of_it);
    party.hold(own, &mut |refuses, places| {
        let refused = refused || refuses;
        match places {
            Some(places) => {
                let needed = Needed {
                    places,
                    lock,
                    before: needed,
                };
                descend(others, Some(&needed), refused)
            }
            None => descend(others, needed, refused),
        }
    })
}

/// Promises all places, or none: then the lock of those that there are too few for.
///
/// Limiters are asked in the order of their locks, so of two calls that need the last places of two
/// limiters one gets both.
fn promise(needed: Option<&Needed<'_>>) -> Result<(), Lock> {
    let Some(needed) = needed else {
        return Ok(());
    };
    if !needed.places.promise() {
        return Err(needed.lock);
    }
    let others = promise(needed.before);
    if others.is_err() {
        needed.places.withdraw();
    }
    others
}

fn withdraw(mut needed: Option<&Needed<'_>>) {
    while let Some(promised) = needed {
        promised.places.withdraw();
        needed = promised.before;
    }
}
