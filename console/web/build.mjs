// Builds the page into the package: `make console`. Licences of bundled libraries go into NOTICES.txt beside it.
import { build } from "esbuild";
import { readFileSync, writeFileSync, readdirSync, existsSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { join } from "node:path";

const out = "../../src/augury/console/static";
const pictures = "../../src/augury/pictures";
const shared = { bundle: true, minify: true, format: "esm", target: "es2022", legalComments: "none", metafile: true, logLevel: "warning" };
const result = await build({
  ...shared,
  entryPoints: { app: "src/app.jsx" },
  outdir: out,
  jsx: "automatic",
  jsxImportSource: "preact",
});

// The timeline by itself, for exported pages and notebooks.
await build({ ...shared, entryPoints: { timeline: "src/standalone.js" }, outdir: pictures });

const packages = new Set();
for (const path of Object.keys(result.metafile.inputs)) {
  const match = path.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//);
  if (match) packages.add(match[1]);
}
const notices = [...packages].sort().map((name) => {
  const folder = join("node_modules", name);
  const about = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  const text = file && existsSync(join(folder, file)) ? readFileSync(join(folder, file), "utf8").trim() : about.license;
  return `${name} ${about.version} (${about.license})\n\n${text}\n`;
});
writeFileSync(join(out, "NOTICES.txt"), `The console's page contains these libraries.\n\n${notices.join("\n" + "-".repeat(78) + "\n\n")}`);
let total = 0;
for (const name of ["app.js", "app.css"]) {
  const size = gzipSync(readFileSync(join(out, name))).length;
  total += size;
  console.log(`${name} ${(size / 1000).toFixed(1)} kB compressed`);
}
console.log(`together ${(total / 1000).toFixed(1)} kB`);
