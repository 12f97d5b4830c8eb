//! Reading `on`.

use jsonc_parser::ast::Object;

use crate::globs::RepositoryGlobs;
use crate::keys::Level;
use crate::language::{CommentOn, On, Target, TriggerGlobs};
use crate::parse::fields::{Reader, property};
use crate::texts;

const MAX_PHRASE: usize = 64;
const MAX_GLOBS: usize = 100;
const LATER_TYPES: [&str; 5] = ["label", "issue", "pull_request", "push", "cron"];

#[derive(Clone, Copy)]
enum Type {
    Comment,
    Manual,
}

pub(super) fn read(reader: &mut Reader<'_>, object: &Object<'_>) -> Option<(On, TriggerGlobs)> {
    let types = [("comment", Type::Comment), ("manual", Type::Manual)];
    let found = match property(object, "type") {
        Some(found) => reader.word("type", &found.value, &types, &LATER_TYPES),
        None => {
            reader.required(Level::AnyOn, object, "type");
            None
        }
    };
    match found {
        Some(Type::Comment) => {
            reader.keys(Level::Comment, object);
            comment(reader, object).map(|(on, globs)| (On::Comment(on), globs))
        }
        Some(Type::Manual) => {
            reader.keys(Level::Manual, object);
            Some((On::Manual, TriggerGlobs::default()))
        }
        None => {
            reader.keys(Level::AnyOn, object);
            None
        }
    }
}

fn comment(reader: &mut Reader<'_>, object: &Object<'_>) -> Option<(CommentOn, TriggerGlobs)> {
    let phrase = phrase(reader, object);
    let targets = [("issue", Target::Issue), ("pull_request", Target::PullRequest)];
    let target = property(object, "target").and_then(|found| reader.word("target", &found.value, &targets, &[]));
    let (repositories, only) = globs(reader, object, "repositories").unzip();
    let (except_repositories, except) = globs(reader, object, "exceptRepositories").unzip();
    let forge = reader.safe_name(object, "forge");
    let on = CommentOn {
        phrase: phrase?,
        target,
        repositories,
        except_repositories,
        forge,
    };
    Some((on, TriggerGlobs { only, except }))
}

/// A word or a few, in characters that stand in the text as they are shown.
fn phrase(reader: &mut Reader<'_>, object: &Object<'_>) -> Option<String> {
    reader.required(Level::Comment, object, "phrase")?;
    let text = reader.text(object, "phrase", MAX_PHRASE, false)?;
    let phrase = text.value.as_ref();
    let odd_blank = |c: char| c.is_whitespace() && c != ' ';
    let problem = if phrase.trim() != phrase || phrase.contains("  ") || phrase.contains(odd_blank) {
        texts::PHRASE_EDGES
    } else if phrase.ends_with([',', '.', ':', ';', '!', '?']) {
        texts::PHRASE_PUNCTUATION
    } else if phrase.contains(['`', '\\', '<', '>', '[', ']', '*', '~', '|']) || phrase.contains("://") {
        texts::PHRASE_MARKDOWN
    } else {
        return Some(phrase.to_owned());
    };
    reader.wrong_value(text.range, problem.to_owned(), texts::PHRASE_HELP.to_owned());
    None
}

fn globs(reader: &mut Reader<'_>, object: &Object<'_>, key: &'static str) -> Option<(Vec<String>, RepositoryGlobs)> {
    let found = property(object, key)?;
    let values = reader.array_value(key, &found.value)?;
    let range = jsonc_parser::common::Ranged::range(&found.value);
    if values.is_empty() {
        reader.wrong_value(range, texts::empty(key), None);
        return None;
    }
    if values.len() > MAX_GLOBS {
        reader.wrong_value(range, texts::too_many_globs(key, MAX_GLOBS), None);
        return None;
    }
    let mut globs: Vec<String> = Vec::new();
    for value in values {
        let Some(text) = reader.string_value(key, value) else {
            continue;
        };
        if globs.iter().any(|glob| *glob == text.value) {
            reader.wrong_value(text.range, texts::duplicate_glob(&text.value), None);
            continue;
        }
        match RepositoryGlobs::new(&[&text.value]) {
            Ok(_) => globs.push(text.value.to_string()),
            Err((_, fault)) => reader.wrong_value(text.range, texts::bad_glob(key), fault.to_string()),
        }
    }
    RepositoryGlobs::new(&globs).ok().map(|compiled| (globs, compiled))
}
