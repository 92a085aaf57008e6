//! Traces on a disk.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use tollgate_testkit::{Trace, traces_below};

/// An empty folder of the test's own.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).unwrap();
    }
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn errors_name_the_file() {
    let folder = folder("errors_name_the_file");
    let file = folder.join("half.json");
    fs::write(&file, "{\"name\": \"half\",\n \"calls\": 5}").unwrap();
    assert_eq!(
        Trace::read(&file).unwrap_err().to_string(),
        format!(
            "{}: malformed trace: calls: invalid type: integer `5`, expected a list \
             at line 2 column 11",
            file.display()
        )
    );
    let absent = folder.join("absent.json");
    let error = Trace::read(&absent).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("{}: cannot be read", absent.display())
    );
    assert!(error.source().is_some());
}

#[test]
fn json_files_are_found_below_a_folder_in_order() {
    let folder = folder("json_files_are_found_below_a_folder_in_order");
    fs::create_dir_all(folder.join("b/c")).unwrap();
    for name in [
        "z.json",
        "b/c/y.json",
        "a.json",
        "README.md",
        "b/x.json.orig",
    ] {
        fs::write(folder.join(name), "").unwrap();
    }
    let wanted = ["a.json", "b/c/y.json", "z.json"].map(|name| folder.join(name));
    assert_eq!(traces_below(&folder).unwrap(), wanted);
    let file = folder.join("README.md");
    assert_eq!(traces_below(&file).unwrap(), [file]);
}

#[test]
fn folders_are_searched_eight_deep() {
    let folder = folder("folders_are_searched_eight_deep");
    let eighth = folder.join("2/3/4/5/6/7/8");
    fs::create_dir_all(&eighth).unwrap();
    fs::write(eighth.join("a.json"), "").unwrap();
    assert_eq!(traces_below(&folder).unwrap(), [eighth.join("a.json")]);
    let ninth = eighth.join("9");
    fs::create_dir(&ninth).unwrap();
    let error = traces_below(&folder).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("{}: cannot be read", ninth.display())
    );
    let source = error.source().unwrap().to_string();
    assert_eq!(source, "nested more than 8 folders deep");
}

/// The error used to say which folder was given, not which one below it could not be read. Root may
/// read everything: where opening succeeds all the same, there is nothing to refuse.
#[cfg(unix)]
#[test]
fn a_nested_folder_that_may_not_be_read_is_named() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = folder("a_nested_folder_that_may_not_be_read_is_named");
    let nested = folder.join("a/b");
    fs::create_dir_all(&nested).unwrap();
    fs::set_permissions(&nested, fs::Permissions::from_mode(0o000)).unwrap();
    let (may_be_read, found) = (nested.read_dir().is_ok(), traces_below(&folder));
    fs::set_permissions(&nested, fs::Permissions::from_mode(0o755)).unwrap();
    if !may_be_read {
        let expected = format!("{}: cannot be read", nested.display());
        assert_eq!(found.unwrap_err().to_string(), expected);
    }
}

#[test]
fn a_missing_folder_is_named() {
    let absent = folder("a_missing_folder_is_named").join("absent");
    let expected = format!("{}: cannot be read", absent.display());
    assert_eq!(traces_below(&absent).unwrap_err().to_string(), expected);
}

#[test]
fn what_is_too_large_or_no_text_is_named() {
    let folder = folder("what_is_too_large_or_no_text_is_named");
    let (large, binary) = (folder.join("large.json"), folder.join("binary.json"));
    fs::File::create(&large)
        .unwrap()
        .set_len((64 << 20) + 1)
        .unwrap();
    fs::write(&binary, b"\xff").unwrap();
    let table = [
        (large, "larger than 64 MiB"),
        (binary, "invalid utf-8 sequence of 1 bytes from index 0"),
    ];
    for (path, why) in table {
        let expected = format!("{}: malformed trace: {why}", path.display());
        assert_eq!(Trace::read(&path).unwrap_err().to_string(), expected);
        fs::remove_file(&path).unwrap();
    }
}
