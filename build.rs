//! Turns spark's schema into Rust, and pins the plugin in memory.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=proto");

    // A late signal, a late monitoring callback or a thread's destructor may still call into the library after Endstone has closed it.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // Tells the build in memory from the one on disk after a reload.
    println!("cargo:rustc-cdylib-link-arg=-Wl,--build-id=sha1");

    let schema = protox::compile(["spark_sampler.proto", "spark_health.proto"], ["proto"])?;
    prost_build::Config::new()
        // Maps in key order: the same profile gives the same bytes.
        .btree_map(["."])
        .compile_fds(schema)?;
    Ok(())
}
