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
    assert_eq!(
        traces_below(&folder).unwrap_err().to_string(),
        format!("{}: nested more than 8 folders deep", ninth.display())
    );
}
