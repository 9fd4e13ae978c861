//! Results of a bench as JSON, kept from run to run.

use crate::error::{Error, FileContext, Result};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// A file with named results. A run that measures only some of them leaves the others as they were, so that a long bench can be run piece by piece.
#[derive(Debug)]
pub struct Record {
    path: PathBuf,
    rows: Map<String, Value>,
}

impl Record {
    /// Goes on with what is there, or begins: with what cannot be read, or comes from another machine, anew.
    pub fn open(path: impl Into<PathBuf>) -> Record {
        let path = path.into();
        let rows = read(&path).unwrap_or_default();
        Record { path, rows }
    }

    /// A result of this or an earlier run.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.rows.get(name)
    }

    /// Puts a result in the place of an earlier one of that name, and writes the file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn put(&mut self, name: &str, result: impl Serialize) -> Result<()> {
        let bad = |error: serde_json::Error| Error::Content {
            path: self.path.clone(),
            reason: error.to_string(),
        };
        let result = serde_json::to_value(result).map_err(bad)?;
        self.rows.insert(name.to_owned(), result);
        let all = json!({ "machine": machine(), "results": self.rows });
        fs::write(&self.path, format!("{all:#}\n")).context("write", &self.path)
    }
}

fn read(path: &Path) -> Option<Map<String, Value>> {
    let mut all: Value = serde_json::from_str(&fs::read_to_string(path).ok()?).ok()?;
    if all["machine"] != json!(machine()) {
        return None;
    }
    match all["results"].take() {
        Value::Object(rows) => Some(rows),
        _ => None,
    }
}

/// The processor, how many of it, and the kernel.
pub fn machine() -> String {
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("unknown processor", |rest| rest.trim_start_matches([' ', '\t', ':']));
    let count = cpus.lines().filter(|line| line.starts_with("processor")).count();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{count} x {model}, Linux {}", kernel.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_earlier_runs_stay_until_they_are_measured_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bench.json");
        Record::open(&path).put("a", 1).unwrap();
        let mut second = Record::open(&path);
        second.put("b", 2).unwrap();
        second.put("b", 3).unwrap();
        let third = Record::open(&path);
        assert_eq!((third.get("a"), third.get("b")), (Some(&json!(1)), Some(&json!(3))));
        assert_eq!(third.get("c"), None);
    }

    #[test]
    fn results_of_another_machine_are_no_results() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bench.json");
        for text in ["nonsense", r#"{"machine": "another", "results": {"a": 1}}"#] {
            fs::write(&path, text).unwrap();
            assert_eq!(Record::open(&path).get("a"), None);
        }
    }
}
