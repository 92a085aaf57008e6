//! The project's own chores, so that people and machines run the same ones.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a chore says what it does"
)]

mod step;
mod tidy;

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use step::{Report, cargo};

const USAGE: &str = "\
The project's own chores.

Usage: cargo xtask test [--only LIST] [--heavy]
       cargo xtask tidy

test     runs every test: the crates' own and their documentation's, those of the library's
         features, the examples, the model checker, the benchmark's, the fuzz targets' seeds, and
         tidy. Needs a Rust toolchain and the crates registry, nothing else.
  --only LIST   only these steps, comma-separated: crates, features, examples, loom, bench, seeds,
                tidy, and the heavy ones: soak, fuzz, deny
  --heavy       the heavy steps too: soak (properties over twenty times the random limiters), fuzz
                (each target for a minute), deny (licences and sources of dependencies); installs
                cargo-fuzz and cargo-deny under target/tools
tidy     checks what compilers do not: long lines, leftovers, large files, the map and the list
         of crates in ARCHITECTURE.md

Examples:
  cargo xtask test
  cargo xtask test --only crates,loom
  cargo xtask test --only fuzz

Exit code: 0 all passed, 1 something failed, 2 wrong use.";

const USUAL: [&str; 7] = [
    "crates", "features", "examples", "loom", "bench", "seeds", "tidy",
];
const HEAVY: [&str; 3] = ["soak", "fuzz", "deny"];
/// The longest that one fuzz target runs, in seconds.
const FUZZ_SECS: u32 = 60;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let steps = match args.as_slice() {
        ["test", options @ ..] => steps(options),
        ["tidy"] => Ok(vec!["tidy"]),
        ["help" | "-h" | "--help"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => Err(String::from("expected `test` or `tidy`")),
    };
    match steps {
        Ok(steps) => run(&steps),
        Err(problem) => {
            eprintln!("xtask: {problem}; try `cargo xtask --help`");
            ExitCode::from(2)
        }
    }
}

fn steps(options: &[&str]) -> Result<Vec<&'static str>, String> {
    let all = USUAL.iter().chain(&HEAVY);
    match options {
        [] => Ok(USUAL.to_vec()),
        ["--heavy"] => Ok(all.copied().collect()),
        ["--only", list] => list
            .split(',')
            .map(|name| {
                let known = all.clone().find(|step| **step == name);
                known
                    .copied()
                    .ok_or_else(|| format!("no step is called {name:?}"))
            })
            .collect(),
        _ => Err(format!("unexpected arguments: {}", options.join(" "))),
    }
}

fn run(steps: &[&'static str]) -> ExitCode {
    let mut report = Report::default();
    for step in steps {
        match *step {
            "crates" => report.run("crates", &mut cargo(&["test", "--workspace", "--locked"])),
            "features" => {
                let with_all =
                    |package| cargo(&["test", "--locked", "--all-features", "-p", package]);
                let observed = ["--test", "it", "observed"];
                report.run("features", with_all("tollgate").args(observed));
                // Its examples are built with it, and started by its tests.
                report.run("http features", &mut with_all("tollgate-http"));
            }
            "examples" => examples(&mut report),
            "loom" => loom(&mut report),
            // Workspaces of their own: the crates' tests do not reach them.
            "bench" => report.run("bench", &mut test_in("bench")),
            "seeds" => report.run("seeds", &mut test_in("fuzz")),
            "tidy" => report.check("tidy", || tidy::problems(&root())),
            "soak" => report.run(
                "soak",
                cargo(&[
                    "test",
                    "--locked",
                    "-p",
                    "tollgate",
                    "--test",
                    "it",
                    "properties",
                ])
                .env("TOLLGATE_SEEDS_TIMES", "20"),
            ),
            "fuzz" => fuzz(&mut report),
            _ => deny(&mut report),
        }
    }
    report.close()
}

/// The workspace's folder.
fn root() -> PathBuf {
    let mut folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    folder.pop();
    folder
}

/// The tests of a workspace beside this one.
fn test_in(folder: &str) -> Command {
    let mut command = cargo(&["test", "--locked", "--manifest-path"]);
    command
        .arg(format!("{folder}/Cargo.toml"))
        .current_dir(root());
    command
}

/// Each example asserts what it shows: running it is the test.
fn examples(report: &mut Report) {
    let folder = root().join("crates/tollgate/examples");
    let names = step::files_below(&folder).into_iter().filter_map(|path| {
        let is_rust = path.extension().is_some_and(|ending| ending == "rs");
        is_rust.then(|| {
            path.file_stem()
                .map(|name| name.to_string_lossy().into_owned())
        })?
    });
    for name in names {
        let label = format!("example {name}");
        report.run(
            &label,
            cargo(&["run", "--quiet", "--locked", "-p", "tollgate", "--example"]).arg(&name),
        );
    }
}

/// A build of its own: under `--cfg loom` locks and atomics are the model checker's.
fn loom(report: &mut Report) {
    let target = root().join("target/loom");
    report.run(
        "loom",
        cargo(&[
            "test",
            "--release",
            "--locked",
            "-p",
            "tollgate",
            "--lib",
            "loom_tests",
        ])
        .env("RUSTFLAGS", "--cfg loom")
        .env("CARGO_TARGET_DIR", target),
    );
}

/// Installs a tool under `target/tools` unless it is there; returns the folder of its program.
fn tool(report: &mut Report, name: &str, version: &str) -> PathBuf {
    let tools = root().join("target/tools");
    let program = tools.join("bin").join(name);
    if program.exists() {
        println!("{name} is there: target/tools/bin");
    } else {
        println!("installing {name} {version} under target/tools");
        let wanted = format!("{name}@{version}");
        report.run(
            &format!("install {name}"),
            cargo(&["install", "--locked", "--quiet", &wanted, "--root"]).arg(&tools),
        );
    }
    program
}

/// Every target, from its seeds, for a bounded time. Stable compilers know the sanitizer flags but
/// want to be told that they may use them.
fn fuzz(report: &mut Report) {
    let fuzzer = tool(report, "cargo-fuzz", "0.13.2");
    let targets = root().join("fuzz/fuzz_targets");
    for path in step::files_below(&targets) {
        let Some(name) = path
            .file_stem()
            .map(|name| name.to_string_lossy().into_owned())
        else {
            continue;
        };
        let mut command = Command::new(&fuzzer);
        command.current_dir(root()).env("RUSTC_BOOTSTRAP", "1");
        command.args(["fuzz", "run", &name, &format!("fuzz/corpus/{name}")]);
        command.arg(format!("fuzz/seeds/{name}"));
        command.args([
            "--",
            &format!("-max_total_time={FUZZ_SECS}"),
            "-print_final_stats=1",
        ]);
        let corpus = root().join("fuzz/corpus").join(&name);
        report.check(&format!("corpus of {name}"), || {
            std::fs::create_dir_all(corpus)
                .err()
                .map(|error| error.to_string())
                .into_iter()
                .collect()
        });
        report.run(&format!("fuzz {name}"), &mut command);
    }
}

fn deny(report: &mut Report) {
    let deny = tool(report, "cargo-deny", "0.20.2");
    let mut command = Command::new(deny);
    command
        .current_dir(root())
        .args(["check", "bans", "licenses", "sources"]);
    report.run("deny", &mut command);
}
