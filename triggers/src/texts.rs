//! Every sentence that a person reads about triggers, in one place.

use contract::Tool;

use crate::keys::Level;
use crate::source::visible;
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

// The text of the file.

pub(crate) const NOT_UTF8: &str = "the file is not UTF-8";
pub(crate) const TRAILING_COMMA_HELP: &str = "remove the comma before the closing bracket";
pub(crate) const ONE_FAULT_OF_SYNTAX: &str =
    "a file that is not JSON is read only up to here: other faults may follow it";
pub(crate) const NOTHING_THERE: &str = "the file is empty";
pub(crate) const FILE_SHAPE_HELP: &str = r#"write { "triggers": [ { "on": { … }, "run": { … } } ] }"#;

pub(crate) fn too_many(left: usize) -> String {
    format!("{left} more faults are not shown")
}

// Keys.

pub(crate) fn unknown_key(key: &str, level: Level) -> String {
    format!("{} has no key `{}`", level.name(), visible(key))
}

pub(crate) fn later_key(key: &str, level: Level) -> String {
    format!(
        "{} has no key `{}` in this version: it is not there yet",
        level.name(),
        visible(key)
    )
}

pub(crate) const LATER_HELP: &str = "it comes with a later version; until then remove it";

pub(crate) fn did_you_mean(key: &str) -> String {
    format!("did you mean `{key}`?")
}

pub(crate) fn keys_are(level: Level) -> String {
    format!("its keys are {}", listed(level.known()))
}

pub(crate) fn belongs_elsewhere(key: &str, level: Level) -> String {
    format!("`{}` belongs into {}", visible(key), level.name())
}

pub(crate) fn refused_key(key: &str) -> String {
    format!("`{}` is refused", visible(key))
}

pub(crate) const NO_ALLOWLIST: &str = "there is no list of allowed tools: which tools exist is pi's answer and moves \
    with its version, so a list would grant what a later pi adds; take tools away with `run.excludeTools`";
pub(crate) const NO_TOOLS: &str = "there is no such switch: name what is to be taken away in `run.excludeTools`; all \
    eight names there leave no built-in tool";
pub(crate) const EXCLUDE_TOOLS_SPELLING: &str = "it would exclude nothing; the key is spelled `excludeTools`, exactly";
pub(crate) const EXCLUDE_TOOLS_PLACE: &str =
    "it would exclude nothing here; what a job may do stands in `run`, as `run.excludeTools`";

pub(crate) fn duplicate_key(key: &str, line: u32) -> String {
    format!(
        "`{}` stands twice in the same object, first on line {line}",
        visible(key)
    )
}

pub(crate) const DUPLICATE_KEY_HELP: &str = "keep one: which of them counts would be a guess";

pub(crate) fn missing_key(key: &str, level: Level) -> String {
    format!("{} needs the key `{key}`", level.name())
}

// Values.

pub(crate) fn wrong_type(key: &str, wants: &str, found: &str) -> String {
    if key.contains(' ') {
        return format!("{key} is {wants}, and {found} stands here");
    }
    format!("`{key}` takes {wants}, and {found} stands here")
}

pub(crate) fn not_one_of(key: &str, found: &str) -> String {
    format!("`{key}` does not take `{}`", visible(found))
}

pub(crate) fn later_word(key: &str, found: &str) -> String {
    format!(
        "`{key}` does not take `{}` in this version: it is not there yet",
        visible(found)
    )
}

pub(crate) fn one_of(words: &[&str]) -> String {
    format!("it takes {}", listed(words))
}

pub(crate) fn empty(key: &str) -> String {
    format!("`{key}` is empty")
}

pub(crate) fn too_long(key: &str, most: usize) -> String {
    format!("`{key}` has more than {most} characters")
}

pub(crate) fn out_of_range(key: &str, least: u64, most: u64) -> String {
    format!("`{key}` is a whole number from {least} to {most}")
}

pub(crate) fn invisible_in(key: &str, c: char) -> String {
    format!("`{key}` holds a character that cannot be seen: U+{:04X}", u32::from(c))
}

pub(crate) fn unsafe_name(key: &str) -> String {
    format!("`{key}` is no safe name")
}

pub(crate) const SAFE_NAME_HELP: &str =
    "small letters, digits, `.`, `_` and `-`, beginning with a letter or a digit, at most 64 of them";
pub(crate) const IMAGE_HELP: &str = "an image as Docker names it: `pi-job:2.0.0`, or an id `sha256:…`";
pub(crate) const MODEL_HELP: &str = "the provider's own name for the model, without blanks";
pub(crate) const PHRASE_EDGES: &str = "the phrase begins or ends with a blank, or has two in a row";
pub(crate) const PHRASE_PUNCTUATION: &str = "the phrase ends with a mark that ends a word";
pub(crate) const PHRASE_MARKDOWN: &str = "the phrase holds a character that Markdown or HTML would read";
pub(crate) const PHRASE_HELP: &str = "a phrase is a word or a few, like `@pi` or `@pi triage`";
pub(crate) const COST_IS_TEXT: &str = "money is decimal text, never a JSON number";
pub(crate) const COST_SHAPE: &str = "`maxCostUsd` is no amount of dollars";
pub(crate) const COST_HELP: &str = "decimal text with up to six places, at most a million: \"0.50\"";
pub(crate) const TASK_AND_INSTRUCTIONS: &str = "`task` and `instructions` both stand here";
pub(crate) const TASK_AND_INSTRUCTIONS_HELP: &str =
    "keep one: `task` says what to do, `instructions` how to go about what the skill says";
pub(crate) const PACKAGES_TRUE: &str = "`packages` can only be `false`: there are no packages in this version";
pub(crate) const PACKAGES_HELP: &str = "write `false`, or leave the key out";

pub(crate) fn wrong_shape(key: &str, found: &str) -> String {
    format!("`{key}` cannot be `{}`", visible(found))
}

pub(crate) fn bad_glob(key: &str) -> String {
    format!("`{key}` holds what is no glob on `owner/name`")
}

pub(crate) fn too_many_globs(key: &str, most: usize) -> String {
    format!("`{key}` has more than {most} globs")
}

pub(crate) fn duplicate_glob(glob: &str) -> String {
    format!("`{}` stands twice", visible(glob))
}

// excludeTools.

pub(crate) fn tools_are() -> String {
    let names: Vec<&str> = Tool::ALL.iter().map(|tool| tool.name()).collect();
    format!(
        "the built-in tools of pi {} are {}",
        contract::PI_VERSION,
        listed(&names)
    )
}

pub(crate) fn unknown_tool(name: &str) -> String {
    format!(
        "`{}` is no built-in tool, so excluding it would exclude nothing",
        visible(name)
    )
}

pub(crate) fn tool_pattern(name: &str) -> String {
    format!(
        "`{}` is a pattern, and tools are excluded by their exact names only",
        visible(name)
    )
}

pub(crate) fn tool_case(right: &str) -> String {
    format!("case counts: write `{right}`; {}", tools_are())
}

pub(crate) fn tool_meant(near: &str) -> String {
    format!("did you mean `{near}`? {}", tools_are())
}

pub(crate) fn duplicate_tool(name: &str) -> String {
    format!("`{name}` stands twice in `excludeTools`")
}

pub(crate) const EXCLUDE_TOOLS_EMPTY: &str = "`excludeTools` is empty: it would exclude nothing";

pub(crate) const POWERSHELL_STAYS: &str = "`bash` is excluded and `powershell` is not";
pub(crate) const POWERSHELL_STAYS_HELP: &str = "\"no shell\" means both: exclude `powershell` too";
pub(crate) const PACKAGES_UNSAID: &str = "tools are excluded, and `packages` is not said to be `false`";
pub(crate) const PACKAGES_UNSAID_HELP: &str = "tools that a package brings cannot be excluded: a trigger that must stay \
    read-only says `\"packages\": false` today, before there are any";

// Identity.

pub(crate) fn same_identity(id: &str, line: u32) -> String {
    format!("this trigger and the one on line {line} are both `{id}`")
}

pub(crate) const SAME_IDENTITY_HELP: &str =
    "give one of them an `id` of its own: history is kept under it, and must not change hands";

/// `a`, `b` and `c`.
fn listed(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}
