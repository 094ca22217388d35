// An agent of the Vercel AI SDK that streams its answer, whose spans go to `germane receive`.
//
// Run: germane worker --otlp, and in this directory: npm install && node --import tsx received_stream.ts

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { OpenTelemetry } from "@ai-sdk/otel";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { NodeSDK } from "@opentelemetry/sdk-node";
import { streamText, isStepCount, registerTelemetry, tool } from "ai";
import { pathToFileURL } from "node:url";
import { z } from "zod";

const sdk = new NodeSDK({ serviceName: "vercel-example", traceExporter: new OTLPTraceExporter() });
sdk.start();
registerTelemetry(new OpenTelemetry());

const TOWNS = ["Berlin", "Geneva", "Lyon", "Madrid", "Milan", "Nice", "Paris", "Porto", "Vienna", "Zurich"];
const documents = TOWNS.map((town, index) => `Trains to ${town} leave from platform ${index + 1}.`);

const models = createOpenAICompatible({
  name: "models",
  baseURL: process.env.OPENAI_BASE_URL ?? "https://api.openai.com/v1",
  apiKey: process.env.OPENAI_API_KEY,
});

// The results of tools whose names contain "search" become the contexts.
const searchDepartures = tool({
  description: "Search the timetable.",
  inputSchema: z.object({ query: z.string() }),
  execute: async ({ query }) => documents.filter((text) => query.includes(text.split(" ")[2])),
});

export async function ask(question: string): Promise<string> {
  const result = streamText({
    model: models("gpt-5-mini"),
    instructions: "Answer from the timetable.",
    prompt: question,
    tools: { searchDepartures },
    stopWhen: isStepCount(5),
    telemetry: { functionId: "departures" }, // the route
  });
  let answer = "";
  for await (const text of result.textStream) answer += text;
  return answer;
}

// Exports the spans that have not been sent yet.
export const shutdown = () => sdk.shutdown();

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  console.log(await ask("From which platform do trains to Lyon leave?"));
  await shutdown();
}
