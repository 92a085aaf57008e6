//! What cannot be replayed ends with one line that names the file or the option.

use std::fs;

use tollgate_cli::error::Error;

use crate::harness::{
    command, file, gzip, log, record, tollgate, tollgate_line, tollgate_with_stdin,
};

/// The refusal of a replay of one log at 1/s.
fn refusal(log: &std::path::Path, code: i32) -> String {
    tollgate(["replay".as_ref(), log.as_os_str(), "--rate=1/s".as_ref()])
        .refusal(code)
        .to_owned()
}

#[test]
fn a_rate_that_is_none_names_the_option_the_value_and_the_form() {
    let form = "is not TOKENS/PERIOD, like 5/s, 100/min or 10/3s";
    let positive = "is not a positive, finite number of tokens per period";
    let table = [
        ("NaN", form),
        ("inf", form),
        ("0", form),
        ("-1", form),
        ("1e400", form),
        ("5", form),
        ("/s", form),
        ("5/fortnight", form),
        ("NaN/s", form),
        ("0/s", positive),
        ("-1/s", positive),
        ("1/0s", positive),
        (
            "18446744073709551616/s",
            "is out of range: at most 2^64 - 1 tokens in a period of 1 ns to 2^64 s, exactly",
        ),
    ];
    for (rate, why) in table {
        let run = tollgate(["replay", "missing.log", "--rate", rate]);
        assert_eq!(run.refusal(2), format!("--rate: rate \"{rate}\" {why}"));
    }
}

#[test]
fn a_burst_that_is_none_names_the_option_the_value_and_the_bounds() {
    for burst in [
        "0",
        "-1",
        "NaN",
        "inf",
        "1e400",
        "1.5",
        "",
        "18446744073709551616",
    ] {
        let run = tollgate(["replay", "missing.log", "--rate=5/s", "--burst", burst]);
        let bounds = "is not a whole number of tokens from 1 to 18446744073709551615";
        assert_eq!(
            run.refusal(2),
            format!("--burst: burst \"{burst}\" {bounds}")
        );
    }
}

#[test]
fn a_quota_that_no_limiter_holds_exactly_names_both() {
    let most = u64::MAX;
    let run = tollgate_line(&format!("replay x --rate 1/{most}s --burst {most}"));
    let line = run.refusal(2);
    assert!(line.starts_with("--rate, --burst: "), "{line}");
    for given in [format!("1/{most}s"), format!("burst is {most}")] {
        assert!(line.contains(&given), "{line}");
    }
}

#[test]
fn wrong_use_is_one_line_too() {
    let table = [
        (
            "replay x",
            "the following required arguments were not provided: --rate <TOKENS/PERIOD>",
        ),
        (
            "replay --rate 1/s",
            "the following required arguments were not provided: <LOG>...",
        ),
        (
            "replay x --rate",
            "a value is required for '--rate <TOKENS/PERIOD>' but none was supplied",
        ),
        (
            "replay x --rate 1/s --top many",
            "invalid value 'many' for '--top <CLIENTS>'",
        ),
        (
            "replay x --rat 1/s",
            "unexpected argument '--rat' found; a similar argument exists",
        ),
        (
            "replya",
            "unrecognized subcommand 'replya'; a similar subcommand exists",
        ),
        (
            "replay - - --rate 1/s",
            "-: standard input can be read only once",
        ),
    ];
    for (line, expected) in table {
        let run = tollgate_line(line);
        assert!(run.refusal(2).starts_with(expected), "{run:?}");
    }
}

#[test]
fn a_missing_file_is_named() {
    let line = refusal("no/such\u{1b}.log".as_ref(), 3);
    assert_eq!(line, r"no/such\u{1b}.log: no such file");
}

#[test]
fn a_directory_is_no_log() {
    let logs = log("");
    assert_eq!(
        refusal(&logs, 3),
        format!("{}: is a directory", logs.display())
    );
}

/// Root may read everything, so the error is made by hand where a file cannot be.
#[cfg(unix)]
#[test]
fn a_file_that_may_not_be_read_is_named() {
    use std::os::unix::fs::PermissionsExt as _;
    let name = "secret.log".to_owned();
    let source = std::io::ErrorKind::PermissionDenied.into();
    let error = Error::Input { name, source };
    assert_eq!(error.chain(), "secret.log: permission denied");
    assert_eq!(error.exit_code(), 3);

    let path = file("secret.log", record("a", "21/Jun/2026:23:49:36 +0000"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    let may_be_read = fs::File::open(&path).is_ok();
    if !may_be_read {
        assert_eq!(
            refusal(&path, 3),
            format!("{}: permission denied", path.display())
        );
    }
    fs::remove_file(&path).unwrap();
}

#[test]
fn an_empty_log_is_named() {
    for (name, bytes) in [("empty/plain", Vec::new()), ("empty/packed", gzip(""))] {
        let path = file(name, bytes);
        let expected = format!("{}: empty, nothing to replay", path.display());
        assert_eq!(refusal(&path, 3), expected);
    }
    let run = tollgate_with_stdin("replay - --rate 1/s", b"");
    assert_eq!(run.refusal(3), "standard input: empty, nothing to replay");
}

#[test]
fn logs_without_a_record_are_named() {
    let binary = file("binary", [0, 1, 2, 0x7f, b'\n', 0xff, 0xfe]);
    let why = "no record of the common or combined format in 2 lines";
    assert_eq!(refusal(&binary, 3), format!("{}: {why}", binary.display()));
    for name in ["caddy.json", "nginx.json", "nginx.default-escape.json"] {
        let line = refusal(&log(&format!("samples/{name}.log")), 3);
        assert!(
            line.contains("no record of the common or combined format"),
            "{line}"
        );
    }
}

#[test]
fn gzip_cut_short_is_an_error_and_no_figures_are_printed() {
    let whole = fs::read(log("nasa-1995-head.common.log.gz")).unwrap();
    for length in [6, 10, 20_000, whole.len() - 1] {
        let path = file("cut.log.gz", &whole[..length]);
        let expected = format!("{}: ends in the middle of its gzip data", path.display());
        assert_eq!(refusal(&path, 3), expected, "{length}");
    }
}

#[test]
fn damaged_gzip_is_an_error() {
    let mut damaged = fs::read(log("nasa-1995-head.common.log.gz")).unwrap();
    damaged[20_000] ^= 0xff;
    let path = file("damaged.log.gz", damaged);
    let line = refusal(&path, 3);
    assert!(
        line.starts_with(&format!("{}: damaged gzip: ", path.display())),
        "{line}"
    );

    let trailing = [
        gzip(record("a", "21/Jun/2026:23:49:36")),
        b"a line of text".to_vec(),
    ]
    .concat();
    let path = file("trailing.log.gz", trailing);
    let line = refusal(&path, 3);
    assert!(
        line.starts_with(&format!("{}: damaged gzip: ", path.display())),
        "{line}"
    );
}

#[test]
fn other_packers_are_named_with_the_way_round() {
    let table: [(&str, &[u8]); 3] = [
        ("zstd", b"\x28\xb5\x2f\xfd...."),
        ("xz", b"\xfd7zXZ\0...."),
        ("bzip2", b"BZh9...."),
    ];
    for (program, bytes) in table {
        let path = file(&format!("packed.{program}"), bytes);
        let line = refusal(&path, 3);
        let why = format!("packed by {program}; try {program} -dc FILE | tollgate replay - ...");
        assert_eq!(line, format!("{}: {why}", path.display()));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_output_that_cannot_be_written_is_an_error() {
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let nasa = log("nasa-1995-head.common.log.gz");
    let output = command()
        .arg("replay")
        .arg(nasa)
        .arg("--rate=1/s")
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(output.stderr, b"tollgate: standard output: no space left\n");
}
