fn main() {
    // After Endstone has unloaded the plugin, its scheduler still destroys our task functions: the code must stay mapped. The build id
    // tells two builds apart.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rustc-cdylib-link-arg=-Wl,--build-id=sha1");
    println!("cargo:rerun-if-changed=build.rs");
}
