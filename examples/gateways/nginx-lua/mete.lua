-- SPDX-License-Identifier: Apache-2.0
--
-- Asks mete about this request and applies the decision. It uses its own connection,
-- because ngx.location.capture does not work with HTTP/2.

local METE = "127.0.0.1:8080"

-- FAIL OPEN: requests pass while mete is down. With false they get a 503.
local OPEN = true

-- The timeouts for mete in milliseconds: to connect, to send, and to receive. The last
-- one must be longer than the longest queue of the policy.
local CONNECT, SEND, READ = 250, 1000, 1000

-- Idle connections are kept for 60 s, less than in mete (timeouts.idle), and up to 64 per
-- worker.
local IDLE, KEPT = 60000, 64

-- The statuses for the client. Any other status means that mete is misconfigured.
local DENIALS = { [400] = true, [403] = true, [429] = true, [503] = true }

-- The fields that are sent to the client, on every response and on denials.
local ALWAYS = { "RateLimit", "RateLimit-Policy" }
local DENIED = { "Cache-Control", "Content-Type", "Retry-After", "X-RateLimit-Reason" }

-- Fields that describe the client's connection and body, and fields that a client must
-- not set.
local DROPPED = {
    ["connection"] = true, ["content-length"] = true, ["expect"] = true, ["host"] = true,
    ["keep-alive"] = true, ["proxy-connection"] = true, ["te"] = true, ["trailer"] = true,
    ["transfer-encoding"] = true, ["upgrade"] = true,
    ["x-original-method"] = true, ["x-original-uri"] = true, ["x-original-host"] = true,
    ["x-forwarded-for"] = true,
}

local MOST_FIELDS = 200

-- refuse responds to the client without mete.
local function refuse(status, title)
    ngx.status = status
    ngx.header["Content-Type"] = "application/problem+json"
    ngx.print('{"type":"about:blank","title":"', title, '","status":', status, "}")
    return ngx.exit(ngx.HTTP_OK)
end

-- question returns the text of the request to mete, or nil if there are too many fields.
-- HTTP/1.0 avoids chunked responses.
local function question()
    local fields, err = ngx.req.get_headers(MOST_FIELDS)
    if err == "truncated" then
        return nil
    end
    local lines = {
        "GET /v1/decision HTTP/1.0",
        "Host: mete",
        "Connection: keep-alive",
        "X-Original-Method: " .. ngx.req.get_method(),
        "X-Original-URI: " .. ngx.var.request_uri,
        "X-Original-Host: " .. ngx.var.host,
        "X-Forwarded-For: " .. ngx.var.remote_addr,
    }
    for name, values in pairs(fields) do
        if not DROPPED[name] then
            for _, value in ipairs(type(values) == "table" and values or { values }) do
                lines[#lines + 1] = name .. ": " .. tostring(value)
            end
        end
    end
    return table.concat(lines, "\r\n") .. "\r\n\r\n"
end

-- read returns the response on a connection: status, fields with lower-case names, body.
-- On an error it returns nil and the reason.
local function read(conn)
    local line, err = conn:receive("*l")
    if not line then
        return nil, err
    end
    local answer = { status = tonumber(line:match("^HTTP/1%.%d (%d%d%d)")), fields = {}, body = "" }
    while true do
        line, err = conn:receive("*l")
        if not line then
            return nil, err
        elseif line == "" then
            break
        end
        local name, value = line:match("^([^:]+):%s*(.-)%s*$")
        if name then
            answer.fields[name:lower()] = value
        end
    end
    local length = tonumber(answer.fields["content-length"])
    if length ~= 0 then
        answer.body, err = conn:receive(length or "*a")
        if not answer.body then
            return nil, err
        end
    end
    if length and answer.fields["connection"] == "keep-alive" then
        conn:setkeepalive(IDLE, KEPT)
    else
        conn:close()
    end
    return answer
end

-- ask returns mete's response, or nil and the reason. If a kept connection has ended, it
-- tries again.
local function ask(text)
    local host, port = METE:match("^(.*):(%d+)$")
    while true do
        local conn = ngx.socket.tcp()
        conn:settimeouts(CONNECT, SEND, READ)
        local ok, err = conn:connect(host, tonumber(port))
        if not ok then
            return nil, err
        end
        local kept = conn:getreusedtimes() > 0
        local answer
        ok, err = conn:send(text)
        if ok then
            answer, err = read(conn)
        end
        if answer then
            return answer
        end
        conn:close()
        if not kept or err == "timeout" then
            return nil, err
        end
    end
end

-- pass_on copies mete's fields to the client's response.
local function pass_on(fields, names)
    for _, name in ipairs(names) do
        ngx.header[name] = fields[name:lower()]
    end
end

local text = question()
if not text then
    return refuse(431, "Request Header Fields Too Large")
end

local answer, err = ask(text)
if not answer then
    ngx.log(ngx.ERR, "mete does not answer: ", err)
    if OPEN then
        return
    end
    return refuse(503, "Service Unavailable")
end

if answer.status == 200 then
    return pass_on(answer.fields, ALWAYS)
elseif not DENIALS[answer.status] then
    ngx.log(ngx.ERR, "mete answers ", answer.status, ": ", answer.body)
    return refuse(503, "Service Unavailable")
end

pass_on(answer.fields, ALWAYS)
pass_on(answer.fields, DENIED)
ngx.header["Content-Length"] = #answer.body
ngx.status = answer.status
ngx.print(answer.body)
return ngx.exit(ngx.HTTP_OK)
