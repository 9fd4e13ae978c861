//! The plugin must load where there is no Python, and next to any: it may not need a single symbol of CPython.

use object::{Object as _, ObjectSymbol as _};

#[test]
fn the_plugin_links_nothing_of_cpython() {
    let folder = std::env::current_exe().unwrap();
    let plugin = folder.ancestors().nth(2).unwrap().join("libendstone_spark.so");
    let bytes = std::fs::read(&plugin).unwrap_or_else(|error| panic!("{}: {error}", plugin.display()));
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
