//! `tollgate trace` on the traces, on changed ones, and on what is none.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use tollgate_cli::error::Error;
use tollgate_testkit::{Answer, Trace, traces_below, traces_dir};

use crate::harness::{command, file, tollgate};

/// Two calls to a limit of one a second, and the right answers to them.
const ONE_A_SECOND: &str = r#"{"name": "one a second",
 "config": {"algorithm": "token-bucket", "rate": {"tokens": 1, "per_ns": 1000000000}, "burst": 1},
 "calls": [{"at_ns": 0, "client": "a"}, {"at_ns": 1, "client": "a"}],
 "expect": [{"decision": "allowed", "remaining": 0, "reset_after_ns": 1000000000},
  {"decision": "limited", "remaining": 0, "retry_after_ns": 999999999,
   "reset_after_ns": 999999999}]}"#;

/// What a check of the one thing that is no trace closes with.
const NOTHING_CHECKED: &str = "0 passed, 0 failed, 1 not checked\n";

fn trace(arguments: &[&str], path: &Path) -> crate::harness::Run {
    tollgate(
        ["trace"]
            .iter()
            .chain(arguments)
            .map(AsRef::as_ref)
            .chain([path.as_os_str()]),
    )
}

#[test]
fn every_trace_passes_the_check() {
    let traces = traces_below(&traces_dir()).unwrap();
    assert!(traces.len() > 60, "only {} traces", traces.len());
    let run = trace(&["--check"], &traces_dir());
    let expected = format!("{} passed, 0 failed\n", traces.len());
    assert_eq!(
        (run.code, run.stdout, run.stderr),
        (Some(0), expected, String::new())
    );
}

#[test]
fn the_answers_are_printed_one_a_line_in_the_words_of_the_traces() {
    for path in traces_below(&traces_dir()).unwrap() {
        let wanted = Trace::parse(&fs::read_to_string(&path).unwrap())
            .unwrap()
            .expect;
        let run = trace(&[], &path);
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{path:?}");
        let answer = |line: &str| serde_json::from_str::<Answer>(line).unwrap();
        let got: Vec<Answer> = run.stdout.lines().map(answer).collect();
        assert_eq!(got, wanted, "{path:?}");
    }
}

#[test]
fn the_words_are_those_of_the_format() {
    let path = file("trace/words.json", ONE_A_SECOND);
    let expected = concat!(
        r#"{"decision":"allowed","remaining":0,"reset_after_ns":1000000000}"#,
        "\n",
        r#"{"decision":"limited","remaining":0,"#,
        r#""retry_after_ns":999999999,"reset_after_ns":999999999}"#,
        "\n",
    );
    assert_eq!(trace(&[], &path).stdout, expected);
}

#[test]
fn the_trace_in_the_help_passes_its_own_check() {
    let help = tollgate(["trace", "--help"]).stdout;
    let (_, trace_on) = help.split_once("    {\"name\"").unwrap();
    let (text, _) = trace_on.split_once("]}\n").unwrap();
    let path = file("trace/help.json", format!("{{\"name\"{text}]}}"));
    assert_eq!(trace(&["--check"], &path).stdout, "1 passed, 0 failed\n");
}

#[test]
fn a_changed_expectation_is_reported_with_file_call_wanted_and_got() {
    let changed = ONE_A_SECOND.replace("\"retry_after_ns\": 999999999", "\"retry_after_ns\": 1");
    let folder = file("trace/changed/b.json", changed);
    file("trace/changed/a.json", ONE_A_SECOND);
    let run = trace(&["--check"], folder.parent().unwrap());
    let name = folder.display();
    let expected = format!(
        "{name}: call 2: wanted {}, got {}\n1 passed, 1 failed\n",
        r#"{"decision":"limited","remaining":0,"retry_after_ns":1,"reset_after_ns":999999999}"#,
        concat!(
            r#"{"decision":"limited","remaining":0,"#,
            r#""retry_after_ns":999999999,"reset_after_ns":999999999}"#
        ),
    );
    assert_eq!(
        (run.code, run.stdout, run.stderr),
        (Some(1), expected, String::new())
    );
}

/// A check that fails still says so when nobody reads on.
#[test]
fn a_closed_pipe_hides_no_failed_check() {
    let changed = ONE_A_SECOND.replace("\"remaining\": 0", "\"remaining\": 1");
    let path = file("trace/closed.json", changed);
    let mut child = command()
        .args(["trace", "--check", path.to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), output.stderr.as_slice()),
        (Some(1), &b""[..])
    );
}

#[test]
fn what_is_no_trace_is_named_with_what_is_wrong() {
    let with = |old: &str, new: &str| ONE_A_SECOND.replace(old, new).into_bytes();
    let answers = with(
        "\"at_ns\": 1, \"client\": \"a\"}]",
        "\"at_ns\": 1, \"client\": \"a\"}, {}]",
    );
    let table: [(&str, Vec<u8>, &str); 9] = [
        (
            "empty",
            Vec::new(),
            "malformed trace: EOF while parsing a value at line 1 column 0",
        ),
        (
            "text",
            b"5/s".to_vec(),
            "malformed trace: invalid type: integer `5`, expected an object",
        ),
        (
            "bytes",
            b"\xff".to_vec(),
            "malformed trace: invalid utf-8 sequence of 1 bytes from index 0",
        ),
        (
            "call",
            answers,
            "malformed trace: calls[2]: at_ns is missing at line 3",
        ),
        (
            "word",
            with("token-bucket", "bucket"),
            "malformed trace: config.algorithm: unknown variant `bucket`",
        ),
        (
            "burst",
            with("\"burst\": 1", "\"burst\": 0"),
            "config: burst is 0; the least is 1 token",
        ),
        (
            "rate",
            with("\"tokens\": 1", "\"tokens\": 0"),
            "config: rate is 0/s; the least is",
        ),
        (
            "length",
            with(
                "{\"decision\": \"allowed\", \"remaining\": 0, \"reset_after_ns\": 1000000000},",
                "",
            ),
            "malformed trace: expect has 1 answers for 2 calls",
        ),
        (
            "idle",
            with("\"burst\": 1", "\"burst\": 1, \"idle_ns\": 0"),
            "config: idle is 0",
        ),
    ];
    for (name, bytes, why) in table {
        let path = file(&format!("trace/none/{name}.json"), bytes);
        for (arguments, printed) in [(&[][..], ""), (&["--check"], NOTHING_CHECKED)] {
            let run = trace(arguments, &path);
            let line = run.refusal_after(printed, 3);
            assert!(
                line.starts_with(&format!("{}: {why}", path.display())),
                "{line}"
            );
        }
    }
}

#[test]
fn a_missing_file_or_a_folder_without_traces_is_named() {
    let missing = Path::new("no/such/trace.json");
    assert_eq!(
        trace(&[], missing).refusal(3),
        "no/such/trace.json: no such file"
    );
    let other = file("trace/without/other.txt", ONE_A_SECOND);
    let folder = other.parent().unwrap();
    let expected = format!("{}: no *.json below this directory", folder.display());
    let run = trace(&["--check"], folder);
    assert_eq!(run.refusal_after(NOTHING_CHECKED, 3), expected);
}

#[test]
fn a_trace_without_answers_can_be_run_but_not_checked() {
    let (without, _) = ONE_A_SECOND.split_once(",\n \"expect\"").unwrap();
    let path = file("trace/open.json", format!("{without}}}"));
    assert_eq!(trace(&[], &path).stdout.lines().count(), 2);
    let expected = format!("{}: no answers to check: expect is missing", path.display());
    let run = trace(&["--check"], &path);
    assert_eq!(run.refusal_after(NOTHING_CHECKED, 3), expected);
}

/// A malformed file used to end the check where it stood, without a word on the others.
#[test]
fn what_is_no_trace_does_not_keep_the_others_from_being_checked() {
    let half = file("trace/mixed/a.json", "{");
    let without_answers = ONE_A_SECOND.split_once(",\n \"expect\"").unwrap().0;
    let open = file("trace/mixed/b.json", format!("{without_answers}}}"));
    file("trace/mixed/c.json", ONE_A_SECOND);
    let changed = ONE_A_SECOND.replace("\"retry_after_ns\": 999999999", "\"retry_after_ns\": 1");
    let wrong = file("trace/mixed/d.json", changed);
    let run = tollgate([
        "trace",
        "--check",
        "no/such/folder",
        half.parent().unwrap().to_str().unwrap(),
    ]);
    assert_eq!(run.code, Some(3), "{run:?}");
    let lines: Vec<&str> = run.stdout.lines().collect();
    let [differs, tally] = lines.as_slice() else {
        panic!("{run:?}");
    };
    let call = format!("{}: call 2: wanted ", wrong.display());
    assert!(differs.starts_with(&call), "{run:?}");
    assert_eq!(*tally, "1 passed, 1 failed, 3 not checked");
    let expected = format!(
        "tollgate: no/such/folder: no such file\n\
         tollgate: {}: malformed trace: EOF while parsing an object at line 1 column 1\n\
         tollgate: {}: no answers to check: expect is missing\n",
        half.display(),
        open.display()
    );
    assert_eq!(run.stderr, expected);
}

#[test]
fn a_trace_file_without_an_end_is_not_read_to_it() {
    let path = file("trace/large.json", "");
    let large = fs::OpenOptions::new().write(true).open(&path).unwrap();
    large.set_len((64 << 20) + 1).unwrap();
    let expected = format!("{}: malformed trace: larger than 64 MiB", path.display());
    assert_eq!(trace(&[], &path).refusal(3), expected);
    fs::remove_file(&path).unwrap();
}

/// Root may read everything, so the error is made by hand where a file cannot be.
#[cfg(unix)]
#[test]
fn a_file_or_folder_that_may_not_be_read_is_named() {
    use std::os::unix::fs::PermissionsExt as _;
    let secret = file("trace/secret/b/c.json", ONE_A_SECOND);
    for path in [secret.as_path(), secret.parent().unwrap()] {
        let name = path.display().to_string();
        let expected = format!("{name}: permission denied");
        let source = std::io::ErrorKind::PermissionDenied.into();
        let error = Error::Input { name, source };
        assert_eq!((error.chain(), error.exit_code()), (expected.clone(), 3));

        let before = fs::metadata(path).unwrap().permissions();
        fs::set_permissions(path, fs::Permissions::from_mode(0o000)).unwrap();
        let is_root = fs::File::open(path).is_ok();
        let run = trace(&[], secret.parent().unwrap().parent().unwrap());
        fs::set_permissions(path, before).unwrap();
        if !is_root {
            assert_eq!(run.refusal(3), expected);
        }
    }
}

#[test]
fn a_trace_file_is_needed() {
    let expected = "the following required arguments were not provided: <FILE>...; see --help";
    assert_eq!(tollgate(["trace", "--check"]).refusal(2), expected);
}
