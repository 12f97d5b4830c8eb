//! Every sentence that a person reads about triggers, in one place.

use crate::verdict::NoMatch;

/// Why a trigger did not fire.
pub(crate) const fn no_match(reason: NoMatch) -> &'static str {
    match reason {
        NoMatch::OtherType => "the trigger is for another type of event",
        NoMatch::OtherKind => "the trigger serves another kind of forge",
        NoMatch::OtherForge => "the trigger names another forge",
        NoMatch::OtherRepository => "the trigger's `repositories` do not name this one",
        NoMatch::RepositoryExcepted => "the trigger's `exceptRepositories` name this one",
        NoMatch::OtherTarget => "the trigger wants comments on issues only, or on pull requests only",
        NoMatch::PhraseAbsent => "the comment does not say the phrase",
        NoMatch::PhraseInCode => "the phrase stands only in code",
        NoMatch::PhraseInQuote => "the phrase stands only in a quotation",
        NoMatch::PhraseInUrl => "the phrase stands only in a link",
        NoMatch::PhraseInAddress => "the phrase stands only in an e-mail address",
        NoMatch::PhraseInHtml => "the phrase stands only in HTML that no reader sees",
        NoMatch::PhraseInWord => "the phrase is only a part of a longer word",
        NoMatch::PhraseNotNew => "the comment said the phrase before it was edited",
    }
}

/// What a file says that is larger than a triggers file may be.
pub(crate) fn too_large(bytes: usize, most: usize) -> String {
    format!("the file has {bytes} bytes; a triggers file has at most {most}")
}

pub(crate) const BYTE_ORDER_MARK: &str = "the file begins with a byte order mark";
pub(crate) const BYTE_ORDER_MARK_HELP: &str = "save it as plain UTF-8, without a signature";

pub(crate) fn invisible_character(c: char) -> String {
    format!("a character that cannot be seen stands here: U+{:04X}", u32::from(c))
}

pub(crate) const INVISIBLE_CHARACTER_HELP: &str =
    "remove it; inside a string it can be written as an escape, which a reader sees";

pub(crate) fn outside_a_string(c: char) -> String {
    format!(
        "`{}` (U+{:04X}) can stand only inside a string or a comment",
        crate::source::visible(&c.to_string()),
        u32::from(c)
    )
}

pub(crate) fn too_deep(most: usize) -> String {
    format!("brackets are nested more than {most} deep")
}
