import { z } from 'zod';
import { packageVersion } from '../../core/version.ts';
import { withoutCredentials } from '../../telemetry/facts.ts';
import { type Route, route, SCOPES } from '../http/route.ts';
import type { ServerContext } from '../server-context.ts';

export const aboutSchema = z
  .object({
    scope: z.enum(SCOPES).meta({ description: 'What the token may do.' }),
    tokenId: z.string().meta({ description: 'The name of the token in the audit log.' }),
    tenant: z.string().nullable(),
    instance: z.string().meta({ description: 'The instance that answers.' }),
    version: z.string(),
    store: z.string().meta({ description: 'The store, without credentials.' }),
    now: z
      .number()
      .int()
      .meta({ description: 'Milliseconds since 1970, by the instance’s clock.' }),
    stage: z.literal(true).optional().meta({
      description: 'Present in the demo, where instances can be killed and frozen.',
    }),
  })
  .meta({ id: 'About' });

export function aboutRoutes(
  { holdfast, clock }: ServerContext,
  { hasStage }: { hasStage: boolean },
): Route[] {
  const version = packageVersion();
  return [
    route({
      method: 'GET',
      path: '/api/v3/about',
      access: 'v3:read',
      tenants: 'yes',
      group: 'operation',
      summary: 'Token and server',
      description: 'What the token may do, which instance answers, and which store it uses.',
      responses: { 200: { description: 'The token and the server.', body: aboutSchema } },
      problems: [],
      async handle({ caller: { scope, tokenId, tenant } }) {
        return {
          body: {
            scope,
            tokenId,
            tenant,
            instance: holdfast.instanceId,
            version,
            store: withoutCredentials(holdfast.storeName),
            now: Math.round(clock.wallMs()),
            stage: hasStage ? true : undefined,
          },
        };
      },
    }),
  ];
}
