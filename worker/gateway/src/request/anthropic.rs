//! `anthropic-messages`: `POST /v1/messages`.

use super::{Asked, No, Rules, fields::*};
use crate::json::Json;

/// Checks the whole body.
pub(super) fn check(rules: &Rules<'_>, body: &Json<'_>) -> Result<Asked, No> {
    let root = Place::body();
    let mut asked = Asked::default();
    let mut messages = false;
    let mut model = false;
    for (key, value) in object(body, &root)? {
        let at = root.key(key);
        match key.as_ref() {
            "model" if text(value, &at)? == rules.grant.model => model = true,
            "model" => return Err(at.refuse("model")),
            "messages" => {
                messages = true;
                for (index, one) in array(value, &at)?.iter().enumerate() {
                    message(&mut asked, one, &at.index(index))?;
                }
            }
            "system" if value.as_str().is_some() => {}
            "system" => {
                for (index, one) in array(value, &at)?.iter().enumerate() {
                    block(&mut asked, &["text"], one, &at.index(index))?;
                }
            }
            "tools" => {
                for (index, one) in array(value, &at)?.iter().enumerate() {
                    tool(rules, &mut asked, one, &at.index(index))?;
                }
            }
            "tool_choice" => tool_choice(rules, value, &at)?,
            "stream" => asked.stream = boolean(value, &at)?,
            "max_tokens" => asked.output = Some(whole(value, &at)?),
            "temperature" => number(value, &at)?,
            "thinking" => thinking(&mut asked, value, &at)?,
            "output_config" => output_config(value, &at)?,
            _ => return Err(at.refuse("field-unknown")),
        }
    }
    if !model {
        return Err(root.key("model").refuse("model"));
    }
    if !messages {
        return Err(root.key("messages").refuse("value"));
    }
    Ok(asked)
}

fn message(asked: &mut Asked, json: &Json<'_>, at: &Place<'_>) -> Result<(), No> {
    let role = needed_text(json, "role", at)?;
    let kinds: &[&str] = match role {
        "user" => &["text", "image", "tool_result"],
        "assistant" => &["text", "thinking", "redacted_thinking", "tool_use"],
        // Sent inside a conversation: an updated instruction, or a marker of the effort.
        "system" => &["text"],
        _ => return Err(at.key("role").refuse("value")),
    };
    for (key, value) in object(json, at)? {
        let at = at.key(key);
        match (role, key.as_ref()) {
            (_, "role") => {}
            (_, "content") if value.as_str().is_some() => {}
            (_, "content") => {
                for (index, one) in array(value, &at)?.iter().enumerate() {
                    block(asked, kinds, one, &at.index(index))?;
                }
            }
            ("system", "output_config") => output_config(value, &at)?,
            _ => return Err(at.refuse("field-unknown")),
        }
    }
    Ok(())
}

/// One content block of one of `kinds`.
fn block(asked: &mut Asked, kinds: &[&str], json: &Json<'_>, at: &Place<'_>) -> Result<(), No> {
    let kind = needed_text(json, "type", at)?;
    if !kinds.contains(&kind) {
        return Err(at.key("type").refuse("value"));
    }
    for (key, value) in object(json, at)? {
        let at = at.key(key);
        match (kind, key.as_ref()) {
            (_, "type") => {}
            ("text" | "image" | "tool_result", "cache_control") => cache_control(value, &at)?,
            ("text", "text") | ("thinking", "thinking" | "signature") | ("redacted_thinking", "data") => {
                text(value, &at)?;
            }
            ("image", "source") => image_source(asked, value, &at)?,
            // A call that the model made: its name and input are history, not an offer.
            ("tool_use", "id" | "name") | ("tool_result", "tool_use_id") => _ = text(value, &at)?,
            ("tool_use", "input") => _ = object(value, &at)?,
            ("tool_result", "is_error") => _ = boolean(value, &at)?,
            ("tool_result", "content") if value.as_str().is_some() => {}
            ("tool_result", "content") => {
                for (index, one) in array(value, &at)?.iter().enumerate() {
                    block(asked, &["text", "image"], one, &at.index(index))?;
                }
            }
            _ => return Err(at.refuse("field-unknown")),
        }
    }
    Ok(())
}

/// Only inline images: no URL that the provider would fetch, no file that it keeps.
fn image_source(asked: &mut Asked, json: &Json<'_>, at: &Place<'_>) -> Result<(), No> {
    if json.get("type").and_then(Json::as_str) != Some("base64") {
        return Err(at.refuse("remote"));
    }
    for (key, value) in object(json, at)? {
        let at = at.key(key);
        match key.as_ref() {
            "type" => {}
            "media_type" => media_type(text(value, &at)?, &at)?,
            "data" => image_data(asked, text(value, &at)?, &at)?,
            _ => return Err(at.refuse("field-unknown")),
        }
    }
    Ok(())
}

fn tool(rules: &Rules<'_>, asked: &mut Asked, json: &Json<'_>, at: &Place<'_>) -> Result<(), No> {
    // The name is looked at first, whatever the tool's kind: `{"type":"bash_20250124","name":"bash"}` is a breach where `bash` is excluded.
    let name = match json.get("name") {
        Some(name) => tool_name(rules, name, &at.key("name"))?,
        None => return Err(at.refuse("tool-kind")),
    };
    let is_client = json.get("type").is_none_or(|kind| kind.as_str() == Some("custom"));
    if !is_client || json.get("input_schema").is_none() {
        return Err(at.refuse("tool-kind"));
    }
    for (key, value) in object(json, at)? {
        let at = at.key(key);
        match key.as_ref() {
            "name" | "type" => {}
            "description" => _ = text(value, &at)?,
            "input_schema" => schema(value, &at)?,
            "eager_input_streaming" | "strict" => _ = boolean(value, &at)?,
            "cache_control" => cache_control(value, &at)?,
            _ => return Err(at.refuse("field-unknown")),
        }
    }
    offer(asked, name, at)
}

fn tool_choice(rules: &Rules<'_>, json: &Json<'_>, at: &Place<'_>) -> Result<(), No> {
    for (key, value) in object(json, at)? {
        let at = at.key(key);
        match key.as_ref() {
            "type" => one_of(value, &["auto", "any", "none", "tool"], &at)?,
            "name" => _ = tool_name(rules, value, &at)?,
            "disable_parallel_tool_use" => _ = boolean(value, &at)?,
            _ => return Err(at.refuse("field-unknown")),
        }
    }
    Ok(())
}

fn thinking(asked: &mut Asked, json: &Json<'_>, at: &Place<'_>) -> Result<(), No> {
    for (key, value) in object(json, at)? {
        let at = at.key(key);
        match key.as_ref() {
            "type" => one_of(value, &["enabled", "disabled", "adaptive"], &at)?,
            "budget_tokens" => asked.budget = whole(value, &at)?,
            "display" => one_of(value, &["summarized", "omitted"], &at)?,
            "block_binding" => {
                for (key, value) in object(value, &at)? {
                    let at = at.key(key);
                    match key.as_ref() {
                        "prefix_mismatch_behavior" => level(value, &at)?,
                        _ => return Err(at.refuse("field-unknown")),
                    }
                }
            }
            _ => return Err(at.refuse("field-unknown")),
        }
    }
    Ok(())
}

fn output_config(json: &Json<'_>, at: &Place<'_>) -> Result<(), No> {
    for (key, value) in object(json, at)? {
        let at = at.key(key);
        match key.as_ref() {
            "effort" => level(value, &at)?,
            _ => return Err(at.refuse("field-unknown")),
        }
    }
    Ok(())
}
