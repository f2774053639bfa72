// The one build: asc, post-pass, esbuild, types. `npm run build`.
//
//   assembly/**      --asc-->  --post-pass-->  dist/engine.wasm
//   src/**           --esbuild, a file each-->  dist/**.js   (what is tested is what ships)
//   src/**           --tsc-->                   dist/types/**.d.ts
//   test/** bench/** --esbuild, bundled-->      build/**.js  (importing dist/)

import { spawn } from "node:child_process";
import { chmod, mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";
import { buildEngine } from "./engine.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
process.chdir(root);

async function filesUnder(dir, suffix) {
  const found = await readdir(dir, { recursive: true }).catch(() => []);
  return found.filter((f) => f.endsWith(suffix)).map((f) => join(dir, f));
}

/** Tests and benches import src/x.ts; what they get is dist/x.js, the file that ships. */
const importFromDist = {
  name: "import-from-dist",
  setup(build) {
    build.onResolve({ filter: /^\.\.?\// }, (args) => {
      const target = resolve(args.resolveDir, args.path);
      const inSrc = relative(join(root, "src"), target);
      if (inSrc.startsWith("..")) return undefined;
      const entry = build.initialOptions.outdir;
      return { path: join(root, "dist", inSrc), external: true, pluginData: entry };
    });
  },
};

async function buildHost() {
  const common = { format: "esm", platform: "node", target: "node20", logLevel: "warning" };
  const src = (await filesUnder("src", ".ts")).filter((f) => !f.endsWith(".d.ts"));
  // Two files are bundled, each alone, since what they import lies outside of src/: the memory map
  // of assembly/ and the published tables of bench/.
  const bundled = [join("src", "engine", "abi.ts"), join("src", "harness", "tables.ts")];
  await esbuild.build({
    ...common,
    entryPoints: src.filter((f) => !bundled.includes(f)),
    outdir: "dist",
    outbase: "src",
    sourcemap: true,
  });
  await esbuild.build({
    ...common,
    entryPoints: bundled,
    outdir: "dist",
    outbase: "src",
    bundle: true,
    loader: { ".csv": "text" },
  });
  const tests = [...(await filesUnder("test", ".ts")), ...(await filesUnder("bench", ".ts"))];
  if (tests.length > 0) {
    await esbuild.build({
      ...common,
      entryPoints: tests,
      outdir: "build",
      outbase: ".",
      bundle: true,
      packages: "external",
      plugins: [importFromDist],
      sourcemap: "inline",
    });
  }
  await chmod("dist/cli/main.js", 0o755).catch(() => {});
}

function run(command, args) {
  return new Promise((resolvePromise, reject) => {
    const child = spawn(command, args, { stdio: "inherit" });
    child.on("error", reject);
    child.on("exit", (code) =>
      code === 0 ? resolvePromise() : reject(new Error(`${command} ended with ${code}`)),
    );
  });
}

const started = performance.now();
await rm("dist", { recursive: true, force: true });
await rm("build", { recursive: true, force: true });
await mkdir("dist", { recursive: true });
try {
  const [bytes] = await Promise.all([
    buildEngine({ source: join(root, "assembly") }).then(async (wasm) => {
      await writeFile("dist/engine.wasm", wasm);
      return wasm.length;
    }),
    buildHost(),
    run(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "tsconfig.types.json"]),
  ]);
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(`built dist/ in ${seconds} s (engine.wasm ${bytes} bytes)`);
} catch (error) {
  console.error(`build failed: ${error.message}`);
  process.exit(1);
}
