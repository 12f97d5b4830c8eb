//! Strangers' words on a page of ours: escaped, or Markdown without what could do harm.

/// The sign for Forgejo's word of a reaction.
pub(super) fn emoji(word: &str) -> String {
    match word {
        "eyes" => "👀".to_owned(),
        "+1" => "👍".to_owned(),
        "-1" => "👎".to_owned(),
        "laugh" => "😄".to_owned(),
        "hooray" => "🎉".to_owned(),
        "confused" => "😕".to_owned(),
        "heart" => "❤️".to_owned(),
        "rocket" => "🚀".to_owned(),
        other => escape(other),
    }
}

/// A time as people read it, and as programs do.
pub(super) fn when(time: chrono::DateTime<chrono::Utc>) -> String {
    let stamp = crate::forge::shapes::stamp(time);
    format!(
        "<time datetime=\"{stamp}\">{}</time>",
        time.format("%e %b %Y, %H:%M:%S UTC")
    )
}

/// Markdown as HTML: raw HTML is left out, dangerous addresses are emptied, and no image is loaded (the policy).
pub(super) fn markdown(text: &str) -> String {
    let mut options = comrak::Options::default();
    options.extension.table = true;
    options.extension.strikethrough = true;
    options.extension.tasklist = true;
    options.extension.autolink = true;
    options.render.hardbreaks = true;
    comrak::markdown_to_html(text, &options)
}

/// Text that is no markup, in an element or an attribute.
pub(super) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}
