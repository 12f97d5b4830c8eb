//! The box before its container: folders, workspace, prompt, the files of `/job`.
//!
//! Nothing here costs money and nothing hostile has run yet. What goes wrong is infrastructure ([`JobFault`]) or too
//! large; the caller tries again or refuses.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use contract::{ForgeComment, JOB_FILE_VERSION, JobFile, ProposalTool, ToolsFile};
use gateway::providers::models_json;
use queue::Claim;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use crate::{
    folders::JobFolders,
    gates::{Admitted, Ground, Plan},
    job::{Bench, JobFault, Target},
    jobdir::{self, JobFiles},
    prompt::{self, EventText, PromptInput, Said, SubjectText},
    random,
    repo::{Flow, FlowSource, Listing, RepoContext, Repos, SkillFile},
    settings::Settings,
    texts::job as texts,
};

/// The largest persona that is read, in bytes.
const MAX_PERSONA: u64 = 64 * 1024;
/// Files and folders that a workspace by hand may have.
const MAX_COPIED: usize = 100_000;

/// Makes folders, workspace and files, and hands over what the job may write.
pub(crate) async fn prepare(
    bench: &Bench,
    repos: Option<&Repos>,
    admitted: &Admitted,
    target: &Target<'_>,
    folders: &JobFolders,
) -> Result<(), JobFault> {
    let settings = &*bench.settings;
    let made = folders.clone();
    blocking(move || made.make()).await?;
    match (&admitted.ground, repos) {
        (Ground::Repository(ground), Some(repos)) => {
            repos.workspace(&ground.checkout, &folders.seen.workspace).await?;
        }
        (Ground::Repository(_), None) => return Err(JobFault::Internal("a repository without its cache")),
        (Ground::Hand { workspace, .. }, _) => {
            if let Some(from) = workspace.clone() {
                let to = folders.seen.workspace.clone();
                blocking(move || copy_folder(&from, &to, &mut 0)).await?;
            }
        }
    }
    let files = Files::of(settings, admitted, target);
    let (folder, plan_file) = (folders.seen.job.clone(), folders.plan_file());
    let plan = serde_json::to_vec(&admitted.plan).map_err(|_| JobFault::Internal("a plan that is no JSON"))?;
    spawn_blocking(move || {
        files.write(&folder)?;
        fs::write(plan_file, plan).map_err(JobFault::Host)
    })
    .await
    .map_err(|_| JobFault::Internal("writing the job's files panicked"))??;
    hand_over(bench, &admitted.image.id, folders).await
}

/// Gives workspace and session to the job's user: by ourselves as root, else through a short container.
async fn hand_over(bench: &Bench, image: &str, folders: &JobFolders) -> Result<(), JobFault> {
    let (given, uid) = (folders.clone(), bench.settings.container.uid);
    match blocking(move || given.hand_over(uid)).await {
        Err(JobFault::Host(fault)) if fault.kind() == io::ErrorKind::PermissionDenied => {
            let both = [folders.seen.workspace.as_path(), folders.seen.session.as_path()];
            Ok(bench.engine.give(image, &both, uid).await?)
        }
        done => done,
    }
}

/// The proposing tools of a job.
pub(crate) fn proposal_tools(plan: &Plan) -> Vec<ProposalTool> {
    if plan.outputs.comment > 0 {
        vec![ProposalTool::forge_comment()]
    } else {
        Vec::new()
    }
}

/// Their names.
pub(crate) fn proposal_names(plan: &Plan) -> Vec<String> {
    if plan.outputs.comment > 0 {
        vec![ForgeComment::TOOL.to_owned()]
    } else {
        Vec::new()
    }
}

/// Everything that stands in `/job`, owned.
struct Files {
    job: JobFile,
    prompt: prompt::Prompt,
    event: Value,
    tools: ToolsFile,
    models: Value,
    skill: Vec<SkillFile>,
}

impl Files {
    fn of(settings: &Settings, admitted: &Admitted, target: &Target<'_>) -> Self {
        let plan = &admitted.plan;
        let tools = proposal_tools(plan);
        let prompt = build_prompt(settings, admitted, target, &tools);
        let job = JobFile {
            version: JOB_FILE_VERSION,
            job: target.job,
            attempt: target.attempt,
            exclude_tools: plan.excluded.clone(),
            provider: admitted.grant.provider().to_owned(),
            model: admitted.grant.model().to_owned(),
            api: admitted.grant.api(),
            thinking: plan.thinking,
            limits: plan.limits.clone(),
            proposals: proposal_names(plan),
            system_sha256: prompt.system_sha256.clone(),
            prompt_sha256: prompt.prompt_sha256.clone(),
        };
        let skill = match &admitted.ground {
            Ground::Repository(ground) => ground.flow.files.clone(),
            Ground::Hand { .. } => Vec::new(),
        };
        let event = target.claim.map_or_else(|| json!({ "by": "hand" }), event_json);
        Self {
            job,
            prompt,
            event,
            tools: ToolsFile::new(tools),
            models: models_json(&admitted.grant),
            skill,
        }
    }

    fn write(&self, folder: &Path) -> Result<(), JobFault> {
        let files = JobFiles {
            job: &self.job,
            system: &self.prompt.system,
            first_message: &self.prompt.first_message,
            event: &self.event,
            tools: &self.tools,
            models: &self.models,
            skill: &self.skill,
        };
        jobdir::write(folder, &files).map_err(JobFault::from)
    }
}

fn build_prompt(
    settings: &Settings,
    admitted: &Admitted,
    target: &Target<'_>,
    tools: &[ProposalTool],
) -> prompt::Prompt {
    let plan = &admitted.plan;
    let persona = settings.overlay.as_deref().and_then(persona);
    let delimiter = random::token(16);
    let (flow, context, listing) = match &admitted.ground {
        Ground::Repository(ground) => (ground.flow.clone(), ground.context.clone(), ground.listing.clone()),
        Ground::Hand { .. } => (flow_by_hand(), RepoContext::default(), Listing::default()),
    };
    prompt::build(&PromptInput {
        flow: &flow,
        persona: persona.as_deref(),
        context: &context,
        task: plan.task.as_deref(),
        instructions: plan.instructions.as_deref(),
        excluded: &plan.excluded,
        proposals: tools,
        outputs: plan.outputs,
        limits: &plan.limits,
        listing: &listing,
        event: event_text(&admitted.ground, target),
        delimiter: &delimiter,
    })
}

fn event_text<'a>(ground: &'a Ground, target: &'a Target<'a>) -> EventText<'a> {
    match (ground, target.claim) {
        (Ground::Repository(ground), Some(claim)) => EventText {
            forge: &claim.data.forge,
            repository: &ground.full_name,
            subject: claim.data.subject.as_ref().map(|subject| SubjectText {
                kind: subject.kind,
                number: subject.number,
                title: &subject.title,
                body: Some(subject.text.as_str()).filter(|text| !text.is_empty()),
            }),
            said: claim
                .asked
                .iter()
                .map(|asked| Said {
                    who: &asked.actor.login,
                    text: &asked.text,
                })
                .collect(),
        },
        (Ground::Hand { prompt, .. }, _) => EventText {
            forge: texts::BY_HAND,
            repository: texts::BY_HAND,
            subject: None,
            said: vec![Said {
                who: texts::OPERATOR,
                text: prompt,
            }],
        },
        // A repository comes with its claim; see `gates::admit`.
        (Ground::Repository(ground), None) => EventText {
            forge: texts::BY_HAND,
            repository: &ground.full_name,
            subject: None,
            said: Vec::new(),
        },
    }
}

/// The confirmed event as data, for a skill's scripts.
fn event_json(claim: &Claim) -> Value {
    json!({
        "forge": claim.data.forge,
        "repository": claim.data.repository,
        "subject": claim.data.subject,
        "asked": claim.asked,
    })
}

fn flow_by_hand() -> Flow {
    Flow {
        name: texts::BY_HAND.to_owned(),
        source: FlowSource::Overlay,
        shadows_overlay: false,
        text: texts::FLOW_BY_HAND.to_owned(),
        says_allowed_tools: false,
        files: Vec::new(),
        left_out: Vec::new(),
    }
}

/// The overlay's persona. The overlay is the operator's; a file that is too large or no text is passed over, and said.
fn persona(overlay: &Path) -> Option<String> {
    let path = overlay.join("persona.md");
    let size = fs::metadata(&path).ok()?.len();
    let text = if size <= MAX_PERSONA {
        fs::read_to_string(&path).ok()
    } else {
        None
    };
    if text.is_none() {
        tracing::warn!(path = %path.display(), "the persona is too large or no text, and is not used");
    }
    text
}

/// Copies a folder of the operator's. Links are copied as links; anything else than files and folders is left out.
fn copy_folder(from: &Path, to: &Path, copied: &mut usize) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        *copied += 1;
        if *copied > MAX_COPIED {
            return Err(io::Error::other("the workspace has too many files"));
        }
        let target: PathBuf = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            fs::create_dir(&target)?;
            copy_folder(&entry.path(), &target, copied)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(entry.path())?, &target)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

async fn blocking(work: impl FnOnce() -> io::Result<()> + Send + 'static) -> Result<(), JobFault> {
    spawn_blocking(work)
        .await
        .map_err(|_| JobFault::Internal("preparing the box panicked"))?
        .map_err(JobFault::Host)
}
