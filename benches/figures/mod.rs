//! Figures of a bench, as a table and as JSON.

/// What was measured so far: name, value, unit.
pub struct Figures(Vec<(String, f64, &'static str)>);

impl Figures {
    /// Prints the table's head, which names the machine.
    pub fn begin() -> Self {
        println!("{}\n\n| what | figure |\n|---|---|", machine());
        Figures(Vec::new())
    }

    /// Prints and keeps one.
    pub fn add(&mut self, name: impl Into<String>, value: f64, unit: &'static str) {
        let name = name.into();
        println!("| {name} | {value:.2} {unit} |");
        self.0.push((name, value, unit));
    }

    /// Adds them to the JSON file that `SPARK_BENCH_JSON` names, under this name.
    pub fn save(&self, bench: &str) {
        let Some(path) = std::env::var_os("SPARK_BENCH_JSON") else {
            return;
        };
        let figures: Vec<_> = self
            .0
            .iter()
            .map(|(name, value, unit)| serde_json::json!({ "name": name, "value": value, "unit": unit }))
            .collect();
        let mut all = std::fs::read(&path)
            .ok()
            .and_then(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).ok())
            .filter(serde_json::Value::is_object)
            .unwrap_or_else(|| serde_json::json!({}));
        all["machine"] = machine().into();
        all[bench] = figures.into();
        std::fs::write(path, format!("{all:#}\n")).unwrap();
    }
}

/// The processor, how many of it, and the kernel.
fn machine() -> String {
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("unknown processor", |rest| rest.trim_start_matches([' ', '\t', ':']));
    let count = cpus.lines().filter(|line| line.starts_with("processor")).count();
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{count} x {model}, Linux {}", kernel.trim())
}
