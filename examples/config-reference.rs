//! Writes the reference of the configuration into `docs/`.

use endpoint_picker::config::reference;
use std::{fs, io};

fn main() -> io::Result<()> {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/docs");
    fs::create_dir_all(docs)?;
    fs::write(format!("{docs}/configuration.md"), reference::markdown())?;
    fs::write(format!("{docs}/configuration.schema.json"), format!("{:#}\n", reference::schema()))
}
