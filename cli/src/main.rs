//! pi-dispatch: runs the pi coding agent for a team, unattended.
fn main() {}
