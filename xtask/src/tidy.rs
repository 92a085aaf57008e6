//! What compilers do not check.

use std::fs;
use std::path::Path;

use crate::step::files_below;

const LONGEST_LINE: usize = 100;
const LARGEST_SOURCE_LINES: usize = 800;
const LARGEST_FILE_BYTES: u64 = 1024 * 1024;

/// Every problem, a line each.
pub(crate) fn problems(root: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    let map = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap_or_default();
    if map.is_empty() {
        problems.push(String::from("ARCHITECTURE.md: missing"));
    }
    for path in files_below(root) {
        let name = path
            .strip_prefix(root)
            .unwrap_or(&path)
            .to_string_lossy()
            .into_owned();
        let bytes = fs::metadata(&path).map_or(0, |data| data.len());
        if bytes > LARGEST_FILE_BYTES {
            problems.push(format!(
                "{name}: {bytes} bytes; at most {LARGEST_FILE_BYTES}"
            ));
        }
        let is_source = name.ends_with(".rs");
        let is_prose = name.ends_with(".md") && !name.contains("/traces/");
        if !is_source && !is_prose {
            continue;
        }
        let Ok(text) = fs::read_to_string(&path) else {
            problems.push(format!("{name}: not UTF-8"));
            continue;
        };
        problems.extend(lines(&name, &text, is_source));
        if is_source && !is_mapped(&name, &map) {
            problems.push(format!(
                "{name}: its file is not in the map of ARCHITECTURE.md"
            ));
        }
    }
    problems
}

fn lines(name: &str, text: &str, is_source: bool) -> Vec<String> {
    let mut problems = Vec::new();
    // Put together here so that this file does not hold what it looks for.
    let leftovers = [["TO", "DO"], ["FIX", "ME"]].map(|halves| halves.concat());
    for (number, line) in (1..).zip(text.lines()) {
        let mut problem = |what: &str| problems.push(format!("{name}:{number}: {what}"));
        if line.chars().count() > LONGEST_LINE && is_source {
            problem("longer than 100 columns");
        }
        if line.ends_with([' ', '\t']) {
            problem("white space at its end");
        }
        if leftovers.iter().any(|leftover| line.contains(leftover)) {
            problem("a leftover: do it, or write an issue");
        }
    }
    let count = text.lines().count();
    if is_source && count > LARGEST_SOURCE_LINES {
        problems.push(format!(
            "{name}: {count} lines; split it along what it does"
        ));
    }
    problems
}

/// Whether a source file of the library, or any other crate's folder, is named in the map.
fn is_mapped(name: &str, map: &str) -> bool {
    if let Some(file) = name.strip_prefix("crates/tollgate/src/") {
        let stem = file.trim_end_matches(".rs").trim_end_matches("/mod");
        let last = stem.rsplit('/').next().unwrap_or(stem);
        return map.contains(last);
    }
    let folder = match name.strip_prefix("crates/") {
        Some(rest) => rest.split('/').next(),
        None => name.split('/').next(),
    };
    folder.is_some_and(|folder| map.contains(folder))
}
