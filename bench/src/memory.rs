//! Resident memory, as the system counts it: what the allocator keeps back is in it.

use std::fs;

use crate::error::Error;
use crate::peers::{Calls, Entry};
use crate::row::{Answer, Call, Limiter, Measure, Row, Sample};

/// Bytes of this process that are in memory.
pub(crate) fn resident_bytes() -> Result<f64, Error> {
    let path = "/proc/self/status";
    let status =
        fs::read_to_string(path).map_err(|error| Error::new(format!("{path}: {error}")))?;
    let kibibytes = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix("kB"))
        .and_then(|number| number.trim().parse::<u32>().ok());
    let unknown = || Error::new(format!("{path} has no VmRSS in kB"));
    Ok(f64::from(kibibytes.ok_or_else(unknown)?) * 1_024.0)
}

/// P8: by how much the process grows while a limiter comes to know all clients, each once.
pub(crate) fn bytes_a_client(row: Row, name: Limiter) -> Result<Vec<Sample>, Error> {
    let clients: Vec<u32> = (0..row.keys).collect();
    let calls = Calls {
        clients: &clients,
        offset: 0,
        name_len: row.name_len,
    };
    let entry = Entry::new(name, Call::Allow, Answer::Admitted);
    // Clocks and the like are set up once a process; no client pays for them.
    entry.keyed(1)?.run(&Calls {
        clients: &[0],
        ..calls
    });
    let before = resident_bytes()?;
    let limiter = entry.keyed(usize::try_from(row.keys).unwrap_or(usize::MAX))?;
    let admitted = limiter.run(&calls);
    let grown = resident_bytes()? - before;
    drop(limiter);
    if admitted != clients.len() {
        let what = format!(
            "P8: {name:?} admitted {admitted} of {} clients",
            clients.len()
        );
        return Err(Error::new(what));
    }
    let row = Row {
        measure: Measure::BytesAClient,
        ..row
    };
    let figures = vec![grown / f64::from(row.keys)];
    Ok(vec![Sample { row, name, figures }])
}
