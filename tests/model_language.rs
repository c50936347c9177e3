//! The model language against its test folders, and the shipped models.
use fencepost::diag::{Style, render};
use fencepost::model::{Library, load_shipped};
use fencepost::skeleton::signature::signature;

#[test]
fn shipped_models_load() {
    for name in Library::names() {
        match load_shipped(name, &signature()).expect("listed") {
            Ok(m) => println!("{name}: {} nodes, {} lets {:?}", m.nodes.len(), m.lets.len(), m.options),
            Err(ds) => panic!("{name}:\n{}", ds.iter().map(|d| render(d, Style::Plain)).collect::<String>()),
        }
    }
}
