// Asks an example in TypeScript many questions at the same time, like ask.py:
//
//     node --import tsx ask.mjs EXAMPLE.ts CONCURRENCY

import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { ask, shutdown } = await import(pathToFileURL(process.argv[2]).href);
const lines = createInterface({ input: process.stdin });
const questions = JSON.parse(await new Promise((resolve) => lines.once("line", resolve)));
const closed = new Promise((resolve) => lines.once("close", resolve));
const answers = new Array(questions.length);
let next = 0;

async function askInTurn() {
  while (next < questions.length) {
    const number = next++;
    answers[number] = await ask(questions[number]);
  }
}

await Promise.all(Array.from({ length: Number(process.argv[3]) }, askInTurn));
await shutdown();
console.log(JSON.stringify(answers));
await closed;
