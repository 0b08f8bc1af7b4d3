/** What has to be done for an order, in this order, and by whom. */
export const STEPS = ['VALIDATE_DATA', 'PROCESS_DATA', 'STORE_RESULTS'];

/** Each does one step, in a process of its own; what actions are addressed to. */
export const PROCESSORS = { validate: STEPS[0], process: STEPS[1], store: STEPS[2] };

/** For the orchestrator: where each action goes. */
export const ACTIONS = Object.fromEntries(
  Object.entries(PROCESSORS).map(([target, step]) => [step, { target }]),
);
