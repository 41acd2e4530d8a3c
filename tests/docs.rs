//! What the documents say of the code is so.
#![cfg(test)]
#![cfg(not(target_family = "wasm"))]

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use endpoint_picker::config;
use endpoint_picker::schedule::registry::{DECIDERS, DETECTORS, FILTERS, PICKERS, SCORERS};
use serde_json::Value;

fn document(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name);
    fs::read_to_string(path).unwrap()
}

/// The rows of the tables behind a heading, as cells.
fn rows(document: &str, heading: &str) -> Vec<Vec<String>> {
    let part = document.split("\n## ").find(|part| part.starts_with(heading)).unwrap();
    let rows = part.lines().filter(|line| line.starts_with('|')).skip(2);
    rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
}

/// What stands between backticks.
fn names(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// Every function in every source file below these folders.
fn functions() -> HashSet<String> {
    fn read(folder: &Path, into: &mut HashSet<String>) {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                read(&path, into);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let names = text.split("fn ").skip(1).filter_map(|rest| rest.split('(').next());
                into.extend(names.map(str::to_owned));
            }
        }
    }
    let mut functions = HashSet::new();
    for folder in ["src", "tests", "sim"] {
        read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut functions);
    }
    functions
}

#[test]
fn every_test_that_the_migration_guide_names_is_there() {
    let functions = functions();
    let guide = document("migration.md");
    let rows = rows(&guide, "What its users report");
    assert!(rows.len() > 15);
    for row in rows {
        for test in names(&row[2]).filter(|name| !name.starts_with("./")) {
            assert!(functions.contains(test), "no test {test}");
        }
    }
}

#[test]
fn every_conformance_test_of_the_table_is_there() {
    let functions = functions();
    let page = document("conformance.md");
    let tests: Vec<_> = page.lines().filter(|line| line.starts_with("| `")).collect();
    let (here, not_here): (Vec<&str>, Vec<&str>) = tests.iter().partition(|row| !row.contains("not here"));
    let count = |rows: &[&str]| rows.iter().map(|row| names(row.split('|').nth(1).unwrap()).count()).sum::<usize>();
    assert_eq!((count(&here), count(&not_here)), (9, 5), "fourteen in all");
    for row in here {
        let name = names(row).next().unwrap();
        assert!(functions.contains(name), "no test {name}");
    }
}

#[test]
fn every_plugin_that_is_said_to_be_the_same_is_known_by_that_name() {
    let known: HashSet<_> = (FILTERS.iter().map(|plugin| plugin.name))
        .chain(SCORERS.iter().map(|plugin| plugin.name))
        .chain(PICKERS.iter().map(|plugin| plugin.name))
        .chain(DECIDERS.iter().map(|plugin| plugin.name))
        .chain(DETECTORS.iter().map(|plugin| plugin.name))
        .collect();
    let guide = document("migration.md");
    for row in rows(&guide, "Plugins").iter().filter(|row| row[1] == "the same") {
        for name in names(&row[0]) {
            assert!(known.contains(name), "no plugin {name}");
        }
    }
}

#[test]
fn the_profile_that_was_carried_over_is_taken() {
    let guide = document("migration.md");
    let blocks: Vec<_> = guide.split("```yaml\n").skip(1).filter_map(|block| block.split("```").next()).collect();
    let load = |block: &str| {
        let ours: Value = serde_saphyr::from_str(block).unwrap();
        config::load(ours.to_string().as_bytes()).unwrap()
    };
    let config = load(blocks[1]);
    assert!(load(blocks[2]).disaggregation.is_some());
    assert_eq!((config.pool.endpoints.len(), config.prefix.capacity_blocks), (2, 31250));
}
