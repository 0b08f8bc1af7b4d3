/** Moves the clock of a Holdfast schema, so that a test need not wait. */

/** The function that every verb reads the time from, with an offset that `advance` changes. */
export const MOVABLE_CLOCK = (schema = 'holdfast') => `
CREATE TABLE IF NOT EXISTS "${schema}".test_clock (ahead bigint NOT NULL);
INSERT INTO "${schema}".test_clock SELECT 0 WHERE NOT EXISTS (SELECT FROM "${schema}".test_clock);
CREATE OR REPLACE FUNCTION "${schema}".clock_us() RETURNS bigint LANGUAGE sql VOLATILE SECURITY DEFINER AS
$$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + (SELECT ahead FROM "${schema}".test_clock) $$;
`;

export const advanceBy = (ms: number, schema = 'holdfast') =>
  `UPDATE "${schema}".test_clock SET ahead = ahead + ${Math.round(ms * 1_000)}`;
