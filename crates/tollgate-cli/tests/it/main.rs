//! The built command, run as users run it, and the parsers beneath it.

#[cfg(test)]
mod check;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod line;
#[cfg(test)]
mod lines;
#[cfg(test)]
mod replay_errors;
#[cfg(test)]
mod replay_figures;
#[cfg(test)]
mod replay_lines;
#[cfg(test)]
mod replay_output;
#[cfg(test)]
mod replay_policy;
#[cfg(test)]
mod trace;
