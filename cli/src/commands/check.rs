//! `pi-dispatch check FILE`: a triggers file, read as the worker reads it.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;

/// Arguments of `check`.
#[derive(Args)]
pub struct Check {
    /// The triggers file
    file: PathBuf,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

impl Check {
    /// Exit code 0 when the file may be used, 2 when it may not.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let name = self.file.display().to_string();
        let bytes = std::fs::read(&self.file).with_context(|| format!("{name} cannot be read"))?;
        let parsed = triggers::parse_bytes(&name, &bytes);
        let text = String::from_utf8_lossy(&bytes);
        let fine = parsed.faults.is_empty();
        if self.json {
            let triggers: Vec<_> = parsed.file.iter().flat_map(|file| file.triggers()).collect();
            let report = serde_json::json!({
                "file": name, "ok": fine, "faults": parsed.faults, "remarks": parsed.remarks, "triggers": triggers,
            });
            out!("{}", serde_json::to_string_pretty(&report)?);
        } else {
            let color = std::io::stderr().is_terminal();
            for faults in [&parsed.faults, &parsed.remarks] {
                if !faults.is_empty() {
                    eprintln!("{}", triggers::render(faults, &name, &text, color));
                }
            }
            match &parsed.file {
                Some(file) if fine => {
                    for trigger in file.triggers() {
                        out!("line {:>4}  {}", trigger.line, trigger.id);
                    }
                    out!(
                        "{name} is fine: {} trigger(s), {} remark(s)",
                        file.triggers().len(),
                        parsed.remarks.len()
                    );
                }
                _ => eprintln!("{name} may not be used: {} fault(s)", parsed.faults.len()),
            }
        }
        Ok(if fine { ExitCode::SUCCESS } else { ExitCode::from(2) })
    }
}
