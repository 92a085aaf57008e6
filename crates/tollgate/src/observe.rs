//! What a limiter tells whoever watches it: events for `tracing`, figures for `metrics`. Nothing
//! without these features, nothing under a lock, and never who a client is.

use crate::Decision;

/// Passes an answer on; a refusal is an event first.
#[inline]
pub(crate) fn answered(decision: Decision) -> Decision {
    #[cfg(feature = "tracing")]
    if !decision.is_allowed() {
        refused(decision);
    }
    decision
}

/// The same of an answer of which only yes or no is known.
#[inline]
pub(crate) fn allowed(allowed: bool) -> bool {
    #[cfg(feature = "tracing")]
    if !allowed {
        tracing::debug!(target: "tollgate", "refused");
    }
    allowed
}

#[cfg(feature = "tracing")]
#[cold]
fn refused(decision: Decision) {
    let retry_after = decision.retry_after();
    let retry_after_ns = retry_after.map(|wait| u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX));
    tracing::debug!(
        target: "tollgate",
        decision = word(decision),
        remaining = decision.remaining(),
        retry_after_ns,
        "refused"
    );
}

/// Passes on whether a limit was changed; that is an event first.
pub(crate) fn changed<E: core::fmt::Display>(changed: Result<(), E>) -> Result<(), E> {
    #[cfg(feature = "tracing")]
    match &changed {
        Ok(()) => tracing::info!(target: "tollgate", "limit changed"),
        Err(error) => tracing::warn!(target: "tollgate", %error, "limit not changed"),
    }
    changed
}

#[cfg(feature = "tracing")]
fn word(decision: Decision) -> &'static str {
    match decision {
        Decision::Allowed { .. } => "allowed",
        Decision::Limited { .. } => "limited",
        Decision::Banned { .. } => "banned",
        Decision::ClientLimit => "client_limit",
        Decision::TooLarge { .. } => "too_large",
    }
}

#[cfg(feature = "metrics")]
mod figures {
    use metrics::{SharedString, counter, gauge};

    use crate::{Clock, KeyedLimiter, Limit, Limiter, Statistics};

    /// The counts, each under the word that it has in a trace.
    fn publish(limit: &SharedString, statistics: &Statistics) {
        for (decision, count) in [
            ("allowed", statistics.allowed),
            ("limited", statistics.limited),
            ("banned", statistics.banned),
            ("too_large", statistics.too_large),
            ("client_limit", statistics.client_limit),
        ] {
            let labels = [("limit", limit.clone()), ("decision", decision.into())];
            counter!("tollgate_decisions_total", &labels).absolute(count);
        }
    }

    impl<L: Limit, C: Clock> KeyedLimiter<L, C> {
        /// Publishes this limiter's figures through the `metrics` crate's recorder, labelled with
        /// the name of the limit: the counter `tollgate_decisions_total` (by `decision`), the
        /// counters `tollgate_overflowed_total` and `tollgate_forgotten_clients_total`, and the
        /// gauges `tollgate_clients`, `tollgate_max_clients` and `tollgate_memory_bytes`.
        ///
        /// Call it before each scrape, or every few seconds: decisions themselves tell the recorder
        /// nothing, so they cost what they cost without it. Forgets who is idle, as
        /// [`len`](Self::len) does.
        ///
        /// # Panics
        ///
        /// If a clock not known to be monotonic went back.
        #[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
        #[expect(
            clippy::as_conversions,
            clippy::cast_precision_loss,
            reason = "gauges are floats, and these figures are far below 2^53"
        )]
        pub fn publish_metrics(&self, limit: impl Into<SharedString>) {
            let (limit, statistics) = (limit.into(), self.statistics());
            publish(&limit, &statistics);
            let own = [("limit", limit)];
            counter!("tollgate_overflowed_total", &own).absolute(statistics.overflowed);
            counter!("tollgate_forgotten_clients_total", &own).absolute(statistics.forgotten);
            gauge!("tollgate_clients", &own).set(self.len() as f64);
            gauge!("tollgate_max_clients", &own).set(self.max_clients() as f64);
            gauge!("tollgate_memory_bytes", &own).set(self.memory_bytes() as f64);
        }
    }

    impl<L: Limit, C: Clock> Limiter<L, C> {
        /// Publishes this limiter's counts through the `metrics` crate's recorder as
        /// `tollgate_decisions_total`, labelled with the name of the limit and by `decision`: see
        /// [`KeyedLimiter::publish_metrics`].
        #[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
        pub fn publish_metrics(&self, limit: impl Into<SharedString>) {
            publish(&limit.into(), &self.statistics());
        }
    }
}
