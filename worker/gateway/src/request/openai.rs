//! `openai-completions`: `POST /v1/chat/completions`.

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
            "tools" => {
                for (index, one) in array(value, &at)?.iter().enumerate() {
                    tool(rules, &mut asked, one, &at.index(index))?;
                }
            }
            "tool_choice" => tool_choice(rules, value, &at)?,
            "stream" => asked.stream = boolean(value, &at)?,
            "stream_options" => {
                for (key, value) in object(value, &at)? {
                    let at = at.key(key);
                    match key.as_ref() {
                        "include_usage" => _ = boolean(value, &at)?,
                        _ => return Err(at.refuse("field-unknown")),
                    }
                }
            }
            // Nothing may be kept at the provider; pi says so itself.
            "store" if !boolean(value, &at)? => {}
            "store" => return Err(at.refuse("stored-state")),
            "max_tokens" | "max_completion_tokens" if asked.output.is_none() => asked.output = Some(whole(value, &at)?),
            "max_tokens" | "max_completion_tokens" => return Err(at.refuse("value")),
            "temperature" => number(value, &at)?,
            // Thinking, in the dialects of `thinkingFormat`.
            "reasoning_effort" => level(value, &at)?,
            "reasoning" => reasoning(value, &at)?,
            "thinking" => thinking(value, &at)?,
            "enable_thinking" | "tool_stream" => _ = boolean(value, &at)?,
            "thinking_token_budget" | "thinking_budget" | "thinking_budget_tokens" => {
                asked.budget = asked.budget.max(whole(value, &at)?);
            }
            "chat_template_kwargs" | "chat_template_args" => scalars(value, &at)?,
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
    if !["system", "developer", "user", "assistant", "tool"].contains(&role) {
        return Err(at.key("role").refuse("value"));
    }
    for (key, value) in object(json, at)? {
        let at = at.key(key);
        match (role, key.as_ref()) {
            (_, "role") => {}
            (_, "content") => content(asked, role, value, &at)?,
            ("tool", "tool_call_id" | "name") => _ = text(value, &at)?,
            ("assistant", "tool_calls") => {
                for (index, one) in array(value, &at)?.iter().enumerate() {
                    tool_call(one, &at.index(index))?;
                }
            }
            ("assistant", "reasoning" | "reasoning_content" | "reasoning_text") => _ = text(value, &at)?,
            ("assistant", "reasoning_details") => {
                for (index, one) in array(value, &at)?.iter().enumerate() {
                    reasoning_detail(one, &at.index(index))?;
                }
            }
            _ => return Err(at.refuse("field-unknown")),
        }
    }
    Ok(())
}

fn content(asked: &mut Asked, role: &str, json: &Json<'_>, at: &Place<'_>) -> Result<(), No> {
    match json {
        Json::String(_) => Ok(()),
        Json::Null if role == "assistant" => Ok(()),
        Json::Array(parts) => {
            for (index, part) in parts.iter().enumerate() {
                content_part(asked, role, part, &at.index(index))?;
            }
            Ok(())
        }
        _ => Err(at.refuse("value")),
    }
}

fn content_part(asked: &mut Asked, role: &str, json: &Json<'_>, at: &Place<'_>) -> Result<(), No> {
    let kind = needed_text(json, "type", at)?;
    if kind != "text" && !(kind == "image_url" && role == "user") {
        return Err(at.key("type").refuse("value"));
    }
    for (key, value) in object(json, at)? {
        let at = at.key(key);
        match (kind, key.as_ref()) {
            (_, "type") => {}
            ("text", "text") => _ = text(value, &at)?,
            ("text", "cache_control") => cache_control(value, &at)?,
            ("image_url", "image_url") => {
                for (key, value) in object(value, &at)? {
                    let at = at.key(key);
                    match key.as_ref() {
                        "url" => image_url(asked, text(value, &at)?, &at)?,
                        _ => return Err(at.refuse("field-unknown")),
                    }
                }
            }
            _ => return Err(at.refuse("field-unknown")),
        }
    }
    Ok(())
}

/// Only `data:` URLs: the provider must not fetch what a job names.
fn image_url(asked: &mut Asked, url: &str, at: &Place<'_>) -> Result<(), No> {
    let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    let (kind, data) = inline.ok_or_else(|| at.refuse("remote"))?;
    media_type(kind, at)?;
    image_data(asked, data, at)
}

/// A call that the model made. Its name is history, not an offer.
fn tool_call(json: &Json<'_>, at: &Place<'_>) -> Result<(), No> {
    for (key, value) in object(json, at)? {
        let at = at.key(key);
        match key.as_ref() {
            "id" => _ = text(value, &at)?,
            "type" => one_of(value, &["function"], &at)?,
            "function" => {
                for (key, value) in object(value, &at)? {
                    let at = at.key(key);
                    match key.as_ref() {
                        "name" | "arguments" => _ = text(value, &at)?,
                        _ => return Err(at.refuse("field-unknown")),
                    }
                }
            }
            _ => return Err(at.refuse("field-unknown")),
        }
    }
    Ok(())
}

/// What a provider gave along to be shown its own reasoning again.
fn reasoning_detail(json: &Json<'_>, at: &Place<'_>) -> Result<(), No> {
    for (key, value) in object(json, at)? {
        let at = at.key(key);
        match (key.as_ref(), value) {
            ("type", value) => one_of(
                value,
                &["reasoning.summary", "reasoning.encrypted", "reasoning.text"],
                &at,
            )?,
            ("id" | "signature", Json::Null) => {}
            ("id" | "format" | "summary" | "data" | "text" | "signature", value) => _ = text(value, &at)?,
            ("index", value) => _ = whole(value, &at)?,
            _ => return Err(at.refuse("field-unknown")),
        }
    }
    Ok(())
}

fn tool(rules: &Rules<'_>, asked: &mut Asked, json: &Json<'_>, at: &Place<'_>) -> Result<(), No> {
    // The name is looked at first, whatever the tool's kind: an excluded name in a wrong shape is still a breach.
    let inner = |kind| json.get(kind).and_then(|inner: &Json<'_>| inner.get("name"));
    let name = match inner("function")
        .or_else(|| inner("custom"))
        .or_else(|| json.get("name"))
    {
        Some(name) => tool_name(rules, name, &at.key("name"))?,
        None => return Err(at.refuse("tool-kind")),
    };
    if json.get("type").and_then(Json::as_str) != Some("function") || json.get("function").is_none() {
        return Err(at.refuse("tool-kind"));
    }
    for (key, value) in object(json, at)? {
        let at = at.key(key);
        match key.as_ref() {
            "type" => {}
            "cache_control" => cache_control(value, &at)?,
            "function" => {
                for (key, value) in object(value, &at)? {
                    let at = at.key(key);
                    match key.as_ref() {
                        "name" => {}
                        "description" => _ = text(value, &at)?,
                        "parameters" => schema(value, &at)?,
                        "strict" => _ = boolean(value, &at)?,
                        _ => return Err(at.refuse("field-unknown")),
                    }
                }
            }
            _ => return Err(at.refuse("field-unknown")),
        }
    }
    offer(asked, name, at)
}

fn tool_choice(rules: &Rules<'_>, json: &Json<'_>, at: &Place<'_>) -> Result<(), No> {
    if json.as_str().is_some() {
        return one_of(json, &["auto", "none", "required"], at);
    }
    for (key, value) in object(json, at)? {
        let at = at.key(key);
        match key.as_ref() {
            "type" => one_of(value, &["function"], &at)?,
            "function" => {
                for (key, value) in object(value, &at)? {
                    let at = at.key(key);
                    match key.as_ref() {
                        "name" => _ = tool_name(rules, value, &at)?,
                        _ => return Err(at.refuse("field-unknown")),
                    }
                }
            }
            _ => return Err(at.refuse("field-unknown")),
        }
    }
    Ok(())
}

/// `openrouter` and `ant-ling`: an effort; `together`: a switch.
fn reasoning(json: &Json<'_>, at: &Place<'_>) -> Result<(), No> {
    for (key, value) in object(json, at)? {
        let at = at.key(key);
        match key.as_ref() {
            "effort" => level(value, &at)?,
            "enabled" => _ = boolean(value, &at)?,
            _ => return Err(at.refuse("field-unknown")),
        }
    }
    Ok(())
}

/// `zai` and `deepseek`: a type; `string-thinking`: a word.
fn thinking(json: &Json<'_>, at: &Place<'_>) -> Result<(), No> {
    if json.as_str().is_some() {
        return level(json, at);
    }
    for (key, value) in object(json, at)? {
        let at = at.key(key);
        match key.as_ref() {
            "type" => one_of(value, &["enabled", "disabled"], &at)?,
            "clear_thinking" => _ = boolean(value, &at)?,
            _ => return Err(at.refuse("field-unknown")),
        }
    }
    Ok(())
}

/// Arguments of a chat template: switches, numbers and words, nothing inside them.
fn scalars(json: &Json<'_>, at: &Place<'_>) -> Result<(), No> {
    for (key, value) in object(json, at)? {
        let at = at.key(key);
        match value {
            Json::Bool(_) | Json::Number(_) => {}
            Json::String(_) => level(value, &at)?,
            Json::Null | Json::Array(_) | Json::Object(_) => return Err(at.refuse("value")),
        }
    }
    Ok(())
}
