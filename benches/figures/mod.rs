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

    /// Writes them to the JSON file that `SPARK_BENCH_JSON` names.
    pub fn save(&self) {
        let Some(path) = std::env::var_os("SPARK_BENCH_JSON") else {
            return;
        };
        let figures = self
            .0
            .iter()
            .map(|(name, value, unit)| serde_json::json!({ "name": name, "value": value, "unit": unit }));
        let all = serde_json::json!({ "machine": machine(), "figures": figures.collect::<Vec<_>>() });
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
