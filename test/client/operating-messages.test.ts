import { describe, expectTypeOf, it } from 'vitest';
import type { z } from 'zod';
import type {
  About,
  ApiDeadLetter,
  ApiMember,
  ApiSlot,
  Diagnosis,
  HistoryPage,
  LeaseRevocation,
  StageAction,
  StagePicture,
  TargetDetail,
  TargetRow,
  TransferOrder,
  WorkflowDetail,
  WorkflowsPage,
} from '../../src/client/index.ts';
import type * as stage from '../../src/server/demo-stage.ts';
import type { aboutSchema } from '../../src/server/routes/about.ts';
import type { letterSchema } from '../../src/server/routes/dead-letters.ts';
import type { diagnosisSchema } from '../../src/server/routes/doctor.ts';
import type { historySchema } from '../../src/server/routes/history.ts';
import type {
  memberSchema,
  rowSchema,
  targetSchema,
} from '../../src/server/routes/json/fleet-schemas.ts';
import type { revocationSchema } from '../../src/server/routes/leases.ts';
import type { slotSchema } from '../../src/server/routes/slots.ts';
import type { transferSchema } from '../../src/server/routes/targets.ts';
import type { workflowSchema, workflowsSchema } from '../../src/server/routes/workflows.ts';

/** As JSON carries it: what may be absent may also be undefined here. */
type Wire<T> = T extends object ? { [K in keyof T]: Wire<T[K]> } : T;
type Given<S extends z.ZodType> = Wire<z.output<S>>;

describe('what operators read', () => {
  it('is what the server gives', () => {
    expectTypeOf<Given<typeof aboutSchema>>().toExtend<About>();
    expectTypeOf<Given<typeof memberSchema>>().toExtend<ApiMember>();
    expectTypeOf<z.output<typeof rowSchema>>().toExtend<TargetRow>();
    expectTypeOf<Given<typeof targetSchema>>().toExtend<TargetDetail>();
    expectTypeOf<Given<typeof historySchema>>().toExtend<HistoryPage>();
    expectTypeOf<Given<typeof workflowsSchema>>().toExtend<WorkflowsPage>();
    expectTypeOf<Given<typeof workflowSchema>>().toExtend<WorkflowDetail>();
    expectTypeOf<Given<typeof letterSchema>>().toExtend<ApiDeadLetter>();
    expectTypeOf<Given<typeof slotSchema>>().toExtend<ApiSlot>();
    expectTypeOf<Given<typeof diagnosisSchema>>().toExtend<Diagnosis>();
    expectTypeOf<Given<typeof revocationSchema>>().toExtend<LeaseRevocation>();
    expectTypeOf<Given<typeof transferSchema>>().toExtend<TransferOrder>();
    expectTypeOf<stage.StagePicture>().toExtend<StagePicture>();
    expectTypeOf<stage.StageAction>().toEqualTypeOf<StageAction>();
  });

  it('leaves nothing out', () => {
    expectTypeOf<keyof About>().toEqualTypeOf<keyof Given<typeof aboutSchema>>();
    expectTypeOf<keyof ApiMember>().toEqualTypeOf<keyof Given<typeof memberSchema>>();
    expectTypeOf<keyof TargetDetail>().toEqualTypeOf<keyof Given<typeof targetSchema>>();
    expectTypeOf<keyof WorkflowDetail>().toEqualTypeOf<keyof Given<typeof workflowSchema>>();
    expectTypeOf<keyof ApiSlot>().toEqualTypeOf<keyof Given<typeof slotSchema>>();
    expectTypeOf<keyof Diagnosis>().toEqualTypeOf<keyof Given<typeof diagnosisSchema>>();
  });
});
