//! The model against the traces, and the traces against their format.

#![cfg(test)]

mod answers;
mod files;
mod format;

use tollgate_testkit::{Trace, traces_below, traces_dir};

fn shipped_traces() -> Vec<Trace> {
    let paths = traces_below(&traces_dir()).unwrap();
    assert!(paths.len() > 90, "{} traces", paths.len());
    paths
        .iter()
        .map(|path| Trace::read(path).unwrap())
        .collect()
}
