//! Every trace, through the limiter that users get.

use std::fs;

use tollgate::Limiter;
use tollgate_testkit::{Trace, traces_below, traces_dir};

use crate::harness::{answer, any_limit, at, keyed};

fn traces() -> Vec<Trace> {
    let paths = traces_below(&traces_dir()).unwrap();
    assert!(paths.len() > 90, "{} traces", paths.len());
    paths
        .iter()
        .map(|path| Trace::parse(&fs::read_to_string(path).unwrap()).unwrap())
        .collect()
}

#[test]
fn every_trace_passes_whole() {
    for trace in traces() {
        let limiter = keyed(&trace.config).unwrap();
        for (n, (call, wanted)) in trace.calls.iter().zip(&trace.expect).enumerate() {
            let got = limiter.try_acquire_at(call.client.as_str(), call.cost, at(call.at_ns));
            assert_eq!(answer(got), *wanted, "{}, call {n}: {call:?}", trace.name);
        }
        assert!(limiter.longest_hold().positions <= 64);
    }
}

/// Where nobody is forgotten and nobody refused for the cap, one bucket answers one client's calls
/// as a bucket a client does.
#[test]
fn one_bucket_answers_as_a_client_of_many_does() {
    let mut checked = 0;
    for trace in traces() {
        if trace.config.idle_ns.is_some() || trace.config.max_clients.is_some() {
            continue;
        }
        let mut clients: Vec<&str> = trace
            .calls
            .iter()
            .map(|call| call.client.as_str())
            .collect();
        clients.sort_unstable();
        clients.dedup();
        for client in clients {
            let limiter = Limiter::builder(any_limit(&trace.config.algorithm))
                .build()
                .unwrap();
            let mut latest_ns = 0;
            for (call, wanted) in trace.calls.iter().zip(&trace.expect) {
                let back = call.at_ns < latest_ns;
                latest_ns = latest_ns.max(call.at_ns);
                if call.client == client && !back {
                    let got = answer(limiter.try_acquire_at(call.cost, at(call.at_ns)));
                    assert_eq!(got, *wanted, "{}: {call:?}", trace.name);
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 1_000, "{checked} calls");
}
