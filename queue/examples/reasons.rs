//! Prints `docs/reasons.md`: `cargo run -q -p queue --example reasons > docs/reasons.md`.

fn main() {
    print!("{}", queue::reasons_page());
}
