//! The rows that give CPU time a call: P1 to P7, P11, P12, P14.

use crate::error::Error;
use crate::peers::Entry;
use crate::row::{Answer, Bench, Call, Dist, Limiter, Row, Sample};
use crate::sets::{Effort, Set};

const NAME_LENS: [usize; 2] = [14, 36];

const PEERS: [Limiter; 3] = [Limiter::Governor, Limiter::GovernorAhash, Limiter::Textbook];

/// Peers that set no bar and take long.
const APART: [Limiter; 2] = [Limiter::Throttlecrab, Limiter::Limitador];

/// P1 to P4: known clients, all admitted.
pub(crate) fn admitted(bench: Bench, keys: u32, effort: Effort) -> Result<Vec<Sample>, Error> {
    let mut entries = with_peers(Answer::Admitted);
    entries.push(Entry::new(
        Limiter::Tollgate,
        Call::TryAcquire,
        Answer::Admitted,
    ));
    known_clients(bench, keys, &NAME_LENS, &entries, effort)
}

/// P1 to P4: the same clients, of the peers that are measured apart. A quick run has the shorter
/// names alone.
pub(crate) fn apart(bench: Bench, keys: u32, effort: Effort) -> Result<Vec<Sample>, Error> {
    let entries = APART.map(|name| Entry::new(name, Call::Allow, Answer::Admitted));
    let name_lens: &[usize] = if effort.quick { &[14] } else { &NAME_LENS };
    known_clients(bench, keys, name_lens, &entries, effort.apart())
}

/// P6: the clients of P1 to P4, beside rate-net.
pub(crate) fn rate_net(effort: Effort) -> Result<Vec<Sample>, Error> {
    // Two limiters are through with all rows in a third of the time that they have.
    let effort = Effort {
        keeps_sets: true,
        ..effort
    };
    let entries = [Limiter::Tollgate, Limiter::RateNet, Limiter::Baseline];
    let entries = entries.map(|name| Entry::new(name, Call::Allow, Answer::Admitted));
    let mut samples = Vec::new();
    for keys in [1, 1_000, 100_000, 1_000_000] {
        let own = known_clients(Bench::P6, keys, &NAME_LENS, &entries, effort)?;
        samples.extend(own);
    }
    Ok(samples)
}

fn known_clients(
    bench: Bench,
    keys: u32,
    name_lens: &[usize],
    entries: &[Entry],
    effort: Effort,
) -> Result<Vec<Sample>, Error> {
    let (dists, threads): (&[Dist], &[usize]) = match keys {
        1 => (&[Dist::Hot], &[1]),
        1_000 => (&[Dist::Uniform], &[1, 2]),
        _ => (&[Dist::Uniform, Dist::Zipf], &[1, 2]),
    };
    let mut samples = Vec::new();
    for &name_len in name_lens {
        let row = Row::new(bench, keys, Dist::Uniform, name_len);
        let mut kept = None;
        for dist in dists {
            for threads in threads {
                let mut set = match kept.take() {
                    Some(set) => set,
                    None => Set::new(row, entries.to_vec())?,
                };
                samples.extend(set.measure(*dist, *threads, effort)?);
                // Seven repetitions of five limiters would outlive the time in which nobody goes
                // idle.
                kept = effort.keeps_sets.then_some(set);
            }
        }
    }
    Ok(samples)
}

/// P5: the same clients, all refused, beside our own admitted calls. A quick run has one thread.
pub(crate) fn refused(effort: Effort) -> Result<Vec<Sample>, Error> {
    let mut entries = vec![Entry::new(Limiter::Tollgate, Call::Allow, Answer::Admitted)];
    entries.extend(with_peers(Answer::Refused));
    entries.push(Entry::new(
        Limiter::Tollgate,
        Call::TryAcquire,
        Answer::Refused,
    ));
    let mut samples = Vec::new();
    for keys in [1, 1_000, 100_000, 1_000_000] {
        for name_len in NAME_LENS {
            let dist = if keys == 1 { Dist::Hot } else { Dist::Uniform };
            let threads: &[usize] = match keys {
                1_000 | 100_000 if !effort.quick => &[1, 2],
                _ => &[1],
            };
            for threads in threads {
                let row = Row::new(Bench::P5, keys, dist, name_len);
                let mut set = Set::new(row, entries.clone())?;
                samples.extend(set.measure(dist, *threads, effort)?);
            }
        }
    }
    Ok(samples)
}

/// P7: one bucket, no names.
pub(crate) fn single(effort: Effort) -> Result<Vec<Sample>, Error> {
    let mut entries = Vec::new();
    for answer in [Answer::Admitted, Answer::Refused] {
        entries.push(Entry::new(Limiter::Tollgate, Call::Allow, answer));
        for peer in [Limiter::Governor, Limiter::RateNet, Limiter::Ratelimit] {
            entries.push(Entry::new(peer, Call::Allow, answer));
        }
        entries.push(Entry::new(Limiter::Baseline, Call::Allow, answer));
        entries.push(Entry::new(Limiter::Tollgate, Call::TryAcquire, answer));
    }
    let mut set = Set::new(Row::new(Bench::P7, 1, Dist::Hot, 0), entries)?;
    let mut samples = set.measure(Dist::Hot, 1, effort)?;
    samples.extend(set.measure(Dist::Hot, 2, effort)?);
    Ok(samples)
}

/// P11: newcomers where a million clients are tracked and as many may be, beside admitted calls.
pub(crate) fn client_limit(effort: Effort) -> Result<Vec<Sample>, Error> {
    let entries = [
        Entry::new(Limiter::Tollgate, Call::Allow, Answer::Admitted),
        Entry::new(Limiter::Tollgate, Call::Allow, Answer::ClientLimit),
        Entry::new(Limiter::Tollgate, Call::TryAcquire, Answer::ClientLimit),
        Entry::new(Limiter::Baseline, Call::Allow, Answer::ClientLimit),
    ];
    let mut samples = Vec::new();
    for name_len in NAME_LENS {
        let row = Row::new(Bench::P11, 1_000_000, Dist::Uniform, name_len);
        samples.extend(Set::new(row, entries.to_vec())?.measure(Dist::Uniform, 1, effort)?);
    }
    Ok(samples)
}

/// P12: sixteen known clients in one call, beside one call after the other.
pub(crate) fn batches(effort: Effort) -> Result<Vec<Sample>, Error> {
    let calls = [Call::TryAcquireInTurn, Call::TryAcquireEach];
    let names = [Limiter::Tollgate, Limiter::Baseline];
    let entries = calls.map(|call| names.map(|name| Entry::new(name, call, Answer::Admitted)));
    let mut samples = Vec::new();
    for name_len in NAME_LENS {
        let row = Row::new(Bench::P12, 1_000_000, Dist::Uniform, name_len);
        for threads in [1, 2] {
            let mut set = Set::new(row, entries.concat())?;
            samples.extend(set.measure(Dist::Uniform, threads, effort)?);
        }
    }
    Ok(samples)
}

/// P14: what a sweep over all clients on every call costs.
pub(crate) fn sweep(effort: Effort) -> Result<Vec<Sample>, Error> {
    let entries = [Limiter::Tollgate, Limiter::Sweep, Limiter::Baseline];
    let entries = entries.map(|name| Entry::new(name, Call::Allow, Answer::Admitted));
    let mut samples = Vec::new();
    for keys in [1_000, 10_000, 100_000] {
        let row = Row::new(Bench::P14, keys, Dist::Uniform, 14);
        samples.extend(Set::new(row, entries.to_vec())?.measure(Dist::Uniform, 1, effort)?);
    }
    Ok(samples)
}

/// Our `allow`, the peers, and the loop alone.
fn with_peers(answer: Answer) -> Vec<Entry> {
    let names = [Limiter::Tollgate].into_iter().chain(PEERS);
    names
        .chain([Limiter::Baseline])
        .map(|name| Entry::new(name, Call::Allow, answer))
        .collect()
}
