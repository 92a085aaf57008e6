//! What is told to `metrics` and to `tracing`: with these features only.
#![cfg(all(feature = "metrics", feature = "tracing"))]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use tollgate::{KeyedLimiter, Limiter, ManualClock, Plan, Rate, Tokens, acquire_all};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};

/// One test at a time: whether anybody listens to an event is kept where the event is, and a test
/// without a subscriber that runs beside the other may be what is kept.
static ALONE: Mutex<()> = Mutex::new(());

/// Keeps every figure by its name and labels.
#[derive(Default)]
struct Figures(Mutex<BTreeMap<String, Arc<AtomicU64>>>);

impl Figures {
    fn of(&self, key: &Key) -> Arc<AtomicU64> {
        let labels: Vec<String> = key
            .labels()
            .map(|label| format!("{}={}", label.key(), label.value()))
            .collect();
        let name = format!("{} {}", key.name(), labels.join(" "));
        self.0.lock().unwrap().entry(name).or_default().clone()
    }
}

impl Recorder for Figures {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.of(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.of(key))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[test]
fn figures_are_published_under_the_limits_name() {
    let _alone = ALONE.lock();
    let limiter = KeyedLimiter::builder(Rate::per_hour(1).burst(2), 2)
        .clock(ManualClock::default())
        .build()
        .unwrap();
    let one = Limiter::new(Rate::per_hour(1).burst(1)).unwrap();
    assert!(limiter.allow("alice") && limiter.allow("bob") && limiter.allow("bob"));
    assert!(!limiter.allow("bob") && !limiter.allow("carol"));
    assert!(!limiter.try_acquire("bob", 3).is_allowed());
    assert!(one.allow());
    let figures = Figures::default();
    metrics::with_local_recorder(&figures, || {
        limiter.publish_metrics("per-key");
        one.publish_metrics("service");
    });
    let published = figures.0.into_inner().unwrap();
    let figure = |name: &str| {
        published
            .get(name)
            .map(|figure| figure.load(Ordering::Relaxed))
    };
    let decisions = |limit: &str, word: &str| {
        figure(&format!(
            "tollgate_decisions_total limit={limit} decision={word}"
        ))
    };
    let words = ["allowed", "limited", "banned", "too_large", "client_limit"];
    assert_eq!(
        words.map(|word| decisions("per-key", word)),
        [3, 1, 0, 1, 1].map(Some)
    );
    assert_eq!(
        words.map(|word| decisions("service", word)),
        [1, 0, 0, 0, 0].map(Some)
    );
    let gauge = |name: &str| figure(&format!("{name} limit=per-key")).map(f64::from_bits);
    assert_eq!(gauge("tollgate_clients"), Some(2.0));
    assert_eq!(gauge("tollgate_max_clients"), Some(2.0));
    assert_eq!(
        gauge("tollgate_memory_bytes"),
        Some(limiter.memory_bytes() as f64)
    );
    assert_eq!(
        figure("tollgate_forgotten_clients_total limit=per-key"),
        Some(0)
    );
    assert_eq!(figure("tollgate_overflowed_total limit=per-key"), Some(0));
}

/// Keeps every event as a line.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Subscriber for Lines {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        struct Fields(String);
        impl Visit for Fields {
            fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
                self.0.push_str(&format!(" {field}={value:?}"));
            }
        }
        let mut fields = Fields(event.metadata().level().to_string());
        assert_eq!(event.metadata().target(), "tollgate");
        event.record(&mut fields);
        self.0.lock().unwrap().push(fields.0);
    }

    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn refusals_and_changes_are_events_that_name_nobody() {
    let _alone = ALONE.lock();
    let lines = Lines::default();
    tracing::subscriber::with_default(lines.clone(), || {
        let clock = ManualClock::default();
        let limiter = KeyedLimiter::builder(Rate::per_second(1).burst(1), 10)
            .clock(clock)
            .build()
            .unwrap();
        assert!(limiter.allow("alice"));
        assert!(!limiter.allow("alice"));
        assert!(!limiter.try_acquire("alice", 1).is_allowed());
        assert!(limiter.charge("alice", 2).is_err());
        assert!(!acquire_all(&mut [limiter.ask("alice", 1)]).is_allowed());
        let denied = limiter.try_acquire_as("bob", 1, Plan::DENY_ALL);
        assert!(!denied.is_allowed());
        limiter
            .set_quota(Rate::per_second(1).burst(2), Tokens::Kept)
            .unwrap();
        let refused = limiter.set_quota(Rate::per_second(1).burst(0), Tokens::Kept);
        assert!(refused.is_err());
    });
    let limited =
        r#"DEBUG message=refused decision="limited" remaining=0 retry_after_ns=1000000000"#;
    let too_large = r#"DEBUG message=refused decision="too_large" remaining=0"#;
    let wanted = [
        "DEBUG message=refused",
        limited,
        too_large,
        limited,
        too_large,
        "INFO message=limit changed",
        "WARN message=limit not changed error=burst is 0; the least is 1 token",
    ];
    assert_eq!(*lines.0.lock().unwrap(), wanted);
    assert!(Level::DEBUG > Level::INFO);
}
