//! Policy files of any text.

use tollgate::ManualClock;
use tollgate_policy::Policy;

/// Reads the bytes as a policy file.
///
/// # Panics
///
/// If an error has no place in it, or a limit that was taken cannot be built.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let lines = text.split('\n').count();
    match Policy::from_toml(text) {
        Ok(policy) => {
            for limit in policy.limits() {
                assert!(limit.limiter(ManualClock::default()).is_ok(), "{limit:?}");
                let (burst, fills) = (limit.rule().burst(), limit.rule().time_to_fill());
                assert!(limit.most_within(fills) >= burst, "{limit:?}");
                assert!(limit.rule().most_within(fills).saturating_sub(burst) <= burst);
            }
        }
        Err(errors) => {
            let all: Vec<_> = errors.iter().collect();
            assert!((1..=20).contains(&all.len()));
            assert!(all.is_sorted_by_key(|error| (error.line, error.column)));
            for error in all {
                assert!(
                    (1..=lines).contains(&error.line) && error.column > 0,
                    "{error}"
                );
                assert!(!error.problem.contains('\n'), "{error:?}");
            }
        }
    }
}
