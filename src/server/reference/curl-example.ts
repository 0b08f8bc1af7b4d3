/** A curl command for each route, short and ready to paste. */
import type { JsonSchema, OpenApi, Operation } from './openapi.ts';

/** Example values by field name. */
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

/** Only the required fields. */
function sampleOf(document: OpenApi, schema: JsonSchema): unknown {
  const { properties = {}, required = [] } = resolved(document, schema);
  return Object.fromEntries(
    required.map((name) => {
      const field = resolved(document, properties[name] ?? {});
      return [name, field.const ?? field.enum?.[0] ?? SAMPLES[name] ?? name];
    }),
  );
}

/** Follows references; of several alternatives, takes the first. */
export function resolved(document: OpenApi, schema: JsonSchema): JsonSchema {
  const name = refName(schema);
  if (name !== undefined) return resolved(document, document.components.schemas[name] ?? {});
  const [first] = schema.oneOf ?? schema.anyOf ?? [];
  return first === undefined ? schema : resolved(document, first);
}

/** The name of the shared schema that a reference points to. */
export function refName({ $ref }: JsonSchema): string | undefined {
  return $ref?.slice('#/components/schemas/'.length);
}
