//! What all pages share: the bar at the top, the style sheet, the small script, and the way a template becomes an answer.

use askama::Template;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{Html, IntoResponse, Response};
use queue::{Pause, Role};

use crate::Admin;
use crate::error::PageError;
use crate::people::SignedIn;

/// The bar at the top.
pub struct Shell {
    /// Who looks.
    pub user: String,
    /// Whether they may act.
    pub operator: bool,
    /// Which entry of the navigation is this page's.
    pub here: &'static str,
    /// The pause, if there is one.
    pub pause: Option<Pause>,
    /// What stands in the window's title.
    pub title: String,
}

impl Shell {
    /// The bar of a page.
    pub async fn new(
        admin: &Admin,
        who: &SignedIn,
        here: &'static str,
        title: impl Into<String>,
    ) -> Result<Self, PageError> {
        Ok(Self {
            user: who.name.clone(),
            operator: who.role == Role::Operator,
            here,
            pause: admin.queue.paused().await?,
            title: title.into(),
        })
    }
}

/// A filled template.
pub fn page(template: &impl Template) -> Result<Response, PageError> {
    Ok(Html(template.render()?).into_response())
}

/// `GET /panel.css`.
pub async fn css() -> Response {
    asset("text/css; charset=utf-8", include_str!("../assets/panel.css"))
}

/// `GET /live.js`.
pub async fn script() -> Response {
    asset("text/javascript; charset=utf-8", include_str!("../assets/live.js"))
}

fn asset(kind: &'static str, text: &'static str) -> Response {
    ([(CONTENT_TYPE, kind), (CACHE_CONTROL, "max-age=300")], text).into_response()
}
