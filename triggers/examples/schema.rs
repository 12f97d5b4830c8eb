//! Prints `docs/triggers.schema.json`. From the root: `cargo run -q -p triggers --example schema > docs/triggers.schema.json`.

fn main() -> Result<(), serde_json::Error> {
    println!("{}", serde_json::to_string_pretty(&triggers::schema())?);
    Ok(())
}
