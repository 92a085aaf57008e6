//! The limits that a limiter's clients are held to: the one that holds now, a choice of others
//! beside it, and those before them that some client may still be under.

use core::time::Duration;

use super::idling::Idling;
use super::key::{Places, Tag};
use crate::algorithm::Algorithm;
use crate::{BuildError, ChangeError, Tokens};

/// The changes that are remembered: with the limit that holds now, as many as a tag tells apart.
pub(crate) const MOST_CHANGES: usize = 15;
/// The plans that a tag tells apart.
pub(crate) const MOST_PLANS: usize = 64;
/// Bits of a tag that tell the plan; those above them tell the generation.
const PLAN_BITS: u32 = 6;

/// The limits of one generation: the first is that of clients without a plan.
#[derive(Clone, Debug)]
pub(crate) struct Plans<A> {
    first: A,
    others: Box<[A]>,
}

impl<A: Algorithm> Plans<A> {
    pub(crate) fn new(first: A, others: Box<[A]>) -> Self {
        Self { first, others }
    }

    /// The limit of that plan; of a plan that there is none of, the first.
    #[inline]
    fn of(&self, plan: u8) -> &A {
        match usize::from(plan).checked_sub(1) {
            None => &self.first,
            Some(other) => self.others.get(other).unwrap_or(&self.first),
        }
    }

    /// The same number of plans with another limit for one.
    fn with(&self, plan: u8, limit: A) -> Self {
        let mut plans = self.clone();
        let place = match usize::from(plan).checked_sub(1) {
            None => Some(&mut plans.first),
            Some(other) => plans.others.get_mut(other),
        };
        if let Some(place) = place {
            *place = limit;
        }
        plans
    }

    /// Nanoseconds after which clients of any plan are settled.
    pub(crate) fn settles_after(&self) -> Option<u64> {
        let others = self.others.iter().map(Algorithm::settles_after);
        let mut all = others.chain([self.first.settles_after()]);
        all.try_fold(0, |most, own| Some(u64::max(most, own?)))
    }
}

/// When clients are forgotten, as the limiter's user asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Idle {
    /// So long after its last attempt that no past call of any plan counts any more.
    Settled,
    /// As soon as its own past calls no longer count.
    AsSettled,
    After(u64),
    Never,
}

impl Idle {
    fn nanoseconds<A: Algorithm>(self, plans: &Plans<A>) -> Option<u64> {
        match self {
            Self::Settled | Self::AsSettled => plans.settles_after(),
            Self::After(idle_ns) => Some(idle_ns),
            Self::Never => None,
        }
    }

    /// Whether nobody is forgotten who owes tokens, if anybody may.
    fn spares_debts<A: Algorithm>(self, owes: bool, plans: &Plans<A>) -> Result<(), BuildError> {
        let least = plans.settles_after();
        if let Self::After(idle) = self
            && owes
            && least.is_none_or(|least| idle < least)
        {
            let idle = Duration::from_nanos(idle);
            let least = least.map(Duration::from_nanos);
            return Err(BuildError::IdleForgetsDebts { idle, least });
        }
        Ok(())
    }
}

/// A generation that was replaced.
#[derive(Clone, Debug)]
struct Past<A> {
    generation: u8,
    plans: Plans<A>,
    /// When it was replaced.
    until: u64,
    /// Which plan's limit was replaced, and what became of its tokens then.
    changed: (u8, Tokens),
}

/// By generation, the latest position of any client's state that is or was written down under it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Latest([u64; 16]);

impl Latest {
    fn of(&self, generation: u8) -> u64 {
        self.0.get(usize::from(generation)).copied().unwrap_or(0)
    }
}

/// The limits that clients are held to, and were.
///
/// A client's state stays as it is when the limit changes, and its [`Tag`] tells under which
/// generation and plan it was written down. Whoever next needs the state brings it over: through
/// each change since, at the instant of that change, so that the answer is the one that converting
/// everybody at once would have given.
#[derive(Clone, Debug)]
pub(crate) struct Rules<A> {
    /// Where clients go: what else all shards have in common.
    places: Places,
    plans: Plans<A>,
    /// Of states written down under the first plan of this generation.
    tag: Tag,
    idle: Idle,
    /// Clients may come to owe tokens, and are not forgotten while they do.
    owes: bool,
    idling: Idling,
    /// Replaced generations, the latest first. Each has a number of its own.
    past: Vec<Past<A>>,
}

/// The tag of a generation and a plan.
fn tag(generation: u8, plan: u8) -> Tag {
    Tag::new((u16::from(generation) << PLAN_BITS) | u16::from(plan))
}

/// The generation and the plan of a tag.
fn untag(tag: Tag) -> (u8, u8) {
    let (generation, plan) = (tag.number() >> PLAN_BITS, tag.number() & 0x3f);
    let byte = |part| u8::try_from(part).unwrap_or(0);
    (byte(generation), byte(plan))
}

impl<A: Algorithm> Rules<A> {
    /// `owes` says whether clients may come to owe tokens: then no idle time is shorter than that
    /// in which they are settled.
    pub(crate) fn new(
        plans: Plans<A>,
        (idle, owes): (Idle, bool),
        places: Places,
    ) -> Result<Self, BuildError> {
        idle.spares_debts(owes, &plans)?;
        Ok(Self {
            places,
            idling: Idling::new(idle.nanoseconds(&plans), idle == Idle::AsSettled),
            plans,
            tag: tag(0, 0),
            idle,
            owes,
            past: Vec::new(),
        })
    }

    #[inline]
    pub(crate) fn places(&self) -> &Places {
        &self.places
    }

    /// The limit that holds for a plan.
    #[inline]
    pub(crate) fn limit(&self, plan: u8) -> &A {
        self.plans.of(plan)
    }

    /// The limits of all plans.
    pub(crate) fn plans(&self) -> impl Iterator<Item = &A> {
        core::iter::once(&self.plans.first).chain(&self.plans.others)
    }

    /// The tag of states written down under it.
    #[inline]
    pub(crate) fn tag(&self, plan: u8) -> Tag {
        // A plan that there is none of is the first, whose tag that is.
        let known = usize::from(plan) <= self.plans.others.len();
        self.tag.plus(if known { u16::from(plan) } else { 0 })
    }

    /// The plan that a tag names.
    pub(crate) fn plan_of(tag: Tag) -> u8 {
        untag(tag).1
    }

    pub(crate) fn idling(&self) -> &Idling {
        &self.idling
    }

    /// Where a client stands in the order in which clients come up to be forgotten.
    pub(crate) fn position(&self, tag: Tag, state: &A::State) -> u64 {
        if self.is_eager() {
            // Nobody is under an earlier limit then: see `Shards::change`.
            self.limit(Self::plan_of(tag)).settled_at(state)
        } else {
            A::last_attempt(state)
        }
    }

    /// Whether a change is carried out on everybody at once, since it changes who comes up when.
    pub(crate) fn is_eager(&self) -> bool {
        self.idle == Idle::AsSettled
    }

    /// A state as it is under the limit of `plan` that holds now; `now` matters only where the plan
    /// is another. The client is not idle, and of a generation that is remembered.
    pub(crate) fn brought(&self, from: Tag, state: &A::State, plan: u8, now: u64) -> A::State {
        let (generation, own_plan) = untag(from);
        let mut state = state.clone();
        let replaced = self
            .past
            .iter()
            .rev()
            .skip_while(|past| past.generation != generation);
        let mut steps = replaced.peekable();
        while let Some(past) = steps.next() {
            let next = steps.peek().map_or(&self.plans, |newer| &newer.plans);
            let (before, after) = (past.plans.of(own_plan), next.of(own_plan));
            let at = past.until.max(A::last_attempt(&state));
            before.touch(&mut state, at);
            let (changed, tokens) = past.changed;
            let tokens = if changed == own_plan {
                tokens
            } else {
                Tokens::Kept
            };
            state = after.converted(before, &state, tokens, at);
        }
        let (own, other) = (self.limit(own_plan), self.limit(plan));
        if plan != own_plan && own != other {
            let at = now.max(A::last_attempt(&state));
            own.touch(&mut state, at);
            state = other.converted(own, &state, Tokens::Kept, at);
        }
        state
    }

    /// The same limiter with another limit for one plan from `at` on; `None` if it is that already.
    pub(crate) fn changed(
        &self,
        (plan, limit): (u8, A),
        tokens: Tokens,
        at: u64,
        latest: &Latest,
    ) -> Result<Option<Self>, ChangeError> {
        if usize::from(plan) > self.plans.others.len() {
            return Err(ChangeError::NoSuchPlan);
        }
        self.limit(plan).may_become(&limit, tokens)?;
        if *self.limit(plan) == limit && tokens != Tokens::Reset {
            return Ok(None);
        }
        let at = at.max(self.idling.changed_at());
        let plans = self.plans.with(plan, limit);
        self.idle.spares_debts(self.owes, &plans)?;
        let idling = self.idling.changed(self.idle.nanoseconds(&plans), at);
        let (current, _) = untag(self.tag);
        let replaced = Past {
            generation: current,
            plans: self.plans.clone(),
            until: at,
            changed: (plan, tokens),
        };
        // Whose clients have all gone idle is forgotten with them.
        let matters = |past: &Past<A>| !idling.is_idle(latest.of(past.generation), at);
        let remembered = self.past.iter().filter(|past| matters(past)).cloned();
        let past: Vec<Past<A>> = core::iter::once(replaced).chain(remembered).collect();
        if past.len() > MOST_CHANGES {
            return Err(ChangeError::HistoryFull { most: MOST_CHANGES });
        }
        let is_free = |generation: &u8| past.iter().all(|past| past.generation != *generation);
        let generation = (0..=15_u8).find(is_free).unwrap_or(current);
        Ok(Some(Self {
            places: self.places,
            plans,
            tag: tag(generation, 0),
            idle: self.idle,
            owes: self.owes,
            idling,
            past,
        }))
    }

    /// The same once every state was brought over.
    pub(crate) fn settled(&self) -> Self {
        Self {
            past: Vec::new(),
            ..self.clone()
        }
    }

    /// Notes the latest position under the generation before this one, which the last shard has now
    /// left.
    pub(crate) fn note_latest(&self, latest: &mut Latest, position: u64) {
        let before = self.past.first().map(|past| usize::from(past.generation));
        if let Some(noted) = before.and_then(|before| latest.0.get_mut(before)) {
            *noted = position;
        }
    }

    /// How many earlier generations some client may be under.
    pub(crate) fn remembers(&self) -> usize {
        self.past.len()
    }
}
