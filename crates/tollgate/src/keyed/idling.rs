//! When a client is forgotten, and in which order clients come up for it.

/// When a client is forgotten: `idle_ns` after it was last seen, or after the limit was last
/// changed, if that is later.
///
/// Clients come up in the order of their positions, which are the times at which they were last
/// seen: whoever was seen earlier is forgotten no later. That holds across changes of the idle
/// time, so the order stays right without anybody being looked at. Where clients are forgotten as
/// soon as they are settled, positions are the times of that, if they are known, and may fall.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Idling {
    idle_ns: u64,
    /// Or never.
    forgets: bool,
    /// The limit's last change; 0 if there was none.
    changed_at: u64,
    /// Whoever was last seen before this went idle before the last change, under an idle time that
    /// held then.
    gone_before: u64,
    /// Clients come up, and are forgotten, as soon as they are settled: their positions are the
    /// times of that.
    as_settled: bool,
}

impl Idling {
    pub(crate) fn new(idle_ns: Option<u64>, as_settled: bool) -> Self {
        Self {
            idle_ns: idle_ns.unwrap_or(u64::MAX),
            forgets: idle_ns.is_some(),
            changed_at: 0,
            gone_before: 0,
            as_settled,
        }
    }

    /// The same clients after a change at `at`, which counts as an attempt by each of them that was
    /// not idle by then.
    pub(crate) fn changed(self, idle_ns: Option<u64>, at: u64) -> Self {
        let gone = at.checked_sub(self.idle_ns).filter(|position| {
            // The last change counted as an attempt of everybody there was.
            self.forgets && *position >= self.changed_at
        });
        let gone_before = gone.map_or(0, |position| position.saturating_add(1));
        Self {
            changed_at: at,
            gone_before: gone_before.max(self.gone_before),
            ..Self::new(idle_ns, self.as_settled)
        }
    }

    /// Whether someone last seen then is to be forgotten at `now`.
    #[inline]
    pub(crate) fn is_idle(&self, last_seen: u64, now: u64) -> bool {
        let seen = last_seen.max(self.changed_at);
        last_seen < self.gone_before || (now.saturating_sub(seen) >= self.idle_ns && self.forgets)
    }

    /// Whether someone of that position comes up at `now`.
    #[inline]
    pub(crate) fn is_due(&self, position: u64, now: u64) -> bool {
        if self.as_settled {
            // The last instant is that of nobody.
            now >= position && position < u64::MAX && self.forgets
        } else {
            self.is_idle(position, now)
        }
    }

    /// The first instant at which they do; `u64::MAX` if that is never.
    pub(crate) fn due(&self, position: u64) -> u64 {
        if !self.forgets && position >= self.gone_before {
            u64::MAX
        } else if self.as_settled {
            position
        } else if position < self.gone_before {
            0
        } else {
            let seen = position.max(self.changed_at);
            seen.saturating_add(self.idle_ns)
        }
    }

    /// Whether clients are forgotten at all, once they are.
    pub(crate) fn forgets(&self) -> bool {
        self.forgets
    }

    pub(crate) fn changed_at(&self) -> u64 {
        self.changed_at
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    /// Instants 0 to 60, each with an idle time that holds from then on where it changes.
    #[test]
    fn changes_keep_to_their_definition_whatever_was_seen_when() {
        for changes in [
            &[(10, Some(5)), (20, Some(3)), (21, Some(40))][..],
            &[(10, None), (30, Some(2))],
            &[(3, Some(50)), (4, Some(1)), (4, Some(9)), (40, Some(9))],
        ] {
            for seen in 0..60_u64 {
                let mut idling = Idling::new(Some(7), false);
                let mut changes = changes.iter().peekable();
                // By definition: the last time it counts as seen, and whether it is gone for good.
                let (mut last, mut idle_ns, mut gone) = (seen, Some(7), false);
                for now in 0..=60 {
                    let idle = |last: u64, idle_ns: Option<u64>| {
                        idle_ns.is_some_and(|idle_ns| now >= last + idle_ns)
                    };
                    while let Some((at, next)) = changes.next_if(|change| change.0 == now) {
                        gone |= seen <= now && idle(last, idle_ns);
                        last = last.max(*at);
                        idle_ns = *next;
                        idling = idling.changed(*next, *at);
                    }
                    if seen <= now {
                        let expected = gone || idle(last, idle_ns);
                        assert_eq!(idling.is_idle(seen, now), expected, "{seen} at {now}");
                        assert_eq!(idling.due(seen) <= now, expected, "{seen} at {now}");
                    }
                }
            }
        }
    }
}
