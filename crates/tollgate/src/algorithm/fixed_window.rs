//! The fixed window: a count that starts again when its window has closed.

use core::time::Duration;

use super::{Algorithm, Refunded, count_may_be, positive, read_window, window_ns, with_debt};
use crate::time::duration;
use crate::wire::{Reader, Wire, Writer};
use crate::{BuildError, ChangeError, Decision, RestoreError, Tokens};

/// At most `limit` tokens in a window of time.
///
/// A window opens at a client's first request, and again at the first request after it has closed,
/// exactly `window` after it opened; [`aligned`](Self::aligned) windows open at whole multiples of
/// their length on the limiter's clock (with [`MonotonicClock`](crate::MonotonicClock): UTC).
/// Around an edge two windows' worth passes in less than one window's time: the token bucket has
/// no such edge. 24 bytes a client.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{FixedWindow, Limiter, Timestamp};
///
/// let limiter =
///     Limiter::builder(FixedWindow::new(1, Duration::from_nanos(10)).aligned()).build()?;
/// assert!(limiter.try_acquire_at(1, Timestamp::from_nanos(109))?.is_allowed());
/// assert!(limiter.try_acquire_at(1, Timestamp::from_nanos(110))?.is_allowed());
/// assert!(!limiter.try_acquire_at(1, Timestamp::from_nanos(119))?.is_allowed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedWindow {
    limit: u64,
    window: Duration,
    aligned: bool,
}

impl FixedWindow {
    /// At most `limit` tokens in a `window` that opens at a client's first request. Both are
    /// checked where a limiter is built.
    #[must_use]
    pub const fn new(limit: u64, window: Duration) -> Self {
        Self {
            limit,
            window,
            aligned: false,
        }
    }

    /// The same, with windows that open at whole multiples of their length.
    #[must_use]
    pub const fn aligned(self) -> Self {
        Self {
            aligned: true,
            ..self
        }
    }

    pub(crate) fn validated(self, debt: u64) -> Result<FixedWindows, BuildError> {
        let limit = positive(self.limit)?;
        Ok(FixedWindows {
            limit,
            most: with_debt(limit, debt, u64::MAX)?,
            window_ns: window_ns(self.window)?,
            aligned: self.aligned,
        })
    }
}

/// A validated fixed window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FixedWindows {
    limit: u64,
    /// The limit and the largest debt.
    most: u64,
    window_ns: u64,
    aligned: bool,
}

/// A client's window.
#[derive(Clone, Copy, Debug, Default)]
pub struct FixedWindowState {
    opened_at: u64,
    /// At most the limit and the largest debt, of this limit or of one before it.
    used: u64,
    last_attempt: u64,
}

impl FixedWindows {
    /// The window that a call at `now` falls in: when it opened and what was used of it.
    fn window_at(&self, state: &FixedWindowState, now: u64) -> (u64, u64) {
        if state.used > 0 && now.saturating_sub(state.opened_at) < self.window_ns {
            return (state.opened_at, state.used);
        }
        let since_edge = if self.aligned {
            now.checked_rem(self.window_ns)
        } else {
            Some(0)
        };
        (now.saturating_sub(since_edge.unwrap_or(0)), 0)
    }

    /// The state at `now`, its last attempt, with so much more used.
    fn with_used(
        &self,
        state: &FixedWindowState,
        now: u64,
        more: impl FnOnce(u64) -> u64,
    ) -> FixedWindowState {
        let (opened_at, used) = self.window_at(state, now);
        FixedWindowState {
            opened_at,
            used: used.saturating_add(more(used)),
            last_attempt: now,
        }
    }
}

impl Algorithm for FixedWindows {
    type State = FixedWindowState;

    fn burst(&self) -> u64 {
        self.limit
    }

    fn settles_after(&self) -> Option<u64> {
        Some(self.window_ns)
    }

    fn fresh(&self, now: u64) -> FixedWindowState {
        FixedWindowState {
            opened_at: now,
            used: 0,
            last_attempt: now,
        }
    }

    fn last_attempt(state: &FixedWindowState) -> u64 {
        state.last_attempt
    }

    fn settled_at(&self, state: &FixedWindowState) -> u64 {
        let closes_at = state.opened_at.saturating_add(self.window_ns);
        // Of a banned client, and of a window that was longer when it was opened, it may be past.
        let open_until = if state.used > 0 { closes_at } else { 0 };
        open_until.max(state.last_attempt)
    }

    fn touch(&self, state: &mut FixedWindowState, now: u64) {
        *state = self.with_used(state, now, |_| 0);
    }

    fn attempt(&self, state: &mut FixedWindowState, cost: u64, now: u64) -> bool {
        let mut admitted = false;
        *state = self.with_used(state, now, |used| {
            admitted = cost <= self.limit.saturating_sub(used);
            if admitted { cost } else { 0 }
        });
        admitted
    }

    fn debit(&self, state: &mut FixedWindowState, tokens: u64, now: u64) -> u64 {
        let mut taken = 0;
        *state = self.with_used(state, now, |used| {
            taken = tokens.min(self.most.saturating_sub(used));
            taken
        });
        taken
    }

    fn may_become(&self, next: &Self, tokens: Tokens) -> Result<(), ChangeError> {
        if self.aligned != next.aligned {
            return Err(ChangeError::OtherAlgorithm);
        }
        count_may_be(tokens)
    }

    /// What was used stays used, also beyond the limit. A window that is open stays open from when
    /// it opened; an aligned one of another length is the one that `at` falls in.
    fn converted(
        &self,
        before: &Self,
        state: &FixedWindowState,
        tokens: Tokens,
        at: u64,
    ) -> FixedWindowState {
        let realigned = self.aligned && before.window_ns != self.window_ns;
        let used = match tokens {
            Tokens::Reset => 0,
            Tokens::Kept | Tokens::Proportional => state.used,
        };
        let opened_at = if realigned {
            at.saturating_sub(at.checked_rem(self.window_ns).unwrap_or(0))
        } else {
            state.opened_at
        };
        FixedWindowState {
            opened_at,
            used,
            last_attempt: state.last_attempt,
        }
    }

    fn remaining(&self, state: &FixedWindowState, now: u64) -> u64 {
        let (_, used) = self.window_at(state, now);
        self.limit.saturating_sub(used)
    }

    fn refund(&self, state: &mut FixedWindowState, tokens: u64, of: Refunded, now: u64) {
        let (opened_at, used) = self.window_at(state, now);
        if used > 0 && of.taken_at().is_none_or(|taken_at| taken_at >= opened_at) {
            state.used = used.saturating_sub(tokens);
        }
    }

    fn report(&self, state: &FixedWindowState, _: u64, now: u64, admitted: bool) -> Decision {
        let (opened_at, used) = self.window_at(state, now);
        let remaining = self.limit.saturating_sub(used);
        let open_for = self.window_ns.saturating_sub(now.saturating_sub(opened_at));
        let reset_after = duration(u128::from(if used > 0 { open_for } else { 0 }));
        if admitted {
            Decision::Allowed {
                remaining,
                delay: Duration::ZERO,
                reset_after,
            }
        } else {
            // Something was used, or the call would have passed: the window is open.
            Decision::Limited {
                remaining,
                retry_after: reset_after,
                reset_after,
            }
        }
    }
}

impl Wire for FixedWindows {
    const KIND: u8 = 2;

    fn write(&self, to: &mut Writer) {
        to.u64(self.limit);
        to.u64(self.most);
        to.u64(self.window_ns);
        to.u8(u8::from(self.aligned));
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, RestoreError> {
        let (limit, most, window_ns) = read_window(from)?;
        let aligned = from.bool()?;
        Ok(Self {
            limit,
            most,
            window_ns,
            aligned,
        })
    }

    fn write_state(state: &FixedWindowState, to: &mut Writer) {
        to.u64(state.last_attempt);
        to.u64(state.opened_at);
        to.u64(state.used);
    }

    fn read_state(&self, from: &mut Reader<'_>) -> Result<FixedWindowState, RestoreError> {
        Ok(FixedWindowState {
            last_attempt: from.u64()?,
            opened_at: from.u64()?,
            used: from.u64()?,
        })
    }

    fn set_back(state: &mut FixedWindowState, by: u64) {
        state.last_attempt = state.last_attempt.saturating_sub(by);
        state.opened_at = state.opened_at.saturating_sub(by);
    }
}
