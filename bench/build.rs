//! Leaves the compiler's version to the program, which prints it: figures mean little without it.

use std::process::Command;

fn main() {
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(compiler)
        .arg("--version")
        .output()
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok());
    let version = version.as_deref().map_or("rustc unknown", str::trim);
    println!("cargo::rustc-env=BENCH_RUSTC={version}");
    println!("cargo::rerun-if-changed=build.rs");
}
