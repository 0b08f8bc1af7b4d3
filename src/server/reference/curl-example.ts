/** How to ask a route from a shell: short enough to be read, and true if it is pasted. */
import type { JsonSchema, OpenApi, Operation } from './openapi.ts';

/** What stands for what, by the name of the field. */
const SAMPLES: Readonly<Record<string, unknown>> = {
  type: 'stream.start',
  serviceRef: '1:0:19:283D:3FB:1:C00000:0:0:0:',
  url: 'https://example.com/status',
  reason: 'stuck since noon',
  key: 'nightly-report',
  id: 'ID',
};

export function curlExample(
  document: OpenApi,
  { method, path, operation }: { method: string; path: string; operation: Operation },
): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => String(SAMPLES[name] ?? name));
  const isStream = '200' in operation.responses && isEventStream(operation);
  const words = [
    `curl${isStream ? ' -N' : ''}${method === 'get' ? '' : ` -X ${method.toUpperCase()}`} "$HOLDFAST_URL${filled}"`,
    ...(operation.security.length > 0 ? ['-H "Authorization: Bearer $HOLDFAST_API_TOKEN"'] : []),
  ];
  const schema = operation.requestBody?.content['application/json']?.schema;
  if (schema !== undefined) {
    const body = JSON.stringify(sampleOf(document, schema)).replaceAll("'", "'\\''");
    words.push("-H 'Content-Type: application/json'", `-d '${body}'`);
  }
  return words.join(' \\\n  ');
}

function isEventStream({ responses }: Operation): boolean {
  return responses['200']?.content?.['text/event-stream'] !== undefined;
}

/** What has to be there, and nothing else. */
function sampleOf(document: OpenApi, schema: JsonSchema): unknown {
  const { properties = {}, required = [] } = resolved(document, schema);
  return Object.fromEntries(
    required.map((name) => {
      const field = resolved(document, properties[name] ?? {});
      return [name, field.const ?? field.enum?.[0] ?? SAMPLES[name] ?? name];
    }),
  );
}

/** What a reference leads to; of several that may be meant, the first. */
export function resolved(document: OpenApi, schema: JsonSchema): JsonSchema {
  const name = refName(schema);
  if (name !== undefined) return resolved(document, document.components.schemas[name] ?? {});
  const [first] = schema.oneOf ?? schema.anyOf ?? [];
  return first === undefined ? schema : resolved(document, first);
}

/** The name of the shared schema that is referred to. */
export function refName({ $ref }: JsonSchema): string | undefined {
  return $ref?.slice('#/components/schemas/'.length);
}
