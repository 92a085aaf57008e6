//! One JSON object a row and limiter, a line each.

use std::io::{self, Write};

use serde::Serialize;

use crate::bars::{Against, Met};
use crate::figures::{Figures, Verdict};
use crate::row::{Limiter, Row, Unit};
use crate::text;

#[derive(Serialize)]
struct Line {
    #[serde(flatten)]
    row: Row,
    name: Limiter,
    #[serde(skip_serializing_if = "Option::is_none")]
    ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<f64>,
    spread: (f64, f64),
    ratio: Option<f64>,
    reads: Option<&'static str>,
    /// A limiter's name, or which other row of our own.
    against: Option<String>,
    bar: Option<LineBar>,
}

#[derive(Serialize)]
struct LineBar {
    floor: Option<f64>,
    goal: Option<f64>,
    met: &'static str,
}

/// Writes the rows. A peer's line has our ratio to it; our own line has the tightest bar's.
pub(crate) fn rows(output: &mut impl Write, all: &[Figures]) -> io::Result<()> {
    for figures in all {
        for name in figures.limiters() {
            let Some(figure) = figures.figure(name) else {
                continue;
            };
            let verdict = if name == Limiter::Tollgate {
                figures.verdict(all)
            } else {
                figures.beside(name, all)
            };
            let unit = figures.row.measure.unit();
            let of = |wanted| (unit == wanted).then_some(figure.median);
            let line = Line {
                row: figures.row,
                name,
                ns: of(Unit::Ns),
                bytes: of(Unit::Bytes),
                count: of(Unit::Count),
                spread: figure.spread,
                ratio: verdict.map(|verdict| verdict.ratio),
                reads: verdict.map(|verdict| verdict.reads.as_str()),
                against: verdict.map(|verdict| against(verdict, &figures.row)),
                bar: verdict.and_then(bar),
            };
            serde_json::to_writer(&mut *output, &line)?;
            output.write_all(b"\n")?;
        }
    }
    Ok(())
}

fn bar(verdict: Verdict) -> Option<LineBar> {
    let (bar, met) = verdict.bar?;
    let met = match met {
        Met::Missed => "missed",
        Met::Short => "short",
        Met::Floor => "floor",
        Met::Goal => "goal",
    };
    let (floor, goal) = (bar.floor, bar.goal);
    Some(LineBar { floor, goal, met })
}

/// Of another row of ours, what is different in it.
fn against(verdict: Verdict, row: &Row) -> String {
    match verdict.against {
        Against::Peer(peer) => text::word(&peer),
        Against::Own(other) if other.call != row.call => {
            format!("tollgate {}", text::word(&other.call))
        }
        Against::Own(other) if other.answer != row.answer => {
            format!("tollgate {}", text::word(&other.answer))
        }
        Against::Own(other) => format!("tollgate {}", text::word(&other.measure)),
        Against::Nothing => "nothing".to_owned(),
    }
}
