// The bridge: the one extension of a job's pi.
//
// It does three things. It reads the live session back, so that the runner can compare what pi really has with what
// the job asked for. It registers the tools of /job/tools.json, which only propose. And it blocks calls of excluded
// tools, behind pi's own registry, which lacks them anyway.
//
// It holds no schema and no secret, and speaks to the runner through pi's RPC alone (`ctx.ui`): no file that the job
// could write, no port, no socket. Nothing here sets `terminate`, and `event.input` is never changed, because pi does
// not validate it again.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

const TOOLS_FILE = "/job/tools.json";
const STATUS_KEY = "pi-dispatch.read-back";
const COMMAND = "pi-dispatch-read-back";
const PROPOSE = "pi-dispatch.propose";
const MOST_BYTES = 50 * 1024;
const MOST_LINES = 2000;

/** What the session has now. `options` is there only while a command runs. */
function look(pi, ctx, why, nonce, options) {
  return {
    why,
    nonce: nonce ?? null,
    active: pi.getActiveTools(),
    registered: pi.getAllTools().map((tool) => ({
      name: tool.name,
      source: tool.sourceInfo?.source ?? "",
      path: tool.sourceInfo?.path ?? "",
    })),
    model: ctx.model ? `${ctx.model.provider}/${ctx.model.id}` : null,
    thinking: pi.getThinkingLevel?.() ?? null,
    cwd: ctx.cwd,
    systemSha256: createHash("sha256").update(ctx.getSystemPrompt(), "utf8").digest("hex"),
    skills: skillNames(pi, options),
    contextFiles: (options?.contextFiles ?? []).map((file) => String(file.path)),
    snippets: options ? { ...options.toolSnippets } : null,
  };
}

/** Skills that pi found, by either of the ways in which it shows them. */
function skillNames(pi, options) {
  const commands = pi.getCommands().filter((command) => command.source === "skill").map((command) => command.name);
  const loaded = (options?.skills ?? []).map((skill) => skill.name);
  return [...new Set([...commands, ...loaded])];
}

/** At most 2,000 lines and 50 KB, like pi's own tools, and it says so when something was cut. */
function cut(text) {
  const lines = text.split("\n");
  let kept = lines.length > MOST_LINES ? lines.slice(0, MOST_LINES).join("\n") : text;
  if (Buffer.byteLength(kept) > MOST_BYTES) {
    // A cut in the middle of a character leaves a replacement character, which is dropped.
    kept = Buffer.from(kept).subarray(0, MOST_BYTES).toString("utf8").replace(/\uFFFD+$/u, "");
  }
  return kept === text ? text : `${kept}\n[cut]`;
}

/** A tool that asks the runner and throws when the proposal is refused. */
function proposing(tool) {
  return {
    name: tool.name,
    label: tool.name,
    description: tool.description,
    promptSnippet: tool.prompt_snippet,
    parameters: tool.parameters,
    constrainedSampling: { type: "json_schema", strict: "prefer" },
    executionMode: "sequential",
    async execute(call, params, _signal, _onUpdate, ctx) {
      const asked = JSON.stringify({ call, tool: tool.name, arguments: params });
      const answer = JSON.parse((await ctx.ui.input(PROPOSE, asked)) ?? "null");
      if (answer?.accepted !== true) {
        throw new Error(cut(String(answer?.reason ?? "nobody answered the proposal")));
      }
      const text = "Kept. It is checked again and carried out after the run has ended.";
      return { content: [{ type: "text", text: cut(text) }], details: { proposal: String(answer.id) } };
    },
  };
}

export default function bridge(pi) {
  const excluded = new Set((process.env.PI_EXCLUDE_TOOLS ?? "").split(",").filter(Boolean));
  const show = (ctx, seen) => ctx.ui.setStatus(STATUS_KEY, JSON.stringify(seen));

  for (const tool of JSON.parse(readFileSync(TOOLS_FILE, "utf8")).tools) {
    pi.registerTool(proposing(tool));
  }

  pi.on("session_start", async (_event, ctx) => show(ctx, look(pi, ctx, "session")));
  pi.on("turn_start", async (_event, ctx) => show(ctx, look(pi, ctx, "turn")));
  pi.registerCommand(COMMAND, {
    description: "Shows what the live session has",
    handler: async (nonce, ctx) => show(ctx, look(pi, ctx, "command", nonce, ctx.getSystemPromptOptions())),
  });

  pi.on("tool_call", async (event) => {
    if (excluded.has(event.toolName)) {
      return { block: true, reason: `the tool ${event.toolName} is excluded from this job` };
    }
    return undefined;
  });
}
