-- SPDX-License-Identifier: Apache-2.0
--
-- Sends one request again and again: METHOD PATH and, if there is one, the file
-- with its body. It prints one line of names and figures; times are in microseconds.

function init(args)
  wrk.method = args[1]
  wrk.path = args[2]
  if args[3] then
    local file = assert(io.open(args[3], "rb"))
    wrk.body = file:read("*a")
    wrk.headers["Content-Type"] = "application/json"
    file:close()
  else
    wrk.headers["X-Api-Key"] = "user:00000001234"
  end
end

function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format("\nresult requests=%d elapsed=%d p50=%d p99=%d failed=%d refused=%d\n",
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    e.connect + e.read + e.write + e.timeout, e.status))
end
