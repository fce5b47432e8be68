import { createHash } from "node:crypto";

/**
 * Takes a token of the bucket KEYS[1], as bucket.ts does, by Redis's clock. ARGV: the interval in microseconds, the burst.
 * Returns whether there was one, how many are left, and the milliseconds until it is full and until there is one.
 * What is stored is when the bucket is full, in microseconds since 2025, so that parts of them are kept; it goes by itself then.
 */
export const SCRIPT = `
local interval, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = (tonumber(time[1]) - 1735689600) * 1000000 + tonumber(time[2])
local full_at = tonumber(redis.call('GET', KEYS[1])) or now
-- A clock that was set back, or a smaller burst, must not shut anybody out.
local full_in = math.min(math.max(full_at - now, 0), burst * interval)
local remaining = math.floor(burst - full_in / interval + 0.0001)
local admitted = 0
if remaining >= 1 then
  admitted = 1
  remaining = remaining - 1
  full_in = math.min(full_in + interval, burst * interval)
  local value = string.format('%.17g', now + full_in)
  redis.call('SET', KEYS[1], value, 'PX', math.ceil(full_in / 1000) + 1)
end
local next_in = math.max(full_in - (burst - 1) * interval, 0)
return {admitted, remaining, math.ceil(full_in / 1000), math.ceil(next_in / 1000)}
`;

export const SCRIPT_SHA1 = createHash("sha1").update(SCRIPT).digest("hex");
