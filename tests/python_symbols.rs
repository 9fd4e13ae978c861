//! The plugin must load where there is no Python, and next to any: it may not need a single symbol of CPython.

use object::{Object as _, ObjectSymbol as _};

fn plugin() -> Vec<u8> {
    let folder = std::env::current_exe().unwrap();
    let plugin = folder.ancestors().nth(2).unwrap().join("libendstone_spark.so");
    std::fs::read(&plugin).unwrap_or_else(|error| panic!("{}: {error}", plugin.display()))
}

/// What is looked up by name at run time stands in the file as a text.
#[test]
fn the_plugin_asks_for_no_hook_that_slows_or_ties_it_to_one_version() {
    let plugin = plugin();
    let names = |name: &str| plugin.windows(name.len()).any(|part| part == name.as_bytes());
    assert!(
        names("PyCFunction_NewEx") && names("PyEval_GetFrame"),
        "this is not the plugin"
    );
    for name in [
        "PyEval_SetProfile",
        "PyEval_SetTrace",
        "PyThreadState_EnterTracing",
        "_PyInterpreterState_SetEvalFrameFunc",
        "_PyInterpreterState_GetEvalFrameFunc",
        "_PyEval_EvalFrameDefault\0",
        "_PyRuntime",
    ] {
        assert!(!names(name), "{name}");
    }
    let sources = ["api.rs", "monitoring.rs", "callbacks.rs"].map(|file| {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("src/python")
            .join(file);
        std::fs::read_to_string(path).unwrap()
    });
    for name in [
        "c\"LINE\"",
        "c\"INSTRUCTION\"",
        "_PyInterpreterFrame",
        "PyThreadState {",
    ] {
        assert!(sources.iter().all(|text| !text.contains(name)), "{name}");
    }
}

#[test]
fn the_plugin_links_nothing_of_cpython() {
    let bytes = plugin();
    let plugin = object::File::parse(&*bytes).unwrap();
    let undefined: Vec<&str> = plugin
        .dynamic_symbols()
        .filter(|symbol| symbol.is_undefined())
        .filter_map(|symbol| symbol.name().ok())
        .collect();
    assert!(undefined.contains(&"dlsym"), "this is not the plugin: {undefined:?}");
    let of_python: Vec<&&str> = undefined
        .iter()
        .filter(|name| name.starts_with("Py") || name.starts_with("_Py"))
        .collect();
    assert!(of_python.is_empty(), "{of_python:?}");
}
