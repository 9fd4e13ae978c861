//! Keeps the plugin in memory: the scheduler destroys the tasks of a plugin after it has closed it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
