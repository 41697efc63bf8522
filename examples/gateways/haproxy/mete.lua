-- SPDX-License-Identifier: Apache-2.0
--
-- The action "mete" asks mete about a request and applies the decision.

-- The proxy "mete" in haproxy.cfg has mete's address and timeouts.
local PROXY = "abns@mete"

-- The total timeout in milliseconds. It must exceed the timeouts of that proxy: this
-- client tries four times before it gives up.
local BACKSTOP = 60000

-- The statuses for the client. Any other status means that mete is misconfigured.
local DENIALS = { [400] = true, [403] = true, [429] = true, [503] = true }

-- The statuses that HAProxy sends if mete does not respond. 400 is excluded: HAProxy
-- sends it for a request that is too long, so a client could cause it and pass.
local SILENCES = { [502] = true, [503] = true, [504] = true }

-- The fields of a denial that are sent to the client.
local FIELDS = { "cache-control", "content-type", "ratelimit", "ratelimit-policy", "retry-after", "x-ratelimit-reason" }

-- Fields that describe the client's connection and body.
local DROPPED = {
    "connection", "content-length", "expect", "host", "keep-alive", "proxy-connection",
    "te", "trailer", "transfer-encoding", "upgrade",
}

-- The maximum number of header lines of a request. HAProxy accepts 101, but its client
-- crashes at that number, and the request to mete has some more.
local MOST_LINES = 80

-- question returns the fields that describe the request to mete: the client's fields,
-- except the ones that only HAProxy may write. It returns nil if there are too many.
local function question(txn)
    local fields, lines = txn.http:req_get_headers(), 0
    for _, values in pairs(fields) do
        for _ in pairs(values) do
            lines = lines + 1
        end
    end
    if lines > MOST_LINES then
        return nil
    end
    for _, name in ipairs(DROPPED) do
        fields[name] = nil
    end
    local target = txn.sf:pathq()
    if target == "" then
        target = txn.sf:url() -- "*"
    end
    fields["x-original-method"] = { txn.sf:method() }
    fields["x-original-uri"] = { target }
    fields["x-original-host"] = { txn.sf:req_fhdr("host") }
    fields["x-forwarded-for"] = { txn.sf:src() }
    return fields
end

-- keep stores the first line of a field in a variable for haproxy.cfg.
local function keep(txn, answer, field, variable)
    local lines = answer.headers[field]
    if lines then
        txn:set_var(variable, lines[0])
    end
end

-- deny sends mete's denial to the client.
local function deny(txn, answer)
    local reply = txn:reply({ status = answer.status, body = answer.body })
    for _, name in ipairs(FIELDS) do
        for _, line in pairs(answer.headers[name] or {}) do
            reply:add_header(name, line)
        end
    end
    txn:done(reply)
end

-- refuse responds to the client without mete.
local function refuse(txn, status, title)
    local reply = txn:reply({
        status = status,
        body = '{"type":"about:blank","title":"' .. title .. '","status":' .. status .. '}',
    })
    reply:add_header("content-type", "application/problem+json")
    txn:done(reply)
end

core.register_action("mete", { "http-req" }, function(txn, mode)
    local fields = question(txn)
    if not fields then
        refuse(txn, 431, "Request Header Fields Too Large") -- and is at an end
    end
    local answer = core.httpclient():get({
        url = "http://mete/v1/decision",
        dst = PROXY,
        headers = fields,
        timeout = BACKSTOP,
    })
    if not answer.headers or not answer.headers["x-mete"] then
        if mode ~= "open" or not SILENCES[answer.status] then
            refuse(txn, 503, "Service Unavailable")
        end
    elseif answer.status == 200 then
        keep(txn, answer, "ratelimit", "txn.mete_ratelimit")
        keep(txn, answer, "ratelimit-policy", "txn.mete_policy")
    elseif DENIALS[answer.status] then
        deny(txn, answer)
    else
        core.Alert("mete answers " .. answer.status .. ": " .. answer.body)
        refuse(txn, 503, "Service Unavailable")
    end
end, 1)
