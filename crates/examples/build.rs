//! Folders that are embedded: cargo has to be told when a file joins them.

fn main() {
    println!("cargo:rerun-if-changed=litmus");
}
