//! The report as people see it.

use std::process::Stdio;

use crate::harness::{command, file, log, record, tollgate, tollgate_line};

#[test]
fn the_report_is_aligned() {
    let nasa = log("nasa-1995-head.common.log.gz");
    let arguments = [
        "replay",
        nasa.to_str().unwrap(),
        "--rate=1/s",
        "--burst=1",
        "--top=3",
    ];
    let expected = "\
limit              1/s burst 1
first              1995-07-01 04:00:01 UTC
last               1995-07-01 05:08:54 UTC  (1h 8m 53s later)
lines              4,000
unreadable lines       0
records            4,000
clients              416
limited requests     318    8.0 %
limited clients      174   41.8 %

client            requests  limited   share  longest wait
10.0.6.200              43        7  16.3 %            1s
10.0.39.234             27        6  22.2 %            1s
host-240.example        13        6  46.2 %            1s
";
    let run = tollgate(arguments);
    assert_eq!(
        (run.code, run.stdout.as_str(), run.stderr.as_str()),
        (Some(0), expected, "")
    );
}

#[test]
fn unreadable_lines_are_shown_after_the_figures() {
    let data = log("data-api-2024.combined.log.gz");
    let arguments = ["replay", data.to_str().unwrap(), "--rate=5/s", "--burst=10"];
    let run = tollgate(arguments);
    let (figures, unreadable) = run.stdout.split_once("\n\nunreadable lines\n").unwrap();
    assert!(figures.contains("unreadable lines    5,796\n"), "{figures}");
    let (reasons, shown) = unreadable.split_once("the first 5\n").unwrap();
    assert_eq!(reasons, "  5,796  continuation of the line before\n");
    let (first, rest) = shown.split_once('\n').unwrap();
    assert!(
        first.ends_with("log.gz:19: continuation of the line before"),
        "{first}"
    );
    assert!(rest.starts_with("     \"curl/7.54.0\"\n"), "{rest}");
}

#[test]
fn a_limit_that_hits_nobody_lists_nobody() {
    let log = file("nobody.log", record("a", "21/Jun/2026:23:49:36 +0000"));
    let expected = "\
limit              1/s burst 1
first              2026-06-21 23:49:36 UTC
last               2026-06-21 23:49:36 UTC  (0s later)
lines              1
unreadable lines   0
records            1
clients            1
limited requests   0    0.0 %
limited clients    0    0.0 %
";
    assert_eq!(
        tollgate(["replay", log.to_str().unwrap(), "--rate=1/s"]).stdout,
        expected
    );
}

#[test]
fn every_line_fits_80_columns_and_none_is_coloured() {
    let client = "a-client-with-a-name-".repeat(10);
    let junk = "junk ".repeat(100);
    let log = [
        record(&client, "21/Jun/2026:23:49:36 +0000").repeat(2_000),
        junk,
    ]
    .concat();
    let log = file(
        &format!("{}/wide.log", "long-directory-name/".repeat(8)),
        log,
    );
    let run = tollgate(["replay", log.to_str().unwrap(), "--rate=1/s"]);
    for line in run.stdout.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert!(run.stdout.contains("...  "), "{run:?}");
    assert!(!run.stdout.contains('\u{1b}'), "{run:?}");
}

/// A reader that goes away, `| head -n 1`, is no error.
#[test]
fn a_closed_pipe_is_no_error() {
    let nasa = log("nasa-1995-head.common.log.gz");
    let mut child = command()
        .args(["replay", nasa.to_str().unwrap(), "--rate=1/s", "--top=1000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), output.stderr.as_slice()),
        (Some(0), &b""[..])
    );
}

#[test]
fn help_states_units_bounds_examples_and_exit_codes() {
    let table: [(&str, &[&str]); 3] = [
        (
            "--help",
            &[
                "replay",
                "trace",
                "Examples:",
                "Exit codes: 0 done, 1 a check failed",
            ],
        ),
        (
            "replay --help",
            &[
                "5/s",
                "100/min",
                "64 KiB",
                "1 KiB",
                "1970",
                "16 bytes a record",
                "Examples:",
            ],
        ),
        (
            "trace --help",
            &["--check", "Examples:", "Exit codes:", "passed"],
        ),
    ];
    for (line, expected) in table {
        let run = tollgate_line(line);
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
        for text in expected {
            assert!(
                run.stdout.contains(text),
                "{line}: no {text:?} in\n{}",
                run.stdout
            );
        }
        for line in run.stdout.lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
        // What follows the options is wrapped by hand: a line that a terminal of 80 columns wraps
        // again leaves scraps.
        let (_, after) = run.stdout.split_once("-h, --help").unwrap();
        for line in after.lines().skip(1) {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}

#[test]
fn version_is_the_packages() {
    let run = tollgate_line("--version");
    assert_eq!(
        run.stdout,
        concat!("tollgate ", env!("CARGO_PKG_VERSION"), "\n")
    );
    assert_eq!(run.code, Some(0));
}

#[test]
fn without_a_command_the_help_is_printed_as_wrong_use() {
    let run = tollgate_line("");
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    assert!(run.stderr.contains("Usage: tollgate <COMMAND>"), "{run:?}");
}
