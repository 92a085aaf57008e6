//! What compilers do not check.

use std::fs;
use std::path::Path;

use crate::step::files_below;

const LONGEST_LINE: usize = 100;
const LARGEST_SOURCE_LINES: usize = 800;
const LARGEST_FILE_BYTES: u64 = 1024 * 1024;

/// How the sections of ARCHITECTURE.md begin that name every module, and every crate.
const MAP: &str = "Code map";
const CRATES: &str = "Bird's eye";

/// Every problem, a line each.
pub(crate) fn problems(root: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    let architecture = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap_or_default();
    for heading in [MAP, CRATES] {
        if section(&architecture, heading).is_empty() {
            problems.push(format!("ARCHITECTURE.md: no section {heading:?}"));
        }
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
        let is_prose = name.ends_with(".md");
        if !is_source && !is_prose {
            continue;
        }
        let Ok(text) = fs::read_to_string(&path) else {
            problems.push(format!("{name}: not UTF-8"));
            continue;
        };
        problems.extend(lines(&name, &text, is_source));
        if is_source && let Some(missing) = unmapped(&name, &architecture) {
            problems.push(format!("{name}: ARCHITECTURE.md: {missing}"));
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
        // Neither an address nor a row of a table can be broken.
        let is_whole = !is_source && (line.contains("://") || line.starts_with('|'));
        if line.chars().count() > LONGEST_LINE && !is_whole {
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

/// What ARCHITECTURE.md lacks of a source file: of the library's own its module, in backquotes, in
/// the map; of any other its crate's folder, in the list of crates.
fn unmapped(name: &str, architecture: &str) -> Option<String> {
    if let Some(file) = name.strip_prefix("crates/tollgate/src/") {
        let module = file.trim_end_matches(".rs");
        // Beside others of its folder a module may go by its last name: `fixed_window`.
        let last = module.rsplit('/').next().unwrap_or(module);
        let map = section(architecture, MAP);
        let is_there = [module, last]
            .iter()
            .any(|name| map.contains(&format!("`{name}`")));
        return (!is_there).then(|| format!("no `{module}` in {MAP:?}"));
    }
    let path = name.strip_prefix("crates/").unwrap_or(name);
    let folder = path.split('/').next().unwrap_or(path);
    let is_of_a_name = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    let mut words = section(architecture, CRATES).split(|c| !is_of_a_name(c));
    (!words.any(|word| word == folder)).then(|| format!("no {folder} in {CRATES:?}"))
}

/// The text below the first heading that begins so, up to the next of its level; empty without one.
fn section<'a>(text: &'a str, heading: &str) -> &'a str {
    let below = text.split("\n## ").skip(1);
    let found = below
        .filter_map(|section| section.strip_prefix(heading))
        .next();
    found.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# Architecture

`keyed/search` is spoken of here, and search is a word.

## Bird's eye

    tollgate-cli    the command
    bench/  fuzz/   others

## Code map of `crates/tollgate/src`

- `algorithm/mod`: the trait. `fixed_window`: one. keyed/shards, not in backquotes.

## Invariants

- `keyed/table` is an invariant.
";

    #[test]
    fn a_module_is_looked_for_in_the_map_alone() {
        let table = [
            ("crates/tollgate/src/algorithm/mod.rs", true),
            ("crates/tollgate/src/algorithm/fixed_window.rs", true),
            ("crates/tollgate/src/keyed/search.rs", false),
            ("crates/tollgate/src/keyed/shards.rs", false),
            ("crates/tollgate/src/keyed/table.rs", false),
            ("crates/tollgate-cli/src/trace.rs", true),
            ("crates/tollgate/tests/it/main.rs", false),
            ("bench/src/main.rs", true),
            ("command/main.rs", true),
            ("comm/main.rs", false),
        ];
        for (name, is_mapped) in table {
            assert_eq!(unmapped(name, TEXT).is_none(), is_mapped, "{name}");
        }
    }

    #[test]
    fn long_lines_are_told_but_for_addresses_and_rows_of_tables() {
        let long = "x".repeat(101);
        let told = |line: &str, is_source| !lines("a.md", line, is_source).is_empty();
        assert!(told(&long, false) && told(&long, true));
        assert!(!told(&"x".repeat(100), false));
        for whole in [format!("| {long} |"), format!("<https://{long}>")] {
            assert!(!told(&whole, false));
            assert!(told(&whole, true));
        }
    }
}
