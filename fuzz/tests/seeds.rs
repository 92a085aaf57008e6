//! The seeds through every target, without a fuzzer.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use tollgate_fuzz::TARGETS;

fn seeds() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/seeds"))
}

#[test]
fn no_seed_breaks_its_target() {
    for (name, run) in TARGETS {
        let mut files = 0;
        for entry in fs::read_dir(seeds().join(name)).unwrap() {
            let file = entry.unwrap().path();
            println!("{}", file.display());
            run(&fs::read(&file).unwrap());
            files += 1;
        }
        assert!(files > 0, "{name} has no seed");
    }
}

#[test]
fn every_folder_of_seeds_and_every_binary_has_its_target() {
    let targets: BTreeSet<String> = TARGETS.map(|(name, _)| name.to_owned()).into();
    let names = |folder: &Path| -> BTreeSet<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries
            .map(|entry| entry.unwrap().path())
            .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
            .collect()
    };
    assert_eq!(names(seeds()), targets);
    assert_eq!(names(&seeds().with_file_name("fuzz_targets")), targets);
}
