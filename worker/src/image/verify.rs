//! Checking an image against the contract, without a model call.

use std::fmt::Write as _;

use bollard::Docker;
use contract::{
    BuiltinTools, CONTRACT_VERSION, Capability, PI_VERSION, ProposalTool, ReadBack, Tool, ToolsFile, expected_active,
    expected_registered, labels, paths,
};
use serde::Deserialize;

use super::{
    ImageError,
    docker::{self, Found},
    parts::pins,
};

/// Which sets of exclusions are read back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subsets {
    /// None, each tool alone, the four of the read-only triage, all eight: eleven, in half a minute.
    Some,
    /// All 256, in some minutes.
    All,
}

impl Subsets {
    /// The sets themselves.
    #[must_use]
    pub fn list(self) -> Vec<Vec<Tool>> {
        match self {
            Subsets::Some => {
                let mut some = vec![vec![]];
                some.extend(Tool::ALL.map(|tool| vec![tool]));
                some.push(vec![Tool::Bash, Tool::Powershell, Tool::Edit, Tool::Write]);
                some.push(Tool::ALL.to_vec());
                some
            }
            Subsets::All => (0..=255_u8)
                .map(|bits| {
                    let named = Tool::ALL
                        .into_iter()
                        .enumerate()
                        .filter(|(at, _)| bits & (1 << at) != 0);
                    named.map(|(_, tool)| tool).collect()
                })
                .collect(),
        }
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What.
    pub what: String,
    /// What was found.
    pub found: String,
    /// Whether that is as the contract wants it.
    pub good: bool,
}

/// What the real pi showed for one set of exclusions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadBackOf {
    /// The set.
    pub excluded: Vec<Tool>,
    /// What the live session had; `None` when the runner did not print it.
    pub seen: Option<ReadBack>,
    /// What the runner said instead.
    pub complaint: String,
}

impl ReadBackOf {
    /// Whether registered and active tools are exactly the expected ones.
    #[must_use]
    pub fn good(&self) -> bool {
        let Some(seen) = &self.seen else { return false };
        let proposing = ["forge_comment"];
        let mut registered: Vec<String> = seen.registered.iter().map(|tool| tool.name.clone()).collect();
        registered.sort();
        let mut active = seen.active.clone();
        active.sort();
        registered == expected_registered(&self.excluded, proposing)
            && active == expected_active(&self.excluded, proposing)
            && seen.skills.is_empty()
            && seen.cwd == paths::WORKSPACE
    }
}

/// All that was found out about an image.
#[derive(Debug, Clone)]
pub struct Report {
    /// The name that was asked for.
    pub image: String,
    /// Its id.
    pub id: String,
    /// What was looked at.
    pub checks: Vec<Check>,
    /// What pi showed.
    pub read_backs: Vec<ReadBackOf>,
}

impl Report {
    /// Whether everything is as the contract wants it.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.checks.iter().all(|check| check.good) && self.read_backs.iter().all(ReadBackOf::good)
    }

    /// The report as a page in Markdown, for the day `date`.
    #[must_use]
    pub fn page(&self, date: &str) -> String {
        let mut page = String::new();
        let verdict = if self.passed() {
            "as the contract wants it"
        } else {
            "NOT as the contract wants it"
        };
        let _infallible = write!(
            page,
            "# The job image, verified\n\nWritten by `pi-dispatch image verify` on {date}. Image `{}` (`{}`), pins `{}`: {verdict}.\n\n\
             | what | found | |\n|---|---|---|\n",
            self.image,
            self.id,
            pins()
        );
        for check in &self.checks {
            let _infallible = writeln!(
                page,
                "| {} | {} | {} |",
                check.what,
                cell(&check.found),
                mark(check.good)
            );
        }
        let shown = Subsets::Some.list();
        let good = self.read_backs.iter().filter(|read| read.good()).count();
        let _infallible = write!(
            page,
            "\nThe live session of the real pi was read back for {} sets of exclusions; {good} of them showed exactly the \
             tools that are left. These are some of them, and each that did not:\n\n",
            self.read_backs.len()
        );
        page.push_str("| excluded | active | registered | |\n|---|---|---|---|\n");
        for read in self
            .read_backs
            .iter()
            .filter(|read| !read.good() || shown.contains(&read.excluded))
        {
            let excluded = list(read.excluded.iter().map(|tool| tool.name()));
            let (active, registered) = match &read.seen {
                Some(seen) => (
                    list(seen.active.iter().map(String::as_str)),
                    list(seen.registered.iter().map(|tool| tool.name.as_str())),
                ),
                None => (cell(&read.complaint), String::new()),
            };
            let _infallible = writeln!(page, "| {excluded} | {active} | {registered} | {} |", mark(read.good()));
        }
        page
    }
}

fn mark(good: bool) -> &'static str {
    if good { "ok" } else { "**no**" }
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    if names.is_empty() {
        "none".to_owned()
    } else {
        cell(&names.join(" "))
    }
}

/// Text of the image in a cell: one line, no markup of its own, not endless.
fn cell(text: &str) -> String {
    if text.trim().is_empty() {
        return "none".to_owned();
    }
    let plain: String = text
        .chars()
        .filter(|character| !character.is_control() && *character != '|')
        .take(300)
        .collect();
    format!("`{}`", plain.replace('`', "'"))
}

/// Looks at an image as a job would meet it.
pub async fn verify(docker: &Docker, image: &str, subsets: Subsets) -> Result<Report, ImageError> {
    let missing = || ImageError::Step {
        what: "verify",
        detail: format!("this host has no image {image}"),
    };
    let found = docker::image(docker, image).await?.ok_or_else(missing)?;
    let mut checks = of_configuration(&found);
    checks.extend(of_files(docker, &found.id).await?);
    let read_backs = read_backs(docker, &found.id, &subsets.list()).await?;
    Ok(Report {
        image: image.to_owned(),
        id: found.id,
        checks,
        read_backs,
    })
}

/// Starts the image's real pi once for each set of exclusions and reads its session back, in one container.
pub async fn read_backs(docker: &Docker, image: &str, sets: &[Vec<Tool>]) -> Result<Vec<ReadBackOf>, ImageError> {
    #[derive(Deserialize)]
    struct Shown {
        seen: ReadBack,
    }
    let names = |set: &Vec<Tool>| set.iter().map(|tool| tool.name()).collect::<Vec<_>>().join(",");
    let mut script = format!("printf '%s' \"$TOOLS\" > {}\n", paths::TOOLS_FILE);
    for set in sets {
        let with = if set.is_empty() {
            String::new()
        } else {
            format!("{}={} ", contract::EXCLUDE_TOOLS_VARIABLE, names(set))
        };
        let _infallible = writeln!(script, "{with}{} read-back 2>&1 | tail -n 1", paths::RUNNER);
    }
    let tools = serde_json::to_string(&ToolsFile::new(vec![ProposalTool::forge_comment()])).unwrap_or_default();
    let (_, said) = docker::script(docker, image, &script, vec![format!("TOOLS={tools}")]).await?;
    let mut lines = said.lines();
    let read = sets.iter().map(|set| {
        let line = lines.next().unwrap_or("nothing was said");
        let seen = serde_json::from_str::<Shown>(line).ok().map(|shown| shown.seen);
        let complaint = if seen.is_some() { String::new() } else { line.to_owned() };
        ReadBackOf {
            excluded: set.clone(),
            seen,
            complaint,
        }
    });
    Ok(read.collect())
}

fn check(what: &str, found: impl Into<String>, good: impl FnOnce(&str) -> bool) -> Check {
    let found = found.into();
    let good = good(&found);
    Check {
        what: what.to_owned(),
        found,
        good,
    }
}

fn of_configuration(found: &Found) -> Vec<Check> {
    let label = |name: &str| found.label(name).cloned().unwrap_or_default();
    let capabilities = label(labels::CAPABILITIES);
    let config = &found.config;
    let env = config.env.clone().unwrap_or_default().join(" ");
    let upper = env.to_ascii_uppercase();
    let ours: Vec<&str> = labels::OF_CONTAINERS
        .into_iter()
        .filter(|name| found.label(name).is_some())
        .collect();
    vec![
        check("label: capabilities", &*capabilities, |label| {
            Capability::ALL.iter().all(|each| each.is_in(label))
        }),
        check("label: version of pi", label(labels::PI_VERSION), |label| {
            label == PI_VERSION
        }),
        check("label: contract", label(labels::CONTRACT), |label| {
            label == CONTRACT_VERSION.to_string()
        }),
        check("labels that only a worker sets", ours.join(" "), str::is_empty),
        check("environment", env, |_| {
            ["NODE_OPTIONS=", "LD_", "PI_"]
                .iter()
                .all(|word| !upper.split(' ').any(|entry| entry.starts_with(word)))
        }),
        check(
            "volumes",
            config.volumes.clone().unwrap_or_default().join(" "),
            str::is_empty,
        ),
        check("user", config.user.clone().unwrap_or_default(), |user| {
            user == format!("{0}:{0}", contract::JOB_USER)
        }),
        check(
            "entry point",
            config.entrypoint.clone().unwrap_or_default().join(" "),
            |path| path == paths::RUNNER,
        ),
    ]
}

/// Looks from inside, as the job's user.
async fn of_files(docker: &Docker, image: &str) -> Result<Vec<Check>, ImageError> {
    let modes = [
        (paths::NODE, "111 0:0"),
        (paths::RUNNER, "111 0:0"),
        (paths::BRIDGE, "444 0:0"),
        (paths::GUARDRAILS, "444 0:0"),
        (paths::BUILTIN_TOOLS, "444 0:0"),
        (paths::PI, "444 0:0"),
    ];
    let mut script = String::from("exec 2>&1\n");
    for (path, _) in modes {
        let _infallible = writeln!(script, "echo \"$(stat -c '%a %u:%g' {path})\"");
    }
    let _infallible = write!(
        script,
        "echo \"$(id -u)\"\n\
         echo \"$(node --version)\"\n\
         echo \"$(git --version)\"\n\
         echo \"$(rg --version | head -n 1)\"\n\
         echo \"$(fdfind --version)\"\n\
         echo \"$(find / -xdev -type f -perm /6000 2>/dev/null | head -n 3 | tr '\\n' ' ')\"\n\
         echo \"$(find / -xdev ! -type l '(' -user \"$(id -u)\" -o -group \"$(id -g)\" -o -perm -o+w ! -perm -1000 ')' 2>/dev/null | grep -v -x -F \"$TMPFS\" | head -n 3 | tr '\\n' ' ')\"\n\
         node -e 'setTimeout(() => {{}}, 20000)' & sleep 1\n\
         echo \"$(head -c 1 /proc/$!/environ 2>&1 | tr -d '\\0')\"\n\
         echo \"$(cat {})\"\n",
        paths::BUILTIN_TOOLS
    );
    // By owner and mode, because on a read-only root nothing is writable; the folders that the worker mounts aside.
    let mounted = format!("TMPFS={}", docker::TMPFS.join("\n"));
    let (_, said) = docker::script(docker, image, &script, vec![mounted]).await?;
    let mut lines = said.lines().map(str::to_owned);
    let mut next = || lines.next().unwrap_or_default();
    let mut checks: Vec<Check> = modes
        .iter()
        .map(|(path, mode)| check(&format!("mode and owner of `{path}`"), next(), |found| found == *mode))
        .collect();
    checks.push(check("user inside", next(), |user| {
        user == contract::JOB_USER.to_string()
    }));
    checks.push(check("node", next(), |version| version == "v24.21.0"));
    checks.push(check("git", next(), |version| version.starts_with("git version 2.")));
    checks.push(check("ripgrep", next(), |version| version.starts_with("ripgrep ")));
    checks.push(check("fd", next(), |version| version.starts_with("fd")));
    checks.push(check("programs with a set-user-id bit", next(), str::is_empty));
    checks.push(check(
        "what belongs to the job's user or to everybody",
        next(),
        str::is_empty,
    ));
    checks.push(check(
        "a node's memory and environment, tried by a shell of its user",
        next(),
        |said| said.contains("Permission denied"),
    ));
    let listed = next();
    let builtin: Option<BuiltinTools> = serde_json::from_str(&listed).ok();
    let names = builtin
        .iter()
        .flat_map(|list| &list.tools)
        .map(|tool| tool.name.as_str())
        .collect::<Vec<_>>()
        .join(" ");
    checks.push(check("pi's own tools: names, activity, lines", names, |_| {
        builtin == Some(BuiltinTools::pinned())
    }));
    Ok(checks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sets_are_all_different_and_all_of_them_are_256() {
        for (subsets, many) in [(Subsets::Some, 11), (Subsets::All, 256)] {
            let mut sets = subsets.list();
            sets.sort();
            sets.dedup();
            assert_eq!(sets.len(), many);
        }
    }

    #[test]
    fn text_of_an_image_cannot_break_out_of_its_cell() {
        assert_eq!(cell("a|b`c\n\u{1b}[31md"), "`ab'c[31md`");
    }

    #[test]
    fn a_page_says_no_when_one_thing_is_not_as_it_should_be() {
        let check = |good| Check {
            what: "node".into(),
            found: "v1".into(),
            good,
        };
        let report = |good| Report {
            image: "i".into(),
            id: "sha256:1".into(),
            checks: vec![check(good)],
            read_backs: vec![],
        };
        assert!(report(true).page("2026-12-01").contains("on 2026-12-01"));
        assert!(!report(true).page("2026-12-01").contains("**no**"));
        assert!(
            report(false)
                .page("2026-12-01")
                .contains("NOT as the contract wants it")
        );
    }
}
