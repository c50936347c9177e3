//! A folder that is embedded: cargo has to be told when a file joins it.

fn main() {
    println!("cargo:rerun-if-changed=../../models");
}
