// Writes models.json (beside this file) from pi's own model data.
//
//   node generate.mjs DIR      DIR: the unpacked package @earendil-works/pi-ai (it holds package.json and dist/)
//
// Taken: chat models of the two API shapes that the door lets through. Not taken: GitHub Copilot, whose token must be exchanged first.
// One model per line, so that a new pin shows in review what changed. Nothing is computed here: prices stay USD per million tokens, as pi writes them.

import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const SHAPES = ["openai-completions", "anthropic-messages"];
const LEFT_OUT = new Set(["github-copilot"]);

const from = process.argv[2];
if (!from) {
    console.error("usage: node generate.mjs DIR");
    process.exit(2);
}

const { version } = JSON.parse(readFileSync(join(from, "package.json"), "utf8"));
const { findEnvKeys } = await import(pathToFileURL(join(from, "dist/env-api-keys.js")).href);
const everything = new Proxy({}, { get: () => "set" });

const limits = [];
const limitsIndex = (value) => {
    const text = JSON.stringify(value);
    const known = limits.indexOf(text);
    return known >= 0 ? known : limits.push(text) - 1;
};

const providers = [];
const data = join(from, "dist/providers/data");
for (const file of readdirSync(data).filter((name) => name.endsWith(".json")).sort()) {
    const name = file.slice(0, -".json".length);
    if (LEFT_OUT.has(name)) continue;
    const shapes = JSON.parse(readFileSync(join(data, file), "utf8"));
    const addresses = {};
    const lines = [];
    for (const shape of SHAPES) {
        for (const model of Object.values(shapes[shape] ?? {})) {
            if (model.type !== "chat") continue;
            addresses[shape] ??= model.baseUrl;
            if (addresses[shape] !== model.baseUrl) throw new Error(`${name}: two addresses for ${shape}`);
            const { id, name: shown, reasoning, input, cost, contextWindow, maxTokens, thinkingLevelMap, compat, inputLimits } = model;
            lines.push(JSON.stringify({
                id, name: shown, api: shape, reasoning, images: input.includes("image"), cost, contextWindow, maxTokens, thinkingLevelMap, compat,
                limits: inputLimits === undefined ? undefined : limitsIndex(inputLimits),
            }));
        }
    }
    if (lines.length === 0) continue;
    const keys = (findEnvKeys(name, everything) ?? []).filter((key) => key.endsWith("_KEY") || key.endsWith("_TOKEN"));
    // Anthropic's two token variables are other kinds of credentials than an API key.
    const keyVariables = name === "anthropic" ? keys.filter((key) => key.endsWith("_API_KEY")) : keys;
    providers.push(
        `${JSON.stringify(name)}: {"addresses": ${JSON.stringify(addresses)}, "keyVariables": ${JSON.stringify(keyVariables)}, "models": [\n${lines.join(",\n")}\n]}`,
    );
}

const text = `{"pi": ${JSON.stringify(version)},\n"limits": [\n${limits.join(",\n")}\n],\n"providers": {\n${providers.join(",\n")}\n}}\n`;
JSON.parse(text);
writeFileSync(join(dirname(fileURLToPath(import.meta.url)), "models.json"), text);
