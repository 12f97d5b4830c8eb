//! What is wrong with a triggers file, and where.

use serde::{Deserialize, Serialize};

/// One thing that is wrong (or worth a remark), at one place of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// The bytes of the file that it speaks of.
    pub span: Span,
    /// What sort of fault it is.
    pub kind: FaultKind,
    /// What was found, as one sentence without a full stop.
    pub message: String,
    /// What to write instead, or why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The text that stands there, control characters made visible, cut to 80 characters.
    pub found: String,
}

/// A range of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}

/// Whether a file with such a fault loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The file does not load.
    Error,
    /// The file loads; a person should know.
    Remark,
}

/// What sort of fault it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// The file could not be read, or others than its owner could have written it. Said by whoever reads files.
    Unreadable,
    /// The file is not JSON with comments.
    Syntax,
    /// The file is not UTF-8.
    Encoding,
    /// The file begins with a byte order mark.
    ByteOrderMark,
    /// A character that cannot be seen, or that changes how its neighbours are shown.
    InvisibleCharacter,
    /// The file is larger than a triggers file may be.
    TooLarge,
    /// Brackets are nested deeper than any trigger needs.
    TooDeep,
    /// A key stands twice in one object.
    DuplicateKey,
    /// A key that the language does not have, in this version at least.
    UnknownKey,
    /// A key that the language will never have, refused by name.
    RefusedKey,
    /// A key that must be there is not.
    MissingKey,
    /// A value of another JSON type than the key wants.
    WrongType,
    /// A value of the right type that the key does not take.
    WrongValue,
    /// A name in `excludeTools` that is no built-in tool.
    UnknownTool,
    /// Two triggers have the same identity.
    SameIdentity,
    /// More faults than are worth printing.
    TooMany,
    /// Remark: `bash` is excluded and `powershell` is not.
    PowershellStays,
    /// Remark: tools are excluded without `packages: false`.
    PackagesUnsaid,
}

impl FaultKind {
    /// Whether a file with such a fault loads.
    pub const fn severity(self) -> Severity {
        match self {
            FaultKind::PowershellStays | FaultKind::PackagesUnsaid => Severity::Remark,
            FaultKind::Unreadable
            | FaultKind::Syntax
            | FaultKind::Encoding
            | FaultKind::ByteOrderMark
            | FaultKind::InvisibleCharacter
            | FaultKind::TooLarge
            | FaultKind::TooDeep
            | FaultKind::DuplicateKey
            | FaultKind::UnknownKey
            | FaultKind::RefusedKey
            | FaultKind::MissingKey
            | FaultKind::WrongType
            | FaultKind::WrongValue
            | FaultKind::UnknownTool
            | FaultKind::SameIdentity
            | FaultKind::TooMany => Severity::Error,
        }
    }

    /// The kebab-case word, as in JSON and in brackets behind `error`.
    pub const fn word(self) -> &'static str {
        match self {
            FaultKind::Unreadable => "unreadable",
            FaultKind::Syntax => "syntax",
            FaultKind::Encoding => "encoding",
            FaultKind::ByteOrderMark => "byte-order-mark",
            FaultKind::InvisibleCharacter => "invisible-character",
            FaultKind::TooLarge => "too-large",
            FaultKind::TooDeep => "too-deep",
            FaultKind::DuplicateKey => "duplicate-key",
            FaultKind::UnknownKey => "unknown-key",
            FaultKind::RefusedKey => "refused-key",
            FaultKind::MissingKey => "missing-key",
            FaultKind::WrongType => "wrong-type",
            FaultKind::WrongValue => "wrong-value",
            FaultKind::UnknownTool => "unknown-tool",
            FaultKind::SameIdentity => "same-identity",
            FaultKind::TooMany => "too-many",
            FaultKind::PowershellStays => "powershell-stays",
            FaultKind::PackagesUnsaid => "packages-unsaid",
        }
    }
}
