//! Cargo does not see new files in an embedded folder without this line.

fn main() {
    println!("cargo:rerun-if-changed=models");
}
