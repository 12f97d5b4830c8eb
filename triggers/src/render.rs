//! Faults as a compiler prints them: the message, the place, the line with the spot underlined, the help.

use crate::fault::Fault;

/// Prints faults and remarks in the order given. `text` is the file that they were found in.
///
/// Nothing of the file reaches the output as a control character: such characters are printed as their code points.
pub fn render(faults: &[Fault], file_name: &str, text: &str, color: bool) -> String {
    let _ = (faults, file_name, text, color);
    todo!()
}
