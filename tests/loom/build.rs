//! Compiles this package, and only it, as a model.

fn main() {
    println!("cargo:rustc-cfg=loom");
}
