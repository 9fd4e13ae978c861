//! What a profile must keep to, or the viewer's page breaks: for tests.

use super::pb;
use crate::limits::EXPORT_DEPTH;

/// What crashes, blanks or disfigures the viewer, as observed in a browser. Empty when all is well.
pub(super) fn violations(data: &pb::SamplerData) -> Vec<String> {
    let mut found = Vec::new();
    let mut check = |fine: bool, what: String| {
        if !fine {
            found.push(what);
        }
    };
    let metadata = data.metadata.as_ref().expect("metadata");
    for (name, value) in &metadata.extra_platform_metadata {
        let json: serde_json::Value = serde_json::from_str(value).expect("JSON");
        check(!json.to_string().contains("null"), format!("{name} holds a null"));
    }
    for (key, source) in &metadata.sources {
        check(*key == source.name.to_lowercase(), format!("source key {key}"));
        check(!source.version.is_empty(), format!("source {key} without version"));
    }
    for source in data.class_sources.values().chain(data.method_sources.values()) {
        check(
            metadata.sources.values().any(|known| known.name == *source),
            format!("source {source} not listed"),
        );
    }
    let windows = &data.time_windows;
    check(
        windows.windows(2).all(|pair| pair[0] + 1 == pair[1]),
        "windows are not contiguous".to_owned(),
    );
    check(
        windows
            .iter()
            .all(|window| data.time_window_statistics.contains_key(window)),
        "window without figures".to_owned(),
    );
    for thread in &data.threads {
        let mut seen = vec![0; thread.children.len()];
        for child in thread
            .children
            .iter()
            .flat_map(|node| &node.children_refs)
            .chain(&thread.children_refs)
        {
            seen[*child as usize] += 1;
        }
        check(
            seen.iter().all(|count| *count == 1),
            format!("{}: a node is not referenced once", thread.name),
        );
        let times = std::iter::once(&thread.times).chain(thread.children.iter().map(|node| &node.times));
        for times in times {
            check(
                times.len() == windows.len(),
                format!("{}: a node without all windows", thread.name),
            );
            check(
                times.iter().all(|time| time.is_finite() && *time >= 0.0),
                format!("{}: odd time", thread.name),
            );
        }
        let mut todo: Vec<(i32, usize)> = thread.children_refs.iter().map(|child| (*child, 1)).collect();
        while let Some((index, depth)) = todo.pop() {
            let node = &thread.children[index as usize];
            check(depth <= EXPORT_DEPTH, format!("{}: depth {depth}", thread.name));
            check(
                !node.class_name.is_empty() && !node.method_name.is_empty(),
                "empty name".to_owned(),
            );
            check(
                !node.method_name.ends_with("()"),
                format!("{} ends in ()", node.method_name),
            );
            check(
                !node.class_name.ends_with(".so") && !node.class_name.ends_with(".py"),
                node.class_name.clone(),
            );
            check(
                node.class_name.chars().count() + node.method_name.chars().count() < 300,
                "long name".to_owned(),
            );
            let mut siblings: Vec<_> = node
                .children_refs
                .iter()
                .map(|child| key(&thread.children[*child as usize]))
                .collect();
            let count = siblings.len();
            siblings.sort();
            siblings.dedup();
            check(
                siblings.len() == count,
                format!("identical siblings below {}", node.method_name),
            );
            for (window, time) in node.times.iter().enumerate() {
                let below: f64 = node
                    .children_refs
                    .iter()
                    .map(|child| thread.children[*child as usize].times[window])
                    .sum();
                check(
                    below <= time * (1.0 + 1e-9) + 1e-6,
                    format!("children of {} take more than it", node.method_name),
                );
            }
            todo.extend(node.children_refs.iter().map(|child| (*child, depth + 1)));
        }
    }
    found
}

fn key(node: &pb::StackTraceNode) -> (String, String, String, i32) {
    (
        node.class_name.clone(),
        node.method_name.clone(),
        node.method_desc.clone(),
        node.line_number,
    )
}
