//! The world that most tests and the demo begin with: organisation `lab`, repository `lab/widgets`, issue #1.
//!
//! | who | id | may |
//! |---|---|---|
//! | `olga` | 2 | everything: she owns `lab` |
//! | `mira` | 3 | write |
//! | `ravi` | 4 | read |
//! | `sol` | 5 | nothing in particular: a stranger, who opened the issue |
//! | `nils` | 6 | administrate the repository |
//! | `pi-bot` | 7 | write: our own account |
//! | `lab` | 9 | (the organisation) |

use super::git::File;
use super::world::Access;
use super::{Settings, StubForge};

/// The title of issue #1.
pub const ISSUE_TITLE: &str = "A turn to the right goes left";

/// The text of issue #1.
pub const ISSUE_BODY: &str = include_str!("../../fixture/issue.md");

const FILES: [(&str, &str); 6] = [
    ("README.md", include_str!("../../fixture/widgets/README.md")),
    ("AGENTS.md", include_str!("../../fixture/widgets/AGENTS.md")),
    (
        ".pi/skills/triage/SKILL.md",
        include_str!("../../fixture/widgets/.pi/skills/triage/SKILL.md"),
    ),
    ("widgets/turn.py", include_str!("../../fixture/widgets/widgets/turn.py")),
    (
        "widgets/robot.py",
        include_str!("../../fixture/widgets/widgets/robot.py"),
    ),
    (
        "tests/test_turn.py",
        include_str!("../../fixture/widgets/tests/test_turn.py"),
    ),
];

impl StubForge {
    /// The fixture world of this module, on a port of its own.
    pub fn lab() -> Self {
        let forge = Self::start();
        forge.furnish();
        forge
    }

    /// The fixture world, set up as told; fails when the port is taken or the folder cannot be made.
    pub fn lab_with(settings: Settings) -> std::io::Result<Self> {
        let forge = Self::try_with(settings)?;
        forge.furnish();
        Ok(forge)
    }

    fn furnish(&self) {
        for (id, login) in [
            (2, "olga"),
            (3, "mira"),
            (4, "ravi"),
            (5, "sol"),
            (6, "nils"),
            (7, "pi-bot"),
        ] {
            self.user_with_id(id, login);
        }
        self.organisation(Some(9), "lab", &["olga"]);
        self.repository("lab/widgets", &FILES.map(|(path, text)| File::text(path, text)));
        self.act(|world| "Small robots on wheels".clone_into(&mut world.at("lab/widgets").description));
        let people = [
            ("mira", Access::Write),
            ("ravi", Access::Read),
            ("nils", Access::Admin),
            ("pi-bot", Access::Write),
        ];
        for (login, access) in people {
            self.allow("lab/widgets", login, access);
        }
        self.issue("lab/widgets", "sol", ISSUE_TITLE, ISSUE_BODY);
    }
}
